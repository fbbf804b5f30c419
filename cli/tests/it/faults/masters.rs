//! Masters that are killed, stopped, or whose clocks jump.

use super::cluster::Fleet;
use super::disks::jump;
use super::phase::Phase;
use super::processes::stop;
use super::row::{Effect, Scene, rows, three};
use super::shim;
use crate::support::{Sandbox, process, until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

rows! {
    /// The master is killed and started again while its workers keep running: no finished work is repeated.
    Master killed_master_changes_nothing: ["F11"]
        at [
            Map, Idle, Split, Spill, Shuffle, Received, ShuffleFromDisk, Merge, Reduce, BeforeCommit, AfterCommit, Publish,
            Cleanup
        ]
        else ""
        within 20 s on three => replace_master;
    /// The master is stopped for three seconds: no worker counts as lost because of messages that the master
    /// did not receive.
    Master master_that_pauses_for_three_seconds_changes_nothing: ["N17"]
        at [Shuffle, Idle, Map, Spill, ShuffleFromDisk, Merge, Reduce, BeforeCommit, AfterCommit]
        else "no master takes part, or it is what stands at the phase"
        within 20 s on three => pause_master;
    /// The wall clock of the master jumps by ten years.
    Master clock_of_the_master_that_jumps_changes_nothing: ["T01", "T02"]
        at [
            Map, Idle, Split, Spill, Shuffle, Received, ShuffleFromDisk, Merge, Reduce, BeforeCommit, AfterCommit, Publish,
            Cleanup
        ]
        else ""
        within 20 s on with_shim => jump;
}

/// Three workers, and a master and clients with the shim preloaded.
fn with_shim(sandbox: &Sandbox) -> Result<Fleet, &'static str> {
    let log = ("GRISTMILL_LOG".to_owned(), "debug".to_owned());
    let environment = vec![shim::environment(sandbox).ok_or("needs a C compiler")?, log];
    Ok(Fleet { environment, ..three(sandbox)? })
}

fn replace_master<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let cluster = scene.cluster;
    let pid = cluster.standing.master.pid();
    let lived = process::is_alive(pid);
    cluster.kill_master();
    let ended = !process::is_alive(pid);
    cluster.start_master();
    if scene.phase == Phase::Received {
        // The worker reports each keep's data before the fetch ends.
        cluster.standing.await_workers(cluster.len());
    }
    Effect::once_if(move || lived && ended).unnoticed()
}

fn pause_master<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    const PAUSE: Duration = Duration::from_secs(3);
    let pid = scene.cluster.standing.master.pid();
    stop(pid);
    let start = Instant::now();
    until("the pause to pass", || (PAUSE <= start.elapsed()).then_some(()));
    let stood = process::is_stopped(pid);
    process::signal(pid, Signal::CONT);
    Effect::once_if(move || stood).unnoticed()
}

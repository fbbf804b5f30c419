//! Processes that are killed, stopped or interrupted.

use super::row::{Effect, Scene, rows, three};
use super::run::Ending;
use crate::support::{oracle, process, until};
use rustix::process::Signal;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

rows! {
    /// A worker is killed: its work is done again elsewhere.
    Worker killed_worker_changes_nothing: ["F01", "F02", "F03", "F04", "F05"]
        at [Map, Idle, Spill, Shuffle, ShuffleFromDisk, Merge, Reduce, BeforeCommit, AfterCommit, Publish, Cleanup]
        else "no worker takes part in cutting the input"
        within 10 s on three => kill_worker;
    /// A worker and its supervisor are killed, as with a machine that is switched off.
    Worker lost_machine_changes_nothing: ["F02", "F03", "F05"]
        at [Shuffle, Idle, Map, Spill, ShuffleFromDisk, Merge, Reduce, BeforeCommit, AfterCommit, Publish, Cleanup]
        else "no worker takes part in cutting the input"
        within 10 s on three => lose_machine;
    /// A worker is stopped for a second, and does not count as lost.
    Worker worker_that_pauses_for_a_second_changes_nothing: ["F09"]
        at [Map, Idle, Spill, Shuffle, Merge, Reduce, BeforeCommit, AfterCommit]
        else "no worker takes part"
        within 10 s on three => pause_worker;
    /// A worker is stopped until it counts as lost, and continues then: its late reports and commits do not
    /// count.
    Worker worker_that_comes_back_from_the_dead_changes_nothing: ["F09"]
        at [BeforeCommit, Map, Spill, Shuffle, Merge, Reduce, AfterCommit]
        else "no worker does anything that could come late"
        within 20 s on three => stop_worker_until_it_is_given_up;
    /// The submitter is killed: its job ends, and its output is removed.
    Submitter killed_submitter_leaves_nothing: ["F16"]
        at [Map, Spill, Shuffle, Merge, Reduce, BeforeCommit, AfterCommit]
        else "there is no submitter yet, or the next two rows say what happens"
        within 10 s on three => kill_submitter;
    /// The submitter is killed before the master knows of its job.
    Submitter submitter_killed_before_it_submits_leaves_nothing: ["F16"]
        at [Split]
        else "there is no submitter yet, or the job is known"
        within 10 s on three => kill_submitter_before_its_job;
    /// The submitter is killed while it closes the output of a finished job: the master closes it.
    Submitter submitter_killed_while_it_closes_the_output_changes_nothing: ["F16"]
        at [Publish, Cleanup]
        else "the output is not being closed"
        within 10 s on three => kill_closing_submitter;
    /// The submitter is interrupted: it cancels its job.
    Submitter interrupted_submitter_cancels_its_job: ["F16"]
        at [Reduce, Map, Spill, Shuffle, Merge, BeforeCommit, AfterCommit]
        else "there is no submitter yet, no job, or the job is done"
        within 10 s on three => interrupt_submitter;
}

/// A fault that has fired once if an earlier process has ended.
fn ended<'s>(pid: u32, kill: impl FnOnce()) -> Effect<'s> {
    let lived = process::is_alive(pid);
    kill();
    Effect::once_if(move || lived && !process::is_alive(pid))
}

fn kill_worker<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let pid = scene.cluster.pid(scene.victim());
    ended(pid, || process::kill(pid))
}

fn lose_machine<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let victim = scene.victim();
    ended(scene.cluster.pid(victim), || scene.cluster.switch_off(victim))
}

/// Stops a process and waits until it has stopped.
pub fn stop(pid: u32) {
    process::signal(pid, Signal::STOP);
    until("a process to stand still", || process::is_stopped(pid).then_some(()));
}

fn pause_worker<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    const PAUSE: Duration = Duration::from_secs(1);
    let pid = scene.cluster.pid(scene.victim());
    stop(pid);
    let (start, stood) = (Instant::now(), Rc::new(Cell::new(false)));
    let still = stood.clone();
    Effect::once_if(move || stood.get()).unnoticed().heals(move || {
        until("the pause to pass", || (PAUSE <= start.elapsed()).then_some(()));
        still.set(process::is_stopped(pid));
        process::signal(pid, Signal::CONT);
    })
}

fn stop_worker_until_it_is_given_up<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let (cluster, pid) = (scene.cluster, scene.cluster.pid(scene.victim()));
    stop(pid);
    let given_up = Rc::new(Cell::new(false));
    let seen = given_up.clone();
    Effect::once_if(move || given_up.get()).heals(move || {
        cluster.standing.await_workers(cluster.len() - 1);
        seen.set(process::is_stopped(pid));
        process::signal(pid, Signal::CONT);
        // It is replaced when it learns that it counts as lost.
        until("the end of a worker that was given up", || (!process::is_alive(pid)).then_some(()));
        cluster.standing.await_workers(cluster.len());
    })
}

/// Waits until the master counts the disturbed job as ended in this state.
fn await_end(scene: &Scene<'_>, state: &str) {
    let now = || scene.cluster.standing.job("job-2")["state"].as_str().map(str::to_owned);
    until("the end of the job", || (now().as_deref() == Some(state)).then_some(()));
}

fn kill_submitter<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let pid = scene.client.unwrap();
    let effect = ended(pid, || process::kill(pid));
    await_end(scene, "failed");
    effect.ends(Ending::ABANDONED)
}

fn kill_submitter_before_its_job<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let pid = scene.client.unwrap();
    ended(pid, || process::kill(pid)).before_submission().ends(Ending::ABANDONED)
}

fn kill_closing_submitter<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let (pid, output) = (scene.client.unwrap(), scene.cluster.sandbox.path("out"));
    let effect = ended(pid, || process::kill(pid));
    let is_closed = || {
        let names = oracle::names(&output);
        names.iter().any(|name| name == "_SUCCESS") && names.iter().all(|name| name != "_temporary")
    };
    until("a closed output", || is_closed().then_some(()));
    await_end(scene, "succeeded");
    effect.ends(Ending { code: None, ..Ending::SAME_OUTPUT })
}

fn interrupt_submitter<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let pid = scene.client.unwrap();
    let lived = process::is_alive(pid);
    process::signal(pid, Signal::INT);
    await_end(scene, "cancelled");
    Effect::once_if(move || lived).ends(Ending::CANCELLED)
}

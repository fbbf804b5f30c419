//! Workers whose memory runs out.

use super::cluster::{Fleet, WorkerSpec};
use super::processes::stop;
use super::row::{Effect, Scene, rows};
use crate::support::memory_group::MemoryGroup;
use crate::support::{Sandbox, is_root, process, until};
use rustix::process::Signal;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

rows! {
    /// Memory runs out on a worker, and the kernel ends its process.
    Memory worker_ended_for_lack_of_memory_changes_nothing: ["F17"]
        at [Map, Idle, Spill, Shuffle, ShuffleFromDisk, Merge, Reduce, BeforeCommit, AfterCommit, Publish, Cleanup]
        else "no worker takes part in cutting the input"
        within 20 s on with_little_memory => use_up_memory;
}

/// Memory limit of the processes of a worker together.
const LIMIT: u64 = 256 << 20;

/// Three workers, each in a control group of its own.
fn with_little_memory(sandbox: &Sandbox) -> Result<Fleet, &'static str> {
    /// Groups are not in the sandbox, and tests run in parallel.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    const WHY: &str = "needs root and memory control groups of version 1";
    if !is_root("control groups") {
        return Err(WHY);
    }
    let group = |_| MemoryGroup::new(&format!("row-{}", NUMBER.fetch_add(1, Ordering::Relaxed)), LIMIT);
    let groups: Vec<MemoryGroup> = (0..3).map(group).collect::<Option<_>>().ok_or(WHY)?;
    // Mount point of the balloon. The mount itself is private to its process.
    fs::create_dir(sandbox.path("balloon")).map_err(|_| WHY)?;
    let spec = |group: &MemoryGroup| WorkerSpec { prepare: Some(group.enter()), ..WorkerSpec::default() };
    let workers = groups.iter().map(spec).collect();
    Ok(Fleet { workers, groups, ..Fleet::default() })
}

/// Fills the memory of the victim's group with a file on a memory disk, until the kernel kills the process
/// that has offered itself. Memory that another process of the group has written there counts for the group.
fn use_up_memory<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let (victim, directory) = (scene.victim(), scene.cluster.sandbox.text("balloon"));
    let group = &scene.cluster.fleet.groups[victim];
    let pid = scene.cluster.pid(victim);
    let (before, lived) = (group.kills(), process::is_alive(pid));
    // The worker may release memory too late for the next bytes of the balloon. The kernel then kills another
    // process of the group. That must not be the supervisor, nor a process that it starts before there is
    // room for it.
    let supervisor = scene.cluster.standing.workers[victim].pid();
    stop(supervisor);
    group.put_out(supervisor);
    // The mount is private, so that it ends with its process.
    let script = format!(
        "{}\nmount -t tmpfs none '{directory}'\nwhile [ $(sed -n 's/^oom_kill //p' '{}') = {before} ]; do \
         head -c 1048576 /dev/zero >> '{directory}/file'; done",
        group.enter(),
        group.counter().display()
    );
    // It may be killed too, when the worker is.
    Command::new("unshare").args(["-m", "sh", "-c", &script]).status().unwrap();
    until("room in the group", || (group.used() < LIMIT / 2).then_some(()));
    group.take_in(supervisor);
    process::signal(supervisor, Signal::CONT);
    until("the end of the worker", || (!process::is_alive(pid)).then_some(()));
    assert!(lived, "the worker was not there");
    Effect::at_least_once(move || group.kills() - before)
}

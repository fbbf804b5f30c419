//! Processes left behind by user code: found as children of this process, killed and reaped.
//!
//! User code runs in sessions of its own, and this process is the reaper of all its descendants. A process that has
//! left its group, its session and its parent therefore becomes a child of this one with a foreign session. Children in
//! this process's session are the program's own, and never strays.

use crate::owner::ProcessStat;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// Maximum number of rounds of killing strays, whose own children become strays, and the pause for the kernel to end
/// those of a round.
const ROUNDS_MAX: u32 = 100;
const PAUSE: Duration = Duration::from_millis(2);

/// Held for reading while a process is started and not yet recorded, and for writing while strays are searched.
static STARTS: RwLock<()> = RwLock::new(());

/// Processes of user code started here, by number and start time, because a number can be reused.
static OWN: Mutex<BTreeSet<(i32, u64)>> = Mutex::new(BTreeSet::new());

/// Start time of the first of them. Older children existed before this process, as children of the shell that became
/// it.
static FIRST: OnceLock<u64> = OnceLock::new();

/// Makes this process the reaper of all processes that its children leave behind.
pub(super) fn adopt() {
    // Available since Linux 3.4.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Starts a process of user code, which must enter a session of its own.
pub(super) fn start(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let _known = STARTS.read().unwrap_or_else(PoisonError::into_inner);
    adopt();
    let child = spawn()?;
    if let Some(seen) = ProcessStat::read(child.id()) {
        FIRST.get_or_init(|| seen.start);
        OWN.lock().unwrap_or_else(PoisonError::into_inner).insert((child.id() as i32, seen.start));
    }
    Ok(child)
}

/// Kills the processes left behind by user code: those with this directory in their environment, and those older than
/// all running user code that this process has started, because they cannot descend from it. The process that was
/// started in the directory has been reaped.
pub fn end_strays(directory: &Path) {
    for _ in 0..ROUNDS_MAX {
        if !end_those_seen(directory).unwrap_or(false) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Runs one round; true if more strays may exist.
fn end_those_seen(directory: &Path) -> Option<bool> {
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    let session = ProcessStat::read(getpid().as_raw_pid())?.session;
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    own.retain(|(pid, start)| ProcessStat::read(*pid).is_some_and(|seen| seen.start == *start));
    let runs =
        |(pid, start): &(i32, u64)| ProcessStat::read(*pid).filter(|seen| !seen.is_zombie).map(|_| *start);
    let oldest = own.iter().filter_map(runs).min();
    let mut ended = false;
    for pid in children() {
        let Some(seen) = ProcessStat::read(pid).filter(|seen| seen.session != session) else { continue };
        let (Some(process), false) = (Pid::from_raw(pid), own.contains(&(pid, seen.start))) else { continue };
        let is_left = FIRST.get().is_some_and(|first| *first <= seen.start)
            && oldest.is_none_or(|oldest| seen.start < oldest);
        if seen.is_zombie || is_left || names(pid, directory) {
            // A process that has ended meanwhile is only reaped.
            let _ = kill_process(process, Signal::KILL);
            let reaped = waitpid(Some(process), WaitOptions::NOHANG);
            ended |= !seen.is_zombie || reaped.is_err();
        }
    }
    Some(ended)
}

/// Children of all threads of this process; empty if the kernel does not list them.
fn children() -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// True if the environment of a process contains the directory, or a path in it.
fn names(pid: i32, directory: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let directory = directory.as_os_str().as_encoded_bytes();
    let mut places = memchr::memmem::find_iter(&environment, directory);
    places.any(|at| matches!(environment.get(at + directory.len()), None | Some(0 | b'/')))
}

//! Processes that user code leaves behind: found as children of this process, ended and reaped.
//!
//! User code runs in sessions of its own, and this process is the reaper of all that descends from it, so a process that
//! has left its group, its session and its parent becomes a child of this one with a session that is not this one's.
//! Children of this session are the program's own, and never strays.

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// Rounds of ending strays, whose own children become strays; and the pause in which the kernel ends those of a round.
const ROUNDS_MAX: u32 = 100;
const PAUSE: Duration = Duration::from_millis(2);

/// Held by those who start a process until it is known, and alone by those who look for strays.
static STARTS: RwLock<()> = RwLock::new(());

/// Processes of user code that were started here, by number and start: a number alone may become another's.
static OWN: Mutex<BTreeSet<(i32, u64)>> = Mutex::new(BTreeSet::new());

/// When the first of them was started. What is older came with this process, as children of the shell that became it.
static FIRST: OnceLock<u64> = OnceLock::new();

/// A process, from `/proc/PID/stat`.
struct Seen {
    is_zombie: bool,
    session: i32,
    /// In ticks of the machine's clock.
    start: u64,
}

impl Seen {
    fn of(pid: i32) -> Option<Self> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name, in brackets, may have anything in it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            is_zombie: *fields.first()? == "Z",
            session: fields.get(3)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Makes this process the reaper of all that its children leave behind.
pub(super) fn adopt() {
    // Possible since Linux 3.4.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Starts a process of user code, which must enter a session of its own.
pub(super) fn start(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let _known = STARTS.read().unwrap_or_else(PoisonError::into_inner);
    adopt();
    let child = spawn()?;
    if let Some(seen) = Seen::of(child.id() as i32) {
        FIRST.get_or_init(|| seen.start);
        OWN.lock().unwrap_or_else(PoisonError::into_inner).insert((child.id() as i32, seen.start));
    }
    Ok(child)
}

/// Ends what user code has left behind: what has this directory in its environment, and what is older than all user code
/// that this process has started and that still runs, so that it descends from none of it. The process that was started in
/// the directory has been reaped.
pub fn end_strays(directory: &Path) {
    for _ in 0..ROUNDS_MAX {
        if !end_those_seen(directory).unwrap_or(false) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// One round; true if there may be more.
fn end_those_seen(directory: &Path) -> Option<bool> {
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    let session = Seen::of(getpid().as_raw_pid())?.session;
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    own.retain(|(pid, start)| Seen::of(*pid).is_some_and(|seen| seen.start == *start));
    let runs = |(pid, start): &(i32, u64)| Seen::of(*pid).filter(|seen| !seen.is_zombie).map(|_| *start);
    let oldest = own.iter().filter_map(runs).min();
    let mut ended = false;
    for pid in children() {
        let Some(seen) = Seen::of(pid).filter(|seen| seen.session != session) else { continue };
        let (Some(process), false) = (Pid::from_raw(pid), own.contains(&(pid, seen.start))) else { continue };
        let is_left = FIRST.get().is_some_and(|first| *first <= seen.start)
            && oldest.is_none_or(|oldest| seen.start < oldest);
        if seen.is_zombie || is_left || names(pid, directory) {
            // One that has ended meanwhile is only reaped.
            let _ = kill_process(process, Signal::KILL);
            let reaped = waitpid(Some(process), WaitOptions::NOHANG);
            ended |= !seen.is_zombie || reaped.is_err();
        }
    }
    Some(ended)
}

/// The children of all threads of this process; none where the kernel does not list them.
fn children() -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// True if the environment of a process names the directory, or something in it.
fn names(pid: i32, directory: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let directory = directory.as_os_str().as_encoded_bytes();
    let mut places = memchr::memmem::find_iter(&environment, directory);
    places.any(|at| matches!(environment.get(at + directory.len()), None | Some(0 | b'/')))
}

//! What the kernel does when memory runs out: whom it ends first, and whether it was the one who ended a process. It sends
//! SIGKILL, as anybody may, but it counts.

use gristmill_worker::control_group::{MemoryGroup, memory_groups};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What worker processes add to the kernel's score of whom to end first, in thousandths of the memory there is. Half is
/// more than a master or a client ever has; whatever else runs and is larger still goes first.
const WORKER_SCORE: u32 = 500;

/// Lets the kernel end this process before its master and the clients, which hold what cannot be run again. Memory
/// that a dying process has not given back yet makes the kernel look for the next one, which could be anybody.
pub fn offer_this_process_first() {
    // Where there is no such file the kernel has other ways.
    let score = Path::new("/proc/self/oom_score_adj");
    let inherited = fs::read_to_string(score).ok().and_then(|text| text.trim().parse::<i64>().ok());
    let wanted = i64::from(WORKER_SCORE).max(inherited.unwrap_or(0));
    if let Err(error) = fs::write(score, wanted.to_string()) {
        tracing::debug!(%error, "the kernel does not take this process first when memory runs out");
    }
}

/// The kernel's count of processes that it ended for lack of memory: of this process's control group, in which its
/// children are too, or of the first one around it that has a count, or of the whole machine. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryKills {
    counter: Arc<PathBuf>,
    /// How many have been accounted for.
    seen: Arc<AtomicU64>,
}

impl MemoryKills {
    /// Counts from now on.
    pub(crate) fn watch() -> Self {
        let counter = memory_groups().iter().map(counter).find(|path| read(path).is_some());
        let counter = counter.unwrap_or_else(|| PathBuf::from("/proc/vmstat"));
        let seen = Arc::new(AtomicU64::new(read(&counter).unwrap_or(0)));
        Self { counter: Arc::new(counter), seen }
    }

    /// Whether there was one that is not accounted for yet; it is then. Asked when a process has died by SIGKILL.
    pub(crate) fn take_one(&self) -> bool {
        let count = read(&self.counter).unwrap_or(0);
        let one_more = |seen| (seen < count).then_some(seen + 1);
        self.seen.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }
}

/// The file of a group that holds the count.
fn counter(group: &MemoryGroup) -> PathBuf {
    group.folder.join(if group.unified { "memory.events" } else { "memory.oom_control" })
}

fn read(counter: &Path) -> Option<u64> {
    let text = fs::read_to_string(counter).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kill_is_accounted_for_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memory.events");
        let count =
            |kills: u64| fs::write(&file, format!("oom 7\noom_kill {kills}\noom_group_kill 0\n")).unwrap();
        count(3);
        let seen = Arc::new(AtomicU64::new(read(&file).unwrap()));
        let kills = MemoryKills { counter: Arc::new(file.clone()), seen };
        assert!(!kills.take_one(), "all of it was before");
        count(5);
        assert!(kills.clone().take_one() && kills.take_one());
        assert!(!kills.take_one());
    }
}

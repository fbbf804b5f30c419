//! What the kernel does when memory runs out: whom it ends first, and whether it was the one who ended a process. It sends
//! SIGKILL, as anybody may, but it counts.

use gristmill_worker::control_group::{MemoryGroup, memory_groups};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

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

/// A kill that the kernel counted so long ago is not that of a process which is found dead only now.
const RECENT: Duration = Duration::from_secs(2);

/// How often the count is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// The kernel's count of processes that it ended for lack of memory: of this process's control group, in which its
/// children are too, or of the first one around it that has a count, or of the whole machine. Cloning shares it.
///
/// Where it is of more than this process's children, a kill among strangers and a SIGKILL of one of these by somebody
/// else within [`RECENT`] are taken for one and the same.
#[derive(Clone, Debug)]
pub(crate) struct MemoryKills(Arc<Mutex<Counted>>);

impl MemoryKills {
    /// Counts from now on, as long as somebody has a clone.
    pub(crate) fn watch() -> Self {
        let counter = memory_groups().iter().map(counter).find(|path| read(path).is_some());
        let counter = counter.unwrap_or_else(|| PathBuf::from("/proc/vmstat"));
        let count = read(&counter).unwrap_or(0);
        let counted = Arc::new(Mutex::new(Counted { counter, recent: RecentKills::after(count) }));
        tokio::spawn(look_again_and_again(Arc::downgrade(&counted)));
        Self(counted)
    }

    /// Whether there was one a moment ago that is not accounted for yet; it is then. Asked when a process has died by
    /// SIGKILL.
    pub(crate) fn take_one(&self) -> bool {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.look();
        counted.recent.take_one()
    }
}

/// Notes when the count goes up.
async fn look_again_and_again(counted: Weak<Mutex<Counted>>) {
    let mut turn = tokio::time::interval(LOOK);
    loop {
        turn.tick().await;
        let Some(counted) = counted.upgrade() else { return };
        counted.lock().unwrap_or_else(PoisonError::into_inner).look();
    }
}

#[derive(Debug)]
struct Counted {
    counter: PathBuf,
    recent: RecentKills,
}

impl Counted {
    fn look(&mut self) {
        self.recent.count_is(read(&self.counter).unwrap_or(0), Instant::now());
    }
}

/// Most kills that are noted at one look.
const KEPT_MAX: u64 = 1024;

/// When the count went up, while that is recent and nobody has asked.
#[derive(Debug)]
struct RecentKills {
    count: u64,
    noticed: VecDeque<Instant>,
}

impl RecentKills {
    fn after(count: u64) -> Self {
        Self { count, noticed: VecDeque::new() }
    }

    fn count_is(&mut self, count: u64, now: Instant) {
        for _ in 0..count.saturating_sub(self.count).min(KEPT_MAX) {
            self.noticed.push_back(now);
        }
        self.count = count;
        self.noticed.retain(|at| now.duration_since(*at) <= RECENT);
    }

    fn take_one(&mut self) -> bool {
        self.noticed.pop_front().is_some()
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
        let counter = folder.path().join("memory.events");
        let count =
            |kills: u64| fs::write(&counter, format!("oom 7\noom_kill {kills}\noom_group_kill 0\n")).unwrap();
        count(3);
        let recent = RecentKills::after(read(&counter).unwrap());
        let kills = MemoryKills(Arc::new(Mutex::new(Counted { counter: counter.clone(), recent })));
        assert!(!kills.take_one(), "all of it was before");
        count(5);
        assert!(kills.clone().take_one() && kills.take_one());
        assert!(!kills.take_one());
    }

    #[test]
    fn kill_of_a_while_ago_accounts_for_nobody() {
        let begun = Instant::now();
        let mut recent = RecentKills::after(7);
        recent.count_is(8, begun);
        recent.count_is(9, begun + RECENT);
        recent.count_is(9, begun + RECENT + LOOK);
        assert!(recent.take_one(), "that of two seconds later is recent");
        assert!(!recent.take_one(), "the first is not");
    }
}

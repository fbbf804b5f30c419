//! Kills by the kernel when memory runs out: their order, and the check if the kernel has killed a process. Its SIGKILL
//! looks like any other, but it counts them.

use gristmill_worker::control_group::{MemoryGroup, memory_groups};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Added to the kernel's score of worker processes for the order of kills, in thousandths of the total memory. Half is
/// more than a master or a client ever uses; any other larger process is still killed first.
const WORKER_SCORE: u32 = 500;

/// Lets the kernel kill this process before its master and the clients, whose state cannot be recomputed. Memory that a
/// dying process has not yet freed makes the kernel kill another process, which could be any.
pub fn offer_this_process_first() {
    // Without that file the kernel uses other scores.
    let score = Path::new("/proc/self/oom_score_adj");
    let inherited = fs::read_to_string(score).ok().and_then(|text| text.trim().parse::<i64>().ok());
    let wanted = i64::from(WORKER_SCORE).max(inherited.unwrap_or(0));
    if let Err(error) = fs::write(score, wanted.to_string()) {
        tracing::debug!(%error, "the kernel does not take this process first when memory runs out");
    }
}

/// Age up to which a kill counted by the kernel is attributed to a process that is found dead.
const RECENT: Duration = Duration::from_secs(2);

/// Interval at which the count is read.
const LOOK: Duration = Duration::from_millis(250);

/// The kernel's count of processes killed for lack of memory: of this process's control group, which includes its
/// children, or of the first enclosing group with a count, or of the whole machine. Clones share it.
///
/// If the count includes other processes, a kill of one of those and another SIGKILL of a child of this process within
/// [`RECENT`] are not distinguished.
#[derive(Clone, Debug)]
pub(crate) struct MemoryKills(Arc<Mutex<CountedKills>>);

impl MemoryKills {
    /// Counts from now on, as long as a clone exists.
    pub(crate) fn watch() -> Self {
        let counter = memory_groups().iter().map(counter).find(|path| read(path).is_some());
        let counter = counter.unwrap_or_else(|| PathBuf::from("/proc/vmstat"));
        let count = read(&counter).unwrap_or(0);
        let counted = Arc::new(Mutex::new(CountedKills { counter, recent: RecentKills::after(count) }));
        tokio::spawn(look_again_and_again(Arc::downgrade(&counted)));
        Self(counted)
    }

    /// Returns true if a recent kill has not been attributed yet, and attributes it. Called when a process has died by
    /// SIGKILL.
    pub(crate) fn take_one(&self) -> bool {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.refresh();
        counted.recent.take_one()
    }
}

/// Reads the count periodically and notes its increases.
async fn look_again_and_again(counted: Weak<Mutex<CountedKills>>) {
    let mut turn = tokio::time::interval(LOOK);
    loop {
        turn.tick().await;
        let Some(counted) = counted.upgrade() else { return };
        counted.lock().unwrap_or_else(PoisonError::into_inner).refresh();
    }
}

#[derive(Debug)]
struct CountedKills {
    counter: PathBuf,
    recent: RecentKills,
}

impl CountedKills {
    fn refresh(&mut self) {
        self.recent.count_is(read(&self.counter).unwrap_or(0), Instant::now());
    }
}

/// Maximum number of kills noted at one read.
const KEPT_MAX: u64 = 1024;

/// Times of recent increases that have not been attributed.
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
    group.directory.join(if group.unified { "memory.events" } else { "memory.oom_control" })
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
        let directory = tempfile::tempdir().unwrap();
        let counter = directory.path().join("memory.events");
        let count =
            |kills: u64| fs::write(&counter, format!("oom 7\noom_kill {kills}\noom_group_kill 0\n")).unwrap();
        count(3);
        let recent = RecentKills::after(read(&counter).unwrap());
        let kills = MemoryKills(Arc::new(Mutex::new(CountedKills { counter: counter.clone(), recent })));
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

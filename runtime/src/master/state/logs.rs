//! User output of one job, attempt by attempt, up to a limit.
//!
//! Entering a line costs the same however many attempts have written.

use crate::api::LogEntry;
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use std::collections::BTreeMap;

/// Bytes of user output kept for one attempt.
const BYTES_PER_ATTEMPT_MAX: usize = 64 << 10;

/// Bytes of user output kept for one job.
const BYTES_PER_JOB_MAX: usize = 4 << 20;

/// Number of attempts of one job with an entry of their own. Output of further attempts is counted for their worker.
const ATTEMPTS_MAX: usize = 10_000;

/// The user output of one job.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Logs {
    entries: Vec<LogEntry>,
    /// Index into `entries` by attempt and worker.
    places: BTreeMap<(Option<AttemptId>, WorkerId), usize>,
    bytes: usize,
}

impl Logs {
    /// Adds output; `attempt` is `None` if it is unknown which of several attempts wrote it.
    pub(super) fn add(&mut self, attempt: Option<AttemptId>, worker: WorkerId, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let known = self.places.contains_key(&(attempt, worker));
        let attempt = attempt.filter(|_| known || self.entries.len() < ATTEMPTS_MAX);
        let entries = &mut self.entries;
        let at = *self.places.entry((attempt, worker)).or_insert_with(|| {
            entries.push(LogEntry { attempt, worker, text: String::new(), omitted_bytes: 0 });
            entries.len() - 1
        });
        let Some(entry) = self.entries.get_mut(at) else { return };
        let room = BYTES_PER_JOB_MAX.saturating_sub(self.bytes);
        let room = room.min(BYTES_PER_ATTEMPT_MAX.saturating_sub(entry.text.len()));
        let kept = bytes.len().min(room);
        entry.text.push_str(&String::from_utf8_lossy(&bytes[..kept]));
        entry.omitted_bytes += (bytes.len() - kept) as u64;
        self.bytes += kept;
    }

    /// All entries, in the order of their first output.
    pub(super) fn entries(&self) -> Vec<LogEntry> {
        self.entries.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::{JobId, TaskId};

    fn map(index: u32) -> Option<AttemptId> {
        Some(TaskId::map(JobId(1), index).attempt(0))
    }

    #[test]
    fn words_of_an_attempt_stand_together_however_they_come() {
        let mut logs = Logs::default();
        for (attempt, words) in [(map(0), "a"), (None, "?"), (map(1), "b"), (map(0), "A"), (None, "!")] {
            logs.add(attempt, WorkerId(1), words.as_bytes());
        }
        let texts: Vec<_> = logs.entries().into_iter().map(|entry| (entry.attempt, entry.text)).collect();
        assert_eq!(texts, [(map(0), "aA".into()), (None, "?!".into()), (map(1), "b".into())]);
    }

    #[test]
    fn entries_stay_bounded_and_nothing_is_left_uncounted_when_very_many_attempts_write() {
        let mut logs = Logs::default();
        let attempts = 10 * ATTEMPTS_MAX as u32;
        for index in 0..attempts {
            logs.add(map(index), WorkerId(index % 3), &[b'x'; 100]);
        }
        let entries = logs.entries();
        assert!(entries.len() <= ATTEMPTS_MAX + 3, "{}", entries.len());
        let sum: u64 = entries.iter().map(|entry| entry.text.len() as u64 + entry.omitted_bytes).sum();
        assert_eq!(sum, 100 * u64::from(attempts));
        let kept: usize = entries.iter().map(|entry| entry.text.len()).sum();
        assert_eq!(kept.max(logs.bytes), logs.bytes);
        assert!(kept <= BYTES_PER_JOB_MAX);
    }
}

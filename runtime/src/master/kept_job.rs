//! A job that has ended, as a master keeps it for later ones: what its trace, its explanations and its logs are made of.
//!
//! Not here: where it is kept (`archive`), and what is said of it (`state/explain.rs`).

use crate::api::{JobTrace, LogEntry};
use serde::Deserialize;

/// Bytes of what the code of one job wrote that are kept: a master has four times as much in memory while it lives, but
/// keeps a thousand jobs on disk.
pub(super) const LOG_BYTES_MAX: usize = 1 << 20;

/// A job that has ended.
#[derive(Debug)]
pub(crate) struct KeptJob {
    pub(crate) trace: JobTrace,
    /// What its code wrote; `None` if that was not kept, as by masters of before.
    pub(crate) logs: Option<Vec<LogEntry>>,
}

impl KeptJob {
    /// With as much of the logs as is kept.
    pub(crate) fn new(trace: JobTrace, logs: Vec<LogEntry>) -> Self {
        Self { trace, logs: Some(bounded(logs, LOG_BYTES_MAX)) }
    }

    /// Two JSON texts, a line each: the trace, and then the logs.
    pub(crate) fn to_text(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(&self.trace)?;
        if let Some(logs) = &self.logs {
            text.push(b'\n');
            serde_json::to_writer(&mut text, logs)?;
        }
        Ok(text)
    }

    /// Reads them; of an older file the trace alone.
    pub(crate) fn of_text(text: &[u8]) -> serde_json::Result<Self> {
        let mut texts = serde_json::Deserializer::from_slice(text);
        let trace = JobTrace::deserialize(&mut texts)?;
        let mut rest = texts.into_iter::<Vec<LogEntry>>();
        let logs = rest.next().transpose()?;
        match rest.next() {
            None => Ok(Self { trace, logs }),
            Some(_) => Err(serde::de::Error::custom("something follows the logs")),
        }
    }
}

/// The first words, at most so many bytes of them; what is left out is counted where it was.
fn bounded(mut logs: Vec<LogEntry>, bytes_max: usize) -> Vec<LogEntry> {
    let mut room = bytes_max;
    for entry in &mut logs {
        let kept = entry.text.floor_char_boundary(room);
        entry.omitted_bytes += (entry.text.len() - kept) as u64;
        entry.text.truncate(kept);
        room -= kept;
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::WorkerId;

    fn entry(text: &str) -> LogEntry {
        LogEntry { attempt: None, worker: WorkerId(1), text: text.to_owned(), omitted_bytes: 3 }
    }

    #[test]
    fn logs_are_cut_between_characters_and_what_is_left_out_is_counted() {
        let kept = bounded(vec![entry("abc"), entry("äö"), entry("d")], 6);
        let kept: Vec<_> = kept.iter().map(|entry| (entry.text.as_str(), entry.omitted_bytes)).collect();
        assert_eq!(kept, [("abc", 3), ("ä", 5), ("d", 3)]);
    }
}

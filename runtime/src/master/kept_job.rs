//! An ended job in the form that is kept for later masters: the data of its trace, explanations and logs.
//!
//! The storage is in `archive`, and the explanations in `state/explain.rs`.

use crate::api::{JobTrace, LogEntry};
use serde::Deserialize;
use std::io::{self, Write};

/// Bytes kept of the output of one job's code. A running master has four times as much in memory, but a thousand jobs
/// are kept on disk.
pub(super) const LOG_BYTES_MAX: usize = 1 << 20;

/// An ended job.
#[derive(Debug)]
pub(crate) struct KeptJob {
    pub(crate) trace: JobTrace,
    /// Output of its code.
    pub(crate) logs: Vec<LogEntry>,
}

impl KeptJob {
    /// Creates it with as much of the logs as is kept.
    pub(crate) fn new(trace: JobTrace, logs: Vec<LogEntry>) -> Self {
        Self { trace, logs: bounded(logs, LOG_BYTES_MAX) }
    }

    /// Writes it as two lines of JSON: the trace, and then the logs.
    pub(crate) fn write(&self, mut to: impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut to, &self.trace)?;
        to.write_all(b"\n")?;
        serde_json::to_writer(&mut to, &self.logs)?;
        to.flush()
    }

    /// Decodes it.
    pub(crate) fn of_text(text: &[u8]) -> serde_json::Result<Self> {
        let mut texts = serde_json::Deserializer::from_slice(text);
        let (trace, logs) = (JobTrace::deserialize(&mut texts)?, Vec::deserialize(&mut texts)?);
        texts.end()?;
        Ok(Self { trace, logs })
    }
}

/// Cuts the logs to their first `bytes_max` bytes. Dropped bytes are counted in their entries.
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

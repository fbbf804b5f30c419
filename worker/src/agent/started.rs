//! Record of the attempts that a worker's slots have started, in a file that outlives the process.
//!
//! Attempts are queued behind others, and a process that user code brings down can no longer report which
//! of them it had started. The parent process reads it here, so that the right attempt is charged. Not
//! here: removal of attempts that have ended; their entry stays until the slot starts the next one.

use gristmill_scheduler::ids::{AttemptId, JobId, TaskId, TaskKind};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Name of the file in the worker's first spill directory.
const FILE_NAME: &str = "begun";

/// Bytes of one slot's entry: job, kind, index and epoch, four bytes each, little-endian.
pub(super) const ENTRY_BYTES: usize = 16;

/// File as written by slots. Clones share it.
#[derive(Clone, Debug)]
pub struct StartedAttempts(Arc<File>);

impl StartedAttempts {
    /// Creates the file in this directory.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file =
            options.write(true).create(true).truncate(true).mode(0o600).open(directory.join(FILE_NAME))?;
        Ok(Self(Arc::new(file)))
    }

    /// Records that a slot, numbered from 0, starts or resumes an attempt.
    pub fn note(&self, slot: u32, attempt: AttemptId) {
        self.write(slot, &entry(attempt));
    }

    /// Records that the attempt of a slot has left it, suspended: it runs no user code.
    pub fn clear(&self, slot: u32) {
        self.write(slot, &[0; ENTRY_BYTES]);
    }

    fn write(&self, slot: u32, entry: &[u8; ENTRY_BYTES]) {
        // On a full disk only the attribution of a crash is lost.
        let _ = self.0.write_all_at(entry, u64::from(slot) * ENTRY_BYTES as u64);
    }
}

/// Returns the attempts that the slots of a worker with this first spill directory started last; empty if
/// it cannot be read.
#[must_use]
pub fn read(directory: &Path) -> Vec<AttemptId> {
    let bytes = std::fs::read(directory.join(FILE_NAME)).unwrap_or_default();
    let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
    entries.iter().filter_map(parse).collect()
}

/// Encodes an attempt as an entry.
pub(super) fn entry(attempt: AttemptId) -> [u8; ENTRY_BYTES] {
    let AttemptId { task: TaskId { job, kind, index }, epoch } = attempt;
    let mut entry = [0; ENTRY_BYTES];
    for (place, number) in entry.as_chunks_mut::<4>().0.iter_mut().zip([job.0, kind as u32, index, epoch]) {
        *place = number.to_le_bytes();
    }
    entry
}

/// Decodes the attempt of an entry; `None` for an empty one.
pub(super) fn parse(entry: &[u8; ENTRY_BYTES]) -> Option<AttemptId> {
    let (numbers, _) = entry.as_chunks::<4>();
    let [job, kind, index, epoch] = [0, 1, 2, 3].map(|place: usize| u32::from_le_bytes(numbers[place]));
    let task = match kind {
        0 => TaskId::map(JobId(job), index),
        1 => TaskId::reduce(JobId(job), index),
        _ => return None,
    };
    // Jobs are numbered from 1: zeros are a slot that never started an attempt.
    (0 < job).then(|| task.attempt(epoch))
}

// The discriminants are written to the file.
const _: () = assert!(TaskKind::Map as u32 == 0 && TaskKind::Reduce as u32 == 1, "kinds are numbered");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_says_what_it_started_last() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()), []);
        let begun = StartedAttempts::create(directory.path()).unwrap();
        let map = TaskId::map(JobId(7), 300).attempt(1);
        let reduce = TaskId::reduce(JobId(u32::MAX), 0).attempt(0);
        begun.note(2, TaskId::map(JobId(7), 299).attempt(0));
        begun.note(0, reduce);
        begun.note(2, map);
        assert_eq!(read(directory.path()), [reduce, map], "the slot between them began nothing");
        begun.clear(0);
        assert_eq!(read(directory.path()), [map], "what is suspended is not to blame");
    }
}

//! Bad records: those that the mapper refuses, and that the job may skip.
//!
//! An attempt collects them here in the order of their offsets. It fails with the first one that exceeds
//! the limit of the whole job.

use super::error::InputError;
use super::path::FilePath;
use crate::sanitize;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum bytes of a stored reason.
pub const REASON_BYTES_MAX: usize = 160;

/// Record that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRecord {
    /// Offset of its first byte in the file (after decompression).
    pub offset: u64,
    /// Reason for the refusal, on one line of at most [`REASON_BYTES_MAX`] bytes.
    pub reason: String,
}

/// Bad records of one file, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBadRecords {
    /// Path of the file as the user named it.
    pub path: String,
    /// Records, at least one.
    pub records: Vec<BadRecord>,
}

/// Records that one attempt has skipped so far. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct BadRecords {
    found: Arc<Mutex<Vec<FileBadRecords>>>,
    /// Maximum number of records that the job may skip.
    max: u64,
}

impl BadRecords {
    /// Creates an empty collection with this maximum.
    #[must_use]
    pub(crate) fn up_to(max: u64) -> Self {
        Self { found: Arc::default(), max }
    }

    /// Skips a record.
    ///
    /// # Errors
    /// Skipping is not allowed, or the record exceeds the maximum of the job. That record is also stored.
    pub(crate) fn leave_out(&self, path: &str, offset: u64, reason: &str) -> Result<(), InputError> {
        let reason = sanitize::line(reason, REASON_BYTES_MAX);
        let shown = FilePath::from(path);
        if self.max == 0 {
            return Err(InputError::refused(format!(
                "the record at byte {offset} of {shown} is bad: {reason}"
            )));
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let count = count(&found);
        let record = BadRecord { offset, reason: reason.clone() };
        match found.last_mut().filter(|file| file.path == path) {
            Some(file) => file.records.push(record),
            None => found.push(FileBadRecords { path: path.to_owned(), records: vec![record] }),
        }
        if count < self.max {
            return Ok(());
        }
        Err(Self::too_many(self.max, path, offset, &reason))
    }

    /// Creates the error of one more bad record than the job may skip.
    #[must_use]
    pub fn too_many(max: u64, path: &str, offset: u64, reason: &str) -> InputError {
        let path = FilePath::from(path);
        InputError::refused(format!(
            "more than {max} bad records (--skip-bad-records): the next one is at byte {offset} of {path}: {reason}"
        ))
    }

    /// Skips records that were found by another reader.
    ///
    /// # Errors
    /// As [`BadRecords::leave_out`].
    pub(crate) fn leave_out_all(&self, files: &[FileBadRecords]) -> Result<(), InputError> {
        files.iter().try_for_each(|file| {
            file.records.iter().try_for_each(|bad| self.leave_out(&file.path, bad.offset, &bad.reason))
        })
    }

    /// Returns all records so far, in order.
    #[must_use]
    pub fn found(&self) -> Vec<FileBadRecords> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the number of these records.
#[must_use]
pub fn count(files: &[FileBadRecords]) -> u64 {
    files.iter().map(|file| file.records.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_records_are_left_out_up_to_the_limit_and_the_next_one_is_named() {
        let bad = BadRecords::up_to(2);
        bad.leave_out("a", 3, "no number").unwrap();
        bad.leave_out("b", 0, "two\nlines").unwrap();
        let error = bad.leave_out("b", 9, "no number").unwrap_err().to_string();
        assert_eq!(
            error,
            "more than 2 bad records (--skip-bad-records): the next one is at byte 9 of b: no number"
        );
        let files = bad.found();
        assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(count(&files), 3, "the one too many is named too");
        assert!(!files[1].records[0].reason.contains('\n'), "{files:?}");
    }

    #[test]
    fn bad_records_are_refused_where_none_may_be_left_out() {
        let error = BadRecords::default().leave_out("a", 3, "no number").unwrap_err();
        assert_eq!(error.to_string(), "the record at byte 3 of a is bad: no number");
        assert!(error.is_input_fault());
    }
}

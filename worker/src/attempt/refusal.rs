//! Handling of a record that a mapper refuses: it is skipped if the job allows that, or fails the attempt.

use super::{FailureKind, TaskError, TaskResult};
use crate::input::{BadRecords, Record};

/// Skips a bad record if that is allowed; returns any other error.
pub(crate) fn refuse_record(bad: &BadRecords, record: Record<'_>, error: TaskError) -> TaskResult {
    if error.kind != FailureKind::BadRecord {
        return Err(error);
    }
    let left_out = bad.leave_out(&record.source().path, record.offset(), &error.chain());
    left_out.map_err(|source| {
        let mut error = TaskError::from(source);
        error.kind = FailureKind::Input;
        error
    })
}

/// Handles a mapper's result for one record. `emitted` is true if it has emitted something for it.
pub(crate) fn heed(
    result: TaskResult,
    emitted: bool,
    refuse: impl FnOnce(TaskError) -> TaskResult,
) -> TaskResult {
    match result {
        Err(error) if error.kind == FailureKind::BadRecord && emitted => Err(TaskError::new(format!(
            "the mapper refused a record after it had emitted something of it, which cannot be taken back: {error}"
        ))),
        Err(error) => refuse(error),
        Ok(()) => Ok(()),
    }
}

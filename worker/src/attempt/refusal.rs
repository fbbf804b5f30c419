//! A mapper refuses a record.

use super::{FailureKind, TaskError, TaskResult};
use crate::input::{BadRecords, Record};

/// Leaves a bad record out if that is allowed; hands any other error on.
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

/// What becomes of a mapper's answer to one record. `emitted` tells whether it has emitted something of it.
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

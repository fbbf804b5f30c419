//! The error that mappers and reducers return, and its kind, which decides on retries and on skipped records.

use crate::error_text::chain;
use crate::input::InputError;
use std::error::Error;
use std::fmt;

/// Result of a map or reduce function.
pub type TaskResult<T = ()> = Result<T, TaskError>;

/// Kind of a failed attempt; decides if it is retried and what is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// User code returned an error or panicked: retried up to the job's limit.
    User,
    /// The input itself is at fault (missing, changed, corrupt, a record over the limit): the job fails at once.
    Input,
    /// A record is bad: it is skipped if the job's limit allows; otherwise the job fails at once.
    BadRecord,
    /// The job's parameters are at fault: the job fails at once.
    Config,
    /// Input was temporarily unavailable, through no fault of its own: retried without charge.
    Unavailable,
    /// This worker lacks a resource, such as processes that it may start: retried without charge.
    Worker,
}

/// Error of user code. Any [`std::error::Error`] converts with `?`.
#[derive(Debug)]
pub struct TaskError {
    /// Kind of the failure.
    pub kind: FailureKind,
    source: Box<dyn Error + Send + Sync>,
}

impl TaskError {
    /// Creates an error of the user's code from a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::User, source: message.into().into() }
    }

    /// Creates an error of invalid input that a retry does not fix.
    pub fn input(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Input, source: message.into().into() }
    }

    /// Creates an error for a bad record. The engine names the record, and skips it if the job's limit allows
    /// (`--skip-bad-records`); otherwise the job fails at once. The mapper must not have emitted anything for the
    /// record.
    pub fn bad_record(reason: impl Into<String>) -> Self {
        Self { kind: FailureKind::BadRecord, source: reason.into().into() }
    }

    /// Creates an error of invalid parameters that only shows when a task runs.
    pub fn config(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Config, source: message.into().into() }
    }

    /// Creates an error for a resource that this worker lacks.
    pub fn worker(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Worker, source: message.into().into() }
    }

    /// Returns the error of reading input, if user code only passed it on.
    pub(crate) fn into_input_error(self) -> Result<InputError, Self> {
        let Self { kind, source } = self;
        source.downcast::<InputError>().map(|error| *error).map_err(|source| Self { kind, source })
    }

    /// Returns the error and its causes on one line, joined by `: `.
    #[must_use]
    pub fn chain(&self) -> String {
        chain(&*self.source)
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for TaskError {
    fn from(source: E) -> Self {
        Self { kind: FailureKind::User, source: Box::new(source) }
    }
}

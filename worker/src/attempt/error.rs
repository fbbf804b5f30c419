//! Errors of user code.

use crate::error_text::chain;
use crate::input::InputError;
use std::error::Error;
use std::fmt;

/// What a map or reduce function returns.
pub type TaskResult<T = ()> = Result<T, TaskError>;

/// Whose fault a failed attempt is; decides whether it is tried again and who is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// User code returned an error or panicked: tried again up to the job's limit.
    User,
    /// The input itself is at fault (missing, changed, corrupt, a record over the limit): the job fails at once.
    Input,
    /// A record is bad: it is left out if the job may leave out so many; if not, the job fails at once.
    BadRecord,
    /// The job's parameters are at fault: the job fails at once.
    Config,
    /// Input that could not be had at this moment, through no fault of its own: tried again, and nobody is charged.
    Unavailable,
    /// This worker lacks something, such as processes that it may start: tried again, and nobody is charged.
    Worker,
}

/// An error of user code. Any [`std::error::Error`] converts with `?`.
#[derive(Debug)]
pub struct TaskError {
    /// Whose fault it is.
    pub kind: FailureKind,
    source: Box<dyn Error + Send + Sync>,
}

impl TaskError {
    /// An error of the user's code, from a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::User, source: message.into().into() }
    }

    /// The input is wrong in a way that no second try mends.
    pub fn input(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Input, source: message.into().into() }
    }

    /// The record that the mapper was given is bad. The engine says which one it is, and leaves it out if the job may
    /// leave out so many (`--skip-bad-records`); if not, the job fails at once. Nothing may have been emitted of it.
    pub fn bad_record(reason: impl Into<String>) -> Self {
        Self { kind: FailureKind::BadRecord, source: reason.into().into() }
    }

    /// The parameters are wrong in a way that only shows when a task runs.
    pub fn config(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Config, source: message.into().into() }
    }

    /// This worker lacks something that the code needs.
    pub fn worker(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Worker, source: message.into().into() }
    }

    /// What went wrong with reading input, if user code only handed that on.
    pub(crate) fn into_input_error(self) -> Result<InputError, Self> {
        let Self { kind, source } = self;
        source.downcast::<InputError>().map(|error| *error).map_err(|source| Self { kind, source })
    }

    /// The error and its causes on one line, joined by `: `.
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

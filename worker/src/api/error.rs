//! Errors of user code and of plans.
//!
//! Not here: failures of the machinery around user code (`task::TaskFailure`).

use crate::input::InputError;
use std::error::Error;
use std::fmt;

/// What a map or reduce function returns.
pub type TaskResult<T = ()> = Result<T, TaskError>;

/// Whose fault a failed attempt is; decides whether it is tried again and who is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// User code said no or panicked: tried again up to the job's limit.
    User,
    /// The input itself is at fault (missing, changed, corrupt, a record over the limit): the job fails at once.
    Input,
    /// The job's parameters are at fault: the job fails at once.
    Config,
    /// Input that could not be had at this moment, through no fault of its own: tried again, and nobody is charged.
    Unavailable,
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

    /// The parameters are wrong in a way that only shows when a task runs.
    pub fn config(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Config, source: message.into().into() }
    }

    /// What went wrong with reading input, if user code only handed that on.
    pub(crate) fn into_input_error(self) -> Result<InputError, Self> {
        let Self { kind, source } = self;
        source.downcast::<InputError>().map(|error| *error).map_err(|source| Self { kind, source })
    }

    /// The error and its causes on one line, joined by `: `.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.source.to_string();
        let mut next = self.source.source();
        while let Some(cause) = next {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            next = cause.source();
        }
        text
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

/// A job that cannot be planned from its parameters or inputs. The first two are the user's mistake in the
/// command (exit code 2), the third is the input's (exit code 4).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A parameter has a value that the job cannot use.
    #[error("{parameter} cannot be {value}: {reason}")]
    Parameter {
        /// The flag or field, as the user writes it.
        parameter: String,
        /// The value as given.
        value: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// Parameters that do not decode into the job's type.
    #[error("the parameters of job {job} do not fit its type")]
    Decode {
        /// The job's name.
        job: String,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// An input that the plan has to look into (a header, a size) is not as needed.
    #[error("cannot use input {path}: {reason}")]
    Input {
        /// The input's path.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

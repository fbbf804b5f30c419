//! Failures of attempts, and the party at fault for each, which decides if the task is retried and if the job is
//! charged for the failure.

use super::{FailureKind, TaskError};
use crate::codec::CodecError;
use crate::descriptors;
use crate::input::InputError;
use crate::key::DecodeError;
use crate::objects::ObjectFault;
use crate::segment::{SegmentError, WriteError};
use std::io;
use std::path::PathBuf;

/// Failure of an attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskFailure {
    /// User code returned an error or violated a rule.
    #[error("{message}")]
    User {
        /// Error and its causes.
        message: String,
    },
    /// Input cannot be read or is not as planned. [`InputError::is_input_fault`] tells if the input or the route to it
    /// is at fault.
    #[error(transparent)]
    Input(#[from] InputError),
    /// User code reported invalid input that a retry does not fix.
    #[error("{message}")]
    BadInput {
        /// Error and its causes.
        message: String,
    },
    /// Input requested by user code was unavailable, through no fault of its own.
    #[error("{message}")]
    Unavailable {
        /// Error and its causes.
        message: String,
    },
    /// This worker lacks a resource that user code needs.
    #[error("{message}")]
    Lacking {
        /// Error and its causes.
        message: String,
    },
    /// A pair is too large for a slot of this worker.
    #[error(transparent)]
    TooLarge(WriteError),
    /// The job's parameters are at fault.
    #[error("{message}")]
    Config {
        /// Error and its causes.
        message: String,
    },
    /// A spill directory of this worker failed.
    #[error("could not write to {path}")]
    Spill {
        /// File or directory of the error.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// The part cannot be written.
    #[error("could not write {path}")]
    Output {
        /// File in which the part is built.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// A segment or run is damaged or unreadable, or is in an input that has changed.
    #[error("could not merge the segment{}", of_map(*.map))]
    Corrupt {
        /// Index of its map, if that could be read; this attempt's own runs have one too.
        map: Option<u32>,
        /// Error of the segment.
        #[source]
        source: SegmentError,
    },
    /// The attempt was cancelled.
    #[error("cancelled")]
    Cancelled,
}

fn of_map(map: Option<u32>) -> String {
    map.map_or_else(String::new, |map| format!(" of map {map}"))
}

/// Party at fault for a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// User code: retried up to the job's limit.
    User,
    /// The input: the job fails at once.
    Input,
    /// The route to the input: retried without charge.
    Transport,
    /// The credentials of this worker for a store: the job fails at once.
    Credentials,
    /// The parameters: the job fails at once.
    Config,
    /// This worker.
    Worker,
    /// The output directory.
    Output,
    /// A map output, which must be made again.
    Corrupt,
    /// None: the attempt was cancelled.
    Cancelled,
}

impl TaskFailure {
    /// Returns the party at fault.
    #[must_use]
    pub fn class(&self) -> Fault {
        match self {
            Self::User { .. } => Fault::User,
            // A resource that is exhausted here is exhausted for any file: the worker has to do something else for a
            // while.
            Self::Input(InputError::Unavailable { .. }) => Fault::Worker,
            Self::Output { source, .. } if descriptors::are_used_up(source) => Fault::Worker,
            Self::Input(InputError::Store { source }) => match source.cause.fault() {
                ObjectFault::Credentials => Fault::Credentials,
                ObjectFault::Settings => Fault::Config,
                ObjectFault::Object => Fault::Input,
                ObjectFault::Route => Fault::Transport,
                ObjectFault::Machine => Fault::Worker,
            },
            Self::Input(source) if !source.is_input_fault() => Fault::Transport,
            Self::Input(_) | Self::BadInput { .. } | Self::TooLarge(_) => Fault::Input,
            Self::Config { .. } => Fault::Config,
            Self::Unavailable { .. } => Fault::Transport,
            Self::Spill { .. } | Self::Lacking { .. } => Fault::Worker,
            Self::Output { .. } => Fault::Output,
            Self::Corrupt { source: SegmentError::Changed { source, .. }, .. } if source.is_input_fault() => {
                Fault::Input
            }
            Self::Corrupt { source: SegmentError::Changed { .. }, .. } => Fault::Worker,
            // For any other error of reading, the file is made again.
            Self::Corrupt { source: SegmentError::Read { source, .. }, .. }
                if descriptors::are_used_up(source) =>
            {
                Fault::Worker
            }
            Self::Corrupt { .. } => Fault::Corrupt,
            Self::Cancelled => Fault::Cancelled,
        }
    }
}

/// Unreadable input, such as a side input, is not the fault of the code that requested it.
impl From<TaskError> for TaskFailure {
    fn from(error: TaskError) -> Self {
        let error = match error.into_input_error() {
            Ok(input) => return Self::Input(input),
            Err(error) => error,
        };
        let message = error.chain();
        match error.kind {
            FailureKind::User => Self::User { message },
            FailureKind::Input | FailureKind::BadRecord => Self::BadInput { message },
            FailureKind::Config => Self::Config { message },
            FailureKind::Unavailable => Self::Unavailable { message },
            FailureKind::Worker => Self::Lacking { message },
        }
    }
}

/// For a value that fails to encode or decode, the code of its type is at fault.
impl From<CodecError> for TaskFailure {
    fn from(error: CodecError) -> Self {
        TaskError::from(error).into()
    }
}

/// The same applies to a key.
impl From<DecodeError> for TaskFailure {
    fn from(error: DecodeError) -> Self {
        TaskError::from(error).into()
    }
}

impl From<WriteError> for TaskFailure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Spill { path, source } => Self::Spill { path, source },
            WriteError::PairTooLong { .. } => Self::TooLarge(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_that_user_code_could_not_get_is_not_charged_to_it() {
        let path = || "table".into();
        let class = |error: InputError| TaskFailure::from(TaskError::from(error)).class();
        let lack = || rustix::io::Errno::MFILE.into();
        assert_eq!(class(InputError::Unavailable { path: path(), source: lack() }), Fault::Worker);
        let unreached = InputError::Remote { path: path(), offset: 0, source: "gone".into() };
        assert_eq!(class(unreached), Fault::Transport);
        assert_eq!(class(InputError::Missing { path: path() }), Fault::Input);
        assert_eq!(TaskFailure::from(TaskError::new("no")).class(), Fault::User);
        let output = TaskFailure::Output { path: "part".into(), source: lack() };
        assert_eq!(output.class(), Fault::Worker, "the output directory is well");
    }
}

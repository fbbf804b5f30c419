//! Why an attempt ended badly, and whose fault it is.

use super::{FailureKind, TaskError};
use crate::codec::CodecError;
use crate::descriptors;
use crate::input::InputError;
use crate::key::DecodeError;
use crate::objects::ObjectFault;
use crate::segment::{SegmentError, WriteError};
use std::io;
use std::path::PathBuf;

/// Why an attempt ended badly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskFailure {
    /// User code returned an error, or did what it must not.
    #[error("{message}")]
    User {
        /// The error and its causes.
        message: String,
    },
    /// Input that cannot be read or is not as planned. Whether it is the input's fault or the way to it,
    /// [`InputError::is_input_fault`] tells.
    #[error(transparent)]
    Input(#[from] InputError),
    /// User code says that its input is wrong in a way that no second try mends.
    #[error("{message}")]
    BadInput {
        /// The error and its causes.
        message: String,
    },
    /// Input that user code asked for could not be had, through no fault of its own.
    #[error("{message}")]
    Unavailable {
        /// The error and its causes.
        message: String,
    },
    /// This worker lacks what user code needs.
    #[error("{message}")]
    Lacking {
        /// The error and its causes.
        message: String,
    },
    /// A pair that a slot of this worker has no room for.
    #[error(transparent)]
    TooLarge(WriteError),
    /// The job's parameters are at fault.
    #[error("{message}")]
    Config {
        /// The error and its causes.
        message: String,
    },
    /// A spill folder of this worker refuses.
    #[error("could not write to {path}")]
    Spill {
        /// The file or folder.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// The part cannot be written.
    #[error("could not write {path}")]
    Output {
        /// The part as it is built.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// A segment or run that is damaged or cannot be read, or lies in an input that has changed.
    #[error("could not merge the segment{}", of_map(*.map))]
    Corrupt {
        /// Index of the map it came from, if that could be read; this attempt's own runs have one too.
        map: Option<u32>,
        /// What is wrong with it.
        #[source]
        source: SegmentError,
    },
    /// The attempt is not wanted any more.
    #[error("cancelled")]
    Cancelled,
}

fn of_map(map: Option<u32>) -> String {
    map.map_or_else(String::new, |map| format!(" of map {map}"))
}

/// Whose fault a failure is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// User code's: tried again up to the job's limit.
    User,
    /// The input's: the job fails at once.
    Input,
    /// The way to the input: tried again, nobody charged.
    Transport,
    /// The credentials' with which this worker asks a store: the job fails at once.
    Credentials,
    /// The parameters': the job fails at once.
    Config,
    /// This worker's.
    Worker,
    /// The output directory's.
    Output,
    /// A map output's, which must be made again.
    Corrupt,
    /// Nobody's.
    Cancelled,
}

impl TaskFailure {
    /// Whose fault it is.
    #[must_use]
    pub fn class(&self) -> Fault {
        match self {
            Self::User { .. } => Fault::User,
            // What this machine lacks, it lacks for whatever it opens: it has to do something else for a while.
            Self::Input(InputError::Unavailable { .. }) => Fault::Worker,
            Self::Output { source, .. } if descriptors::are_used_up(source) => Fault::Worker,
            Self::Input(InputError::Store { source }) => match source.cause.fault() {
                ObjectFault::Credentials => Fault::Credentials,
                ObjectFault::Settings => Fault::Config,
                ObjectFault::Asked => Fault::Input,
                ObjectFault::Way => Fault::Transport,
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
            // Whatever else keeps a file from being read, it is made again.
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

/// An input that cannot be read, such as a side input, is no fault of the code that asked for it.
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

/// A value that refuses to be encoded or decoded is the fault of the code of its type.
impl From<CodecError> for TaskFailure {
    fn from(error: CodecError) -> Self {
        TaskError::from(error).into()
    }
}

/// So is a key.
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

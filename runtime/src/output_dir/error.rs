//! Errors of using or closing an output.

use crate::api::{DESCRIPTORS_HINT, FailureCode};
use gristmill_worker::commit::TEMPORARY;
use gristmill_worker::descriptors::are_used_up;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::objects::{ObjectError, ObjectFault};
use std::io;
use std::path::{Path, PathBuf};

/// Reason for which an output cannot be used. Exit code 3.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum OutputError {
    /// It is not empty.
    #[error("the output directory {path} exists and is not empty")]
    NotEmpty { path: PathBuf },
    /// It is not a directory.
    #[error("the output {path} exists and is not a directory")]
    NotADirectory { path: PathBuf },
    /// It is a link whose target does not exist.
    #[error("the output {path} is a link that leads nowhere; make the directory that it names, or remove it")]
    DanglingLink { path: PathBuf },
    /// It is the root directory.
    #[error("the output {path} is the root of the file system; name a directory in it")]
    Root { path: PathBuf },
    /// It is or contains a protected path, such as a home or system directory.
    #[error(
        "the output directory {path} is or holds {what}, which --overwrite does not replace; name another directory"
    )]
    Protected { path: PathBuf, what: &'static str },
    /// It contains a file that is not overwritten.
    #[error(
        "the output directory {path} holds {name}, and --overwrite replaces nothing but the output of a job; name another \
         directory, or remove that yourself"
    )]
    NotAnOutput {
        path: PathBuf,
        /// The first such name.
        name: PathBuf,
    },
    /// No job has finished there.
    #[error(
        "the output directory {path} is not empty and has no _SUCCESS, which the output of a job has, and --overwrite replaces \
         nothing else; name another directory, or remove what is in that yourself"
    )]
    NoSuccess { path: PathBuf },
    /// The job reads a file that it would replace.
    #[error("the output directory {path} holds {input}, an input of the same job; name another directory")]
    HoldsInput {
        path: PathBuf,
        /// The first such input.
        input: PathBuf,
    },
    /// Another job writes there.
    #[error("another job is writing to {path} (it has a {TEMPORARY} directory, {by})")]
    Busy {
        path: PathBuf,
        /// Description of the claim.
        by: String,
    },
    /// A part differs from the report of the attempt that built it.
    #[error(
        "the part {part}, built as {path}, is not as it was left: it has {bytes} bytes of checksum {crc32c:08x} instead of \
         {} of {:08x}", expected.0, expected.1
    )]
    Changed {
        part: String,
        /// Path of the built file.
        path: PathBuf,
        /// Bytes found.
        bytes: u64,
        /// Their CRC-32C.
        crc32c: u32,
        /// Bytes and CRC-32C reported by the attempt.
        expected: (u64, u32),
    },
    /// A request to an object store failed.
    #[error(transparent)]
    Store { source: Box<ObjectError> },
    /// The output is on a web server.
    #[error(
        "the output {url} is on a web server, which is only read; name a directory, or a prefix of s3, gs or az"
    )]
    ReadOnly { url: String },
    /// Another job writes below that prefix.
    #[error("another job is writing to {url} (there is the object {url}/{TEMPORARY}, {by})")]
    Claimed {
        url: String,
        /// Description of the claim.
        by: String,
    },
    /// An object below the prefix is not overwritten.
    #[error(
        "the output {url} holds {object}, and --overwrite replaces nothing in a store but the output of a job; name another \
         prefix, or delete that yourself"
    )]
    NotReplaceable {
        url: String,
        /// The first such object.
        object: String,
    },
    /// The claim on a prefix is not this job's any more, or another process closes the output.
    #[error("the output {url} is not in the hands of this process any more: {by}")]
    ClaimLost {
        url: String,
        /// The claim found instead, or its absence.
        by: String,
    },
    /// The store ignores conditions on writes.
    #[error(
        "the store of {url} does not keep to conditions on writing (If-None-Match), so two jobs there could both seem to have \
         finished; name a prefix of another store"
    )]
    NoConditions { url: String },
    /// Another writer has finished its output there first.
    #[error(
        "another writer has written {url}/_SUCCESS since this job has claimed that prefix; what this job has uploaded is deleted"
    )]
    OtherWriter { url: String },
    /// An uploaded part differs from the report of the attempt that uploaded it.
    #[error("the part {url} is not as it was left: {what}")]
    PartObject { url: String, what: String },
    /// It is unknown if the output was written.
    #[error(
        "it is not known whether {url} was written; if it is there, and names parts, the output is whole, and else there is none"
    )]
    NotKnown {
        url: String,
        #[source]
        source: Box<ObjectError>,
    },
    /// The directory was removed.
    #[error("the output directory {path} was removed before the output was complete")]
    Gone {
        path: PathBuf,
        /// The missing file.
        #[source]
        source: Box<OutputError>,
    },
    /// The file system failed.
    #[error("could not {action} {path}")]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// The exit of a job that could not claim its output.
impl ExitsWith for OutputError {
    fn exit(&self) -> Exit {
        use io::ErrorKind::NotFound;
        match self {
            Self::Io { source, .. } if are_used_up(source) => Exit::hinted(exit::RESOURCES, DESCRIPTORS_HINT),
            Self::Io { source, .. } if exit::is_out_of_room(source) => {
                Exit::hinted(exit::RESOURCES, "free some space, or choose another directory")
            }
            Self::Io { action: "create", source, .. } if source.kind() == NotFound => Exit::hinted(
                exit::ENVIRONMENT,
                "its parent directory must exist: create it first, for example with `mkdir -p`",
            ),
            Self::Io { .. } => Exit::hinted(
                exit::ENVIRONMENT,
                "name another directory with --output, in one that you may write",
            ),
            Self::Protected { .. } | Self::ReadOnly { .. } => Exit::with(exit::USAGE),
            Self::Store { source } if source.cause.fault() == ObjectFault::Credentials => {
                Exit::with(exit::UNAUTHORISED)
            }
            Self::Claimed { .. } => Exit::hinted(
                exit::ENVIRONMENT,
                "if no job writes there any more, delete that object, and run this one again",
            ),
            Self::NotEmpty { .. } => {
                Exit::hinted(exit::ENVIRONMENT, "choose another directory, or add --overwrite")
            }
            Self::Gone { .. } => FailureCode::OutputGone.exit(),
            Self::Busy { .. } => Exit::hinted(
                exit::ENVIRONMENT,
                "if no job runs there any more, move back what is in a _replaced directory there, and remove _temporary",
            ),
            _ => Exit::with(exit::ENVIRONMENT),
        }
    }
}

impl OutputError {
    /// True if the file system did not find a file.
    pub(crate) fn is_of_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// True if this process or its machine had no free file descriptor, which is no defect of the output.
    pub(crate) fn is_of_resources(&self) -> bool {
        matches!(self, Self::Io { source, .. } if are_used_up(source))
    }

    pub(super) fn store(source: ObjectError) -> Self {
        Self::Store { source: Box::new(source) }
    }

    pub(super) fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_path_buf(), source }
    }
}

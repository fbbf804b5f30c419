//! Why a store could not do what it was asked, and whose fault that is.
//!
//! Failures are told apart by status, by the code that the protocol of a store has for them, and by the type of an error of
//! the transport, never by texts. What a store says in its own words is left out: it may repeat a key.

use crate::exit::{self, Exit};
use std::fmt::Display;

/// Longest time that a store may be silent, seconds; `AWS_READ_TIMEOUT` sets another for S3, and so for others theirs.
pub(super) const SILENCE_SECONDS_MAX: u64 = 30;

/// Times that a request is sent again, if that may help.
pub(super) const RETRIES_MAX: usize = 6;

/// A call of a store that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {url}")]
pub struct ObjectError {
    /// What was to be done, as a verb.
    pub action: &'static str,
    /// With what.
    pub url: String,
    /// Something was to be written, and of one request for it nobody knows what became: it may be written all the same.
    pub may_be_done: bool,
    /// Why it could not be.
    #[source]
    pub cause: ObjectFailure,
}

/// Why not.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum ObjectFailure {
    /// The program cannot.
    #[error("this program was built without object stores (the cargo feature `stores`)")]
    NotBuiltIn,
    /// A URL that is none.
    #[error("{reason}")]
    Address { reason: &'static str },
    /// Settings that cannot be used.
    #[error("the settings in the environment cannot be used: {detail}")]
    Settings { detail: String },
    /// An endpoint to which everything would go in the clear.
    #[error(
        "its endpoint {endpoint} is plain HTTP beyond this machine; set AWS_ALLOW_HTTP=true if that network may read along"
    )]
    Plaintext { endpoint: String },
    /// No credentials were found.
    #[error(
        "no credentials were found where this process runs; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, as `eval \"$(aws \
         configure export-credentials --format env)\"` does, or give the machine a role"
    )]
    NoCredentials,
    /// The credentials may not do this, or no longer.
    #[error(
        "the store refuses these credentials ({}); get new ones, check the clock of this machine, or have the store's policy \
         allow this",
        answer(*status, code)
    )]
    Forbidden { status: u16, code: Option<String> },
    /// It lies in another region.
    #[error(
        "the bucket is not in the region that was asked ({}); set AWS_REGION to the one it is in",
        answer(*status, code)
    )]
    Region { status: u16, code: Option<String> },
    /// There is no such object.
    #[error("there is no such object")]
    Missing,
    /// The object is another than it was.
    #[error(
        "it was changed since it was listed: its ETag, time or size is another; let nobody write there while the job runs, and \
         run it again"
    )]
    Changed,
    /// The object is not there any more, or not by the name by which it was listed.
    #[error(
        "it was listed, and there is none by that name: it was deleted since, or its key begins or ends with `/`, by which none \
         can be asked for; rename it, or let nobody write there while the job runs, and run it again"
    )]
    Gone,
    /// The condition of a request was not met.
    #[error("somebody else was there first")]
    Condition,
    /// It is there before the output is finished.
    #[error(
        "an output is being written there, or was left unfinished: there is no `_SUCCESS`; wait for that job, or delete what \
         it has left"
    )]
    Unfinished,
    /// A server that sends whole files alone.
    #[error(
        "its server sends no ranges of files, which is how input is read; fetch it first and name the file"
    )]
    NoRanges,
    /// An object that is sent in an encoding that is not decoded.
    #[error(
        "its Content-Encoding is {encoding:?}, and only gzip and zstd are decoded here; store it in one of these or without"
    )]
    Encoding { encoding: String },
    /// More objects than are listed.
    #[error("its listing does not end within {limit} objects; name fewer at a time")]
    TooMany { limit: usize },
    /// An object that has to be held in memory and is too large for that.
    #[error("it has {bytes} bytes, and at most {limit} are read of such an object")]
    TooLarge { bytes: u64, limit: u64 },
    /// Too many requests, or trouble of the store's own.
    #[error(
        "the store answered {} also when it was asked {RETRIES_MAX} times more; try again later, or ask less at once",
        answer(*status, code)
    )]
    Overloaded { status: u16, code: Option<String> },
    /// No answer in time.
    #[error(
        "the store was silent for too long ({SILENCE_SECONDS_MAX} s unless AWS_READ_TIMEOUT says otherwise); check the network, or \
         set a longer time"
    )]
    Silent,
    /// No connection, or one that broke off.
    #[error("the store could not be reached, or broke off: {detail}; check the network and the endpoint")]
    Unreachable { detail: String },
    /// An answer that says no for another reason.
    #[error("the store answered {}; check the bucket, the region and the endpoint", answer(*status, code))]
    Refused { status: u16, code: Option<String> },
    /// An answer that cannot be understood.
    #[error(
        "the answer of the store cannot be used: {detail}; check the endpoint, and what lies between it and this machine"
    )]
    Answer { detail: String },
    /// What was to be uploaded is not what was written.
    #[error(
        "its file has {} bytes of checksum {:08x} instead of {} of {:08x}", found.0, found.1, expected.0, expected.1
    )]
    Corrupt { found: (u64, u32), expected: (u64, u32) },
    /// This machine lacks the means: threads, files, memory.
    #[error("this machine lacks the means")]
    Local {
        #[source]
        source: std::io::Error,
    },
}

/// Whose fault a failure is, and so what may help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectFault {
    /// What was asked for: it is not there, is another now, or cannot be read.
    Asked,
    /// Who asks: without credentials, with old ones, or with those that may not.
    Credentials,
    /// Settings of the process that asks.
    Settings,
    /// The way to the store, or the store: later, or elsewhere, it may go well.
    Way,
    /// The machine that asks.
    Machine,
}

impl ObjectFault {
    /// Returns the exit code of an input with this fault.
    #[must_use]
    pub fn exit(self) -> Exit {
        match self {
            Self::Asked => Exit::with(exit::INPUT),
            Self::Credentials => Exit::with(exit::UNAUTHORISED),
            Self::Settings | Self::Way | Self::Machine => Exit::with(exit::ENVIRONMENT),
        }
    }
}

impl ObjectFailure {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> ObjectFault {
        match self {
            Self::NoCredentials | Self::Forbidden { .. } => ObjectFault::Credentials,
            Self::NotBuiltIn | Self::Settings { .. } | Self::Plaintext { .. } | Self::Region { .. } => {
                ObjectFault::Settings
            }
            Self::Overloaded { .. } | Self::Silent | Self::Unreachable { .. } => ObjectFault::Way,
            Self::Local { .. } | Self::Corrupt { .. } => ObjectFault::Machine,
            _ => ObjectFault::Asked,
        }
    }

    /// The same with what was done and to what.
    #[must_use]
    pub fn of(self, action: &'static str, url: &dyn Display) -> ObjectError {
        ObjectError { action, url: url.to_string(), may_be_done: false, cause: self }
    }
}

/// `403 AccessDenied`.
fn answer(status: u16, code: &Option<String>) -> String {
    code.as_ref().map_or_else(|| status.to_string(), |code| format!("{status} {code}"))
}

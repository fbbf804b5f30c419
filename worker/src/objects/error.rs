//! Errors of requests to object stores, and the party at fault: the object, the credentials, the settings, the route or
//! the machine.
//!
//! Failures are distinguished by status, by the error code of the store's protocol, and by the type of an
//! error of the transport, never by text. Messages of a store are omitted, as they may repeat a key.

use crate::exit::{self, Exit};
use std::fmt::Display;

/// Timeout for a response of a store in seconds. `AWS_READ_TIMEOUT` sets another for S3, and other stores
/// have their own variables.
pub const SILENCE_SECONDS_MAX: u64 = 30;

/// Maximum number of retries of a request.
pub const RETRIES_MAX: usize = 6;

/// Failed operation of a store.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {url}")]
pub struct ObjectError {
    /// Operation, as a verb.
    pub action: &'static str,
    /// Object or bucket of the operation.
    pub url: String,
    /// True for a write of which one request has an unknown result: the object may have been written.
    pub may_be_done: bool,
    /// Cause.
    #[source]
    pub cause: ObjectFailure,
}

/// Cause of a failed operation.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum ObjectFailure {
    /// This program was built without store support.
    #[error("this program was built without object stores (the cargo feature `stores`)")]
    NotBuiltIn,
    /// The URL is invalid.
    #[error("{reason}")]
    Address { reason: &'static str },
    /// The settings are invalid.
    #[error("the settings in the environment cannot be used: {detail}")]
    Settings { detail: String },
    /// The endpoint has no encryption.
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
    /// The credentials do not permit this, or have expired.
    #[error(
        "the store refuses these credentials ({}); get new ones, check the clock of this machine, or have the store's policy \
         allow this",
        status_words(*status, code)
    )]
    Forbidden { status: u16, code: Option<String> },
    /// The bucket is in another region.
    #[error(
        "the bucket is not in the region that was asked ({}); set AWS_REGION to the one it is in",
        status_words(*status, code)
    )]
    Region { status: u16, code: Option<String> },
    /// The object does not exist.
    #[error("there is no such object")]
    Missing,
    /// The object has changed.
    #[error(
        "it was changed since it was listed: its ETag, time or size is another; do not write there while the job runs, and \
         run it again"
    )]
    Changed,
    /// A listed object does not exist any more, or not under its listed name.
    #[error(
        "it was listed, and there is none by that name: it was deleted since, or its key begins or ends with `/`, by which none \
         can be asked for; rename it, or do not write there while the job runs, and run it again"
    )]
    Gone,
    /// The condition of a request was not met.
    #[error("another writer was first")]
    Condition,
    /// The output is not complete.
    #[error(
        "an output is being written there, or was left unfinished: there is no `_SUCCESS`; wait for that job, or delete what \
         it has left"
    )]
    Unfinished,
    /// The server sends only whole files.
    #[error(
        "its server sends no ranges of files, which is how input is read; fetch it first and name the file"
    )]
    NoRanges,
    /// An object has an unsupported encoding.
    #[error(
        "its Content-Encoding is {encoding:?}, and only gzip and zstd are decoded here; store it in one of these or without"
    )]
    Encoding { encoding: String },
    /// The listing has too many objects.
    #[error("its listing does not end within {limit} objects; name fewer at a time")]
    TooMany { limit: usize },
    /// An object must be held in memory and is too large for that.
    #[error("it has {bytes} bytes, and at most {limit} are read of such an object")]
    TooLarge { bytes: u64, limit: u64 },
    /// The store has too many requests, or an internal error.
    #[error(
        "the store answered {} also when it was asked {RETRIES_MAX} times more; try again later, or ask less at once",
        status_words(*status, code)
    )]
    Overloaded { status: u16, code: Option<String> },
    /// The store did not respond in time.
    #[error(
        "the store was silent for too long ({SILENCE_SECONDS_MAX} s unless AWS_READ_TIMEOUT says otherwise); check the network, or \
         set a longer time"
    )]
    Silent,
    /// The connection failed or was closed.
    #[error("the store could not be reached, or broke off: {detail}; check the network and the endpoint")]
    Unreachable { detail: String },
    /// The request was refused for another reason.
    #[error("the store answered {}; check the bucket, the region and the endpoint", status_words(*status, code))]
    Refused { status: u16, code: Option<String> },
    /// The response is invalid.
    #[error(
        "the answer of the store cannot be used: {detail}; check the endpoint, and what lies between it and this machine"
    )]
    Answer { detail: String },
    /// The file to upload differs from what was written.
    #[error(
        "its file has {} bytes of checksum {:08x} instead of {} of {:08x}", found.0, found.1, expected.0, expected.1
    )]
    Corrupt { found: (u64, u32), expected: (u64, u32) },
    /// A local resource limit was reached: threads, files, memory.
    #[error("this machine lacks the means")]
    Local {
        #[source]
        source: std::io::Error,
    },
}

/// Party at fault, which determines the remedy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectFault {
    /// The requested object: it does not exist, has changed, or cannot be read.
    Object,
    /// The credentials: missing, expired, or without permission.
    Credentials,
    /// The settings of the requesting process.
    Settings,
    /// The route to the store, or the store: a retry later, or on another worker, may succeed.
    Route,
    /// The requesting machine.
    Machine,
}

impl ObjectFault {
    /// Returns the exit code of an input with this fault.
    #[must_use]
    pub fn exit(self) -> Exit {
        match self {
            Self::Object => Exit::with(exit::INPUT),
            Self::Credentials => Exit::with(exit::UNAUTHORISED),
            Self::Settings | Self::Route | Self::Machine => Exit::with(exit::ENVIRONMENT),
        }
    }
}

impl ObjectFailure {
    /// Returns the party at fault.
    #[must_use]
    pub fn fault(&self) -> ObjectFault {
        match self {
            Self::NoCredentials | Self::Forbidden { .. } => ObjectFault::Credentials,
            Self::NotBuiltIn | Self::Settings { .. } | Self::Plaintext { .. } | Self::Region { .. } => {
                ObjectFault::Settings
            }
            Self::Overloaded { .. } | Self::Silent | Self::Unreachable { .. } => ObjectFault::Route,
            Self::Local { .. } | Self::Corrupt { .. } => ObjectFault::Machine,
            _ => ObjectFault::Object,
        }
    }

    /// Adds the operation and its object.
    #[must_use]
    pub fn during(self, action: &'static str, url: &dyn Display) -> ObjectError {
        ObjectError { action, url: url.to_string(), may_be_done: false, cause: self }
    }
}

/// Formats a status and code as `403 AccessDenied`.
fn status_words(status: u16, code: &Option<String>) -> String {
    code.as_ref().map_or_else(|| status.to_string(), |code| format!("{status} {code}"))
}

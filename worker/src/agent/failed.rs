//! Failure of an attempt in the form that a worker reports to the master, and the destination to which the parts of a
//! job are written.

use crate::directory::Directory;
use crate::disk;
use crate::error_text::chain;
use crate::http::Endpoint;
use crate::objects::{ObjectBucket, ObjectUrl};
use crate::protocol::FailureClass;
use crate::sanitize::message as sanitize;
use crate::task::{Fault, TaskFailure};
use std::sync::Arc;

/// Failure of an attempt.
#[derive(Debug)]
pub struct Failed {
    /// Class of the failure, which determines the party at fault.
    pub class: FailureClass,
    /// Message of one line.
    pub message: String,
}

/// Destination of parts.
#[derive(Clone, Debug)]
pub enum Destination {
    /// Output directory of the submitter, seen by this worker: the directory in it where parts are built.
    Shared(Arc<Directory>),
    /// Attached submitter, to which parts are sent, as this worker does not see the directory.
    Submitter(Endpoint),
    /// Prefix of an object store, to which parts are uploaded.
    Store(Arc<dyn ObjectBucket>, ObjectUrl),
}

/// Converts a failure to the form reported to the master.
pub(in crate::agent) fn failed(failure: &TaskFailure) -> Failed {
    let class = match failure.class() {
        Fault::User => FailureClass::User,
        Fault::Input => FailureClass::Input,
        Fault::Transport => FailureClass::Unreachable,
        Fault::Config => FailureClass::Config,
        Fault::Credentials => FailureClass::Credentials,
        Fault::Worker => FailureClass::Worker,
        Fault::Output => FailureClass::Output,
        Fault::Corrupt => FailureClass::Corrupt,
        Fault::Cancelled => FailureClass::Cancelled,
    };
    let mut message = chain(failure);
    if let TaskFailure::Spill { path, source } | TaskFailure::Output { path, source } = failure
        && let Some(remark) = disk::remark(path, source)
    {
        message.push_str("; ");
        message.push_str(remark);
    }
    Failed { class, message: sanitize(&message) }
}

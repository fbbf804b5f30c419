//! Why an attempt ended badly, and where its part was to go.

use crate::clean::message as clean;
use crate::disk;
use crate::error_text::chain;
use crate::folder::Folder;
use crate::http::Endpoint;
use crate::objects::{ObjectBucket, ObjectUrl};
use crate::protocol::FailureClass;
use crate::task::{Fault, TaskFailure};
use std::sync::Arc;

/// Why an attempt ended badly.
#[derive(Debug)]
pub struct Failed {
    /// Whose fault.
    pub class: FailureClass,
    /// One line.
    pub message: String,
}

/// Where parts are published.
#[derive(Clone, Debug)]
pub enum Destination {
    /// This worker sees the submitter's output directory: the folder in it where parts are built.
    Shared(Arc<Folder>),
    /// It does not: parts are sent to the attached submitter.
    Submitter(Endpoint),
    /// The output is a prefix of an object store: parts are uploaded there.
    Store(Arc<ObjectBucket>, ObjectUrl),
}

/// A failure as it is reported to the master.
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
    Failed { class, message: clean(&message) }
}

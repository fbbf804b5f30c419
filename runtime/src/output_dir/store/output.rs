//! Output under a prefix, and the names of its objects.

use super::super::Success;
use super::held::HeldClaim;
use gristmill_worker::directory::PlainName;
use gristmill_worker::objects::{ObjectBucket, ObjectError, ObjectFailure, ObjectUrl};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A prefix that belongs to a job until it is finished or abandoned.
#[derive(Debug)]
pub(crate) struct StoreOutput {
    pub(super) url: ObjectUrl,
    pub(super) bucket: Arc<dyn ObjectBucket>,
    /// Name of the claim; its nonce is part of the names of all parts.
    pub(super) probe: PlainName,
    /// Set in the process that made the claim. It is never read: until it is dropped, it marks the claim as held here.
    pub(super) _held: Option<HeldClaim>,
}

/// Names of all parts of an output; those of named outputs include their directories.
pub(super) fn names_of(success: &Success) -> BTreeSet<String> {
    let of_part = success.parts.iter().flat_map(|part| {
        let named = part.named.iter().map(|named| format!("{}/{}", named.output, part.name));
        named.chain([part.name.clone()])
    });
    of_part.collect()
}

pub(super) fn is_missing(error: &ObjectError) -> bool {
    matches!(error.cause, ObjectFailure::Missing)
}

pub(super) fn is_condition(error: &ObjectError) -> bool {
    matches!(error.cause, ObjectFailure::Condition)
}

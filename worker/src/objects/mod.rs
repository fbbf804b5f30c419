//! Objects in stores that are reached over HTTP: S3, Google Cloud Storage, Azure Blob Storage, web servers.
//!
//! A [`ObjectBucket`] lists, reads, writes and deletes objects, and creates or replaces one under a
//! condition. All calls block. Requests run on a separate thread (`io_thread`), so that a slow store
//! delays only its callers. Credentials come from the environment of the requesting process (`connect`),
//! and are never part of a URL, message or log.
//!
//! Not here: the objects that are input (`input`), the claim and completion of an output (`output_dir` of
//! the runtime), and file systems. Without the cargo feature `stores` no [`ObjectBucket`] can be opened,
//! and the attempt returns an error.

#[cfg(not(feature = "stores"))]
mod absent;
#[cfg(feature = "stores")]
mod bucket;
#[cfg(feature = "stores")]
mod classes;
#[cfg(feature = "stores")]
mod connect;
mod error;
#[cfg(feature = "stores")]
mod io_thread;
mod names;
#[cfg(feature = "stores")]
mod reader;
#[cfg(feature = "stores")]
mod upload;
mod url;

#[cfg(not(feature = "stores"))]
pub use absent::{ObjectBucket, ObjectReader};
#[cfg(feature = "stores")]
pub use bucket::ObjectBucket;
pub use error::{ObjectError, ObjectFailure, ObjectFault};
pub use names::{AttemptObject, CLAIM, attempt_object_name};
#[cfg(feature = "stores")]
pub use reader::ObjectReader;
pub use url::{ObjectUrl, Scheme, is_url};

/// True if this program supports stores.
pub const BUILT_IN: bool = cfg!(feature = "stores");

/// Maximum number of objects listed for one prefix.
pub const OBJECTS_MAX: usize = 1 << 20;

/// Object as reported by a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Full name in its bucket.
    pub key: String,
    /// Stamp of the object.
    pub stamp: ObjectStamp,
}

/// Properties by which an object is recognized as the one that was listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectStamp {
    /// Size in bytes.
    pub size: u64,
    /// Time of the write, in whole seconds since 1970, the precision common to all responses of a store.
    pub modified_s: i64,
    /// Hash of its `ETag`; 0 if the store has not reported it.
    pub tag: u64,
}

impl ObjectStamp {
    /// True if both are of the same state of an object. If one `ETag` is unknown, the time of the write
    /// decides.
    #[must_use]
    pub fn is_same(self, other: Self) -> bool {
        let same = match (self.tag, other.tag) {
            (0, _) | (_, 0) => self.modified_s == other.modified_s,
            (one, another) => one == another,
        };
        same && self.size == other.size
    }
}

/// State of an object that a condition refers to.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ObjectVersion {
    /// `ETag` of the object.
    pub e_tag: Option<String>,
    /// Version of the object, where the store has versions.
    pub version: Option<String>,
}

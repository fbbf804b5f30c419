//! Objects in stores that are reached over HTTP: S3, Google Cloud Storage, Azure Blob Storage, web servers.
//!
//! A [`ObjectBucket`] lists, reads, writes and deletes objects, and creates or replaces one under a condition. All calls
//! block; what they wait for goes on on one thread of its own (`io_thread`), so that a slow store holds up whoever asks and
//! nobody else. Credentials come from the environment of the process that asks (`connect`), and stand in no URL, message or
//! log.
//!
//! Not here: what of a store is input (`input`), how an output is claimed and finished (`output_dir` of the runtime), and
//! file systems. Without the cargo feature `stores` a [`ObjectBucket`] cannot be had, and asking for one says so.

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

/// Whether this program can reach stores.
pub const BUILT_IN: bool = cfg!(feature = "stores");

/// Objects that are listed for one prefix.
pub const OBJECTS_MAX: usize = 1 << 20;

/// An object as a store tells of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// Its whole name in its bucket.
    pub key: String,
    /// What it looks like.
    pub stamp: ObjectStamp,
}

/// By which an object is recognised as the one that was listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectStamp {
    /// Bytes.
    pub size: u64,
    /// When it was written, in whole seconds since 1970: all that every answer of a store tells.
    pub modified_s: i64,
    /// A hash of its `ETag`; 0: the store has told none.
    pub tag: u64,
}

impl ObjectStamp {
    /// Whether both are of one state of an object. Where one `ETag` is not known, the time it was written counts.
    #[must_use]
    pub fn is_same(self, other: Self) -> bool {
        let same = match (self.tag, other.tag) {
            (0, _) | (_, 0) => self.modified_s == other.modified_s,
            (one, another) => one == another,
        };
        same && self.size == other.size
    }
}

/// Which state of an object a condition is about.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ObjectVersion {
    /// Its `ETag`.
    pub e_tag: Option<String>,
    /// Its number, where the store counts versions.
    pub version: Option<String>,
}

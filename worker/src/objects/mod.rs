//! Objects in stores that are reached over HTTP: S3, Google Cloud Storage, Azure Blob Storage, web servers.
//!
//! Here are URLs, errors and the trait of a bucket ([`ObjectBucket`]); the crate `gristmill-stores` implements it and is
//! [plugged in](plug_in) by the program. A program without it refuses URLs among inputs, and says so when a bucket is opened.

mod error;
mod names;
mod url;

pub use error::{ObjectError, ObjectFailure, ObjectFault, RETRIES_MAX, SILENCE_SECONDS_MAX};
pub use names::{AttemptObject, CLAIM, attempt_object_name};
use std::fs::File;
use std::sync::{Arc, OnceLock};
pub use url::{ObjectUrl, Scheme, is_url};

/// Opens the bucket of a URL, without a check that it exists.
pub type OpenBucket = fn(&ObjectUrl) -> Result<Arc<dyn ObjectBucket>, ObjectError>;

static OPEN: OnceLock<OpenBucket> = OnceLock::new();

/// Sets what opens buckets in this process. Only the first call counts.
pub fn plug_in(open: OpenBucket) {
    let _ = OPEN.set(open);
}

/// True if this program can reach stores.
#[must_use]
pub(crate) fn are_plugged_in() -> bool {
    OPEN.get().is_some()
}

/// Opens the bucket of a URL, without a check that it exists.
///
/// # Errors
/// Settings or credentials that cannot be used, and a program without stores.
pub fn open(url: &ObjectUrl) -> Result<Arc<dyn ObjectBucket>, ObjectError> {
    let open = OPEN.get().ok_or_else(|| ObjectFailure::NotBuiltIn.during("use", url))?;
    open(url)
}

/// A bucket, container, or one file of a web server. All calls block.
///
/// Conditions are those of the store: an object is created if there is none of that name, or replaced if it still is of a
/// version, in one request, so of two writers one gets an error.
pub trait ObjectBucket: std::fmt::Debug + Send + Sync {
    /// All objects whose keys begin with `prefix`, in the order of keys. Those that the store lists without an `ETag` have
    /// none.
    ///
    /// # Errors
    /// More than [`OBJECTS_MAX`], and what the store says.
    fn list(&self, prefix: &str) -> Result<Vec<Object>, ObjectError>;

    /// Properties of an object.
    ///
    /// # Errors
    /// [`ObjectFailure::Missing`], and what the store says. One of a web server has to be sent in ranges.
    fn stamp(&self, key: &str) -> Result<ObjectStamp, ObjectError>;

    /// A whole object of at most `bytes_max`, and its version.
    ///
    /// # Errors
    /// A larger one, and what the store says.
    fn get(&self, key: &str, bytes_max: u64) -> Result<(Vec<u8>, ObjectVersion), ObjectError>;

    /// Writes an object, unless there is one of that name.
    ///
    /// # Errors
    /// [`ObjectFailure::Condition`] if there is, and what the store says.
    fn create(&self, key: &str, bytes: Vec<u8>) -> Result<ObjectVersion, ObjectError>;

    /// Writes an object in the place of a version of it.
    ///
    /// # Errors
    /// [`ObjectFailure::Condition`] if it is another one by now, and what the store says.
    fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        version: ObjectVersion,
    ) -> Result<ObjectVersion, ObjectError>;

    /// Writes an object, whatever there was.
    ///
    /// # Errors
    /// What the store says.
    fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), ObjectError>;

    /// Deletes objects; those that do not exist are ignored.
    ///
    /// # Errors
    /// The first that could not be deleted; others may be gone.
    fn delete(&self, keys: &[String]) -> Result<(), ObjectError>;

    /// Uploads a file, of which the bytes and their CRC-32C are known, to a key without another writer.
    ///
    /// # Errors
    /// A file that is not what it should be, and what the store says. Nothing is there then.
    fn upload(&self, key: &str, file: File, expected: (u64, u32)) -> Result<ObjectStamp, ObjectError>;

    /// Reads an object from anywhere to its end, ahead up to `end`.
    fn reader(self: Arc<Self>, key: &str, stamp: ObjectStamp, end: u64) -> Box<dyn ObjectReader>;
}

/// Reads an object.
pub trait ObjectReader: Send {
    /// Fills `buffer` with the bytes from `offset` on, all of which the object has.
    ///
    /// # Errors
    /// [`ObjectFailure::Changed`] if it is not the object that was listed, and what the store says. After an error nothing more
    /// may be asked.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ObjectError>;
}

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

//! A bucket: lists, stats, reads, writes and deletes its objects.
//!
//! All calls block. Conditions are checked by the store: an object is created if none of that name
//! exists, or replaced if it still has a given version, in one request. So of two concurrent writers one
//! gets an error.

use super::classes::{MayBeDone, UnreadEncoding, failure};
use super::connect::reach;
use super::error::{ObjectError, ObjectFailure};
use super::io_thread::{self, PendingWork};
use super::url::{ObjectUrl, Scheme};
use super::{OBJECTS_MAX, Object, ObjectStamp, ObjectVersion};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    Attribute, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutResult,
    UpdateVersion,
};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of buckets, and files of web servers, that are kept open.
const BUCKETS_MAX: usize = 256;

/// Maximum number of pages of one listing, of up to 1000 objects each.
const PAGES_MAX: usize = 4096;

/// Range of an object in flight, with the metadata of the object.
pub(super) type PendingRange = PendingWork<object_store::Result<(ObjectMeta, Vec<Bytes>)>>;

/// Open buckets, by URL without key.
static BUCKETS: Mutex<BTreeMap<String, Arc<ObjectBucket>>> = Mutex::new(BTreeMap::new());

/// Bucket, container, or one file of a web server.
pub struct ObjectBucket {
    /// URL without a key, or that of the file.
    url: ObjectUrl,
    pub(super) store: Arc<dyn ObjectStore>,
    pages: Option<Arc<dyn PaginatedListStore>>,
}

impl fmt::Debug for ObjectBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without settings and credentials.
        write!(f, "Bucket({})", self.url)
    }
}

impl ObjectBucket {
    /// Opens the bucket of a URL, without a request to check that it exists.
    ///
    /// # Errors
    /// Invalid settings or credentials.
    pub fn of(url: &ObjectUrl) -> Result<Arc<Self>, ObjectError> {
        let root = if url.scheme().is_web() { url.clone() } else { url.with_key("") };
        let name = root.to_string();
        let mut known = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = known.get(&name) {
            return Ok(bucket.clone());
        }
        let (store, pages) = reach(&root).map_err(|cause| cause.of("use", url))?;
        if known.len() == BUCKETS_MAX {
            known.clear();
        }
        let bucket = Arc::new(Self { url: root, store, pages });
        known.insert(name, bucket.clone());
        Ok(bucket)
    }

    /// Returns all objects whose keys start with `prefix`, in the order of keys. Objects that the store
    /// lists without an `ETag` have none.
    ///
    /// # Errors
    /// More than [`OBJECTS_MAX`] objects, and the errors of the store.
    pub fn list(&self, prefix: &str) -> Result<Vec<Object>, ObjectError> {
        let url = self.url.with_key(prefix.strip_suffix('/').unwrap_or(prefix));
        let failed = |cause: ObjectFailure| cause.of("list", &url);
        let Some(pages) = self.pages.clone() else {
            return Err(failed(ObjectFailure::Address { reason: "a web server cannot be listed" }));
        };
        let prefix = prefix.to_owned();
        let listed = io_thread::wait(async move { list(&*pages, &prefix).await });
        let mut found = listed.and_then(|listed| listed).map_err(failed)?;
        found.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Ok(found)
    }

    /// Returns the stamp of an object.
    ///
    /// # Errors
    /// [`ObjectFailure::Missing`], and the errors of the store. A web server must support ranges.
    pub fn look(&self, key: &str) -> Result<ObjectStamp, ObjectError> {
        let looked = self.ask("look at", key, |store, path| async move { look(&*store, &path).await })?;
        Ok(stamp_of(&looked))
    }

    /// Returns a whole object of at most `bytes_max`, and its version.
    ///
    /// # Errors
    /// A larger object, and the errors of the store.
    pub fn get(&self, key: &str, bytes_max: u64) -> Result<(Vec<u8>, ObjectVersion), ObjectError> {
        let got = self.ask("read", key, move |store, path| async move {
            let got = store.get(&path).await?;
            let meta = got.meta.clone();
            let bytes = if meta.size <= bytes_max { Some(got.bytes().await?) } else { None };
            Ok((meta, bytes))
        })?;
        match got {
            (meta, Some(bytes)) => {
                Ok((bytes.to_vec(), ObjectVersion { e_tag: meta.e_tag, version: meta.version }))
            }
            (meta, None) => {
                let cause = ObjectFailure::TooLarge { bytes: meta.size, limit: bytes_max };
                Err(cause.of("read", &self.url.with_key(key)))
            }
        }
    }

    /// Writes an object, unless one of that name exists.
    ///
    /// # Errors
    /// [`ObjectFailure::Condition`] if it exists, and the errors of the store.
    pub fn create(&self, key: &str, bytes: Vec<u8>) -> Result<ObjectVersion, ObjectError> {
        self.write("create", key, bytes, PutMode::Create)
    }

    /// Replaces a version of an object.
    ///
    /// # Errors
    /// [`ObjectFailure::Condition`] if its version has changed, and the errors of the store.
    pub fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        version: ObjectVersion,
    ) -> Result<ObjectVersion, ObjectError> {
        let ObjectVersion { e_tag, version } = version;
        self.write("replace", key, bytes, PutMode::Update(UpdateVersion { e_tag, version }))
    }

    /// Writes an object unconditionally.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), ObjectError> {
        self.write("write", key, bytes, PutMode::Overwrite).map(drop)
    }

    /// Deletes objects. Objects that do not exist are ignored.
    ///
    /// # Errors
    /// The first deletion that failed. Others may have succeeded.
    pub fn delete(&self, keys: &[String]) -> Result<(), ObjectError> {
        if keys.is_empty() {
            return Ok(());
        }
        let url = self.url.with_key(&keys[0]);
        let failed = |cause: ObjectFailure| cause.of("delete", &url);
        let paths = keys.iter().map(|key| path_of(key)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let store = self.store.clone();
        // S3 responds for many at once, and never that none of them exists: then nothing was deleted.
        let is_s3 = self.url.scheme() == Scheme::S3;
        let deleted = io_thread::wait(async move {
            let mut first = Ok(());
            let mut answers = store.delete_stream(stream::iter(paths.into_iter().map(Ok)).boxed());
            while let Some(answer) = answers.next().await {
                let cause = match answer.err().map(|error| failure(&error)) {
                    Some(ObjectFailure::Missing) if is_s3 => {
                        ObjectFailure::Refused { status: 404, code: None }
                    }
                    None | Some(ObjectFailure::Missing) => continue,
                    Some(cause) => cause,
                };
                first = first.and(Err(cause));
            }
            first
        });
        deleted.and_then(|deleted| deleted).map_err(failed)
    }

    fn write(
        &self,
        action: &'static str,
        key: &str,
        bytes: Vec<u8>,
        mode: PutMode,
    ) -> Result<ObjectVersion, ObjectError> {
        let (payload, may_be_done) = (Bytes::from(bytes), MayBeDone::default());
        let mut options = PutOptions::from(mode);
        options.extensions.insert(may_be_done.clone());
        let put = self.ask(action, key, move |store, path| async move {
            store.put_opts(&path, payload.into(), options).await
        });
        let put = put.map_err(|error| ObjectError { may_be_done: may_be_done.is_so(), ..error })?;
        let PutResult { e_tag, version, .. } = put;
        Ok(ObjectVersion { e_tag, version })
    }

    /// Starts an operation on an object and waits for the result.
    fn ask<T, F>(
        &self,
        action: &'static str,
        key: &str,
        request: impl FnOnce(Arc<dyn ObjectStore>, Path) -> F,
    ) -> Result<T, ObjectError>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let answer = self.path(key).and_then(|path| io_thread::wait(request(self.store.clone(), path)));
        let answer = answer.and_then(|answer| answer.map_err(|error| failure(&error)));
        answer.map_err(|cause| cause.of(action, &self.url.with_key(key)))
    }

    /// Returns the URL of one of its objects.
    pub(super) fn url_of(&self, key: &str) -> ObjectUrl {
        self.url.with_key(key)
    }

    /// Returns the path of an object in the store. For a web server the store is the object.
    pub(super) fn path(&self, key: &str) -> Result<Path, ObjectFailure> {
        if self.url.scheme().is_web() { Ok(Path::default()) } else { path_of(key) }
    }

    /// Requests a range of an object, with this `ETag` if it is known.
    pub(super) fn begin_range(
        &self,
        key: &str,
        range: Range<u64>,
        tag: Option<&str>,
    ) -> Result<PendingRange, ObjectFailure> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        let options = GetOptions::new().with_range(Some(range)).with_if_match(tag);
        io_thread::begin(async move {
            let got = store.get_opts(&path, options).await?;
            if let Some(encoding) =
                got.attributes.get(&Attribute::ContentEncoding).filter(|value| !is_read(value))
            {
                let source = Box::new(UnreadEncoding(encoding.to_string()));
                return Err(object_store::Error::Generic { store: "encoding", source });
            }
            let meta = got.meta.clone();
            let (mut stream, mut chunks) = (got.into_stream(), Vec::new());
            while let Some(chunk) = stream.next().await {
                chunks.push(chunk?);
            }
            Ok((meta, chunks))
        })
    }
}

/// True if the encoding in `Content-Encoding` is detected from the first bytes of the content, or is none.
fn is_read(encodings: &str) -> bool {
    let known = ["", "identity", "aws-chunked", "gzip", "x-gzip", "zstd"];
    encodings.split(',').all(|encoding| known.iter().any(|known| encoding.trim().eq_ignore_ascii_case(known)))
}

/// Returns the metadata of an object, from a read of its first byte. A web server may omit the file name
/// before that, and the response to a `HEAD` has no body for a store's error code.
async fn look(store: &dyn ObjectStore, path: &Path) -> object_store::Result<ObjectMeta> {
    match store.get_opts(path, GetOptions::new().with_range(Some(0..1))).await {
        Ok(got) => Ok(got.meta),
        // An empty object has no first byte.
        Err(error) if matches!(failure(&error), ObjectFailure::Changed) => {
            store.head(path).await.ok().filter(|meta| meta.size == 0).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// Returns the path of an object in its store.
fn path_of(key: &str) -> Result<Path, ObjectFailure> {
    Path::parse(key)
        .map_err(|_| ObjectFailure::Address { reason: "its key has a name that cannot be asked for" })
}

async fn list(pages: &dyn PaginatedListStore, prefix: &str) -> Result<Vec<Object>, ObjectFailure> {
    let (mut found, mut token) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let options = PaginatedListOptions { page_token: token, ..PaginatedListOptions::default() };
        let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
        let page = pages.list_paginated(prefix, options).await.map_err(|error| failure(&error))?;
        let object = |meta: &ObjectMeta| Object { key: meta.location.to_string(), stamp: stamp_of(meta) };
        found.extend(page.result.objects.iter().map(object));
        if OBJECTS_MAX < found.len() {
            return Err(ObjectFailure::TooMany { limit: OBJECTS_MAX });
        }
        match page.page_token {
            Some(next) if !next.is_empty() => token = Some(next),
            _ => return Ok(found),
        }
    }
    Err(ObjectFailure::TooMany { limit: OBJECTS_MAX })
}

/// Converts the metadata from a store to a stamp.
pub(super) fn stamp_of(meta: &ObjectMeta) -> ObjectStamp {
    ObjectStamp {
        size: meta.size,
        modified_s: meta.last_modified.timestamp(),
        tag: meta.e_tag.as_deref().map_or(0, tag_of),
    }
}

/// Returns a hash of an `ETag`, with or without quotes; never 0.
pub(super) fn tag_of(e_tag: &str) -> u64 {
    let bare = e_tag.strip_prefix("W/").unwrap_or(e_tag).trim_matches('"');
    xxh3_64(bare.as_bytes()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_the_same_however_it_is_quoted() {
        assert_eq!(tag_of("\"abc\""), tag_of("abc"));
        assert_eq!(tag_of("W/\"abc\""), tag_of("abc"));
        assert_ne!(tag_of("\"abd\""), tag_of("abc"));
        assert_ne!(tag_of(""), 0);
    }

    #[test]
    fn stamp_goes_by_the_tag_and_by_the_time_where_one_has_none() {
        let stamp = ObjectStamp { size: 5, modified_s: 7, tag: 9 };
        assert!(stamp.is_same(ObjectStamp { modified_s: 8, ..stamp }));
        assert!(!stamp.is_same(ObjectStamp { tag: 10, ..stamp }));
        assert!(!stamp.is_same(ObjectStamp { size: 6, ..stamp }));
        assert!(stamp.is_same(ObjectStamp { tag: 0, ..stamp }));
        assert!(!stamp.is_same(ObjectStamp { tag: 0, modified_s: 8, ..stamp }));
    }
}

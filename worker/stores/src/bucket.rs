//! The [`ObjectBucket`] of a store: lists, looks at, reads, writes and deletes objects.

use crate::classes::{MayBeDone, failure};
use crate::connect::reach;
use crate::io_thread;
use crate::reader::StoreReader;
use crate::store::{StoreBucket, path_of, stamp_of};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use gristmill_worker::objects::{
    OBJECTS_MAX, Object, ObjectBucket, ObjectError, ObjectFailure, ObjectReader, ObjectStamp, ObjectUrl,
    ObjectVersion, Scheme,
};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutResult, UpdateVersion,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of buckets, and files of web servers, that are kept open.
const BUCKETS_MAX: usize = 256;

/// Maximum number of pages of one listing, of up to 1000 objects each.
const PAGES_MAX: usize = 4096;

/// Open buckets, by URL without key.
static BUCKETS: Mutex<BTreeMap<String, Arc<StoreBucket>>> = Mutex::new(BTreeMap::new());

/// Opens the bucket of a URL, without a check that it exists.
pub(crate) fn open(url: &ObjectUrl) -> Result<Arc<dyn ObjectBucket>, ObjectError> {
    let root = if url.scheme().is_web() { url.clone() } else { url.with_key("") };
    let name = root.to_string();
    let mut known = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bucket) = known.get(&name) {
        return Ok(bucket.clone());
    }
    let (store, pages) = reach(&root).map_err(|cause| cause.during("use", url))?;
    if known.len() == BUCKETS_MAX {
        known.clear();
    }
    let bucket = Arc::new(StoreBucket { url: root, store, pages });
    known.insert(name, bucket.clone());
    Ok(bucket)
}

impl ObjectBucket for StoreBucket {
    fn list(&self, prefix: &str) -> Result<Vec<Object>, ObjectError> {
        let url = self.url.with_key(prefix.strip_suffix('/').unwrap_or(prefix));
        let failed = |cause: ObjectFailure| cause.during("list", &url);
        let Some(pages) = self.pages.clone() else {
            return Err(failed(ObjectFailure::Address { reason: "a web server cannot be listed" }));
        };
        let prefix = prefix.to_owned();
        let listed = io_thread::wait(async move { list(&*pages, &prefix).await });
        let mut found = listed.and_then(|listed| listed).map_err(failed)?;
        found.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Ok(found)
    }

    fn stamp(&self, key: &str) -> Result<ObjectStamp, ObjectError> {
        let looked = self.request("look at", key, |store, path| async move { head(&*store, &path).await })?;
        Ok(stamp_of(&looked))
    }

    fn get(&self, key: &str, bytes_max: u64) -> Result<(Vec<u8>, ObjectVersion), ObjectError> {
        let got = self.request("read", key, move |store, path| async move {
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
                Err(cause.during("read", &self.url.with_key(key)))
            }
        }
    }

    fn create(&self, key: &str, bytes: Vec<u8>) -> Result<ObjectVersion, ObjectError> {
        self.write("create", key, bytes, PutMode::Create)
    }

    fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        version: ObjectVersion,
    ) -> Result<ObjectVersion, ObjectError> {
        let ObjectVersion { e_tag, version } = version;
        self.write("replace", key, bytes, PutMode::Update(UpdateVersion { e_tag, version }))
    }

    fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), ObjectError> {
        self.write("write", key, bytes, PutMode::Overwrite).map(drop)
    }

    fn delete(&self, keys: &[String]) -> Result<(), ObjectError> {
        if keys.is_empty() {
            return Ok(());
        }
        let url = self.url.with_key(&keys[0]);
        let failed = |cause: ObjectFailure| cause.during("delete", &url);
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

    fn upload(&self, key: &str, file: File, expected: (u64, u32)) -> Result<ObjectStamp, ObjectError> {
        self.upload_file(key, file, expected)
    }

    fn reader(self: Arc<Self>, key: &str, stamp: ObjectStamp, end: u64) -> Box<dyn ObjectReader> {
        Box::new(StoreReader::new(self, key, stamp, end))
    }
}

impl StoreBucket {
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
        let put = self.request(action, key, move |store, path| async move {
            store.put_opts(&path, payload.into(), options).await
        });
        let put = put.map_err(|error| ObjectError { may_be_done: may_be_done.is_so(), ..error })?;
        let PutResult { e_tag, version, .. } = put;
        Ok(ObjectVersion { e_tag, version })
    }
}

/// Returns the metadata of an object, from a read of its first byte. A web server may omit the file name
/// before that, and the response to a `HEAD` has no body for a store's error code.
async fn head(store: &dyn ObjectStore, path: &Path) -> object_store::Result<ObjectMeta> {
    match store.get_opts(path, GetOptions::new().with_range(Some(0..1))).await {
        Ok(got) => Ok(got.meta),
        // An empty object has no first byte.
        Err(error) if matches!(failure(&error), ObjectFailure::Changed) => {
            store.head(path).await.ok().filter(|meta| meta.size == 0).ok_or(error)
        }
        Err(error) => Err(error),
    }
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

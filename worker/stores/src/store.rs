//! An open bucket: its objects by key, ranges of them, and their stamps. All other modules use it.

use crate::classes::{UnreadEncoding, failure};
use crate::io_thread::{self, PendingWork};
use bytes::Bytes;
use futures_util::stream::StreamExt;
use gristmill_worker::objects::{ObjectError, ObjectFailure, ObjectStamp, ObjectUrl};
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{Attribute, GetOptions, ObjectMeta, ObjectStore};
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Range of an object in flight, with the metadata of the object.
pub(crate) type PendingRange = PendingWork<object_store::Result<(ObjectMeta, Vec<Bytes>)>>;

/// Bucket, container, or one file of a web server.
pub(crate) struct StoreBucket {
    /// URL without a key, or that of the file.
    pub(crate) url: ObjectUrl,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) pages: Option<Arc<dyn PaginatedListStore>>,
}

impl fmt::Debug for StoreBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without settings and credentials.
        write!(f, "Bucket({})", self.url)
    }
}

impl StoreBucket {
    /// Starts an operation on an object and waits for the result.
    pub(crate) fn request<T, F>(
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
        answer.map_err(|cause| cause.during(action, &self.url.with_key(key)))
    }

    /// Returns the URL of one of its objects.
    pub(crate) fn url_of(&self, key: &str) -> ObjectUrl {
        self.url.with_key(key)
    }

    /// Returns the path of an object in the store. For a web server the store is the object.
    pub(crate) fn path(&self, key: &str) -> Result<Path, ObjectFailure> {
        if self.url.scheme().is_web() { Ok(Path::default()) } else { path_of(key) }
    }

    /// Requests a range of an object, with this `ETag` if it is known.
    pub(crate) fn start_range(
        &self,
        key: &str,
        range: Range<u64>,
        tag: Option<&str>,
    ) -> Result<PendingRange, ObjectFailure> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        let options = GetOptions::new().with_range(Some(range)).with_if_match(tag);
        io_thread::start(async move {
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

/// Returns the path of an object in its store.
pub(crate) fn path_of(key: &str) -> Result<Path, ObjectFailure> {
    Path::parse(key)
        .map_err(|_| ObjectFailure::Address { reason: "its key has a name that cannot be asked for" })
}

/// Converts the metadata from a store to a stamp.
pub(crate) fn stamp_of(meta: &ObjectMeta) -> ObjectStamp {
    ObjectStamp {
        size: meta.size,
        modified_s: meta.last_modified.timestamp(),
        tag: meta.e_tag.as_deref().map_or(0, tag_of),
    }
}

/// Returns a hash of an `ETag`, with or without quotes; never 0.
pub(crate) fn tag_of(e_tag: &str) -> u64 {
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

//! Uploads a file: in one request if it is small, else piece by piece (multipart).
//!
//! An object appears atomically. A started upload that fails is aborted in the store too. A process that
//! is killed cannot do that: a bucket needs a rule that removes incomplete uploads, which are invisible
//! except on its owner's bill.
//! owner's bill.

use crate::classes::failure;
use crate::io_thread;
use crate::store::{StoreBucket, tag_of};
use bytes::Bytes;
use gristmill_worker::objects::{ObjectBucket as _, ObjectError, ObjectFailure, ObjectStamp};
use object_store::{MultipartUpload, ObjectStoreExt, PutResult, WriteMultipart};
use std::fs::File;
use std::io::{self, Read};

/// Bytes of a piece, unless there would be too many. A file up to this size is sent in one request.
const PIECE_BYTES: u64 = 8 << 20;

/// Maximum number of pieces of one upload: the smallest limit of any store.
const PIECES_MAX: u64 = 10_000;

/// Number of pieces in flight at once, and so in memory.
const PIECES_AT_ONCE: usize = 4;

impl StoreBucket {
    /// See [`ObjectBucket::upload`](gristmill_worker::objects::ObjectBucket::upload).
    pub(crate) fn upload_file(
        &self,
        key: &str,
        file: File,
        expected: (u64, u32),
    ) -> Result<ObjectStamp, ObjectError> {
        let source = FileSource { file, bytes: 0, crc32c: 0 };
        let uploaded = if expected.0 <= PIECE_BYTES {
            self.upload_at_once(key, source, expected)
        } else {
            self.upload_in_pieces(key, source, expected)
        };
        let tag = uploaded.map_err(|cause| cause.during("write", &self.url_of(key)))?;
        Ok(ObjectStamp { size: expected.0, modified_s: 0, tag })
    }

    fn upload_at_once(
        &self,
        key: &str,
        mut source: FileSource,
        expected: (u64, u32),
    ) -> Result<u64, ObjectFailure> {
        // One byte more would show that the file is longer.
        let piece = source.next(expected.0 + 1)?;
        source.expect(expected)?;
        let (store, path) = (self.store.clone(), self.path(key)?);
        let put = io_thread::wait(async move { store.put(&path, piece.into()).await })?;
        put.map(|put| tag_of_put(&put)).map_err(|error| failure(&error))
    }

    fn upload_in_pieces(
        &self,
        key: &str,
        source: FileSource,
        expected: (u64, u32),
    ) -> Result<u64, ObjectFailure> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        let sent = io_thread::wait(async move {
            let upload = store.put_multipart(&path).await.map_err(|error| failure(&error))?;
            send_pieces(upload, source, expected).await
        })?;
        match sent {
            Ok(put) => Ok(tag_of_put(&put)),
            // An attempt that succeeded without a response: the next one does not find the upload.
            Err(cause) => match self.stamp(key) {
                Ok(stamp) if stamp.size == expected.0 => Ok(stamp.tag),
                _ => Err(cause),
            },
        }
    }
}

async fn send_pieces(
    upload: Box<dyn MultipartUpload>,
    mut source: FileSource,
    expected: (u64, u32),
) -> Result<PutResult, ObjectFailure> {
    let piece_bytes = PIECE_BYTES.max(expected.0.div_ceil(PIECES_MAX));
    let mut pieces = WriteMultipart::new_with_chunk_size(upload, piece_bytes as usize);
    let sent = loop {
        match source.next(piece_bytes) {
            Ok(piece) if piece.is_empty() => break source.expect(expected),
            Ok(piece) => pieces.put(piece),
            Err(cause) => break Err(cause),
        }
        if let Err(error) = pieces.wait_for_capacity(PIECES_AT_ONCE).await {
            break Err(failure(&error));
        }
    };
    if let Err(cause) = sent {
        if let Err(error) = pieces.abort().await {
            // By its class alone: messages of a store may repeat a key.
            tracing::warn!(cause = %failure(&error), "an upload could not be given up in the store");
        }
        return Err(cause);
    }
    pieces.finish().await.map_err(|error| failure(&error))
}

/// Returns a hash of the `ETag` of a written object; 0 if the store has not reported it.
fn tag_of_put(put: &PutResult) -> u64 {
    put.e_tag.as_deref().map_or(0, tag_of)
}

/// File that is uploaded, with the size and checksum of the bytes read so far.
struct FileSource {
    file: File,
    bytes: u64,
    crc32c: u32,
}

impl FileSource {
    /// Returns the next `bytes` bytes, fewer only at the end of the file.
    fn next(&mut self, bytes: u64) -> Result<Bytes, ObjectFailure> {
        let mut piece = Vec::new();
        let read = (&mut self.file).take(bytes).read_to_end(&mut piece);
        read.map_err(|source: io::Error| ObjectFailure::Local { source })?;
        self.bytes += piece.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &piece);
        Ok(piece.into())
    }

    fn expect(&self, expected: (u64, u32)) -> Result<(), ObjectFailure> {
        let found = (self.bytes, self.crc32c);
        if found == expected { Ok(()) } else { Err(ObjectFailure::Corrupt { found, expected }) }
    }
}

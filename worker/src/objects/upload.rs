//! Uploads a file: in one request if it is small, else piece by piece (multipart).
//!
//! An object appears atomically. A started upload that fails is aborted in the store too. A process that
//! is killed cannot do that: a bucket needs a rule that removes incomplete uploads, which are invisible
//! except on its owner's bill.
//! owner's bill.

use super::ObjectStamp;
use super::bucket::{ObjectBucket, tag_of};
use super::classes::failure;
use super::error::{ObjectError, ObjectFailure};
use super::io_thread::{self, PendingWork};
use bytes::Bytes;
use object_store::{MultipartUpload, ObjectStoreExt, PutResult};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

/// Bytes of a piece, unless there would be too many. A file up to this size is sent in one request.
const PIECE_BYTES: u64 = 8 << 20;

/// Maximum number of pieces of one upload: the smallest limit of any store.
const PIECES_MAX: u64 = 10_000;

/// Number of pieces in flight at once, and so in memory.
const PIECES_AT_ONCE: usize = 4;

impl ObjectBucket {
    /// Uploads a file, whose size and CRC-32C are known, to a key that has no other writer.
    ///
    /// # Errors
    /// The file is not as expected, and the errors of the store. No object exists then.
    pub fn upload(
        self: &Arc<Self>,
        key: &str,
        file: File,
        expected: (u64, u32),
    ) -> Result<ObjectStamp, ObjectError> {
        let mut source = FileSource { file, bytes: 0, crc32c: 0 };
        let uploaded = if expected.0 <= PIECE_BYTES {
            self.upload_at_once(key, &mut source, expected)
        } else {
            self.upload_in_pieces(key, &mut source, expected)
        };
        let tag = uploaded.map_err(|cause| cause.of("write", &self.url_of(key)))?;
        Ok(ObjectStamp { size: expected.0, modified_s: 0, tag })
    }

    fn upload_at_once(
        &self,
        key: &str,
        source: &mut FileSource,
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
        source: &mut FileSource,
        expected: (u64, u32),
    ) -> Result<u64, ObjectFailure> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        let begun = io_thread::wait(async move { store.put_multipart(&path).await })?;
        let mut upload = begun.map_err(|error| failure(&error))?;
        let completed = match self.send_pieces(&mut *upload, source, expected) {
            Ok(()) => {
                let complete = async move {
                    let completed = upload.complete().await;
                    (upload, completed)
                };
                let (back, completed) = io_thread::wait(complete)?;
                upload = back;
                match completed {
                    Ok(put) => Ok(tag_of_put(&put)),
                    // An attempt that succeeded without a response: the next one does not find the upload.
                    Err(error) => match self.look(key) {
                        Ok(stamp) if stamp.size == expected.0 => Ok(stamp.tag),
                        _ => Err(failure(&error)),
                    },
                }
            }
            Err(cause) => Err(cause),
        };
        if completed.is_err() {
            io_thread::wait(abort(upload))?;
        }
        completed
    }

    fn send_pieces(
        &self,
        upload: &mut dyn MultipartUpload,
        source: &mut FileSource,
        expected: (u64, u32),
    ) -> Result<(), ObjectFailure> {
        let piece_bytes = PIECE_BYTES.max(expected.0.div_ceil(PIECES_MAX));
        let mut sent: VecDeque<PendingWork<object_store::Result<()>>> = VecDeque::new();
        let arrived =
            |piece: PendingWork<object_store::Result<()>>| piece.wait()?.map_err(|error| failure(&error));
        loop {
            let piece = source.next(piece_bytes)?;
            if piece.is_empty() {
                break;
            }
            if sent.len() == PIECES_AT_ONCE
                && let Some(first) = sent.pop_front()
            {
                arrived(first)?;
            }
            sent.push_back(io_thread::begin(upload.put_part(piece.into()))?);
        }
        source.expect(expected)?;
        sent.into_iter().try_for_each(arrived)
    }
}

/// Returns a hash of the `ETag` of a written object; 0 if the store has not reported it.
fn tag_of_put(put: &PutResult) -> u64 {
    put.e_tag.as_deref().map_or(0, tag_of)
}

async fn abort(mut upload: Box<dyn MultipartUpload>) {
    if let Err(error) = upload.abort().await {
        // By its class alone: messages of a store may repeat a key.
        let cause = failure(&error);
        tracing::warn!(%cause, "an upload could not be given up in the store");
    }
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

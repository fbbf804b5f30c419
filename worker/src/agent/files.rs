//! Files of other machines: reading ranges over HTTP, and serving them.
//!
//! A worker that sees the submitter's files reads them directly; one that does not requests them from the
//! attached submitter. Files named on a worker are served by that worker. Both sides use the same two
//! routes, `POST /files/JOB` for a range and `POST /list` for names.

use crate::codec;
use crate::http::{self, Body, Endpoint, HttpError, Key, Pool, Secret};
use crate::input::{
    ByteSource, FileAccess, FilePath, FileStamp, InputError, LocalFiles, Piece, Place, open_regular,
};
use crate::response;
use bytes::Bytes;
use gristmill_scheduler::ids::{JobId, WorkerId};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

/// Maximum bytes of one range request.
pub(crate) const RANGE_BYTES_MAX: u64 = 8 << 20;

/// Maximum length of a request for a range or a listing.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Route on which a worker serves its files to a submitter that has no job yet, to read headers and to
/// sample keys.
pub const SAMPLE_ROUTE: &str = "/files/sample";

/// Returns the route on which the files of a job are served.
#[must_use]
pub(crate) fn job_route(job: JobId) -> String {
    format!("/files/{job}")
}

/// One range of one file. Body of `POST /files/JOB`.
#[derive(Debug, Serialize, Deserialize)]
pub struct RangeRequest {
    /// Absolute path of the file.
    pub path: FilePath,
    /// Expected stamp.
    pub stamp: FileStamp,
    /// First byte.
    pub offset: u64,
    /// Number of bytes, at most `RANGE_BYTES_MAX`.
    pub length: u64,
}

/// Files that may be read.
#[derive(Clone, Debug)]
pub enum Served {
    /// Any file that this process can read: on a worker, the holder of a job's key runs code there anyway.
    Any,
    /// Only these files: on a submitter.
    Listed(std::sync::Arc<BTreeSet<FilePath>>),
}

/// Serves `POST /files/JOB`: 200 with the bytes, 404 if the file does not exist, 409 if it has changed,
/// 422 if it cannot be read, 503 if a local resource limit was reached.
pub async fn serve_range(served: Served, request: Request<Incoming>) -> Response<Body> {
    let Ok(body) = http::read_limited(request.into_body(), REQUEST_BYTES_MAX).await else {
        return response::status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let Ok(range) = codec::decode_message::<RangeRequest>(&body, 4 * REQUEST_BYTES_MAX) else {
        return response::status(StatusCode::BAD_REQUEST);
    };
    if RANGE_BYTES_MAX < range.length {
        return response::status(StatusCode::RANGE_NOT_SATISFIABLE);
    }
    if let Served::Listed(files) = &served
        && !files.contains(&range.path)
    {
        return response::status(StatusCode::NOT_FOUND);
    }
    let read = tokio::task::spawn_blocking(move || read_range(&range)).await;
    match read {
        Ok(Ok(bytes)) => response::bytes(StatusCode::OK, bytes),
        Ok(Err(status)) => response::status(status),
        Err(_) => response::status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn read_range(range: &RangeRequest) -> Result<Bytes, StatusCode> {
    let failed = |source| refusal(&InputError::from_io(&range.path, source));
    let file = open_regular(range.path.to_path()).map_err(failed)?;
    let check = || {
        let now = file.metadata().map_err(failed)?;
        let same = now.is_file() && FileStamp::from_metadata(&now) == range.stamp;
        if same { Ok(()) } else { Err(StatusCode::CONFLICT) }
    };
    check()?;
    // `/proc/self/mem` has the size 0 and the memory of this process after its end.
    if range.offset.checked_add(range.length).is_none_or(|end| end > range.stamp.size) {
        return Err(StatusCode::CONFLICT);
    }
    let mut bytes = vec![0; range.length as usize];
    file.read_exact_at(&mut bytes, range.offset).map_err(|source| match source.kind() {
        ErrorKind::UnexpectedEof => StatusCode::CONFLICT,
        _ => failed(source),
    })?;
    check()?;
    Ok(Bytes::from(bytes))
}

/// Returns the status from which the other side restores the error it would have found itself.
pub(super) fn refusal(error: &InputError) -> StatusCode {
    match error {
        InputError::Missing { .. } => StatusCode::NOT_FOUND,
        error if error.is_input_fault() => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Key for reading files of other processes.
pub enum FileKey {
    /// Key of the job.
    OfJob(Secret),
    /// Key of each worker.
    OfWorkers(BTreeMap<WorkerId, Secret>),
}

impl FileKey {
    fn secret_for(&self, place: Place) -> Option<&Secret> {
        match (self, place) {
            (FileKey::OfJob(key), _) => Some(key),
            (FileKey::OfWorkers(keys), Place::Worker(worker)) => keys.get(&worker),
            (FileKey::OfWorkers(_), Place::Submitter | Place::Store | Place::Steps) => None,
        }
    }
}

/// Access of a worker to the files of one job, and of a submitter to those of workers.
pub struct JobFiles {
    /// Route of the files: `/files/JOB`, or [`SAMPLE_ROUTE`].
    pub route: String,
    /// Number of this worker; `None` on a submitter.
    pub worker: Option<WorkerId>,
    /// Key for the route.
    pub key: FileKey,
    /// Endpoint of the attached submitter, if it serves its files.
    pub submitter: Option<Endpoint>,
    /// Endpoints of workers that files are named on.
    pub peers: BTreeMap<WorkerId, Endpoint>,
    /// Connections to them.
    pub pool: Pool,
    /// Runtime that drives the connections. Tasks wait on it from their own threads.
    pub runtime: tokio::runtime::Handle,
}

impl JobFiles {
    fn remote(&self, endpoint: &Endpoint, piece: &Piece) -> Box<dyn ByteSource> {
        Box::new(RemoteFile {
            path: self.route.clone(),
            file: piece.path.clone(),
            stamp: piece.stamp,
            endpoint: endpoint.clone(),
            key: self.key.secret_for(piece.place).cloned(),
            pool: self.pool.clone(),
            runtime: self.runtime.clone(),
        })
    }
}

impl FileAccess for JobFiles {
    fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
        match piece.place {
            Place::Worker(worker) if Some(worker) == self.worker => LocalFiles.open(piece),
            Place::Worker(worker) => match self.peers.get(&worker) {
                Some(endpoint) => Ok(self.remote(endpoint, piece)),
                None => Err(InputError::Remote {
                    path: piece.name.clone(),
                    offset: piece.offset,
                    source: format!("{worker} is not known here").into(),
                }),
            },
            Place::Store | Place::Steps => LocalFiles.open(piece),
            Place::Submitter => match (LocalFiles.open(piece), &self.submitter) {
                (Ok(file), _) => Ok(file),
                // Not the same file here: the submitter's copy counts, and it checks the stamp too.
                (Err(_), Some(endpoint)) => Ok(self.remote(endpoint, piece)),
                (Err(error), None) => Err(error),
            },
        }
    }
}

struct RemoteFile {
    path: String,
    file: FilePath,
    stamp: FileStamp,
    endpoint: Endpoint,
    key: Option<Secret>,
    pool: Pool,
    runtime: tokio::runtime::Handle,
}

impl RemoteFile {
    async fn range(&self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| InputError::Remote {
            path: self.file.clone(),
            offset,
            source,
        };
        let request =
            RangeRequest { path: self.file.clone(), stamp: self.stamp, offset, length: buffer.len() as u64 };
        let mut body = Vec::new();
        codec::encode(&request, &mut body);
        let response = self
            .pool
            .request(
                &self.endpoint,
                self.key.as_ref().map(|key| key as &dyn Key),
                Method::POST,
                &self.path,
                http::full(body),
            )
            .await;
        let mut response = match response {
            Ok(response) => response,
            Err(HttpError::Status { status: StatusCode::CONFLICT, .. }) => {
                return Err(InputError::Changed { path: self.file.clone(), was: self.stamp, now: None });
            }
            Err(HttpError::Status { status: StatusCode::NOT_FOUND, .. }) => {
                return Err(InputError::Missing { path: self.file.clone() });
            }
            Err(HttpError::Status { status: StatusCode::UNPROCESSABLE_ENTITY, .. }) => {
                let source = std::io::Error::other(format!("{} cannot read it", self.endpoint));
                return Err(InputError::Unreadable { path: self.file.clone(), source });
            }
            Err(source) => return Err(failed(Box::new(source))),
        };
        let bytes = response
            .body_mut()
            .collect(RANGE_BYTES_MAX as usize)
            .await
            .map_err(|source| failed(Box::new(source)))?;
        if bytes.len() != buffer.len() {
            let text = format!("{} bytes came instead of {}", bytes.len(), buffer.len());
            return Err(failed(text.into()));
        }
        buffer.copy_from_slice(&bytes);
        Ok(())
    }
}

impl ByteSource for RemoteFile {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
        let mut at = offset;
        for chunk in buffer.chunks_mut(RANGE_BYTES_MAX as usize) {
            self.runtime.clone().block_on(self.range(at, chunk))?;
            at += chunk.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    fn request(path: &std::path::Path, length: u64) -> RangeRequest {
        let stamp = FileStamp::from_metadata(&std::fs::metadata(path).unwrap());
        RangeRequest { path: FilePath::from(path), stamp, offset: 1, length }
    }

    #[test]
    fn served_file_is_refused_for_the_reason_that_a_local_reader_would_find() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "abc").unwrap();
        let range = request(&path, 2);
        assert_eq!(read_range(&range).unwrap(), &b"bc"[..]);
        assert_eq!(read_range(&request(&path, 3)), Err(StatusCode::CONFLICT), "beyond the end");
        let memory = RangeRequest {
            offset: (&raw const range).addr() as u64,
            ..request("/proc/self/mem".as_ref(), 8)
        };
        assert_eq!(read_range(&memory), Err(StatusCode::CONFLICT), "memory of this process");
        std::fs::write(&path, "abcd").unwrap();
        assert_eq!(read_range(&range), Err(StatusCode::CONFLICT));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_range(&range), Err(StatusCode::NOT_FOUND));
        // A pipe in its place does not block.
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        assert_eq!(read_range(&range), Err(StatusCode::CONFLICT));
    }

    #[test]
    fn server_that_lacks_descriptors_does_not_call_the_file_missing() {
        let of = |errno: Errno| refusal(&InputError::from_io(&FilePath::from("/file"), errno.into()));
        assert_eq!(of(Errno::NOENT), StatusCode::NOT_FOUND);
        assert_eq!(of(Errno::ACCESS), StatusCode::UNPROCESSABLE_ENTITY);
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO] {
            assert_eq!(of(errno), StatusCode::SERVICE_UNAVAILABLE, "{errno}");
        }
    }
}

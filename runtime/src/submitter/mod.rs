//! Server of an attached submitter for workers that cannot see its files: it serves inputs and receives parts.
//!
//! Runs only if the master is not on this machine's loopback. It serves the files of one job to holders of the job's
//! key, and receives a part only from an attempt with a permit of the master. No received part is published before the
//! master has reported that it counts.

use gristmill_worker::agent::files::{Served, serve_range};
use gristmill_worker::commit::is_output_name;
use gristmill_worker::directory::{Directory, PlainName};
use gristmill_worker::fault;
use gristmill_worker::http::limits::STALL_TIME;
use gristmill_worker::http::{self, Access, Body, Secret, ServerConfig, Steady, Transport, serve};
use gristmill_worker::input::FileStamp;
use gristmill_worker::response;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use std::fs;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;

/// Bytes of a part written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Permit with which an attempt's part is sent: the master sends it to the chosen attempt, and the submitter requires
/// it. Workers cannot derive it from what they know.
#[must_use]
pub(crate) fn permit(permit_key: &Secret, attempt: &str) -> Secret {
    permit_key.derive(&format!("part of {attempt}"))
}

/// Access check of the routes of a submitter.
pub(crate) struct SubmitterAuth {
    /// Key of its files, known to every worker of the job.
    pub key: Secret,
    /// Key from which, with the attempt, the permit to send a part is derived.
    pub permit_key: Secret,
}

impl http::RouteAuth for SubmitterAuth {
    fn access(&self, method: &Method, path: &str, _: &str) -> Access {
        match (method, path) {
            (&Method::POST, path) if path.starts_with("/files/") => Access::Secret(self.key.clone()),
            (&Method::PUT, path) => match PutPart::parse(path) {
                Some(put) => Access::Secret(permit(&self.permit_key, &put.attempt)),
                None => Access::Closed,
            },
            _ => Access::Closed,
        }
    }
}

/// Receiver of parts.
#[derive(Clone)]
pub(crate) struct Parts {
    /// Prefix of the files: the part of an attempt gets this name, a hyphen and the attempt's name.
    pub name: PlainName,
    /// Directory of the files.
    pub directory: Arc<Directory>,
    /// True if a part must be synced to disk before it counts.
    pub sync: bool,
}

/// Serves until dropped (the task it is spawned in is aborted).
pub(crate) async fn run(
    listener: TcpListener,
    transport: Transport,
    auth: SubmitterAuth,
    files: Served,
    parts: Option<Parts>,
) {
    let config = Arc::new(ServerConfig::new(transport));
    let handler = move |request: Request<Incoming>| respond(files.clone(), parts.clone(), request);
    serve(listener, config, Arc::new(auth), handler, std::future::pending()).await;
}

async fn respond(files: Served, parts: Option<Parts>, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if path.starts_with("/files/") {
        return serve_range(files, request).await;
    }
    // No parts are sent for an output that workers write to a store.
    let (Some(put), Some(parts)) = (PutPart::parse(&path), parts) else {
        return response::status(StatusCode::NOT_FOUND);
    };
    match receive(&parts, &put, request.into_body()).await {
        Ok(stamp) => response::json(StatusCode::OK, &stamp),
        Err(Refusal::Broken) => response::status(StatusCode::BAD_REQUEST),
        Err(Refusal::Disk(source)) if source.kind() == io::ErrorKind::AlreadyExists => {
            response::status(StatusCode::CONFLICT)
        }
        Err(Refusal::Disk(source)) => {
            let attempt = put.attempt;
            let text = format!("could not write the part of {attempt}: {source}");
            let status = match source.kind() {
                // The directory existed when the job started.
                io::ErrorKind::NotFound => StatusCode::GONE,
                _ => StatusCode::INSUFFICIENT_STORAGE,
            };
            response::bytes(status, text)
        }
    }
}

/// Parsed `/parts/ATTEMPT/BYTES/CRC`, with the name of the output behind if it is not the main one.
struct PutPart {
    attempt: String,
    bytes: u64,
    crc32c: u32,
    output: Option<PlainName>,
}

impl PutPart {
    fn parse(path: &str) -> Option<Self> {
        let mut fields = path.strip_prefix("/parts/")?.split('/');
        let attempt = fields.next()?.to_owned();
        let bytes = fields.next()?.parse().ok()?;
        let crc32c = u32::from_str_radix(fields.next()?, 16).ok()?;
        let output = match fields.next() {
            Some(name) => Some(name.parse().ok().filter(is_output_name)?),
            None => None,
        };
        // It becomes part of a file name, so only characters of valid attempt names are allowed.
        let plain =
            attempt.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.');
        let safe = plain && attempt.starts_with(|c: char| c.is_ascii_lowercase());
        (safe && fields.next().is_none()).then_some(Self { attempt, bytes, crc32c, output })
    }
}

enum Refusal {
    /// The body differs from its announcement.
    Broken,
    Disk(io::Error),
}

/// Numbers received parts, so that two requests for one attempt never write into one file.
static ARRIVALS: AtomicU64 = AtomicU64::new(0);

/// Off this thread, which serves other requests and the master's connection meanwhile.
async fn sync_aside(file: fs::File) -> io::Result<fs::File> {
    let syncing = tokio::task::spawn_blocking(move || {
        fault::error("submitter.sync")?;
        file.sync_all()?;
        Ok(file)
    });
    syncing.await.unwrap_or_else(|panic| Err(io::Error::other(panic)))
}

async fn receive(parts: &Parts, put: &PutPart, body: Incoming) -> Result<FileStamp, Refusal> {
    let output = put.output.as_ref().map_or_else(String::new, |output| format!(".{output}"));
    let named = |end: &str| format!("{}-{}{output}{end}", parts.name, put.attempt);
    let arriving = named(&format!(".arriving-{}", ARRIVALS.fetch_add(1, Ordering::Relaxed)));
    let result = async {
        let file = parts.directory.create(&arriving).map_err(Refusal::Disk)?;
        let mut file = io::BufWriter::with_capacity(WRITE_BYTES, file);
        let (mut bytes, mut crc) = (0, 0);
        let mut body = Steady::new(body, STALL_TIME);
        while let Some(data) = body.next().await.map_err(|_| Refusal::Broken)? {
            bytes += data.len() as u64;
            if put.bytes < bytes {
                return Err(Refusal::Broken);
            }
            crc = crc32c::crc32c_append(crc, &data);
            file.write_all(&data).map_err(Refusal::Disk)?;
        }
        if (bytes, crc) != (put.bytes, put.crc32c) {
            return Err(Refusal::Broken);
        }
        let mut file = file.into_inner().map_err(|error| Refusal::Disk(error.into_error()))?;
        if parts.sync {
            file = sync_aside(file).await.map_err(Refusal::Disk)?;
        }
        // The first complete one is the attempt's part, and is never replaced.
        parts.directory.publish(&arriving, &parts.directory, named("")).map_err(Refusal::Disk)?;
        Ok(FileStamp::from_metadata(&file.metadata().map_err(Refusal::Disk)?))
    };
    let result = result.await;
    if result.is_err() {
        let _ = parts.directory.remove_file(&arriving);
    }
    result
}

#[cfg(test)]
mod tests;

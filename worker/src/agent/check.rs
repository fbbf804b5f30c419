//! Self-report of a worker, including its routes to other workers, for diagnosis (`gristmill doctor`).

use super::files::REQUEST_BYTES_MAX;
use crate::error_text::chain;
use crate::http::{self, Body, Connection, Endpoint, HttpError, Plaintext, Timeouts};
use crate::input::{FilePath, open_regular};
use crate::response;
use crate::segment::SpillDirs;
use crate::{descriptors, machine};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

/// Route of the check.
pub const CHECK_ROUTE: &str = "/check";

/// Maximum number of workers whose routes are tested at once. Others are omitted.
const PEERS_MAX: usize = 4096;

/// Timeout for a connection to a peer, and again for its response to a greeting.
pub(crate) const ROUTE_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout for the report of a worker that has responded to a greeting. Meanwhile it tests its own
/// routes, all at once, which takes at most twice `ROUTE_TIMEOUT`.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(8);

/// Prefix of the names of probes.
pub const PROBE: &str = ".gristmill-doctor-";

/// Request for a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckRequest {
    /// Peers whose routes are tested.
    pub peers: Vec<Endpoint>,
    /// Path that the worker should see.
    pub path: Option<FilePath>,
    /// File that was just written below that path. A worker that does not see it sees another directory
    /// of that name.
    #[serde(default)]
    pub probe: Option<FilePath>,
}

/// Report of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerCheck {
    /// Time of day of the response, in milliseconds since 1970.
    pub wall_ms: u64,
    /// Limit of open files and connections.
    pub descriptors: u64,
    /// Free bytes of its fullest spill directory.
    pub disk_free_bytes: u64,
    /// Build id.
    pub build: String,
    /// True if it sees the path.
    pub sees: Option<bool>,
    /// True if it sees the probe.
    #[serde(default)]
    pub sees_probe: Option<bool>,
    /// Fingerprint of the path, from [`fingerprint`].
    #[serde(default)]
    pub fingerprint: Option<u32>,
    /// Error of the route to each peer; `None` if it is reached.
    pub unreached: Vec<Option<String>>,
}

/// Returns milliseconds since 1970 by this machine's clock.
#[must_use]
pub fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Maximum bytes and names in a fingerprint.
const PRINTED_BYTES_MAX: u64 = 64 << 10;
const PRINTED_NAMES_MAX: usize = 10_000;

/// Returns a checksum of a path, by which two machines detect if they see the same. For a file it covers the
/// length and first bytes, for a directory its names. Names of probes, which are temporary, do not count.
#[must_use]
pub fn fingerprint(path: &Path) -> Option<u32> {
    let found = fs::metadata(path).ok()?;
    if found.is_dir() {
        let names = fs::read_dir(path).ok()?.flatten().map(|entry| entry.file_name().into_encoded_bytes());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with(PROBE.as_bytes())).collect();
        names.sort_unstable();
        names.truncate(PRINTED_NAMES_MAX);
        return Some(crc32c::crc32c(&names.join(&0)));
    }
    let mut bytes = found.len().to_le_bytes().to_vec();
    open_regular(path).ok()?.take(PRINTED_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(crc32c::crc32c(&bytes))
}

/// Serves `POST /check`.
pub(super) async fn answer_check(
    plaintext: Plaintext,
    spill: SpillDirs,
    request: Request<Incoming>,
) -> Response<Body> {
    let Ok(body) = http::read_limited(request.into_body(), REQUEST_BYTES_MAX).await else {
        return response::status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let Ok(CheckRequest { mut peers, path, probe }) = serde_json::from_slice(&body) else {
        return response::status(StatusCode::BAD_REQUEST);
    };
    peers.truncate(PEERS_MAX);
    let look = move || {
        let sees = |path: &FilePath| path.to_path().exists();
        let print = path.as_ref().and_then(|path| fingerprint(path.to_path()));
        (path.as_ref().map(sees), probe.as_ref().map(sees), print, spill.free_bytes())
    };
    let looked = tokio::task::spawn_blocking(look);
    let mut ways = JoinSet::new();
    for (number, peer) in peers.iter().cloned().enumerate() {
        ways.spawn(
            async move { (number, try_route(&peer, plaintext).await.err().map(|error| chain(&error))) },
        );
    }
    let mut unreached = vec![None; peers.len()];
    while let Some(tried) = ways.join_next().await {
        if let Ok((number, why)) = tried {
            unreached[number] = why;
        }
    }
    // Unknown values are not reported as numbers.
    let Ok((sees, sees_probe, fingerprint, Ok((disk_free_bytes, _)))) = looked.await else {
        return response::status(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let (descriptors, build) = (descriptors::allowed() as u64, machine::build_id());
    response::json(
        StatusCode::OK,
        &WorkerCheck {
            wall_ms: wall_ms(),
            descriptors,
            disk_free_bytes,
            build,
            sees,
            sees_probe,
            fingerprint,
            unreached,
        },
    )
}

/// Tests the route to a worker: the connection, and the response on it.
///
/// # Errors
/// The worker cannot be connected to, or does not respond in time; then the phase of `Timeout` shows the
/// step reached.
pub async fn try_route(peer: &Endpoint, plaintext: Plaintext) -> Result<(), HttpError> {
    let timeouts = Timeouts { connect: ROUTE_TIMEOUT, head: ROUTE_TIMEOUT, ..Timeouts::default() };
    Connection::open(peer, timeouts, plaintext).await?.await_any_answer().await
}

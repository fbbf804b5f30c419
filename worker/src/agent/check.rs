//! What a worker says of itself and of its ways to others when a person asks what is wrong (`gristmill doctor`).

use super::files::REQUEST_BYTES_MAX;
use crate::answer;
use crate::error_text::chain;
use crate::http::{self, Body, Connection, Endpoint, HttpError, Plaintext, Timeouts};
use crate::input::{FilePath, open_regular};
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

/// Where it is asked.
pub const CHECK_ROUTE: &str = "/check";

/// Workers to which ways are tried at once; those beyond are left out.
const PEERS_MAX: usize = 4096;

/// How long a peer may take until a connection to it stands, and then as long again until it answers a greeting on it.
pub const WAY_PATIENCE: Duration = Duration::from_secs(3);

/// How long a worker that has answered a greeting may take to say how it is. Meanwhile it tries its own ways, all at once,
/// which takes twice [`WAY_PATIENCE`] at most.
pub const CHECK_PATIENCE: Duration = Duration::from_secs(8);

/// How the names of probes begin.
pub const PROBE: &str = ".gristmill-doctor-";

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckRequest {
    /// To whom the ways are tried.
    pub peers: Vec<Endpoint>,
    /// Something that it should see.
    pub path: Option<FilePath>,
    /// A file that was just written below that path: whoever does not see it sees another directory of that name.
    #[serde(default)]
    pub probe: Option<FilePath>,
}

/// What it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerCheck {
    /// Its time of day when it answered, milliseconds since 1970.
    pub wall_ms: u64,
    /// Files and connections that it may have open.
    pub descriptors: u64,
    /// Free bytes on its fullest spill folder.
    pub disk_free_bytes: u64,
    /// Its build.
    pub build: String,
    /// Whether it sees the path.
    pub sees: Option<bool>,
    /// True if it sees the probe.
    #[serde(default)]
    pub sees_probe: Option<bool>,
    /// What is under the path, as [`fingerprint`] has it.
    #[serde(default)]
    pub fingerprint: Option<u32>,
    /// For each peer why it is not reached; `None` if it is.
    pub unreached: Vec<Option<String>>,
}

/// Milliseconds since 1970 by this machine's clock.
#[must_use]
pub fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Bytes and names that a fingerprint is made of, at most.
const PRINTED_BYTES_MAX: u64 = 64 << 10;
const PRINTED_NAMES_MAX: usize = 10_000;

/// A checksum of what is under a path, by which two machines know whether they see the same: of a file its length and
/// first bytes, of a directory its names. Names of probes, which come and go, do not count.
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

/// Answers `POST /check`.
pub(super) async fn answer_check(
    plaintext: Plaintext,
    spill: SpillDirs,
    request: Request<Incoming>,
) -> Response<Body> {
    let Ok(body) = http::read_limited(request.into_body(), REQUEST_BYTES_MAX).await else {
        return answer::status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let Ok(CheckRequest { mut peers, path, probe }) = serde_json::from_slice(&body) else {
        return answer::status(StatusCode::BAD_REQUEST);
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
        ways.spawn(async move { (number, try_way(&peer, plaintext).await.err().map(|error| chain(&error))) });
    }
    let mut unreached = vec![None; peers.len()];
    while let Some(tried) = ways.join_next().await {
        if let Ok((number, why)) = tried {
            unreached[number] = why;
        }
    }
    // What cannot be told is not said as a number.
    let Ok((sees, sees_probe, fingerprint, Ok((disk_free_bytes, _)))) = looked.await else {
        return answer::status(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let (descriptors, build) = (descriptors::allowed() as u64, machine::build_id());
    answer::json(
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

/// Tries the way to a worker: whether a connection to it stands, and whether it answers on it.
///
/// # Errors
/// A worker that cannot be connected to, or that does not answer in time: then the phase of `Timeout` says how far it came.
pub async fn try_way(peer: &Endpoint, plaintext: Plaintext) -> Result<(), HttpError> {
    let timeouts = Timeouts { connect: WAY_PATIENCE, head: WAY_PATIENCE, ..Timeouts::default() };
    Connection::open(peer, timeouts, plaintext).await?.await_any_answer().await
}

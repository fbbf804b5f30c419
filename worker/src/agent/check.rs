//! Self-report of a worker, including its routes to other workers, for diagnosis (`gristmill cluster doctor`).

use super::files::REQUEST_BYTES_MAX;
use crate::error_text::chain;
use crate::http::{self, Body, Connection, Endpoint, HttpError, Plaintext, Timeouts};
use crate::response;
use crate::segment::SpillDirs;
use crate::{descriptors, machine};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
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

/// Request for a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckRequest {
    /// Peers whose routes are tested.
    pub peers: Vec<Endpoint>,
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
    /// Error of the route to each peer; `None` if it is reached.
    pub unreached: Vec<Option<String>>,
}

/// Returns milliseconds since 1970 by this machine's clock.
#[must_use]
pub fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
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
    let Ok(CheckRequest { mut peers }) = serde_json::from_slice(&body) else {
        return response::status(StatusCode::BAD_REQUEST);
    };
    peers.truncate(PEERS_MAX);
    let looked = tokio::task::spawn_blocking(move || spill.free_bytes());
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
    let Ok(Ok((disk_free_bytes, _))) = looked.await else {
        return response::status(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let (descriptors, build) = (descriptors::allowed() as u64, machine::build_id());
    response::json(
        StatusCode::OK,
        &WorkerCheck { wall_ms: wall_ms(), descriptors, disk_free_bytes, build, unreached },
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

//! Limits a worker's shuffle to a rate, in each direction, so that a fast network can simulate a slow one.
//!
//! Incoming bytes of all fetches draw on one `TokenBucket`. `PacedLanes` gives each chunk to the next job by the
//! master's order, and within a job to its oldest request, so that bytes and not only requests follow the order. A
//! fetch pays for bytes when they have arrived, and reads no more before they are paid for. Its read-ahead is one piece
//! of a response, at most 408 KiB in hyper, and the buffers of the system's sockets. All outgoing responses
//! draw on another bucket, chunk by chunk in the order of requests: the fetching side decides which bytes are urgent.
//!
//! Only bytes on the shuffle's connections are limited: map outputs that a worker fetches from others, and from itself
//! over HTTP. Segments that a worker reads locally, input files and parts are not limited.
//!
//! Invariants:
//! * In any interval at most the bytes of the rate, a burst and a chunk pass.
//! * While a served request waits, the bucket does not fill: bytes pass at the rate. `GRACE` periods are an
//!   exception, which the burst compensates.

mod bucket;
mod incoming;
mod lanes;
mod outgoing;

use gristmill_scheduler::units::Time;
use std::num::NonZeroU64;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) use incoming::InPace;
pub use incoming::{PacedStream, Preempted};
pub(crate) use outgoing::OutPace;

/// Maximum bytes that pass in one turn.
pub(crate) const CHUNK_BYTES_MAX: u64 = 64 << 10;

/// Minimum bytes per turn, so that a slow network does not need a wake-up for every packet.
pub(crate) const CHUNK_BYTES_MIN: u64 = 16 << 10;

/// Size of a chunk as a fraction of a second's bytes, within the bounds above: 2 ms.
const CHUNKS_PER_SECOND: u64 = 500;

/// Returns the bytes of one turn at this rate.
fn chunk_bytes(bytes_per_second: NonZeroU64) -> u64 {
    (bytes_per_second.get() / CHUNKS_PER_SECOND).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

/// Returns the time of one turn at this rate.
pub(crate) fn turn_time(bytes_per_second: NonZeroU64) -> Duration {
    Duration::from_secs_f64(chunk_bytes(bytes_per_second) as f64 / bytes_per_second.get() as f64)
}

/// Returns the time since a moment, in the unit of the pure parts.
fn since(epoch: Instant) -> Time {
    Time(u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

async fn until(epoch: Instant, at: Option<Time>) {
    match at {
        Some(at) => tokio::time::sleep_until(epoch + Duration::from_nanos(at.0)).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;

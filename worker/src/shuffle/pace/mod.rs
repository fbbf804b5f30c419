//! Holds a worker's shuffle to a rate, in each direction, so that a fast network can play a slow one.
//!
//! Coming in, the bytes of all fetches draw on one [`TokenBucket`]; [`PacedLanes`] gives each chunk to the job whose
//! turn it is by the master's order, and within a job to its oldest request, so that bytes and not only requests
//! follow the order. A fetch pays for bytes when they have come and reads no more before they are paid for: what it has
//! read ahead is one piece of an answer, [`READ_AHEAD_BYTES_MAX`] at most, and what the system's sockets hold.
//! Going out, all answers draw on another bucket, chunk by chunk in the order of asking: whose bytes are urgent is
//! decided by those who fetch.
//!
//! Only what crosses the shuffle's connections is held: map outputs that a worker fetches from others, and from itself
//! if it does so over HTTP. Not here: segments that a worker reads in place, input files, parts.
//!
//! Invariants:
//! * In any time no more passes than the rate allows, a burst and a chunk.
//! * While anyone who is served waits, the bucket does not fill: it passes what the rate allows. The exception are
//!   [`GRACE`]s, which the burst makes up for.

mod bucket;
mod incoming;
mod lanes;
mod outgoing;

use gristmill_scheduler::units::Time;
use std::num::NonZeroU64;
use std::time::Duration;
use tokio::time::Instant;

pub use bucket::{BURST_BYTES_MIN, TokenBucket};
pub use incoming::{InPace, PacedStream, Preempted};
pub use lanes::{GRACE, PacedLanes};
pub use outgoing::{OutPace, SEND_BUFFER_BYTES};

/// Most bytes that pass in one turn.
pub(crate) const CHUNK_BYTES_MAX: u64 = 64 << 10;

/// Fewest, so that a slow network does not cost a wake-up for every packet.
pub(crate) const CHUNK_BYTES_MIN: u64 = 16 << 10;

/// A chunk is this part of what passes in a second, within the bounds above: 2 ms.
const CHUNKS_PER_SECOND: u64 = 500;

/// Bytes that a fetch has read from its connection and not paid for yet: the longest piece of a body that hyper hands
/// on.
pub const READ_AHEAD_BYTES_MAX: usize = 8192 + 4096 * 100;

/// Bytes of one turn at this rate.
fn chunk_bytes(bytes_per_second: NonZeroU64) -> u64 {
    (bytes_per_second.get() / CHUNKS_PER_SECOND).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

/// How long one turn takes at this rate.
pub(crate) fn turn_time(bytes_per_second: NonZeroU64) -> Duration {
    Duration::from_secs_f64(chunk_bytes(bytes_per_second) as f64 / bytes_per_second.get() as f64)
}

/// Time since a moment, as the pure parts count it.
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

//! Fetches segments from another worker: one request of the plan, from the wire into the store.
//!
//! The body is read directly into its final place: memory if the budget grants it, otherwise a spill file, one for each
//! output. If the pairs are in a file that this worker can also access, only their order is transferred; if that is
//! unusable, all bytes are requested. Every segment is verified before it is used.

mod error;
mod reader;
mod receive;

use super::pace::{PacedStream, turn_time};
use super::plan::Fetch;
use super::store::{GatheredFor, SegmentStore};
use super::{
    FetchHead, FetchRequest, OutputHead, fetch_head_bytes_max, fetch_head_memory_max, fetch_maps_max,
};
use crate::budget::Budget;
use crate::codec;
use crate::http;
use crate::http::{Pool, Secret, Timeouts};
use crate::segment::SpillDirs;
use bytes::Bytes;
use gristmill_scheduler::ids::AttemptId;
use hyper::Method;
use reader::{AnswerReadError, AnswerReader};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub use error::FetchError;
pub(crate) use error::RequestError;

/// Time that a fetch waits for a connection, for the head of its response, and for the next bytes, which must arrive at
/// least at [`RATE_BYTES_MIN`](crate::http::limits::RATE_BYTES_MIN). It is short because two consecutive failed fetches
/// mark the route as cut, which should be known within 5 s; outputs can be fetched elsewhere.
const FETCH_TIMEOUT: Duration = Duration::from_secs(2);

/// Number of times that damaged segments are requested again at once, from a holder whose copy is intact.
const RESENDS_MAX: u32 = 3;

/// Number of responses that a paced worker sends at once, each of which waits for the turns of all others.
const PACED_ANSWERS: u32 = 32;

/// Returns the time limits of fetches. On a network limited to this many bytes per second, responses may have to wait
/// longer for their turn.
pub(crate) fn timeouts(paced: Option<NonZeroU64>) -> Timeouts {
    let turns = paced.map_or(Duration::ZERO, |rate| PACED_ANSWERS * turn_time(rate));
    let patience = FETCH_TIMEOUT.max(turns);
    Timeouts { connect: FETCH_TIMEOUT, head: patience, stall: patience, steady: true }
}

/// Result of one map of a request.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct FetchOutcome {
    pub map: AttemptId,
    /// Reduces that have it now.
    pub filled: Vec<u32>,
    /// Number of bytes of their segments.
    pub bytes: u64,
    /// Number of times that damaged segments with an intact copy were requested again.
    pub resent: u32,
    /// Error for the other reduces.
    pub error: Option<FetchError>,
}

impl FetchOutcome {
    fn failed(map: AttemptId, error: FetchError) -> Self {
        Self { map, filled: Vec::new(), bytes: 0, resent: 0, error: Some(error) }
    }
}

/// Pauses here if a test requests it.
async fn stop_at(place: &'static str) {
    if cfg!(debug_assertions) {
        // The fault point blocks its thread, which must not be the one that drives the connections.
        let _ = tokio::task::spawn_blocking(move || crate::fault::place(place)).await;
    }
}

/// Resources of a worker that fetches need.
#[derive(Clone)]
pub struct Fetcher {
    /// Connections to other workers.
    pub pool: Pool,
    /// Store of the segments.
    pub store: SegmentStore,
    /// Memory budget.
    pub budget: Budget,
    /// Spill directories for segments without memory.
    pub spill: SpillDirs,
    /// Identity of the file system of this worker, for other workers with the same one; `None` requests all bytes.
    pub sees: Option<String>,
}

/// One request and its context.
struct FetchContext<'a> {
    fetch: &'a Fetch,
    key: &'a Secret,
    stream: Option<&'a PacedStream>,
    /// True if the other worker is to verify its copies first.
    verify: bool,
    received: &'a AtomicU64,
}

impl FetchContext<'_> {
    fn endpoint(&self) -> String {
        self.fetch.endpoint.to_string()
    }

    /// Converts an error of reading the response.
    ///
    /// # Errors
    /// An error of this worker's own disk.
    fn broken(&self, error: AnswerReadError) -> Result<RequestError, std::io::Error> {
        let endpoint = self.endpoint();
        match error {
            AnswerReadError::Http(source) => Ok(RequestError::Http { endpoint, source }),
            AnswerReadError::Short => Ok(RequestError::Short { endpoint }),
            AnswerReadError::Preempted => Ok(RequestError::Preempted { endpoint }),
            AnswerReadError::Disk(error) => Err(error),
        }
    }
}

impl Fetcher {
    /// Executes one request. Every map of it is in the result exactly once.
    pub async fn fetch(&self, fetch: &Fetch, key: &Secret) -> Vec<FetchOutcome> {
        self.fetch_through(fetch, key, None, &AtomicU64::new(0)).await
    }

    /// As [`Fetcher::fetch`], on a network that may be paced; counts the received bytes.
    pub(crate) async fn fetch_through(
        &self,
        fetch: &Fetch,
        key: &Secret,
        stream: Option<&PacedStream>,
        received: &AtomicU64,
    ) -> Vec<FetchOutcome> {
        stop_at("fetch").await;
        // Partitions may lack different maps after a partition has moved here, so each set is requested separately.
        let mut groups: Vec<(Vec<GatheredFor>, Vec<AttemptId>)> = Vec::new();
        let mut outcomes = Vec::new();
        for map in &fetch.maps {
            let partitions = self.store.lacking(fetch.job, map.task.index);
            if partitions.is_empty() {
                outcomes.push(FetchOutcome {
                    map: *map,
                    filled: Vec::new(),
                    bytes: 0,
                    resent: 0,
                    error: None,
                });
                continue;
            }
            match groups.iter_mut().find(|(same, _)| *same == partitions) {
                Some((_, maps)) => maps.push(*map),
                None => groups.push((partitions, vec![*map])),
            }
        }
        let context = FetchContext { fetch, key, stream, received, verify: false };
        for (partitions, maps) in groups {
            for maps in maps.chunks(fetch_maps_max(partitions.len())) {
                self.fetch_segments(&context, &partitions, maps, &mut outcomes).await;
            }
        }
        for outcome in &mut outcomes {
            self.fetch_damaged(&context, outcome).await;
        }
        stop_at("fetch.received").await;
        outcomes
    }

    /// Requests segments of some maps, and again with all bytes where an unusable order arrived.
    async fn fetch_segments(
        &self,
        context: &FetchContext<'_>,
        partitions: &[GatheredFor],
        maps: &[AttemptId],
        outcomes: &mut Vec<FetchOutcome>,
    ) {
        let sees = self.sees.clone();
        let again = self.fetch_group(context, partitions, maps, sees, outcomes).await;
        if !again.is_empty() {
            let none = self.fetch_group(context, partitions, &again, None, outcomes).await;
            debug_assert!(none.is_empty(), "whole segments were refused");
        }
    }

    /// Requests damaged segments of a map again, after their holder has verified its own copy. A damaged copy is made
    /// again. If it is intact, the route between the two damages data, perhaps not each time.
    async fn fetch_damaged(&self, context: &FetchContext<'_>, outcome: &mut FetchOutcome) {
        let (map, verifying) = (outcome.map, FetchContext { verify: true, ..*context });
        while outcome.error.as_ref().is_some_and(|error| matches!(error, FetchError::Garbled { .. }))
            && outcome.resent < RESENDS_MAX
        {
            let partitions = self.store.lacking(context.fetch.job, map.task.index);
            if partitions.is_empty() {
                outcome.error = None;
                return;
            }
            let mut after = Vec::with_capacity(1);
            self.fetch_segments(&verifying, &partitions, &[map], &mut after).await;
            let Some(after) = after.pop() else { return };
            outcome.filled.extend(after.filled);
            outcome.filled.sort_unstable();
            outcome.bytes += after.bytes;
            outcome.error = after.error;
            // Only in this case the holder has found its copy intact.
            outcome.resent += u32::from(matches!(outcome.error, None | Some(FetchError::Garbled { .. })));
            if let Some(FetchError::Garbled { times, .. }) = &mut outcome.error {
                *times = outcome.resent + 1;
            }
        }
    }

    /// Returns the maps for which an unusable order arrived: all bytes have to be requested.
    async fn fetch_group(
        &self,
        context: &FetchContext<'_>,
        partitions: &[GatheredFor],
        maps: &[AttemptId],
        sees: Option<String>,
        outcomes: &mut Vec<FetchOutcome>,
    ) -> Vec<AttemptId> {
        let mut again = Vec::new();
        let (mut reader, head) = match self.open(context, partitions, maps, sees).await {
            Ok(opened) => opened,
            Err(error) => {
                let error = Arc::new(error);
                let failed = |map: &AttemptId| {
                    FetchOutcome::failed(*map, FetchError::Request { source: error.clone() })
                };
                outcomes.extend(maps.iter().map(failed));
                return again;
            }
        };
        for (at, (map, output)) in maps.iter().zip(head.outputs).enumerate() {
            let Some(output) = output else {
                let (endpoint, map) = (context.endpoint(), *map);
                let error = match head.damaged.contains(&(at as u32)) {
                    true => FetchError::Damaged { endpoint, map },
                    false => FetchError::Missing { endpoint, map },
                };
                outcomes.push(FetchOutcome::failed(map, error));
                continue;
            };
            let received = self.receive(context, &mut reader, *map, partitions, &output).await;
            let Some(outcome) = received else {
                again.push(*map);
                continue;
            };
            // After a broken transfer the position in the stream is lost: the rest is retried.
            let lost = match &outcome.error {
                Some(FetchError::Request { source }) => Some(source.clone()),
                Some(FetchError::Disk { .. }) => {
                    Some(Arc::new(RequestError::Short { endpoint: context.endpoint() }))
                }
                Some(
                    FetchError::Missing { .. } | FetchError::Damaged { .. } | FetchError::Garbled { .. },
                )
                | None => None,
            };
            outcomes.push(outcome);
            if let Some(source) = lost {
                let failed = |map: &AttemptId| {
                    FetchOutcome::failed(*map, FetchError::Request { source: source.clone() })
                };
                outcomes.extend(maps[at + 1..].iter().map(failed));
                return again;
            }
        }
        // An error after the last segment is harmless; the connection is then not reused.
        let _ = reader.end().await;
        again
    }

    async fn open<'a>(
        &self,
        context: &FetchContext<'a>,
        partitions: &[GatheredFor],
        maps: &[AttemptId],
        sees: Option<String>,
    ) -> Result<(AnswerReader<'a>, FetchHead), RequestError> {
        let (fetch, endpoint) = (context.fetch, || context.endpoint());
        let asked_for_order = sees.is_some();
        let request = FetchRequest {
            maps: maps.iter().map(|map| (map.task.index, map.epoch)).collect(),
            partitions: partitions.iter().map(|of| of.partition).collect(),
            sees,
            verify: context.verify,
        };
        let mut body = Vec::new();
        codec::encode(&request, &mut body);
        let path = format!("/shuffle/{}", fetch.job);
        let response = self
            .pool
            .request(&fetch.endpoint, Some(context.key), Method::POST, &path, http::full(body))
            .await
            .map_err(|source| RequestError::Http { endpoint: endpoint(), source })?;
        let mut reader = AnswerReader {
            body: response.into_body(),
            ready: Bytes::new(),
            stream: context.stream,
            received: context.received,
        };
        let broken = |error: AnswerReadError| {
            context.broken(error).unwrap_or_else(|_| RequestError::Short { endpoint: endpoint() })
        };
        let length = reader.read_vec(4).await.map_err(broken)?;
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let length_max = fetch_head_bytes_max(maps.len(), partitions.len());
        if length_max < length {
            return Err(RequestError::Head { endpoint: endpoint() });
        }
        let head = reader.read_vec(length).await.map_err(broken)?;
        let memory_max = fetch_head_memory_max(maps.len(), partitions.len());
        let head: FetchHead = codec::decode_message(&head, memory_max)
            .map_err(|_| RequestError::Head { endpoint: endpoint() })?;
        let fits = |output: &OutputHead| {
            // An order is only useful if it was requested.
            output.lengths.len() == partitions.len() && (output.in_file.is_none() || asked_for_order)
        };
        if head.outputs.len() != maps.len() || !head.outputs.iter().flatten().all(fits) {
            return Err(RequestError::Head { endpoint: endpoint() });
        }
        Ok((reader, head))
    }
}

//! Fetches segments from another worker: one request of the plan, from the wire into the store.
//!
//! The body is read straight into its final place: memory if the budget grants it, otherwise a spill file, one for each
//! output. Of pairs
//! that lie in a file which this worker sees too, only the order comes; if that is of no use, all bytes are asked for.
//! Every segment is verified before anyone sees it.

mod error;
mod reader;
mod receive;

use super::pace::{PacedStream, turn_time};
use super::plan::Fetch;
use super::store::Store;
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

pub use error::{FetchError, RequestError};

/// How long a fetch waits for a connection, for the head of its answer, and for the next bytes, which must come at the
/// least rate of [`RATE_BYTES_MIN`](crate::http::limits::RATE_BYTES_MIN). Short, because two fetches that fail one after
/// the other tell that the way is cut, and that should be known within 5 s; outputs can be had elsewhere.
const FETCH_PATIENCE: Duration = Duration::from_secs(2);

/// Times that segments which came damaged are asked for again at once, from a holder whose copy is whole.
const RESENDS_MAX: u32 = 3;

/// Answers that a paced worker sends at once, of which each waits for the turns of all others.
const PACED_ANSWERS: u32 = 32;

/// The time limits of fetches; on a network that is held to so many bytes in a second, answers may have to wait longer
/// for their turn.
pub(crate) fn timeouts(paced: Option<NonZeroU64>) -> Timeouts {
    let turns = paced.map_or(Duration::ZERO, |rate| PACED_ANSWERS * turn_time(rate));
    let patience = FETCH_PATIENCE.max(turns);
    Timeouts { connect: FETCH_PATIENCE, head: patience, stall: patience, steady: true }
}

/// What became of one map of a request.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct FetchOutcome {
    pub map: AttemptId,
    /// The partitions that have it now.
    pub filled: Vec<u32>,
    /// Bytes of those.
    pub bytes: u64,
    /// Times that segments came damaged whose copy there is whole, and were asked for again.
    pub resent: u32,
    /// Why others did not get it.
    pub error: Option<FetchError>,
}

impl FetchOutcome {
    fn failed(map: AttemptId, error: FetchError) -> Self {
        Self { map, filled: Vec::new(), bytes: 0, resent: 0, error: Some(error) }
    }
}

/// Stops here if a test wants it.
async fn stop_at(place: &'static str) {
    if cfg!(debug_assertions) {
        // The place blocks its thread, which must not be the one that drives the connections.
        let _ = tokio::task::spawn_blocking(move || crate::fault::place(place)).await;
    }
}

/// What a fetch needs of its worker.
#[derive(Clone)]
pub struct Fetcher {
    /// Connections to other workers.
    pub pool: Pool,
    /// Where segments go.
    pub store: Store,
    /// Who grants memory.
    pub budget: Budget,
    /// Where they go when there is none.
    pub spill: SpillDirs,
    /// What files this worker sees, for other workers that see the same; `None` asks them for all bytes.
    pub sees: Option<String>,
}

/// One request, and what it needs on its way.
struct FetchContext<'a> {
    fetch: &'a Fetch,
    key: &'a Secret,
    stream: Option<&'a PacedStream>,
    /// Whether the other worker is to verify its copies first.
    verify: bool,
    received: &'a AtomicU64,
}

impl FetchContext<'_> {
    fn endpoint(&self) -> String {
        self.fetch.endpoint.to_string()
    }

    /// What an answer that could not be read on means.
    ///
    /// # Errors
    /// What is wrong with this worker's own disk.
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
    /// Carries out one request. Every map of it is in the answer exactly once.
    pub async fn fetch(&self, fetch: &Fetch, key: &Secret) -> Vec<FetchOutcome> {
        self.fetch_through(fetch, key, None, &AtomicU64::new(0)).await
    }

    /// As [`Fetcher::fetch`], on a network that may be paced; counts the bytes that come.
    pub(crate) async fn fetch_through(
        &self,
        fetch: &Fetch,
        key: &Secret,
        stream: Option<&PacedStream>,
        received: &AtomicU64,
    ) -> Vec<FetchOutcome> {
        stop_at("fetch").await;
        // Partitions may lack different maps after a partition has moved here; ask for each set on its own.
        let mut groups: Vec<(Vec<u32>, Vec<AttemptId>)> = Vec::new();
        let mut outcomes = Vec::new();
        for map in &fetch.maps {
            let partitions = self.store.lacking(fetch.job, map.task.index);
            if partitions.is_empty() {
                outcomes.push(FetchOutcome {
                    map: *map,
                    filled: partitions,
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

    /// Asks for segments of some maps, once more for all bytes where an order came that is of no use.
    async fn fetch_segments(
        &self,
        context: &FetchContext<'_>,
        partitions: &[u32],
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

    /// Asks again for segments of a map that came damaged, after their holder has looked whether its own copy is: that
    /// one is then made anew. If it is whole, the way between the two damages data, perhaps not each time.
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
            // Only then the holder has found its copy whole.
            outcome.resent += u32::from(matches!(outcome.error, None | Some(FetchError::Garbled { .. })));
            if let Some(FetchError::Garbled { times, .. }) = &mut outcome.error {
                *times = outcome.resent + 1;
            }
        }
    }

    /// Gives the maps of whose outputs an order came that is of no use here: ask for all bytes.
    async fn fetch_group(
        &self,
        context: &FetchContext<'_>,
        partitions: &[u32],
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
            // After a broken transfer the position in the stream is lost: the rest is tried again.
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
        // What went wrong after the last segment hurts nobody; the connection is then not used again.
        let _ = reader.end().await;
        again
    }

    async fn open<'a>(
        &self,
        context: &FetchContext<'a>,
        partitions: &[u32],
        maps: &[AttemptId],
        sees: Option<String>,
    ) -> Result<(AnswerReader<'a>, FetchHead), RequestError> {
        let (fetch, endpoint) = (context.fetch, || context.endpoint());
        let asked_for_order = sees.is_some();
        let request = FetchRequest {
            maps: maps.iter().map(|map| (map.task.index, map.epoch)).collect(),
            partitions: partitions.to_vec(),
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
            // An order is of use only for who has asked for it.
            output.lengths.len() == partitions.len() && (output.in_file.is_none() || asked_for_order)
        };
        if head.outputs.len() != maps.len() || !head.outputs.iter().flatten().all(fits) {
            return Err(RequestError::Head { endpoint: endpoint() });
        }
        Ok((reader, head))
    }
}

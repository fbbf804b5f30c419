//! Fetches segments from another worker: one request of the plan, from the wire into the store.
//!
//! The body is read straight into its final place: memory if the budget grants it, otherwise a spill file, one for each
//! output. Of pairs
//! that lie in a file which this worker sees too, only the order comes; if that is of no use, all bytes are asked for.
//! Every segment is verified before anyone sees it. Not here: what to fetch and when to try again (`plan`).

use super::pace::{GaveWay, PacedStream};
use super::plan::Fetch;
use super::store::{Held, Store};
use super::{
    FetchHead, FetchRequest, OutputHead, fetch_head_bytes_max, fetch_head_memory_max, fetch_maps_max,
};
use crate::budget::Budget;
use crate::codec;
use crate::http::{self, Answer, HttpError, Pool, Secret};
use crate::input::{FilePlace, MappedFile};
use crate::memory::use_huge_pages;
use crate::segment::{
    self, InFileSegment, ReceivedOrder, SegmentData, SegmentError, SegmentId, SpillDirs, SpillFile,
    SpillWriter,
};
use bytes::{Buf, Bytes};
use gristmill_scheduler::ids::AttemptId;
use hyper::Method;
use std::io;
use std::sync::Arc;

/// Bytes of a segment that are written to disk at once.
const SPILL_CHUNK_BYTES: u64 = 512 << 10;

/// Memory that a segment costs besides its bytes: its place in the store, its reservation, what the allocator keeps.
const SEGMENT_BOOKS_BYTES: usize = 192;

/// Bytes for which a buffer is made before any of them has come.
const READ_BYTES_FIRST: usize = 1 << 20;

/// Segments longer than this are verified off the thread that drives the connections.
const VERIFY_BYTES_INLINE: usize = 256 << 10;

/// Verifies a segment where that does not hold others up. Cloning `held` shares it.
async fn verify(held: &Held, id: SegmentId) -> Result<(), FetchProblem> {
    if matches!(held.data, SegmentData::Memory(_)) && held.data.len() <= VERIFY_BYTES_INLINE {
        return segment::verify(&held.data, &id).map_err(FetchProblem::Segment);
    }
    let data = held.data.clone();
    match tokio::task::spawn_blocking(move || segment::verify(&data, &id)).await {
        Ok(verified) => verified.map_err(FetchProblem::Segment),
        Err(join) => Err(FetchProblem::Task(join)),
    }
}

/// Maps a file that the other worker has mapped; `None` where this one cannot. Then all bytes are asked for.
async fn open(place: FilePlace) -> Option<Arc<MappedFile>> {
    tokio::task::spawn_blocking(move || MappedFile::open(place)).await.ok()?.ok()?
}

/// Why a segment was not verified.
#[derive(Debug, thiserror::Error)]
enum FetchProblem {
    #[error(transparent)]
    Segment(SegmentError),
    #[error("the check did not end")]
    Task(#[source] tokio::task::JoinError),
}

/// What became of one map of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The map attempt.
    pub map: AttemptId,
    /// The partitions that have it now.
    pub filled: Vec<u32>,
    /// Bytes of those.
    pub bytes: u64,
    /// Why others did not get it.
    pub error: Option<FetchError>,
}

impl Outcome {
    fn failed(map: AttemptId, error: FetchError) -> Self {
        Self { map, filled: Vec::new(), bytes: 0, error: Some(error) }
    }
}

/// Why segments did not arrive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The request as a whole went wrong; several maps share the reason.
    #[error("the request failed")]
    Request {
        /// Why.
        #[source]
        source: Arc<RequestError>,
    },
    /// It does not hold that output.
    #[error("the worker at {endpoint} does not hold {map}")]
    Missing {
        /// Where.
        endpoint: String,
        /// What.
        map: AttemptId,
    },
    /// Bytes that are no answer of this protocol, or a broken segment.
    #[error("the segments of {map} from {endpoint} are damaged")]
    Corrupt {
        /// Where.
        endpoint: String,
        /// What.
        map: AttemptId,
        /// How it shows.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This worker's own disk.
    #[error("could not keep the segments of {map} on disk")]
    Disk {
        /// What.
        map: AttemptId,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl FetchError {
    /// Whether nothing is wrong: more urgent jobs left the request nothing of a paced network.
    #[must_use]
    pub fn gave_way(&self) -> bool {
        matches!(self, FetchError::Request { source } if matches!(**source, RequestError::GaveWay { .. }))
    }
}

/// Why a request brought nothing, or not all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The other worker could not be reached, refused, broke off or stood still.
    #[error("the worker at {endpoint} could not be reached or broke off")]
    Http {
        /// Where.
        endpoint: String,
        /// Why.
        #[source]
        source: HttpError,
    },
    /// The answer ended before the segments that its head promised.
    #[error("the answer of the worker at {endpoint} is too short")]
    Short {
        /// Where.
        endpoint: String,
    },
    /// More urgent jobs left it nothing of a paced network.
    #[error("the answer of the worker at {endpoint} gave way to more urgent jobs")]
    GaveWay {
        /// Where.
        endpoint: String,
    },
    /// The head of the answer does not fit the request.
    #[error("the worker at {endpoint} did not answer what was asked")]
    Head {
        /// Where.
        endpoint: String,
    },
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
}

impl FetchContext<'_> {
    fn endpoint(&self) -> String {
        self.fetch.endpoint.to_string()
    }

    /// What an answer that could not be read on means.
    ///
    /// # Errors
    /// What is wrong with this worker's own disk.
    fn broken(&self, error: ReadError) -> Result<RequestError, std::io::Error> {
        let endpoint = self.endpoint();
        match error {
            ReadError::Http(source) => Ok(RequestError::Http { endpoint, source }),
            ReadError::Short => Ok(RequestError::Short { endpoint }),
            ReadError::GaveWay => Ok(RequestError::GaveWay { endpoint }),
            ReadError::Disk(error) => Err(error),
        }
    }
}

/// The answer as it comes in, cut where the reader wants.
struct Reader<'a> {
    body: Answer,
    ready: Bytes,
    /// What its bytes have to pass.
    stream: Option<&'a PacedStream>,
}

/// Why the answer could not be read on.
enum ReadError {
    Http(HttpError),
    /// It ended before the segments that its head promised.
    Short,
    GaveWay,
    Disk(std::io::Error),
}

impl From<GaveWay> for ReadError {
    fn from(GaveWay: GaveWay) -> Self {
        ReadError::GaveWay
    }
}

impl Reader<'_> {
    /// Hands the next `length` bytes to `take`, in as many slices as they come.
    async fn read(
        &mut self,
        mut length: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        while 0 < length {
            if self.ready.is_empty() {
                let piece = self.body.chunk().await.map_err(ReadError::Http)?.ok_or(ReadError::Short)?;
                if let Some(stream) = self.stream {
                    stream.pass(piece.len() as u64).await?;
                }
                self.ready = piece;
            }
            let size = (self.ready.len() as u64).min(length) as usize;
            take(&self.ready[..size])?;
            self.ready.advance(size);
            length -= size as u64;
        }
        Ok(())
    }

    async fn read_vec(&mut self, length: usize) -> Result<Vec<u8>, ReadError> {
        let mut all = Vec::with_capacity(length.min(READ_BYTES_FIRST));
        self.read(length as u64, |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })
        .await?;
        Ok(all)
    }

    /// Reads the end behind the segments, so that the connection can be used again; one whose answer has no end there
    /// is not.
    async fn end(mut self) -> Result<(), HttpError> {
        if self.ready.is_empty() { self.body.chunk().await.map(drop) } else { Ok(()) }
    }
}

impl Fetcher {
    /// Carries out one request. Every map of it is in the answer exactly once.
    pub async fn fetch(&self, fetch: &Fetch, key: &Secret) -> Vec<Outcome> {
        self.fetch_through(fetch, key, None).await
    }

    /// As [`Fetcher::fetch`], on a network that is paced.
    pub async fn fetch_through(
        &self,
        fetch: &Fetch,
        key: &Secret,
        stream: Option<&PacedStream>,
    ) -> Vec<Outcome> {
        if cfg!(debug_assertions) {
            // The place blocks its thread, which must not be the one that drives the connections.
            let _ = tokio::task::spawn_blocking(|| crate::fault::place("fetch")).await;
        }
        // Partitions may lack different maps after a partition has moved here; ask for each set on its own.
        let mut groups: Vec<(Vec<u32>, Vec<AttemptId>)> = Vec::new();
        let mut outcomes = Vec::new();
        for map in &fetch.maps {
            let partitions = self.store.lacking(fetch.job, map.task.index);
            if partitions.is_empty() {
                outcomes.push(Outcome { map: *map, filled: partitions, bytes: 0, error: None });
                continue;
            }
            match groups.iter_mut().find(|(same, _)| *same == partitions) {
                Some((_, maps)) => maps.push(*map),
                None => groups.push((partitions, vec![*map])),
            }
        }
        let context = FetchContext { fetch, key, stream };
        for (partitions, maps) in groups {
            for maps in maps.chunks(fetch_maps_max(partitions.len())) {
                let sees = self.sees.clone();
                let again = self.fetch_group(&context, &partitions, maps, sees, &mut outcomes).await;
                if !again.is_empty() {
                    let none = self.fetch_group(&context, &partitions, &again, None, &mut outcomes).await;
                    debug_assert!(none.is_empty(), "whole segments were refused");
                }
            }
        }
        outcomes
    }

    /// Gives the maps of whose outputs an order came that is of no use here: ask for all bytes.
    async fn fetch_group(
        &self,
        context: &FetchContext<'_>,
        partitions: &[u32],
        maps: &[AttemptId],
        sees: Option<String>,
        outcomes: &mut Vec<Outcome>,
    ) -> Vec<AttemptId> {
        let mut again = Vec::new();
        let (mut reader, head) = match self.open(context, partitions, maps, sees).await {
            Ok(opened) => opened,
            Err(error) => {
                let error = Arc::new(error);
                let failed =
                    |map: &AttemptId| Outcome::failed(*map, FetchError::Request { source: error.clone() });
                outcomes.extend(maps.iter().map(failed));
                return again;
            }
        };
        for (at, (map, output)) in maps.iter().zip(head.outputs).enumerate() {
            let Some(output) = output else {
                let error = FetchError::Missing { endpoint: context.endpoint(), map: *map };
                outcomes.push(Outcome::failed(*map, error));
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
                Some(FetchError::Missing { .. } | FetchError::Corrupt { .. }) | None => None,
            };
            outcomes.push(outcome);
            if let Some(source) = lost {
                let failed =
                    |map: &AttemptId| Outcome::failed(*map, FetchError::Request { source: source.clone() });
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
    ) -> Result<(Reader<'a>, FetchHead), RequestError> {
        let (fetch, endpoint) = (context.fetch, || context.endpoint());
        let asked_for_order = sees.is_some();
        let request = FetchRequest {
            maps: maps.iter().map(|map| (map.task.index, map.epoch)).collect(),
            partitions: partitions.to_vec(),
            sees,
        };
        let mut body = Vec::new();
        codec::encode(&request, &mut body);
        let path = format!("/shuffle/{}", fetch.job);
        let response = self
            .pool
            .request(&fetch.endpoint, Some(context.key), Method::POST, &path, http::full(body))
            .await
            .map_err(|source| RequestError::Http { endpoint: endpoint(), source })?;
        let mut reader = Reader { body: response.into_body(), ready: Bytes::new(), stream: context.stream };
        let broken = |error: ReadError| {
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

    /// Reads the segments of one map and puts them into the store; `None` if what came is of no use.
    async fn receive(
        &self,
        context: &FetchContext<'_>,
        reader: &mut Reader<'_>,
        map: AttemptId,
        partitions: &[u32],
        output: &OutputHead,
    ) -> Option<Outcome> {
        let mut outcome =
            Outcome { map, filled: Vec::with_capacity(partitions.len()), bytes: 0, error: None };
        let read = self.read_output(context, reader, partitions, output, &mut outcome).await;
        let mut whole = Vec::with_capacity(read.arrived.len());
        for (id, length, place) in read.arrived {
            let held = match (place, &read.spilled) {
                (Arrived::Held(held), _) => held,
                (Arrived::Spilled { offset }, Some(file)) => {
                    let data = SegmentData::File { file: file.clone(), offset, length };
                    Held { data, reservation: None }
                }
                // The file is lost, and why is known.
                (Arrived::Spilled { .. }, None) => continue,
            };
            match verify(&held, id).await {
                Ok(()) => whole.push((id.partition, length, held)),
                // A damaged segment does not stop the others: their borders are known.
                Err(source) => {
                    let endpoint = context.endpoint();
                    let error = FetchError::Corrupt { endpoint, map, source: Box::new(source) };
                    outcome.error.get_or_insert(error);
                }
            }
        }
        if read.useless && outcome.error.is_none() {
            return None;
        }
        for (partition, length, held) in whole {
            if self.store.fill(map.task.job, partition, map.task.index, held) {
                outcome.bytes += length;
                outcome.filled.push(partition);
            }
        }
        Some(outcome)
    }

    /// Reads the segments of one map up to the first that does not come; why it does not, the outcome has.
    async fn read_output(
        &self,
        context: &FetchContext<'_>,
        reader: &mut Reader<'_>,
        partitions: &[u32],
        output: &OutputHead,
        outcome: &mut Outcome,
    ) -> ReadOutput {
        let map = outcome.map;
        let file = match &output.in_file {
            Some((place, start)) => open(place.clone()).await.map(|file| (file, *start)),
            None => None,
        };
        let (mut arrived, mut useless, mut overflow) = (Vec::with_capacity(partitions.len()), false, None);
        for (partition, length) in partitions.iter().zip(&output.lengths) {
            let id =
                SegmentId { job: map.task.job, map: map.task.index, epoch: map.epoch, partition: *partition };
            let read = if output.in_file.is_some() && 0 < *length {
                let file = file.as_ref().filter(|_| !useless);
                self.read_order(reader, id, *length, file).await
            } else {
                self.read_segment(reader, map, *length, &mut overflow).await.map(Some)
            };
            match read {
                Ok(Some(place)) => arrived.push((id, *length, place)),
                Ok(None) => useless = true,
                Err(error) => {
                    outcome.error = Some(match context.broken(error) {
                        Ok(source) => FetchError::Request { source: Arc::new(source) },
                        Err(source) => FetchError::Disk { map, source },
                    });
                    break;
                }
            }
        }
        let spilled = match overflow.map(|file: SpillWriter| file.finish()).transpose() {
            Ok(file) => file.map(Arc::new),
            Err(source) => {
                outcome.error.get_or_insert(FetchError::Disk { map, source });
                None
            }
        };
        ReadOutput { arrived, spilled, useless }
    }

    /// Reads the order of pairs that lie in `file`; `None` if it is of no use: the file cannot be mapped here, there is
    /// no memory for it, or it does not fit the file. Its bytes have been read then all the same.
    async fn read_order(
        &self,
        reader: &mut Reader<'_>,
        id: SegmentId,
        length: u64,
        file: Option<&(Arc<MappedFile>, u64)>,
    ) -> Result<Option<Arrived>, ReadError> {
        let granted = file.and_then(|(file, start)| {
            let bytes = usize::try_from(length).ok()?.checked_add(SEGMENT_BOOKS_BYTES)?;
            let reservation = self.budget.try_reserve(bytes)?;
            Some((file.clone(), *start, ReceivedOrder::pairs(length)?, reservation))
        });
        let Some((file, start, pairs, reservation)) = granted else {
            reader.read(length, |_| Ok(())).await?;
            return Ok(None);
        };
        let mut receiving = ReceivedOrder::receive(pairs);
        reader
            .read(length, |bytes| {
                receiving.take(bytes);
                Ok(())
            })
            .await?;
        let segment = InFileSegment::received(receiving.finish(), id, file, start, reservation);
        let held = |segment| Held { data: SegmentData::InFile(segment), reservation: None };
        Ok(segment.ok().map(|segment| Arrived::Held(held(segment))))
    }

    /// Reads a segment into memory, if that is granted, or else to the end of the output's spill file.
    async fn read_segment(
        &self,
        reader: &mut Reader<'_>,
        map: AttemptId,
        length: u64,
        overflow: &mut Option<SpillWriter>,
    ) -> Result<Arrived, ReadError> {
        if length == 0 {
            let nothing = SegmentData::Memory(Bytes::new());
            return Ok(Arrived::Held(Held { data: nothing, reservation: None }));
        }
        let wanted = usize::try_from(length).ok().and_then(|bytes| bytes.checked_add(SEGMENT_BOOKS_BYTES));
        if let Some(reservation) = wanted.and_then(|bytes| self.budget.try_reserve(bytes)) {
            let mut bytes = Vec::with_capacity(length as usize);
            use_huge_pages(&bytes);
            reader
                .read(length, |slice| {
                    bytes.extend_from_slice(slice);
                    Ok(())
                })
                .await?;
            let data = SegmentData::Memory(Bytes::from(bytes));
            return Ok(Arrived::Held(Held { data, reservation: Some(Arc::new(reservation)) }));
        }
        let mut file = match overflow.take() {
            Some(file) => file,
            None => {
                let name = format!("fetched-{}-{}", map.task.job, map.file_name());
                let spill = self.spill.clone();
                blocking(move || spill.create(&name)).await?
            }
        };
        let (offset, mut left) = (file.length(), length);
        while 0 < left {
            let chunk = match reader.read_vec(left.min(SPILL_CHUNK_BYTES) as usize).await {
                Ok(chunk) => chunk,
                Err(error) => {
                    // What came before this segment is whole.
                    *overflow = Some(file);
                    return Err(error);
                }
            };
            left -= chunk.len() as u64;
            file = blocking(move || file.write(&chunk).map(|()| file)).await?;
        }
        *overflow = Some(file);
        Ok(Arrived::Spilled { offset })
    }
}

/// What has been read of one map's output.
struct ReadOutput {
    arrived: Vec<(SegmentId, u64, Arrived)>,
    /// Where those are that found no room in memory.
    spilled: Option<Arc<SpillFile>>,
    /// Pairs that lie in a file cannot be taken from there.
    useless: bool,
}

/// Where a segment is that has arrived.
enum Arrived {
    Held(Held),
    /// In the spill file of its output, from this byte on.
    Spilled {
        offset: u64,
    },
}

/// Works on a disk, which may be slow, off the thread that also drives the connections.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ReadError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|join| Err(io::Error::other(join))).map_err(ReadError::Disk)
}

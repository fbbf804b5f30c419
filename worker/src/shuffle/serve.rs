//! Serves segments of this worker's map outputs: the response to one [`FetchRequest`].
//!
//! Segments in memory are sent without a copy. Those on disk are read, and those whose pairs are in the input are
//! built, in chunks off the async thread. Of the latter only the order is sent to workers with the same file system.

use super::pace::OutPace;
use super::store::SegmentStore;
use super::{FETCH_REQUEST_BYTES_MAX, FetchHead, FetchRequest, OutputHead, fetch_maps_max};
use crate::codec;
use crate::http::{self, Body, BodySender};
use crate::machine::files_seen;
use crate::response;
use crate::segment::{InFileBytes, InFileSegment, PARTITIONS_MAX, SegmentData};
use bytes::Bytes;
use gristmill_scheduler::ids::JobId;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use std::io;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes read at once from a segment on disk.
const CHUNK_BYTES: usize = 512 << 10;

/// Number of chunks read ahead of the socket.
const CHUNKS_AHEAD: usize = 2;

/// Maximum chunks in memory over all responses of this process, for any number of receivers, as long as these read
/// them. See [`PERMIT_TIMEOUT`] for those that do not.
const CHUNKS_WANTED: usize = 8;

/// Time after which a response continues without a permit: stalled receivers must not delay all others until their
/// connections are closed. The memory is then [`CHUNKS_AHEAD`] plus one chunk for each response.
const PERMIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Permits to create a chunk; each is held until its chunk is sent.
static CHUNKS: Semaphore = Semaphore::const_new(CHUNKS_WANTED);

struct Chunk {
    bytes: Vec<u8>,
    _permit: Option<SemaphorePermit<'static>>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn permit() -> Option<SemaphorePermit<'static>> {
    tokio::time::timeout(PERMIT_TIMEOUT, CHUNKS.acquire()).await.ok()?.ok()
}

/// Handles `POST /shuffle/JOB`.
pub async fn segments(store: &SegmentStore, job: JobId, request: Request<Incoming>) -> Response<Body> {
    segments_at(None, store, job, request).await
}

/// As [`segments`], on a paced network: all bytes of the response wait for their turn, in the order of requests.
pub(crate) async fn segments_at(
    pace: Option<&OutPace>,
    store: &SegmentStore,
    job: JobId,
    request: Request<Incoming>,
) -> Response<Body> {
    let body = match http::read_limited(request.into_body(), FETCH_REQUEST_BYTES_MAX).await {
        Ok(body) => body,
        Err(_) => return response::status(StatusCode::PAYLOAD_TOO_LARGE),
    };
    let Ok(wanted) = codec::decode_message::<FetchRequest>(&body, 4 * FETCH_REQUEST_BYTES_MAX) else {
        return response::status(StatusCode::BAD_REQUEST);
    };
    let partitions = wanted.partitions.len();
    if (PARTITIONS_MAX as usize) < partitions || fetch_maps_max(partitions) < wanted.maps.len() {
        return response::status(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let held = store.clone();
    // Checking files for changes reads a disk, which may be slow.
    let Ok((head, pieces)) = tokio::task::spawn_blocking(move || look_up(&held, job, wanted)).await else {
        return response::status(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut front = vec![0; 4];
    codec::encode(&head, &mut front);
    let length = (front.len() - 4) as u32;
    front[..4].copy_from_slice(&length.to_le_bytes());
    let mut ready = vec![Bytes::from(front)];
    if pace.is_none()
        && pieces.iter().all(|of| matches!(of.piece, AnswerPiece::Whole(SegmentData::Memory(_))))
    {
        ready.extend(pieces.into_iter().filter_map(|of| match of.piece {
            AnswerPiece::Whole(SegmentData::Memory(bytes)) => Some(bytes),
            AnswerPiece::Whole(SegmentData::File { .. } | SegmentData::InFile(_)) | AnswerPiece::Order(_) => {
                None
            }
        }));
        return response::with_body(StatusCode::OK, http::pieces(ready));
    }
    let (sender, body) = http::stream(CHUNKS_AHEAD);
    let sender = Paced { sender, pace: pace.cloned() };
    let store = store.clone();
    tokio::spawn(async move {
        match send(&sender, ready, pieces).await {
            Ok(()) => drop(sender.sender.finish().await),
            // A receiver that has disconnected needs no response.
            Err(Unsent::Gone(error)) => tracing::debug!(%error, "segments could not be sent"),
            // The body ends early, as on a cut route. The next request learns that the output is not here.
            Err(Unsent::Unreadable { output, source }) => store.give_up_unreadable(job, output, &source),
        }
    });
    response::with_body(StatusCode::OK, body)
}

/// Error of sending segments.
enum Unsent {
    /// The receiver has disconnected.
    Gone(io::Error),
    /// A segment of this map and attempt could not be read from its place.
    Unreadable { output: (u32, u32), source: io::Error },
}

impl From<io::Error> for Unsent {
    /// Converts an error of sending.
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// Returns the data to send of the outputs held here: the head, and the pieces after it. Blocks.
fn look_up(store: &SegmentStore, job: JobId, wanted: FetchRequest) -> (FetchHead, Vec<PieceOf>) {
    let mut pieces = Vec::new();
    let mut head = FetchHead { outputs: Vec::with_capacity(wanted.maps.len()), damaged: Vec::new() };
    let sees_same = wanted.sees.is_some() && wanted.sees == files_seen();
    for (place, (map, epoch)) in (0..).zip(wanted.maps) {
        if wanted.verify && store.drop_damaged(job, (map, epoch), &wanted.partitions) {
            head.damaged.push(place);
        }
        let segments = store.output(job, map, epoch).and_then(|output| {
            wanted.partitions.iter().map(|partition| output.segment(*partition)).collect::<Option<Vec<_>>>()
        });
        // An output whose input has changed is not sent: without it the map runs again and reports the change. All of
        // its segments are in the same file.
        let segments = segments.filter(|segments| {
            segments.iter().find_map(in_file).is_none_or(|segment| segment.check().is_ok())
        });
        head.outputs.push(segments.map(|segments| {
            let in_file = segments.iter().find_map(in_file).filter(|_| sees_same).map(InFileSegment::place);
            let (mut lengths, mut follow) = (Vec::with_capacity(segments.len()), Vec::new());
            for segment in segments {
                let piece = match segment {
                    SegmentData::InFile(segment) if in_file.is_some() => AnswerPiece::Order(segment),
                    segment => AnswerPiece::Whole(segment),
                };
                lengths.push(piece.len());
                follow.push(piece);
            }
            let follow = follow.into_iter().filter(|piece| 0 < piece.len());
            pieces.extend(follow.map(|piece| PieceOf { output: (map, epoch), piece }));
            OutputHead { lengths, in_file }
        }));
    }
    (head, pieces)
}

/// Data to send of one segment of this map and attempt.
struct PieceOf {
    output: (u32, u32),
    piece: AnswerPiece,
}

/// Data to send of one segment.
enum AnswerPiece {
    Whole(SegmentData),
    /// Its pairs are in a file that the other worker can read.
    Order(InFileSegment),
}

impl AnswerPiece {
    /// Number of bytes to send.
    fn len(&self) -> u64 {
        match self {
            AnswerPiece::Whole(data) => data.len() as u64,
            AnswerPiece::Order(segment) => segment.order_bytes(),
        }
    }
}

fn in_file(data: &SegmentData) -> Option<&InFileSegment> {
    match data {
        SegmentData::InFile(segment) => Some(segment),
        SegmentData::Memory(_) | SegmentData::File { .. } => None,
    }
}

/// Response whose bytes may have to wait.
struct Paced {
    sender: BodySender,
    pace: Option<OutPace>,
}

impl Paced {
    async fn send(&self, mut bytes: Bytes) -> io::Result<()> {
        let Some(pace) = &self.pace else { return self.sender.send(bytes).await };
        while !bytes.is_empty() {
            let chunk = bytes.split_to(bytes.len().min(pace.chunk_bytes()));
            pace.pass(chunk.len()).await;
            self.sender.send(chunk).await?;
        }
        Ok(())
    }
}

/// Sends the head, then the segments one after another.
async fn send(sender: &Paced, head: Vec<Bytes>, pieces: Vec<PieceOf>) -> Result<(), Unsent> {
    for bytes in head {
        sender.send(bytes).await?;
    }
    for PieceOf { output, piece } in pieces {
        let unreadable = |source| Unsent::Unreadable { output, source };
        match piece {
            AnswerPiece::Order(segment) => {
                let (mut next, mut checksum) = (0, 0);
                while next < segment.header().records as usize {
                    let _permit = permit().await;
                    let mut bytes = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
                    next = segment.put_order(next, &mut checksum, CHUNK_BYTES, &mut bytes);
                    sender.send(Bytes::from_owner(Chunk { bytes, _permit })).await?;
                }
            }
            AnswerPiece::Whole(SegmentData::Memory(bytes)) => sender.send(bytes).await?,
            AnswerPiece::Whole(SegmentData::File { file, offset, length }) => {
                let mut at = 0;
                while at < length {
                    let size = (length - at).min(CHUNK_BYTES as u64) as usize;
                    let (file, _permit) = (file.clone(), permit().await);
                    let read = tokio::task::spawn_blocking(move || {
                        let mut bytes = vec![0; size];
                        file.read_at(offset + at, &mut bytes).map(|()| Chunk { bytes, _permit })
                    });
                    let chunk = read.await.map_err(io::Error::other)?.map_err(unreadable)?;
                    sender.send(Bytes::from_owner(chunk)).await?;
                    at += size as u64;
                }
            }
            AnswerPiece::Whole(SegmentData::InFile(segment)) => {
                let mut left = InFileBytes::new(segment);
                loop {
                    let _permit = permit().await;
                    let made = tokio::task::spawn_blocking(move || {
                        let mut bytes = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
                        let mut more = true;
                        while more && bytes.len() < CHUNK_BYTES {
                            more = left.next(&mut bytes).map_err(io::Error::other)?;
                        }
                        io::Result::Ok((left, Chunk { bytes, _permit }, more))
                    });
                    let (rest, chunk, more) = made.await.map_err(io::Error::other)?.map_err(unreadable)?;
                    left = rest;
                    sender.send(Bytes::from_owner(chunk)).await?;
                    if !more {
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}

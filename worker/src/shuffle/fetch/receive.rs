//! Receives one map output of a response: into memory or a spill file, verified, into the store.

use super::error::FetchError;
use super::reader::{AnswerReadError, AnswerReader};
use super::{FetchContext, FetchOutcome, Fetcher};
use crate::input::{FilePlace, MappedFile, open_mapped};
use crate::segment;
use crate::segment::{
    InFileSegment, ReceivedOrder, SegmentData, SegmentError, SegmentId, SpillFile, SpillWriter,
};
use crate::shuffle::OutputHead;
use crate::shuffle::store::{GatheredFor, HeldSegment};
use bytes::Bytes;
use gristmill_scheduler::ids::AttemptId;
use std::io;
use std::sync::Arc;

/// Bytes of a segment that are written to disk at once.
const SPILL_CHUNK_BYTES: u64 = 512 << 10;

/// Memory of a segment in addition to its bytes: its entry in the store, its reservation, overhead of the allocator.
const SEGMENT_BOOKS_BYTES: usize = 192;

/// Size above which segments are verified on another thread than the one that drives the connections.
const VERIFY_BYTES_INLINE: usize = 256 << 10;

impl Fetcher {
    /// Reads the segments of one map and puts them into the store; `None` if the received data is unusable.
    pub(super) async fn receive(
        &self,
        context: &FetchContext<'_>,
        reader: &mut AnswerReader<'_>,
        map: AttemptId,
        partitions: &[GatheredFor],
        output: &OutputHead,
    ) -> Option<FetchOutcome> {
        let mut outcome = FetchOutcome {
            map,
            filled: Vec::with_capacity(partitions.len()),
            bytes: 0,
            resent: 0,
            error: None,
        };
        let read = self.read_output(context, reader, partitions, output, &mut outcome).await;
        let mut whole = Vec::with_capacity(read.arrived.len());
        for (reduce, id, length, place) in read.arrived {
            let held = match (place, &read.spilled) {
                (Arrived::Held(held), _) => held,
                (Arrived::Spilled { offset }, Some(file)) => {
                    let data = SegmentData::File { file: file.clone(), offset, length };
                    HeldSegment { data, reservation: None }
                }
                // The file is lost, and the error is already recorded.
                (Arrived::Spilled { .. }, None) => continue,
            };
            match verify(&held, id).await {
                Ok(()) => whole.push((reduce, length, held)),
                // A damaged segment does not affect the others: their boundaries are known.
                Err(source) => {
                    let endpoint = context.endpoint();
                    let error = FetchError::Garbled { endpoint, map, times: 1, source: Box::new(source) };
                    outcome.error.get_or_insert(error);
                }
            }
        }
        if read.useless && outcome.error.is_none() {
            return None;
        }
        for (reduce, length, held) in whole {
            if self.store.fill(map.task.job, reduce, map.task.index, held) {
                outcome.bytes += length;
                outcome.filled.push(reduce);
            }
        }
        Some(outcome)
    }

    /// Reads the segments of one map up to the first that fails; the outcome has the error.
    async fn read_output(
        &self,
        context: &FetchContext<'_>,
        reader: &mut AnswerReader<'_>,
        partitions: &[GatheredFor],
        output: &OutputHead,
        outcome: &mut FetchOutcome,
    ) -> ReadOutput {
        let map = outcome.map;
        let file = match &output.in_file {
            Some((place, start)) => open(place.clone()).await.map(|file| (file, *start)),
            None => None,
        };
        let (mut arrived, mut useless, mut overflow) = (Vec::with_capacity(partitions.len()), false, None);
        for (&GatheredFor { reduce, partition }, length) in partitions.iter().zip(&output.lengths) {
            let id = SegmentId { job: map.task.job, map: map.task.index, epoch: map.epoch, partition };
            let read = if output.in_file.is_some() && 0 < *length {
                let file = file.as_ref().filter(|_| !useless);
                self.read_order(reader, id, *length, file).await
            } else {
                self.read_segment(reader, map, *length, &mut overflow).await.map(Some)
            };
            match read {
                Ok(Some(place)) => arrived.push((reduce, id, *length, place)),
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

    /// Reads the order of pairs that are in `file`. `None` if it is unusable: the file cannot be mapped here, there is
    /// no memory for it, or it does not match the file. Its bytes have been consumed in any case.
    async fn read_order(
        &self,
        reader: &mut AnswerReader<'_>,
        id: SegmentId,
        length: u64,
        file: Option<&(Arc<MappedFile>, u64)>,
    ) -> Result<Option<Arrived>, AnswerReadError> {
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
                receiving.push(bytes);
                Ok(())
            })
            .await?;
        let segment = InFileSegment::received(receiving.finish(), id, file, start, reservation);
        let held = |segment| HeldSegment { data: SegmentData::InFile(segment), reservation: None };
        Ok(segment.ok().map(|segment| Arrived::Held(held(segment))))
    }

    /// Reads a segment into memory, if granted, else to the end of the output's spill file.
    async fn read_segment(
        &self,
        reader: &mut AnswerReader<'_>,
        map: AttemptId,
        length: u64,
        overflow: &mut Option<SpillWriter>,
    ) -> Result<Arrived, AnswerReadError> {
        if length == 0 {
            let nothing = SegmentData::Memory(Bytes::new());
            return Ok(Arrived::Held(HeldSegment { data: nothing, reservation: None }));
        }
        let wanted = usize::try_from(length).ok().and_then(|bytes| bytes.checked_add(SEGMENT_BOOKS_BYTES));
        if let Some(reservation) = wanted.and_then(|bytes| self.budget.try_reserve(bytes)) {
            let mut bytes = Vec::with_capacity(length as usize);
            reader
                .read(length, |slice| {
                    bytes.extend_from_slice(slice);
                    Ok(())
                })
                .await?;
            let data = SegmentData::Memory(Bytes::from(bytes));
            return Ok(Arrived::Held(HeldSegment { data, reservation: Some(Arc::new(reservation)) }));
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
                    // The data before this segment is complete.
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

/// Data read so far of one map's output.
struct ReadOutput {
    /// Reduce, segment, its bytes and its place.
    arrived: Vec<(u32, SegmentId, u64, Arrived)>,
    /// Spill file of segments that had no room in memory.
    spilled: Option<Arc<SpillFile>>,
    /// True if pairs that are in a file cannot be read from there.
    useless: bool,
}

/// Place of a segment that has arrived.
enum Arrived {
    Held(HeldSegment),
    /// In the spill file of its output, from this offset on.
    Spilled {
        offset: u64,
    },
}

/// Verifies a segment without blocking others. Cloning `held` shares it.
async fn verify(held: &HeldSegment, id: SegmentId) -> Result<(), FetchProblem> {
    if matches!(held.data, SegmentData::Memory(_)) && held.data.len() <= VERIFY_BYTES_INLINE {
        return segment::verify(&held.data, &id).map_err(FetchProblem::Segment);
    }
    let data = held.data.clone();
    match tokio::task::spawn_blocking(move || segment::verify(&data, &id)).await {
        Ok(verified) => verified.map_err(FetchProblem::Segment),
        Err(join) => Err(FetchProblem::Task(join)),
    }
}

/// Maps a file that the other worker has mapped; `None` if this worker cannot. Then all bytes are requested.
pub(super) async fn open(place: FilePlace) -> Option<Arc<MappedFile>> {
    tokio::task::spawn_blocking(move || open_mapped(place)).await.ok()?.ok()?
}

/// Error of verifying a segment.
#[derive(Debug, thiserror::Error)]
enum FetchProblem {
    #[error(transparent)]
    Segment(SegmentError),
    #[error("the check did not end")]
    Task(#[source] tokio::task::JoinError),
}

/// Runs disk work, which may be slow, on another thread than the one that drives the connections.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, AnswerReadError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|join| Err(io::Error::other(join))).map_err(AnswerReadError::Disk)
}

//! Reads an object range by range, a few ranges ahead of the caller.
//!
//! The first range is exactly the requested one. Reading ahead starts when the next requested range
//! follows it, so reading the head of an object costs only its head. Each response contains the `ETag` of
//! its object, which is compared with the listed one. Once the `ETag` itself is known, ranges are
//! requested with it (`If-Match`), so a store never sends a range of another version.
//!
//! Invariant: requested ranges are contiguous, and hold at most [`RANGES_AHEAD`] times [`RANGE_BYTES`] in
//! addition to the one that is read.

use crate::classes::failure;
use crate::store::{PendingRange, StoreBucket, stamp_of};
use bytes::{Buf, Bytes};
use gristmill_worker::objects::{ObjectError, ObjectFailure, ObjectReader, ObjectStamp};
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of bytes of a range that is read ahead.
const RANGE_BYTES: u64 = 8 << 20;

/// Maximum number of ranges that are read ahead.
const RANGES_AHEAD: usize = 3;

/// Reader of an object.
pub(crate) struct StoreReader {
    bucket: Arc<StoreBucket>,
    key: String,
    /// Expected stamp.
    stamp: ObjectStamp,
    /// `ETag` of the object, once a response has contained one that is valid as a condition.
    tag: Option<String>,
    ranges: VecDeque<RangeAhead>,
    /// First byte that has not been requested.
    next: u64,
    /// Offset after which nothing is read ahead.
    end: u64,
}

/// Requested range. Bytes that were read are removed.
struct RangeAhead {
    offset: u64,
    length: u64,
    state: RangeState,
}

enum RangeState {
    Asked(PendingRange),
    Here(VecDeque<Bytes>),
}

impl ObjectReader for StoreReader {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ObjectError> {
        self.read(offset, buffer).map_err(|cause| cause.during("read", &self.bucket.url_of(&self.key)))
    }
}

impl StoreReader {
    pub(crate) fn new(bucket: Arc<StoreBucket>, key: &str, stamp: ObjectStamp, end: u64) -> Self {
        let end = end.min(stamp.size);
        Self { bucket, key: key.to_owned(), stamp, tag: None, ranges: VecDeque::new(), next: u64::MAX, end }
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ObjectFailure> {
        self.drop_before(offset);
        let goes_on = self.ranges.front().map_or(self.next, |front| front.offset) == offset;
        if !goes_on {
            self.ranges.clear();
            self.next = offset;
        }
        let wanted = offset + buffer.len() as u64;
        let mut filled = 0;
        while filled < buffer.len() {
            while let Some(until) = self.next_end(wanted, goes_on) {
                let asked = self.bucket.start_range(&self.key, self.next..until, self.tag.as_deref())?;
                let (offset, length) = (self.next, until - self.next);
                self.ranges.push_back(RangeAhead { offset, length, state: RangeState::Asked(asked) });
                self.next = until;
            }
            filled += self.take(&mut buffer[filled..])?;
            self.drop_before(offset + filled as u64);
        }
        Ok(())
    }

    /// Returns the end of the next range to request; `None` if enough are in flight.
    fn next_end(&self, wanted: u64, goes_on: bool) -> Option<u64> {
        let limit = if goes_on { wanted.max(self.end) } else { wanted };
        let more = self.next < limit && self.ranges.len() <= RANGES_AHEAD;
        more.then(|| limit.min(self.next + RANGE_BYTES))
    }

    /// Discards the bytes before `at`, if that is in the first range or after it.
    fn drop_before(&mut self, at: u64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.offset + front.length <= at {
                self.ranges.pop_front();
                continue;
            }
            if front.offset < at
                && let RangeState::Here(chunks) = &mut front.state
            {
                let mut skipped = at - front.offset;
                front.offset = at;
                front.length -= skipped;
                while let Some(chunk) = chunks.front_mut() {
                    let length = (chunk.len() as u64).min(skipped);
                    chunk.advance(length as usize);
                    skipped -= length;
                    if !chunk.is_empty() {
                        break;
                    }
                    chunks.pop_front();
                }
            }
            return;
        }
    }

    /// Moves bytes of the first range, once it has arrived, into a buffer. Returns their number.
    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, ObjectFailure> {
        if self.ranges.front().is_some_and(|front| matches!(front.state, RangeState::Asked(_))) {
            self.arrive()?;
        }
        let Some(RangeAhead { offset, length, state: RangeState::Here(chunks) }) = self.ranges.front_mut()
        else {
            return Ok(0);
        };
        let taken = move_bytes(chunks, buffer);
        *offset += taken as u64;
        *length -= taken as u64;
        Ok(taken)
    }

    /// Waits for the first range, and checks that it is of the object that was listed.
    fn arrive(&mut self) -> Result<(), ObjectFailure> {
        let Some(RangeAhead { offset, length, state: RangeState::Asked(asked) }) = self.ranges.pop_front()
        else {
            return Ok(());
        };
        let (meta, chunks) = match asked.wait()? {
            Ok(arrived) => arrived,
            Err(error) => {
                return Err(match failure(&error) {
                    ObjectFailure::Condition => ObjectFailure::Changed,
                    ObjectFailure::Missing => ObjectFailure::Gone,
                    ObjectFailure::Answer { detail } => ObjectFailure::Answer {
                        detail: format!(
                            "asked for {length} bytes from byte {offset} on, it sent no such range ({detail})"
                        ),
                    },
                    other => other,
                });
            }
        };
        if !self.stamp.is_same(stamp_of(&meta)) {
            return Err(ObjectFailure::Changed);
        }
        if self.tag.is_none() {
            self.tag = meta.e_tag.and_then(tag_for_condition);
        }
        let arrived: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        if arrived != length {
            let detail = format!("asked for {length} bytes from byte {offset} on, it sent {arrived}");
            return Err(ObjectFailure::Answer { detail });
        }
        let chunks = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        self.ranges.push_front(RangeAhead { offset, length, state: RangeState::Here(chunks) });
        Ok(())
    }
}

/// Returns an `ETag` as a condition; `None` for a weak one, which never matches as a condition.
fn tag_for_condition(e_tag: String) -> Option<String> {
    Some(e_tag).filter(|e_tag| !e_tag.starts_with("W/"))
}

/// Moves bytes out of chunks. Returns their number.
fn move_bytes(chunks: &mut VecDeque<Bytes>, mut buffer: &mut [u8]) -> usize {
    let wanted = buffer.len();
    while let Some(chunk) = chunks.front_mut().filter(|_| !buffer.is_empty()) {
        let length = chunk.len().min(buffer.len());
        let (now, later) = std::mem::take(&mut buffer).split_at_mut(length);
        chunk.copy_to_slice(now);
        buffer = later;
        if chunk.is_empty() {
            chunks.pop_front();
        }
    }
    wanted - buffer.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(sizes: &[usize]) -> VecDeque<Bytes> {
        let mut next = 0_u8;
        let mut fill = |size: usize| -> Bytes {
            (0..size)
                .map(|_| {
                    next += 1;
                    next
                })
                .collect()
        };
        sizes.iter().map(|size| fill(*size)).collect()
    }

    #[test]
    fn bytes_are_moved_in_order_across_chunks() {
        let mut chunks = chunks(&[3, 1, 4]);
        let mut buffer = [0; 5];
        assert_eq!(move_bytes(&mut chunks, &mut buffer), 5);
        assert_eq!(buffer, [1, 2, 3, 4, 5]);
        let mut rest = [0; 9];
        assert_eq!(move_bytes(&mut chunks, &mut rest), 3);
        assert_eq!(rest[..3], [6, 7, 8]);
        assert!(chunks.is_empty());
    }

    #[test]
    fn weak_tag_is_no_condition() {
        assert_eq!(tag_for_condition("W/\"a\"".to_owned()), None);
        assert_eq!(tag_for_condition("\"a\"".to_owned()).as_deref(), Some("\"a\""));
    }
}

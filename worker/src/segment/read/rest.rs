//! Estimate of the pairs that a reader has not passed: bytes, and some keys with the bytes before them.

use super::search::BlockSearch;
use super::{BlockReader, SegmentReader, SegmentSource, frame_at};
use crate::segment::{CUT_KEY_BYTES_MAX, SegmentError};
use std::ops::Range;

/// Number of pairs from which the share of keys and values in the bytes of a block is estimated.
const SHARE_PAIRS: usize = 1000;

/// Minimum of that share: a pair of one byte has two bytes of lengths.
const SHARE_MIN: f64 = 1.0 / 3.0;

/// Maximum bytes of a known key. A longer one is cut off, and is not used as the key of a division.
const KEY_BYTES_MAX: usize = CUT_KEY_BYTES_MAX + 1;

/// Limits of an estimate.
#[derive(Clone, Copy)]
pub(crate) struct RestLimits {
    /// Maximum number of keys after the current one; 0 if only the bytes matter.
    pub keys: usize,
    /// Maximum number of block headers read from a file, or without keys. Of later blocks only the bytes are known.
    pub headers: usize,
}

/// Pairs of a segment from the current one of its reader on. Bytes are those of keys and values, estimated.
pub(crate) struct SegmentRest {
    /// Some of the keys, the current one first, with the bytes before each.
    pub keys: Vec<(Vec<u8>, f64)>,
    /// All bytes.
    pub bytes: f64,
}

impl SegmentReader {
    /// Estimates the rest, from the pair that the last [`advance`](SegmentReader::advance) reached on. Reads some of the
    /// blocks after the current one.
    ///
    /// # Errors
    /// A block that is damaged or cannot be read.
    pub(crate) fn rest(&self, limits: RestLimits) -> Result<SegmentRest, SegmentError> {
        match &self.0 {
            SegmentSource::Blocks(reader) => reader.rest(limits),
            SegmentSource::InFile(reader) => Ok(reader.rest(limits)),
        }
    }
}

impl BlockReader {
    fn rest(&self, limits: RestLimits) -> Result<SegmentRest, SegmentError> {
        let (window, here) = (self.blocks.window.bytes(), self.key.start);
        let headers = if limits.keys == 0 || self.blocks.is_in_file() { limits.headers } else { usize::MAX };
        let mut search = BlockSearch::new(self.blocks.after(), headers)?;
        let share = share(window);
        let mut keys = vec![(cut_off(&window[self.key.clone()]), 0.0)];
        if search.blocks.is_empty() && limits.keys > 0 {
            let middle = usize::midpoint(self.at, window.len());
            let frames = frames(window, self.at).take_while(|(key, _)| key.start <= middle);
            keys.extend(frames.last().map(|(key, _)| {
                let bytes = key.start - here;
                (cut_off(&window[key]), share * bytes as f64)
            }));
        }
        let in_window = (window.len() - here) as f64;
        for chosen in evenly(search.blocks.len(), limits.keys) {
            let bytes = in_window + search.blocks[chosen].raw_before as f64;
            keys.push((cut_off(search.first_key(chosen, KEY_BYTES_MAX)?), share * bytes));
        }
        let ratio = search.raw as f64 / search.stored.max(1) as f64;
        let bytes = in_window + search.raw as f64 + search.after as f64 * ratio;
        Ok(SegmentRest { keys, bytes: share * bytes })
    }
}

/// Returns key and value of each pair of a block from this offset on.
fn frames(block: &[u8], mut at: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    std::iter::from_fn(move || {
        let (key, value) = frame_at(block, at)?;
        at = value.end;
        Some((key, value))
    })
}

/// Estimates the share of keys and values in the bytes of a block.
fn share(block: &[u8]) -> f64 {
    let (mut end, mut pairs_bytes) = (0, 0);
    for (key, value) in frames(block, 0).take(SHARE_PAIRS) {
        pairs_bytes += key.len() + value.len();
        end = value.end;
    }
    if end == 0 { 1.0 } else { (pairs_bytes as f64 / end as f64).max(SHARE_MIN) }
}

/// Returns the first bytes of a key, as many as an estimate has.
pub(in crate::segment) fn cut_off(key: &[u8]) -> Vec<u8> {
    key[..key.len().min(KEY_BYTES_MAX)].to_vec()
}

/// Returns at most `chosen_max` of the numbers below `count`, ascending, at even distances.
pub(in crate::segment) fn evenly(count: usize, chosen_max: usize) -> impl Iterator<Item = usize> {
    let chosen = count.min(chosen_max);
    (1..=chosen).map(move |number| number * (count + 1) / (chosen + 1) - 1)
}

//! Estimate of the pairs that a reader has not passed: bytes, and some keys with the bytes between them.

use super::search::BlockSearch;
use super::{BlockReader, SegmentReader, SegmentSource, frame_at};
use crate::segment::{BLOCK_HEADER_BYTES, SegmentError, framed_length};

/// Number of pairs from which the share of keys and values in the bytes of a block is estimated.
const SHARE_PAIRS: usize = 1000;

/// Minimum of that share: a pair of one byte has two bytes of lengths.
const SHARE_MIN: f64 = 1.0 / 3.0;

/// Limits of an estimate.
#[derive(Clone, Copy)]
pub(crate) struct RestLimits {
    /// Maximum number of keys; 0 if only the bytes matter.
    pub keys: usize,
    /// Maximum number of block headers read from a file, or without keys. Of later blocks only the bytes are known.
    pub headers: usize,
    /// Maximum bytes of a key; longer ones are cut off.
    pub key_bytes: usize,
}

/// Pairs of a segment from the current one of its reader on. Bytes are those of keys and values, estimated.
pub(crate) struct SegmentRest {
    /// Key of the current pair.
    pub first: Vec<u8>,
    /// Later keys, ascending, each with the bytes from the one before on.
    pub keys: Vec<(Vec<u8>, f64)>,
    /// Bytes from the last of these keys on.
    pub last_bytes: f64,
}

impl SegmentRest {
    fn scaled(mut self, share: f64) -> Self {
        self.keys.iter_mut().for_each(|(_, bytes)| *bytes *= share);
        self.last_bytes *= share;
        self
    }
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
        let window = self.blocks.window.bytes();
        let (key, value) = (&window[self.key.clone()], &window[self.value.clone()]);
        let here = self.at.saturating_sub(framed_length(key, value));
        let key = |bytes: &[u8]| bytes[..bytes.len().min(limits.key_bytes)].to_vec();
        let mut rest =
            SegmentRest { first: key(&window[self.key.clone()]), keys: Vec::new(), last_bytes: 0.0 };
        let mut search = BlockSearch::new(self.blocks.after());
        let in_memory = !self.blocks.is_in_file() && limits.keys > 0;
        search.hop(if in_memory { usize::MAX } else { limits.headers })?;
        let count = search.blocks().len();
        // Bytes since the last key.
        let mut bytes = (window.len() - here) as f64;
        if count == 0 && limits.keys > 0 {
            let middle = usize::midpoint(self.at, window.len());
            let frames = frames(window, self.at);
            if let Some((at, found)) = frames.take_while(|(at, _)| *at <= middle).last() {
                rest.keys.push((key(&window[found]), (at - here) as f64));
                bytes = (window.len() - at) as f64;
            }
        }
        let mut at = 0;
        for chosen in evenly(count, limits.keys) {
            bytes += search.blocks()[at..chosen].iter().map(|block| f64::from(block.raw)).sum::<f64>();
            rest.keys.push((search.first_key(chosen, limits.key_bytes)?.to_vec(), bytes));
            (at, bytes) = (chosen, 0.0);
        }
        let (raw, stored) = search.blocks().iter().fold((0.0, 0.0), |(raw, stored), block| {
            (raw + f64::from(block.raw), stored + f64::from(block.stored) + BLOCK_HEADER_BYTES as f64)
        });
        bytes += search.blocks()[at..].iter().map(|block| f64::from(block.raw)).sum::<f64>();
        if stored > 0.0 {
            bytes += search.bytes_after() as f64 * raw / stored;
        }
        rest.last_bytes = bytes;
        Ok(rest.scaled(share(window)))
    }
}

/// Returns the offsets and keys of the pairs of a block from this offset on.
fn frames(block: &[u8], mut at: usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
    std::iter::from_fn(move || {
        let (key, value) = frame_at(block, at)?;
        let start = std::mem::replace(&mut at, value.end);
        Some((start, key))
    })
}

/// Estimates the share of keys and values in the bytes of a block.
fn share(block: &[u8]) -> f64 {
    let (mut at, mut pairs_bytes) = (0, 0);
    for _ in 0..SHARE_PAIRS {
        let Some((key, value)) = frame_at(block, at) else { break };
        pairs_bytes += key.len() + value.len();
        at = value.end;
    }
    if at == 0 { 1.0 } else { (pairs_bytes as f64 / at as f64).max(SHARE_MIN) }
}

/// Returns at most `chosen_max` of the numbers below `count`, ascending, at even distances.
pub(in crate::segment) fn evenly(count: usize, chosen_max: usize) -> impl Iterator<Item = usize> {
    let chosen = count.min(chosen_max);
    (1..=chosen).map(move |number| number * (count + 1) / (chosen + 1) - 1)
}

/// Returns the share for pairs of this mean length without values.
pub(in crate::segment) fn share_of_keys(framed_bytes: f64) -> f64 {
    ((framed_bytes - 2.0) / framed_bytes).max(SHARE_MIN)
}

//! Reads the pairs of a segment in place from their file.

use super::InFileSegment;
use crate::prefetch::prefetch_range;
use crate::segment::read::{cut_off, evenly};
use crate::segment::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, RestLimits, SegmentError, SegmentHeader, SegmentRest, SortEntry,
    block_checksum, put_frame,
};
use std::ops::Range;

/// Number of pairs whose bytes are prefetched.
const AHEAD: usize = 12;

/// Reads the pairs of such a segment in place.
pub(crate) struct InFileReader {
    pub(in crate::segment) segment: InFileSegment,
    next: usize,
    end: usize,
    current: SortEntry,
}

impl InFileReader {
    pub fn new(segment: InFileSegment) -> Self {
        let Range { start, end } = segment.part().entries.clone();
        let current = segment.output.entries[start];
        Self { segment, next: start, end, current }
    }

    /// Skips the pairs with keys less than `from`. The reader is before its first pair.
    pub fn skip_before(&mut self, from: &[u8]) {
        self.next += self.segment.pairs_before(from);
    }

    /// Estimates the rest, as [`SegmentReader::rest`](crate::segment::SegmentReader::rest).
    pub fn rest(&self, limits: RestLimits) -> SegmentRest {
        let file = self.segment.output.bytes();
        let entries = &self.segment.output.entries[self.next - 1..self.end];
        let header = self.header();
        // Most pairs have two bytes of lengths.
        let pair_bytes = (header.length as f64 / header.records.max(1) as f64 - 2.0).max(1.0);
        let later = evenly(entries.len() - 1, limits.keys).map(|number| number + 1);
        let key = |number: usize| (cut_off(entries[number].key_in(file)), number as f64 * pair_bytes);
        SegmentRest {
            keys: std::iter::once(0).chain(later).map(key).collect(),
            bytes: entries.len() as f64 * pair_bytes,
        }
    }

    pub fn header(&self) -> &SegmentHeader {
        self.segment.header()
    }

    #[inline]
    pub fn advance(&mut self) -> Result<bool, SegmentError> {
        let output = &*self.segment.output;
        if self.next == self.end {
            self.segment.check()?;
            return Ok(false);
        }
        if let Some(later) = output.entries[..self.end].get(self.next + AHEAD) {
            prefetch_range(output.bytes(), later.place(), later.length());
        }
        self.current = output.entries[self.next];
        self.next += 1;
        Ok(true)
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        self.current.key_in(self.segment.output.bytes())
    }

    #[inline]
    pub fn prefix(&self) -> u64 {
        self.current.prefix()
    }
}

/// Builds the bytes of such a segment, as [`SegmentsWriter`](crate::segment::SegmentsWriter) would have written them.
pub(crate) struct InFileBytes {
    reader: InFileReader,
    begun: bool,
    checksum: u32,
}

impl InFileBytes {
    /// Creates a builder for all bytes of this segment.
    #[must_use]
    pub fn new(segment: InFileSegment) -> Self {
        let checksum = segment.header().seed();
        Self { reader: InFileReader::new(segment), begun: false, checksum }
    }

    /// Appends the next bytes to `out`: the header, or a block; false after the last.
    ///
    /// # Errors
    /// A file that has changed since the map read it. Earlier bytes are then meaningless.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<bool, SegmentError> {
        if !self.begun {
            self.begun = true;
            out.extend_from_slice(&self.reader.header().to_bytes());
            return Ok(true);
        }
        let header = out.len();
        out.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
        let payload = out.len();
        while out.len() - payload < BLOCK_BYTES && self.reader.advance()? {
            put_frame(self.reader.key(), b"", out);
        }
        let raw = (out.len() - payload) as u32;
        if raw == 0 {
            out.truncate(header);
            return Ok(false);
        }
        self.checksum = block_checksum(self.checksum, raw, raw, &out[payload..]);
        let bytes = &mut out[header..payload];
        bytes[..4].copy_from_slice(&raw.to_le_bytes());
        bytes[4..8].copy_from_slice(&raw.to_le_bytes());
        bytes[8..].copy_from_slice(&self.checksum.to_le_bytes());
        Ok(true)
    }
}

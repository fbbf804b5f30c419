//! Segments whose pairs still lie in the input: only their order is held, 16 bytes for each pair.
//!
//! For sorts: a pair without a value whose key lies in a mapped file need not be copied to become a map output. A
//! merge on this worker reads the keys where they are; for other workers the very bytes that a segment in memory
//! would have are made as they are sent. Whoever has read such a segment to its end checks that the file is still
//! the one that the map read, as the map itself does; if not, the segment counts as damaged and the map runs
//! again, which then finds out.
//!
//! Not here: which pairs may stay in their file (`collect::sort`), and how many bytes of files may be relied on
//! (`task::TaskSettings::kept_in_files`).

use super::write::put_frame;
use super::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, HEADER_BYTES, SegmentError, SegmentHeader, SegmentMeta, WriteSetting,
    block_checksum,
};
use crate::budget::Reservation;
use crate::collect::Entry;
use crate::input::MappedFile;
use crate::prefetch::prefetch;
use std::ops::Range;
use std::sync::Arc;

/// Pairs read ahead of which their bytes are loaded.
const AHEAD: usize = 12;

/// The pairs of one map output, sorted by partition and key.
pub(crate) struct InFileOutput {
    file: Arc<MappedFile>,
    /// Where in the file places are counted from.
    start: usize,
    entries: Vec<Entry>,
    /// By partition number; `None` where there are no pairs.
    parts: Vec<Option<Part>>,
    /// Given back when the output goes: the entries' memory, and the bytes of the file that it relies on.
    _reservations: [Reservation; 2],
}

struct Part {
    entries: Range<usize>,
    header: SegmentHeader,
}

impl InFileOutput {
    /// An output of sorted entries, whose places count from `start` of `file`.
    pub fn new(
        setting: &WriteSetting,
        file: Arc<MappedFile>,
        start: usize,
        entries: Vec<Entry>,
        reservations: [Reservation; 2],
    ) -> Self {
        let mut parts: Vec<Option<Part>> = Vec::new();
        parts.resize_with(setting.partitions as usize, || None);
        let mut begin = 0;
        for run in entries.chunk_by(|a, b| a.partition() == b.partition()) {
            let partition = run[0].partition();
            let mut header = setting.header(partition);
            header.records = run.len() as u64;
            header.length = HEADER_BYTES as u64;
            let mut block = 0;
            for (number, entry) in run.iter().enumerate() {
                block += entry.framed_length();
                if BLOCK_BYTES <= block || number + 1 == run.len() {
                    header.length += (BLOCK_HEADER_BYTES + block) as u64;
                    header.block_max = header.block_max.max(block as u32);
                    block = 0;
                }
            }
            parts[partition as usize] = Some(Part { entries: begin..begin + run.len(), header });
            begin += run.len();
        }
        Self { file, start, entries, parts, _reservations: reservations }
    }

    /// Bytes and pairs of each partition, as if they lay one after another.
    pub fn segments(&self) -> Vec<SegmentMeta> {
        let mut offset = 0;
        let meta = |part: &Option<Part>| {
            let (length, records) =
                part.as_ref().map_or((0, 0), |part| (part.header.length, part.header.records));
            offset += length;
            SegmentMeta { offset: offset - length, length, records }
        };
        self.parts.iter().map(meta).collect()
    }

    fn bytes(&self) -> &[u8] {
        &self.file.bytes()[self.start..]
    }
}

impl std::fmt::Debug for InFileOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InFileOutput").field("pairs", &self.entries.len()).finish_non_exhaustive()
    }
}

/// One segment of such an output, never an empty one. Cloning shares it.
#[derive(Clone, Debug)]
pub struct InFileSegment {
    output: Arc<InFileOutput>,
    partition: u32,
}

impl InFileSegment {
    /// The segment of this partition; `None` if it has no pairs.
    pub(crate) fn of(output: &Arc<InFileOutput>, partition: u32) -> Option<Self> {
        output.parts.get(partition as usize)?.as_ref()?;
        Some(Self { output: output.clone(), partition })
    }

    fn part(&self) -> &Part {
        self.output.parts[self.partition as usize]
            .as_ref()
            .expect("a segment is made only where there are pairs")
    }

    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.part().header
    }

    /// Whether the file is still the one that the map read.
    ///
    /// # Errors
    /// [`SegmentError::Changed`].
    pub(crate) fn check(&self) -> Result<(), SegmentError> {
        let source = match self.output.file.verify_unchanged() {
            Ok(()) => return Ok(()),
            Err(source) => Box::new(source),
        };
        Err(SegmentError::Changed { id: self.header().id, source })
    }
}

/// Reads the pairs of such a segment where they are.
pub(crate) struct InFileReader {
    segment: InFileSegment,
    next: usize,
    end: usize,
    current: Entry,
}

impl InFileReader {
    pub fn new(segment: InFileSegment) -> Self {
        let Range { start, end } = segment.part().entries.clone();
        let current = segment.output.entries[start];
        Self { segment, next: start, end, current }
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
            prefetch(output.bytes(), later.place());
            prefetch(output.bytes(), later.place() + 64);
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

/// Makes the bytes of such a segment, as [`SegmentsWriter`](super::SegmentsWriter) would have written them.
pub struct InFileBytes {
    reader: InFileReader,
    begun: bool,
    checksum: u32,
}

impl InFileBytes {
    /// All bytes of this segment.
    #[must_use]
    pub fn new(segment: InFileSegment) -> Self {
        let checksum = segment.header().seed();
        Self { reader: InFileReader::new(segment), begun: false, checksum }
    }

    /// Appends the next bytes to `out`: the header, or a block; false after the last.
    ///
    /// # Errors
    /// A file that has changed since the map read it. What came before then means nothing.
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

//! Segments whose pairs still lie in the input: only their order is held, 16 bytes for each pair.
//!
//! For sorts: a pair without a value whose key lies in a mapped file need not be copied to become a map output. A
//! merge on this worker reads the keys where they are. A worker that sees the same files is sent the order alone and
//! maps the file itself; for others the very bytes that a segment in memory would have are made as they are sent.
//! Whoever has read such a segment to its end checks that the file is still the one that the map read, as the map
//! itself does. If not, the job fails for its input: a reduce that reads in place says so at once, and a worker that
//! serves does not have the output any more, so that the map runs again and says so.
//!
//! Not here: which pairs may stay in their file (`collect::sort`), and how many bytes of files may be relied on
//! (`task::TaskSettings::kept_in_files`).

use super::write::put_frame;
use super::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, Entry, HEADER_BYTES, INDEX_ENTRY_BYTES, OutputPrint, SegmentError,
    SegmentHeader, SegmentId, SegmentIndex, WriteSetting, block_checksum,
};
use crate::budget::Reservation;
use crate::input::{FilePlace, MappedFile};
use crate::memory::use_huge_pages;
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
    /// Those that have pairs, ascending by partition.
    parts: Vec<Part>,
    /// Given back when the output goes: the entries' memory, and the bytes of the file that it relies on. Who was sent
    /// the order relies on no more of the file than who sent it.
    _reservations: Vec<Reservation>,
}

/// Memory that a partition with pairs costs, bytes.
pub(crate) const PART_BYTES: usize = size_of::<Part>() + INDEX_ENTRY_BYTES;

struct Part {
    entries: Range<usize>,
    header: SegmentHeader,
}

impl InFileOutput {
    /// An output of sorted entries, whose places count from `start` of `file`. `held` is for the entries and what is
    /// noted of each partition, `relied_on` for the bytes of the file.
    pub fn new(
        setting: &WriteSetting,
        file: Arc<MappedFile>,
        start: usize,
        entries: Vec<Entry>,
        mut held: Reservation,
        relied_on: Reservation,
    ) -> Self {
        let mut parts: Vec<Part> = Vec::new();
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
            parts.push(Part { entries: begin..begin + run.len(), header });
            begin += run.len();
        }
        parts.shrink_to_fit();
        held.shrink_to(size_of_val(&entries[..]) + parts.len() * PART_BYTES);
        Self { file, start, entries, parts, _reservations: vec![held, relied_on] }
    }

    /// Where segments would lie if they lay one after another.
    pub fn index(&self, partitions: u32) -> SegmentIndex {
        let mut index = SegmentIndex::new(partitions);
        for Part { header, .. } in &self.parts {
            index.push(header.id.partition, header.length, header.records);
        }
        index.shrink_to_fit();
        index
    }

    fn bytes(&self) -> &[u8] {
        &self.file.bytes()[self.start..]
    }

    /// The fingerprint of its pairs.
    pub fn print(&self) -> OutputPrint {
        OutputPrint::of_places(self.entries.iter().map(|entry| (entry.partition(), entry.number())))
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
    /// Which of the output's parts.
    part: usize,
}

impl InFileSegment {
    /// The segment of this partition; `None` if it has no pairs.
    pub(crate) fn of(output: &Arc<InFileOutput>, partition: u32) -> Option<Self> {
        let part = output.parts.binary_search_by_key(&partition, |part| part.header.id.partition).ok()?;
        Some(Self { output: output.clone(), part })
    }

    /// The file, and where in it places are counted from.
    pub(crate) fn place(&self) -> (FilePlace, u64) {
        (self.output.file.place(), self.output.start as u64)
    }

    /// Bytes of the order as it is sent: the header, 16 bytes for each pair, and a checksum.
    pub(crate) fn order_bytes(&self) -> u64 {
        (HEADER_BYTES + CHECKSUM_BYTES) as u64 + self.header().records * size_of::<Entry>() as u64
    }

    /// Appends what is sent of the order from this pair on, about `bytes_max` of it, to `out`. Gives the next pair.
    /// Begin with pair 0 and checksum 0; the end is where no pair is left.
    pub(crate) fn put_order(
        &self,
        from: usize,
        checksum: &mut u32,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let begin = out.len();
        if from == 0 {
            out.extend_from_slice(&self.header().to_bytes());
        }
        let entries = &self.output.entries[self.part().entries.clone()];
        let until = entries.len().min(from + bytes_max / size_of::<Entry>());
        out.extend(entries[from..until].iter().flat_map(|entry| entry.to_bytes()));
        *checksum = crc32c::crc32c_append(*checksum, &out[begin..]);
        if until == entries.len() {
            out.extend_from_slice(&checksum.to_le_bytes());
        }
        until
    }

    /// A segment from an order that was sent, as far as it can be checked: it is that of `id`, its checksum is right,
    /// and all pairs lie in the file.
    ///
    /// # Errors
    /// [`SegmentError::Header`], [`SegmentError::Identity`], [`SegmentError::Block`].
    pub(crate) fn received(
        order: ReceivedOrder,
        id: SegmentId,
        file: Arc<MappedFile>,
        start: u64,
        reservation: Reservation,
    ) -> Result<Self, SegmentError> {
        let ReceivedOrder { head, entries, checksum, found } = order;
        let length = (head.len() + size_of_val(&entries[..])) as u64;
        let header = SegmentHeader::from_bytes(&head).ok_or(SegmentError::Header { length })?;
        if header.id != id {
            return Err(SegmentError::Identity { expected: id, found: header.id });
        }
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(file.bytes().len());
        let bytes = file.bytes().len() - start;
        let lies_there = |entry: &Entry| entry.partition() == id.partition && entry.end() <= bytes;
        let whole = checksum == found
            && header.records == entries.len() as u64
            && !entries.is_empty()
            && entries.iter().all(lies_there);
        if !whole {
            return Err(SegmentError::Block { id, offset: HEADER_BYTES as u64 });
        }
        let parts = vec![Part { entries: 0..entries.len(), header }];
        let output = InFileOutput { file, start, entries, parts, _reservations: vec![reservation] };
        Ok(Self { output: Arc::new(output), part: 0 })
    }

    fn part(&self) -> &Part {
        &self.output.parts[self.part]
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

/// Bytes of the checksum behind an order that is sent.
const CHECKSUM_BYTES: usize = 4;

/// An order that is being received.
pub(crate) struct ReceivedOrder {
    head: [u8; HEADER_BYTES],
    entries: Vec<Entry>,
    /// Of what has come.
    checksum: u32,
    /// Behind what has come.
    found: u32,
}

impl ReceivedOrder {
    /// Pairs of an order of so many bytes; `None` if there is none of that length.
    pub fn pairs(length: u64) -> Option<usize> {
        let entries = length.checked_sub((HEADER_BYTES + CHECKSUM_BYTES) as u64)?;
        let whole = entries.is_multiple_of(size_of::<Entry>() as u64);
        whole.then(|| usize::try_from(entries / size_of::<Entry>() as u64).ok()).flatten()
    }

    /// Takes the order in from slices that end anywhere.
    pub fn receive(pairs: usize) -> Receiving {
        let order =
            Self { head: [0; HEADER_BYTES], entries: Vec::with_capacity(pairs), checksum: 0, found: 0 };
        use_huge_pages(&order.entries);
        Receiving { order, pairs, part: Vec::with_capacity(HEADER_BYTES), begun: false }
    }
}

/// See [`ReceivedOrder::receive`].
pub(crate) struct Receiving {
    order: ReceivedOrder,
    pairs: usize,
    /// The beginning of the item that comes next.
    part: Vec<u8>,
    begun: bool,
}

impl Receiving {
    /// The next bytes of the order.
    pub fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.begun && self.part.is_empty() {
                bytes = self.take_whole_entries(bytes);
            }
            let size = match (self.begun, self.order.entries.len() < self.pairs) {
                (false, _) => HEADER_BYTES,
                (true, true) => size_of::<Entry>(),
                (true, false) => CHECKSUM_BYTES,
            };
            let (now, rest) = bytes.split_at(bytes.len().min(size - self.part.len()));
            self.part.extend_from_slice(now);
            bytes = rest;
            if self.part.len() == size {
                self.take_item();
            }
        }
    }

    fn take_whole_entries<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let missing = self.pairs - self.order.entries.len();
        let whole = missing.min(bytes.len() / size_of::<Entry>()) * size_of::<Entry>();
        let (now, rest) = bytes.split_at(whole);
        let (entries, _) = now.as_chunks();
        self.order.entries.extend(entries.iter().map(|entry| Entry::from_bytes(*entry)));
        self.order.checksum = crc32c::crc32c_append(self.order.checksum, now);
        rest
    }

    fn take_item(&mut self) {
        let part = std::mem::take(&mut self.part);
        if let Ok(checksum) = <[u8; CHECKSUM_BYTES]>::try_from(&part[..]) {
            self.order.found = u32::from_le_bytes(checksum);
            return;
        }
        self.order.checksum = crc32c::crc32c_append(self.order.checksum, &part);
        if let Ok(entry) = <[u8; size_of::<Entry>()]>::try_from(&part[..]) {
            self.order.entries.push(Entry::from_bytes(entry));
        } else if let Ok(head) = <[u8; HEADER_BYTES]>::try_from(&part[..]) {
            self.order.head = head;
            self.begun = true;
        }
    }

    /// What was received.
    pub fn finish(self) -> ReceivedOrder {
        self.order
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

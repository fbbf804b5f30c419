//! Sorting collector: short entries that are sorted in place, and the pairs that they refer to.
//!
//! A pair without a value whose key is in a mapped file stays there. Nothing is copied until the sorted run
//! is written, or not even then, if the whole map output may stay in the file. All other pairs are in an
//! arena, exactly as they will be stored in their segment. One collector holds pairs of one kind at a time,
//! so that positions ascend in the order of emission.
//!
//! If another program changes a mapped file in the meantime, the sort may panic; the attempt then fails, as it does
//! when the change is detected.

use super::combine::TableRoom;
use crate::attempt::{Progress, TaskFailure};
use crate::budget::Budget;
use crate::input::{Block, MappedFile};
use crate::memory::use_huge_pages;
use crate::prefetch::prefetch_range;
use crate::segment::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, FRAME_LENGTHS_BYTES_MAX, Fingerprint, HEADER_BYTES, INDEX_ENTRY_BYTES,
    InFileOutput, LENGTH_MAX, MapOutput, PAIR_BYTES_MAX, PART_BYTES, PREFIX_BYTES, Printing, SegmentsWriter,
    SortEntry, WriteError, WriteSetting, fingerprint_of_places, frame_at, framed_length, put_frame,
};
use std::sync::Arc;

/// Maximum bytes of a collector with any setting: positions in the arena have 32 bits.
const LIMIT_BYTES_MAX: usize = 2 << 30;
// A pair is added while the arena is below its limit, and moved pairs, each with its lengths, stay within it too.
const _: () = assert!(
    LIMIT_BYTES_MAX + PAIR_BYTES_MAX + FRAME_LENGTHS_BYTES_MAX <= u32::MAX as usize,
    "places in the arena have 32 bits"
);
/// Number of pairs whose bytes are prefetched during writing.
const AHEAD: usize = 12;
/// Pairs to be sorted by partition and key.
pub(crate) struct Sorting {
    entries: Vec<SortEntry>,
    arena: Vec<u8>,
    /// File of the pairs that are not in the arena; `None` if all are in the arena.
    file: Option<FilePart>,
    /// Pair that cannot join those in the file, and its partition: it is added after they are written.
    waiting: Option<(u32, Vec<u8>)>,
    /// Sums all pairs added to the arena, while their bytes are in the cache, and those written from their file.
    fingerprint: Printing,
    limit_bytes: usize,
    pair_bytes_max: usize,
}

/// Memory of a collector, without any pairs.
#[derive(Default)]
pub(crate) struct SortMemory {
    entries: Vec<SortEntry>,
    arena: Vec<u8>,
}

/// Mapped file, from its first collected block on.
struct FilePart {
    file: Arc<MappedFile>,
    start: usize,
    /// Bytes of the pairs as frames.
    framed_bytes: usize,
}

impl FilePart {
    fn bytes(&self) -> &[u8] {
        &self.file.bytes()[self.start..]
    }
}

impl Sorting {
    /// Creates a collector that is full when pairs and entries have `limit_bytes`, in the memory of an earlier one.
    pub fn new(limit_bytes: usize, memory: SortMemory) -> Self {
        let pair_bytes_max = super::pair_bytes_max(limit_bytes);
        let limit_bytes = limit_bytes.min(LIMIT_BYTES_MAX);
        let SortMemory { mut entries, mut arena } = memory;
        // After a reduction of the limit, the larger memory is not kept.
        if limit_bytes < entries.capacity() * size_of::<SortEntry>() + arena.capacity() {
            (entries, arena) = (Vec::new(), Vec::new());
        }
        let fingerprint = Printing::default();
        Self { entries, arena, file: None, waiting: None, fingerprint, limit_bytes, pair_bytes_max }
    }

    /// Returns the memory after all pairs are written.
    pub(crate) fn take_memory(&mut self) -> SortMemory {
        self.file = None;
        self.entries.clear();
        self.arena.clear();
        SortMemory { entries: std::mem::take(&mut self.entries), arena: std::mem::take(&mut self.arena) }
    }

    /// Starts the next block: pairs may stay in its file, if there are no others.
    pub(crate) fn start_block(&mut self, block: &Block<'_>) {
        let Some(mapping) = block.mapping else { return };
        if self.entries.is_empty() {
            let start = block.bytes.as_ptr() as usize - mapping.bytes().as_ptr() as usize;
            self.file = Some(FilePart { file: mapping.clone(), start, framed_bytes: 0 });
        }
    }

    /// Adds a pair. One pair is always accepted, up to the limit of a pair.
    ///
    /// # Errors
    /// A pair over that limit.
    #[inline]
    pub fn add(&mut self, partition: u32, key: &[u8], value: &[u8]) -> Result<TableRoom, WriteError> {
        if let Some(file) = &mut self.file {
            let bytes = file.bytes();
            let at = (key.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
            let fits = at < bytes.len()
                && key.len() <= bytes.len() - at
                && value.is_empty()
                && key.len() < LENGTH_MAX;
            if let (true, Ok(place)) = (fits, u32::try_from(at)) {
                let entry = SortEntry::new(partition, key, place);
                file.framed_bytes += entry.framed_length();
                self.push(entry);
                return Ok(self.room());
            }
            if self.limit_bytes < self.bytes_in_arena() {
                return self.wait(partition, key, value);
            }
            self.move_to_arena();
        }
        self.check_length(key, value)?;
        let entry = SortEntry::new(partition, key, self.place_next());
        self.push(entry);
        self.put(partition, key, value);
        Ok(self.room())
    }

    /// Adds the bytes of a pair to the arena.
    #[inline]
    fn put(&mut self, partition: u32, key: &[u8], value: &[u8]) {
        let start = self.arena.len();
        let needed = key.len() + value.len() + FRAME_LENGTHS_BYTES_MAX;
        if self.arena.capacity() - start < needed {
            self.arena.reserve(needed);
        }
        put_frame(key, value, &mut self.arena);
        self.fingerprint.add(partition, &self.arena[start..]);
    }

    #[inline]
    fn push(&mut self, entry: SortEntry) {
        if self.entries.len() == self.entries.capacity() {
            grow(&mut self.entries);
        }
        self.entries.push(entry);
    }

    #[inline]
    fn check_length(&self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        let (length, limit) = (key.len().saturating_add(value.len()), self.pair_bytes_max);
        if limit < length { Err(WriteError::PairTooLong { length, limit }) } else { Ok(()) }
    }

    /// Returns the position of the next pair in the arena.
    #[inline]
    fn place_next(&self) -> u32 {
        u32::try_from(self.arena.len()).expect("below its limit, which keeps places in 32 bits")
    }

    #[inline]
    fn room(&self) -> TableRoom {
        let held = self.arena.len() + self.entries.len() * size_of::<SortEntry>();
        if held < self.limit_bytes { TableRoom::Left } else { TableRoom::Full }
    }

    /// Returns the bytes of all pairs and entries if none of them stayed in a file.
    fn bytes_in_arena(&self) -> usize {
        let framed = self.file.as_ref().map_or(0, |file| file.framed_bytes);
        framed + self.arena.len() + self.entries.len() * size_of::<SortEntry>()
    }

    /// Keeps a pair of the other kind until those in the file, which are too many to be copied, are written.
    #[cold]
    #[inline(never)]
    fn wait(&mut self, partition: u32, key: &[u8], value: &[u8]) -> Result<TableRoom, WriteError> {
        self.check_length(key, value)?;
        let mut frame = Vec::with_capacity(framed_length(key, value));
        put_frame(key, value, &mut frame);
        self.waiting = Some((partition, frame));
        Ok(TableRoom::Full)
    }

    /// Copies pairs that stayed in their file into the arena, where a pair of the other kind can join them.
    #[cold]
    #[inline(never)]
    fn move_to_arena(&mut self) {
        let Some(file) = self.file.take() else { return };
        let mut entries = std::mem::take(&mut self.entries);
        self.arena.reserve_exact(file.framed_bytes);
        for entry in &mut entries {
            let key = entry.key_in(file.bytes());
            *entry = SortEntry::new(entry.partition(), key, self.place_next());
            self.put(entry.partition(), key, b"");
        }
        self.entries = entries;
    }

    /// Adds the kept pair as the first of the next ones.
    fn take_waiting(&mut self) {
        let Some((partition, frame)) = self.waiting.take() else { return };
        self.file = None;
        let entry = SortEntry::new(partition, key_at(&frame, 0), self.place_next());
        self.entries.push(entry);
        self.arena.extend_from_slice(&frame);
        self.fingerprint.add(partition, &frame);
    }

    /// True if there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns an upper bound of the bytes of all pairs as segments of `partitions` partitions.
    pub(crate) fn segment_bytes(&self, partitions: u32) -> usize {
        let framed = self.arena.len() + self.file.as_ref().map_or(0, |file| file.framed_bytes);
        let segments = self.entries.len().min(partitions as usize);
        let blocks = framed / BLOCK_BYTES + segments;
        // Two headers are requested with each pair before it is known that they are not needed.
        framed + (segments + 1) * (HEADER_BYTES + INDEX_ENTRY_BYTES) + (blocks + 1) * BLOCK_HEADER_BYTES
    }

    /// Sorts pairs that are all in their file and leaves them there, if `budget` grants the memory of their entries and
    /// `kept_in_files` the bytes of the file. Otherwise they stay unchanged.
    pub(crate) fn leave_in_file(
        &mut self,
        setting: &WriteSetting,
        budget: &Budget,
        kept_in_files: &Budget,
    ) -> Option<MapOutput> {
        let file = self.file.as_ref().filter(|_| !self.entries.is_empty())?;
        let parts_max = self.entries.len().min(setting.partitions as usize);
        let entries =
            budget.try_reserve(self.entries.len() * size_of::<SortEntry>() + parts_max * PART_BYTES)?;
        let relied_on = kept_in_files.try_reserve(file.framed_bytes)?;
        let (file, start) = (file.file.clone(), file.start);
        let mut sorted = std::mem::take(&mut self.entries);
        let bytes = &file.bytes()[start..];
        sort_entries(&mut sorted, |entry| entry.key_in(bytes));
        sorted.shrink_to_fit();
        self.file = None;
        let output = InFileOutput::new(setting, file, start, sorted, entries, relied_on);
        Some(MapOutput::in_file(output, setting.partitions))
    }

    /// Returns the fingerprint of all drained pairs.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint.of_frames()
    }

    /// Writes all pairs sorted by partition, key and position, and removes them. A kept pair is then added.
    pub fn drain(
        &mut self,
        writer: &mut SegmentsWriter,
        progress: &Arc<Progress>,
    ) -> Result<(), TaskFailure> {
        let _engine = progress.engine();
        if let Some(file) = &self.file {
            let mut frame = Vec::new();
            for entry in &self.entries {
                frame.clear();
                put_frame(entry.key_in(file.bytes()), b"", &mut frame);
                self.fingerprint.add(entry.partition(), &frame);
            }
        }
        self.write(writer, progress)
    }

    /// As [`drain`](Self::drain), for a collector that was never drained: the pairs are a whole map output. Returns its
    /// fingerprint.
    pub(crate) fn drain_whole(
        &mut self,
        writer: &mut SegmentsWriter,
        progress: &Arc<Progress>,
    ) -> Result<Fingerprint, TaskFailure> {
        // For pairs in their file, their positions are as good as their bytes.
        let places = self.file.is_some().then(|| {
            fingerprint_of_places(self.entries.iter().map(|entry| (entry.partition(), entry.number())))
        });
        self.write(writer, progress)?;
        Ok(places.unwrap_or_else(|| self.fingerprint()))
    }

    /// Writes all pairs in order, and removes them.
    fn write(&mut self, writer: &mut SegmentsWriter, progress: &Arc<Progress>) -> Result<(), TaskFailure> {
        let _engine = progress.engine();
        let pairs = self.entries.len().max(1);
        match &mut self.file {
            Some(file) => {
                let mean_bytes = std::mem::take(&mut file.framed_bytes) / pairs;
                let bytes = file.bytes();
                sort_entries(&mut self.entries, |entry| entry.key_in(bytes));
                write_entries(&self.entries, (bytes, mean_bytes), progress, |entry| {
                    writer.pair(entry.partition(), entry.key_in(bytes), b"")
                })?;
                // The bytes were read again, after their block was checked.
                file.file.verify_unchanged()?;
            }
            None => {
                let arena = &self.arena;
                sort_entries(&mut self.entries, |entry| key_at(arena, entry.place()));
                write_entries(&self.entries, (arena, arena.len() / pairs), progress, |entry| {
                    writer.frame(entry.partition(), frame_bytes(arena, entry.place()))
                })?;
            }
        }
        self.entries.clear();
        self.arena.clear();
        self.take_waiting();
        Ok(())
    }
}

/// Makes room for more entries, in large pages.
#[cold]
#[inline(never)]
fn grow(entries: &mut Vec<SortEntry>) {
    entries.reserve(1);
    use_huge_pages(entries);
}

/// Sorts by partition, key and order of emission. Positions ascend in that order, so the sort is effectively stable.
fn sort_entries<'a>(entries: &mut [SortEntry], key: impl Fn(SortEntry) -> &'a [u8]) {
    // As numbers first, which needs no branches and reads no keys.
    entries.sort_unstable();
    // Longer keys with equal first bytes are still in the order of lengths.
    for run in entries.chunk_by_mut(|a, b| a.rank() == b.rank()) {
        if 1 < run.len() && run.iter().any(|entry| PREFIX_BYTES < entry.length()) {
            run.sort_unstable_by(|a, b| key(*a).cmp(key(*b)).then_with(|| a.place().cmp(&b.place())));
        }
    }
}

/// Passes entries to `write` one by one while the bytes of later ones, this many per pair, are prefetched.
fn write_entries(
    entries: &[SortEntry],
    (bytes, mean_bytes): (&[u8], usize),
    progress: &Progress,
    mut write: impl FnMut(SortEntry) -> Result<(), WriteError>,
) -> Result<(), TaskFailure> {
    for (number, entry) in entries.iter().enumerate() {
        if let Some(later) = entries.get(number + AHEAD) {
            prefetch_range(bytes, later.place(), mean_bytes);
        }
        write(*entry)?;
        progress.step()?;
    }
    Ok(())
}

#[inline]
fn key_at(arena: &[u8], place: usize) -> &[u8] {
    let (key, _) = frame_at(arena, place).expect("a place is where a frame was put");
    &arena[key]
}

#[inline]
fn frame_bytes(arena: &[u8], place: usize) -> &[u8] {
    let (_, value) = frame_at(arena, place).expect("a place is where a frame was put");
    &arena[place..value.end]
}

#[cfg(test)]
mod tests;

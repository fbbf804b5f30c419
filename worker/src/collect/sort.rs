//! The sorting collector: short entries that are sorted in their place, and the pairs they stand for.
//!
//! A pair without a value whose key lies in a mapped file stays there: nothing is copied until the sorted run is
//! written. All other pairs lie in an arena, exactly as they will lie in their segment. One collector holds
//! pairs of one kind at a time, so that places ascend in the order of emission.
//!
//! A mapped file that another program changes meanwhile may make the sort panic; the attempt fails then, as it
//! does when the change is noticed.
//!
//! Not here: what happens when the collector is full (`collect`).

use super::combine::Room;
use super::hash::key_prefix;
use crate::prefetch::prefetch;
use crate::record::Block;
use crate::segment::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, HEADER_BYTES, PAIR_BYTES_MAX, SegmentsWriter, WriteError, frame_at,
    framed_length, put_frame,
};
use memmap2::Mmap;
use std::sync::Arc;

/// Bytes a collector may hold whatever the setting: places in the arena have 32 bits.
const LIMIT_BYTES_MAX: usize = 2 << 30;
/// Pairs written ahead of which their bytes are loaded.
const AHEAD: usize = 12;
/// Longest key that can stay in its file, and most partitions then: both share 32 bits of an entry.
const LENGTH_BITS: u32 = 16;

/// A pair, ready to be compared: most comparisons end with the prefix.
#[derive(Clone, Copy)]
struct Entry {
    prefix: u64,
    /// The partition; for a pair in a file, above the length of its key.
    detail: u32,
    place: Place,
}

impl Entry {
    #[inline]
    fn partition<const IN_FILE: bool>(&self) -> u32 {
        if IN_FILE { self.detail >> LENGTH_BITS } else { self.detail }
    }

    /// The key of a pair that lies in `file`.
    #[inline]
    fn key_in<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let length = self.detail as usize & ((1 << LENGTH_BITS) - 1);
        &file[self.place.0 as usize..][..length]
    }
}

/// Where a pair lies: in the arena, or behind the first block of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u32);

/// Pairs to be sorted by partition and key.
pub(crate) struct Sorting {
    entries: Vec<Entry>,
    arena: Vec<u8>,
    /// Where the pairs lie that are not in the arena; `None` if they are all there.
    file: Option<FilePart>,
    limit_bytes: usize,
}

/// The memory of a collector, without any pairs in it.
#[derive(Default)]
pub(crate) struct SortMemory {
    entries: Vec<Entry>,
    arena: Vec<u8>,
}

/// A mapped file from the first block on that was seen of it.
struct FilePart {
    mapping: Arc<Mmap>,
    start: usize,
    /// Bytes of the pairs as frames.
    framed_bytes: usize,
}

impl FilePart {
    fn bytes(&self) -> &[u8] {
        &self.mapping[self.start..]
    }
}

impl Sorting {
    /// A collector that is full when pairs and entries have `limit_bytes`, in the memory of an earlier one.
    pub fn new(limit_bytes: usize, memory: SortMemory) -> Self {
        let limit_bytes = limit_bytes.min(LIMIT_BYTES_MAX);
        let SortMemory { mut entries, mut arena } = memory;
        // A limit that has become smaller since does not keep the memory of before.
        if limit_bytes < entries.capacity() * size_of::<Entry>() + arena.capacity() {
            (entries, arena) = (Vec::new(), Vec::new());
        }
        Self { entries, arena, file: None, limit_bytes }
    }

    /// The memory, when all pairs are written.
    pub fn take_memory(&mut self) -> SortMemory {
        self.file = None;
        self.entries.clear();
        self.arena.clear();
        SortMemory { entries: std::mem::take(&mut self.entries), arena: std::mem::take(&mut self.arena) }
    }

    /// Says which block is read next: pairs may stay in its file, if there are no others.
    pub fn begin_block(&mut self, block: &Block<'_>) {
        let Some(mapping) = block.mapping else { return };
        if self.entries.is_empty() {
            let start = block.bytes.as_ptr() as usize - mapping.as_ptr() as usize;
            self.file = Some(FilePart { mapping: mapping.clone(), start, framed_bytes: 0 });
        }
    }

    /// Adds a pair. One pair is always taken, whatever its size up to the limit of a pair.
    #[inline]
    pub fn add(&mut self, partition: u32, key: &[u8], value: &[u8]) -> Result<Room, WriteError> {
        if let Some(file) = &mut self.file {
            let at = (key.as_ptr() as usize).wrapping_sub(file.mapping.as_ptr() as usize + file.start);
            let size = (file.mapping.len() - file.start).min(u32::MAX as usize);
            let fits = at < size
                && key.len() <= size - at
                && value.is_empty()
                && (key.len() | partition as usize) >> LENGTH_BITS == 0;
            if fits {
                file.framed_bytes += framed_length(key, b"");
                let detail = partition << LENGTH_BITS | key.len() as u32;
                self.entries.push(Entry { prefix: key_prefix(key), detail, place: Place(at as u32) });
                return Ok(self.room());
            }
            self.move_to_arena();
        }
        let length = key.len().saturating_add(value.len());
        if PAIR_BYTES_MAX < length {
            return Err(WriteError::PairTooLong { length });
        }
        let place = Place(self.arena.len() as u32);
        self.entries.push(Entry { prefix: key_prefix(key), detail: partition, place });
        put_frame(key, value, &mut self.arena);
        Ok(self.room())
    }

    #[inline]
    fn room(&self) -> Room {
        let held = self.arena.len() + self.entries.len() * size_of::<Entry>();
        if held < self.limit_bytes { Room::Left } else { Room::Full }
    }

    /// Brings pairs that stayed in their file into the arena, where a pair of the other kind can join them.
    #[cold]
    #[inline(never)]
    fn move_to_arena(&mut self) {
        let Some(file) = self.file.take() else { return };
        for entry in &mut self.entries {
            let key = entry.key_in(file.bytes());
            *entry = Entry {
                detail: entry.partition::<true>(),
                place: Place(self.arena.len() as u32),
                prefix: entry.prefix,
            };
            put_frame(key, b"", &mut self.arena);
        }
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Pairs held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No fewer bytes than all pairs will have as segments of `partitions` partitions.
    pub fn segment_bytes(&self, partitions: u32) -> usize {
        let framed = self.arena.len() + self.file.as_ref().map_or(0, |file| file.framed_bytes);
        let segments = self.entries.len().min(partitions as usize);
        let blocks = framed / BLOCK_BYTES + segments;
        // Two headers are asked for with each pair before it is known that they are not needed.
        framed + (segments + 1) * HEADER_BYTES + (blocks + 1) * BLOCK_HEADER_BYTES
    }

    /// Writes all pairs sorted by partition, key and position, and forgets them.
    pub fn drain(&mut self, writer: &mut SegmentsWriter) -> Result<(), WriteError> {
        match &mut self.file {
            Some(file) => {
                file.framed_bytes = 0;
                let bytes = file.bytes();
                sort_entries::<true>(&mut self.entries, |entry| entry.key_in(bytes));
                write_entries(&self.entries, bytes, |entry| {
                    writer.pair(entry.partition::<true>(), entry.key_in(bytes), b"")
                })?;
            }
            None => {
                let arena = &self.arena;
                sort_entries::<false>(&mut self.entries, |entry| key_at(arena, entry.place));
                write_entries(&self.entries, arena, |entry| {
                    writer.frame(entry.partition::<false>(), frame_bytes(arena, entry.place))
                })?;
            }
        }
        self.entries.clear();
        self.arena.clear();
        Ok(())
    }
}

/// Sorts by partition, key and order of emission. Places ascend in that order, so the sort is as good as stable.
fn sort_entries<'a, const IN_FILE: bool>(entries: &mut [Entry], key: impl Fn(&Entry) -> &'a [u8]) {
    entries.sort_unstable_by(|a, b| {
        (a.partition::<IN_FILE>(), a.prefix)
            .cmp(&(b.partition::<IN_FILE>(), b.prefix))
            .then_with(|| key(a).cmp(key(b)))
            .then_with(|| a.place.cmp(&b.place))
    });
}

/// Hands entries to `write` one by one while the bytes of later ones are loaded.
fn write_entries(
    entries: &[Entry],
    bytes: &[u8],
    mut write: impl FnMut(&Entry) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    for (number, entry) in entries.iter().enumerate() {
        if let Some(later) = entries.get(number + AHEAD) {
            prefetch(bytes, later.place.0 as usize);
            prefetch(bytes, later.place.0 as usize + 64);
        }
        write(entry)?;
    }
    Ok(())
}

#[inline]
fn key_at(arena: &[u8], place: Place) -> &[u8] {
    let (key, _) = frame_at(arena, place.0 as usize).expect("a place is where a frame was put");
    &arena[key]
}

#[inline]
fn frame_bytes(arena: &[u8], place: Place) -> &[u8] {
    let from = place.0 as usize;
    let (_, value) = frame_at(arena, from).expect("a place is where a frame was put");
    &arena[from..value.end]
}

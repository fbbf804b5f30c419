//! The sorting collector: pairs in one arena, and short entries that are sorted in their place.
//!
//! A pair lies in the arena exactly as it will lie in its segment, so writing a sorted run is one copy per pair.
//! Not here: what happens when the arena is full (`collect`).

use super::combine::Room;
use super::hash::key_prefix;
use super::prefetch::prefetch;
use crate::segment::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, HEADER_BYTES, PAIR_BYTES_MAX, SegmentsWriter, WriteError, frame_at,
    put_frame,
};

/// Bytes a collector may hold whatever the setting: places in the arena have 32 bits.
const LIMIT_BYTES_MAX: usize = 2 << 30;
/// Pairs written ahead of which the arena is loaded.
const AHEAD: usize = 12;

/// A pair, ready to be compared: most comparisons end with the prefix.
#[derive(Clone, Copy)]
struct Entry {
    prefix: u64,
    partition: u32,
    place: Place,
}

/// Where a pair lies in the arena.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u32);

/// Pairs to be sorted by partition and key.
pub(crate) struct Sorting {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    limit_bytes: usize,
}

impl Sorting {
    /// A collector that is full when pairs and entries have `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self { arena: Vec::new(), entries: Vec::new(), limit_bytes: limit_bytes.min(LIMIT_BYTES_MAX) }
    }

    /// Adds a pair. One pair is always taken, whatever its size up to the limit of a pair.
    #[inline]
    pub fn add(&mut self, partition: u32, key: &[u8], value: &[u8]) -> Result<Room, WriteError> {
        let length = key.len().saturating_add(value.len());
        if PAIR_BYTES_MAX < length {
            return Err(WriteError::PairTooLong { length });
        }
        self.entries.push(Entry {
            prefix: key_prefix(key),
            partition,
            place: Place(self.arena.len() as u32),
        });
        put_frame(key, value, &mut self.arena);
        let held = self.arena.len() + self.entries.len() * size_of::<Entry>();
        Ok(if held < self.limit_bytes { Room::Left } else { Room::Full })
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// No fewer bytes than all pairs will have as segments of `partitions` partitions.
    pub fn segment_bytes(&self, partitions: u32) -> usize {
        let segments = self.entries.len().min(partitions as usize);
        let blocks = self.arena.len() / BLOCK_BYTES + segments;
        // Two headers are asked for with each pair before it is known that they are not needed.
        self.arena.len() + (segments + 1) * HEADER_BYTES + (blocks + 1) * BLOCK_HEADER_BYTES
    }

    /// Writes all pairs sorted by partition, key and position, and forgets them.
    pub fn drain(&mut self, writer: &mut SegmentsWriter) -> Result<(), WriteError> {
        let arena = &self.arena;
        // Places ascend in the order of emission, so the sort is as good as stable.
        self.entries.sort_unstable_by(|a, b| {
            (a.partition, a.prefix)
                .cmp(&(b.partition, b.prefix))
                .then_with(|| key_at(arena, a.place).cmp(key_at(arena, b.place)))
                .then_with(|| a.place.cmp(&b.place))
        });
        for (number, entry) in self.entries.iter().enumerate() {
            if let Some(later) = self.entries.get(number + AHEAD) {
                prefetch(arena, later.place.0 as usize);
                prefetch(arena, later.place.0 as usize + 64);
            }
            writer.frame(entry.partition, frame_bytes(arena, entry.place))?;
        }
        self.entries.clear();
        self.arena.clear();
        Ok(())
    }
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

//! Pair as sixteen comparable bytes: the unit of sorting, and of sending pairs that are in a file.

use crate::key::hash::key_prefix;

/// Maximum partitions of a job: an entry has 20 bits for its own.
pub(crate) const PARTITIONS_MAX: u32 = 1 << 20;
/// Length stored in the entry for keys of at least this length.
pub(crate) const LENGTH_MAX: usize = 0xFFF;
/// Maximum length of keys that are completely in the prefix.
pub(crate) const PREFIX_BYTES: usize = 8;

/// Pair as one comparable number: from the top 20 bits of partition, 64 of the key's first bytes, 12 of its length, and
/// 32 of the pair's position. So one comparison sorts by partition and key as far as the first bytes tell, then by
/// length, which is right if they are the whole key, then by position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortEntry(u128);

impl SortEntry {
    #[inline]
    pub fn new(partition: u32, key: &[u8], place: u32) -> Self {
        debug_assert!(partition < PARTITIONS_MAX, "partition {partition} has more than 20 bits");
        let (partition, prefix) = (u128::from(partition), u128::from(key_prefix(key)));
        let length = key.len().min(LENGTH_MAX) as u128;
        Self(partition << 108 | prefix << 44 | length << 32 | u128::from(place))
    }

    #[inline]
    pub fn partition(self) -> u32 {
        (self.0 >> 108) as u32
    }

    /// Returns the whole number.
    #[inline]
    pub fn number(self) -> u128 {
        self.0
    }

    /// Returns the bytes for sending.
    #[inline]
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Creates an entry from received bytes.
    #[inline]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// Returns the end of the key of a pair in a file.
    #[inline]
    pub fn end(self) -> usize {
        self.place() + self.length()
    }

    /// Returns the key's first bytes, as [`key_prefix`].
    #[inline]
    pub fn prefix(self) -> u64 {
        (self.0 >> 44) as u64
    }

    /// Returns the bytes of a pair in a file as it would be stored in a block: both lengths and the key.
    pub(crate) fn framed_length(self) -> usize {
        let length = self.length();
        length + if length < 0x80 { 2 } else { 3 }
    }

    /// Returns partition and prefix.
    #[inline]
    pub fn rank(self) -> u128 {
        self.0 >> 44
    }

    /// Returns the bytes of the key, or [`LENGTH_MAX`] if there are more.
    #[inline]
    pub fn length(self) -> usize {
        (self.0 >> 32) as usize & LENGTH_MAX
    }

    /// Returns the position of the pair: in the arena, or after the first block of the file.
    #[inline]
    pub fn place(self) -> usize {
        self.0 as u32 as usize
    }

    /// Returns the key of a pair that is in `file`.
    #[inline]
    pub(crate) fn key_in(self, file: &[u8]) -> &[u8] {
        &file[self.place()..][..self.length()]
    }
}

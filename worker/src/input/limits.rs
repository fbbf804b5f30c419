//! Limits of reading an input: bytes of a record, a block and decompressed data, and number of bad records.

/// Limits of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    /// Maximum bytes of a record without its line end; at least 1.
    pub record_max: u64,
    /// Maximum bytes of a record that must be held in memory, because its file is compressed, remote or
    /// cannot be mapped.
    pub buffered_record_max: u64,
    /// Maximum bytes of one item that a task holds whole, such as the keys of a ranking.
    pub held_max: u64,
    /// Maximum bytes of a block, unless one record needs more.
    pub block_bytes: usize,
    /// Maximum ratio of decompressed to compressed bytes.
    pub expansion_max: u32,
    /// Number of decompressed bytes of a file that are allowed at any ratio.
    pub expansion_floor: u64,
    /// Maximum number of bad records that the whole job may skip.
    pub bad_records_max: u64,
}

impl Default for InputLimits {
    /// Returns the defaults: no bad record, records up to 64 MiB, blocks of 1 MiB (they stay in the
    /// second-level cache), a ratio of 200 after 64 MiB.
    fn default() -> Self {
        Self {
            record_max: 64 << 20,
            buffered_record_max: u64::MAX,
            held_max: u64::MAX,
            block_bytes: 1 << 20,
            expansion_max: 200,
            expansion_floor: 64 << 20,
            bad_records_max: 0,
        }
    }
}

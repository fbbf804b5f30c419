//! Limits of reading.

/// Limits of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    /// Bytes of a record without its line end; at least 1.
    pub record_max: u64,
    /// The same of a record that has to be held in memory, because its file is compressed, far away or cannot be
    /// mapped.
    pub buffered_record_max: u64,
    /// Bytes of one item that a task holds whole, such as the keys of a ranking.
    pub held_max: u64,
    /// Bytes of a block, unless one record needs more.
    pub block_bytes: usize,
    /// Bytes that may come out of a compressed file for each that goes in.
    pub expansion_max: u32,
    /// Bytes that may come out of such a file whatever the ratio.
    pub expansion_floor: u64,
    /// Bad records that may be left out of the whole job.
    pub bad_records_max: u64,
}

impl Default for InputLimits {
    /// No bad record, records up to 64 MiB, blocks of 1 MiB (they stay in the second-level cache), 200 times after 64 MiB.
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

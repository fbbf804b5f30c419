//! Records of 100 bytes: 10 random printable bytes as key, a space, the record's number in 20 digits, a space, 67
//! letters that depend on the number, a line break. They are both fixed-length records and lines.

use super::chunks::{ChunkStream, Draws};
use super::error::GenerateError;

/// Bytes of a record, with its line break.
pub(super) const RECORD_BYTES: u64 = 100;
const RECORDS_PER_CHUNK: u64 = 10_000;
const KEY_BYTES: usize = 10;
const FILLER_BYTES: usize = 67;
/// Number of printable ASCII characters, from the space on, of which keys consist.
const PRINTABLE: u64 = 95;

pub(super) fn count(size: u64) -> Result<u64, GenerateError> {
    match size / RECORD_BYTES {
        0 => Err(GenerateError::Size { size, size_min: RECORD_BYTES }),
        records => Ok(records),
    }
}

pub(super) fn chunk_count(records: u64) -> u64 {
    records.div_ceil(RECORDS_PER_CHUNK)
}

/// Chunk `index` of a file of `records` records.
pub(super) fn chunk(seed: u64, index: u64, records: u64) -> Vec<u8> {
    let mut draws = Draws::new(seed, ChunkStream::Records, index);
    let first = index * RECORDS_PER_CHUNK;
    let end = records.min(first + RECORDS_PER_CHUNK);
    let mut out = Vec::with_capacity(((end - first) * RECORD_BYTES) as usize);
    for number in first..end {
        for _ in 0..KEY_BYTES / 5 {
            let mut digits = draws.below(PRINTABLE.pow(5));
            for _ in 0..5 {
                out.push(b' ' + (digits % PRINTABLE) as u8);
                digits /= PRINTABLE;
            }
        }
        out.push(b' ');
        out.extend_from_slice(format!("{number:020}").as_bytes());
        out.push(b' ');
        out.resize(out.len() + FILLER_BYTES, b'A' + (number % 26) as u8);
        out.push(b'\n');
    }
    out
}

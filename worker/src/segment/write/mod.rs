//! Writes the segments of one map output: into memory while the budget grants it, then into a spill file.

mod setting;

use super::{
    BLOCK_BYTES, BLOCK_HEADER_BYTES, COMPRESS_BYTES_MAX, HEADER_BYTES, INDEX_ENTRY_BYTES, MapOutput,
    OutputPlace, PAIR_BYTES_MAX, Printing, SegmentHeader, SegmentIndex, SpillCompression, SpillWriter,
    block_checksum,
};
use crate::budget::{Budget, Reservation};
use bytes::Bytes;
use setting::{KeptBytes, create};
use std::sync::Arc;

pub use setting::{WriteError, WriteSetting};

/// Bytes buffered before they are written to a spill file.
const WRITE_BYTES: usize = 1 << 20;

/// Writes pairs into segments. Partitions must be in ascending order.
///
/// Invariant: `buffer` holds the bytes of the output from `flushed` on, complete except for the headers of the open
/// segment and block, which are patched at their end.
pub struct SegmentsWriter {
    setting: WriteSetting,
    buffer: Vec<u8>,
    flushed: u64,
    /// Size that `buffer` and `index` together may reach before more memory is requested.
    room: usize,
    place: Writing,
    index: SegmentIndex,
    open: Option<OpenSegment>,
    compressed: Vec<u8>,
    /// Sums the written keys; only of complete outputs of combined pairs.
    fingerprint: Option<Printing>,
}

enum Writing {
    Memory(Reservation),
    File(SpillWriter),
}

struct OpenSegment {
    header: SegmentHeader,
    /// Offset of its start in the output.
    start: u64,
    /// Offset of its open block in `buffer`.
    block: usize,
    checksum: u32,
}

impl SegmentsWriter {
    /// Keeps the output in memory while `budget` grants it. `bytes_hint` is requested at once.
    ///
    /// # Errors
    /// A spill file that cannot be created, if the budget rejects the first request.
    pub fn in_memory(setting: WriteSetting, budget: &Budget, bytes_hint: usize) -> Result<Self, WriteError> {
        match budget.try_reserve(bytes_hint) {
            Some(reservation) => Ok(Self::in_reserved(setting, reservation)),
            None => Self::on_disk(setting),
        }
    }

    /// Keeps the output in memory that is already reserved, and in more while its budget grants it.
    pub(crate) fn in_reserved(setting: WriteSetting, reservation: Reservation) -> Self {
        let bytes = reservation.bytes();
        Self::new(setting, Writing::Memory(reservation), Vec::with_capacity(bytes), bytes)
    }

    /// Writes the output to a spill file.
    ///
    /// # Errors
    /// A spill file that cannot be created.
    pub fn on_disk(setting: WriteSetting) -> Result<Self, WriteError> {
        let file = create(&setting)?;
        let buffer = Vec::with_capacity(WRITE_BYTES + BLOCK_BYTES);
        Ok(Self::new(setting, Writing::File(file), buffer, usize::MAX))
    }

    fn new(setting: WriteSetting, place: Writing, buffer: Vec<u8>, room: usize) -> Self {
        let index = SegmentIndex::new(setting.partitions);
        Self {
            setting,
            buffer,
            flushed: 0,
            room,
            place,
            index,
            open: None,
            compressed: Vec::new(),
            fingerprint: None,
        }
    }

    /// Computes the fingerprint of the keys as they are written.
    #[must_use]
    pub(crate) fn printing_keys(self) -> Self {
        Self { fingerprint: Some(Printing::default()), ..self }
    }

    /// Adds a pair.
    ///
    /// # Errors
    /// A pair over the limit, or a disk error.
    #[inline]
    pub fn pair(&mut self, partition: u32, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        let length = key.len().saturating_add(value.len());
        if PAIR_BYTES_MAX < length {
            return Err(WriteError::PairTooLong { length, limit: PAIR_BYTES_MAX });
        }
        self.prepare(partition, framed_length(key, value))?;
        put_frame(key, value, &mut self.buffer);
        if let Some(fingerprint) = &mut self.fingerprint {
            fingerprint.add(partition, key);
        }
        self.added()
    }

    /// Adds a pair that is already framed by [`put_frame`].
    #[inline]
    pub(crate) fn frame(&mut self, partition: u32, frame: &[u8]) -> Result<(), WriteError> {
        self.prepare(partition, frame.len())?;
        self.buffer.extend_from_slice(frame);
        self.added()
    }

    #[inline]
    fn prepare(&mut self, partition: u32, length: usize) -> Result<(), WriteError> {
        // A new segment may need two headers and an entry in the index in addition to the pair.
        let needed = length + HEADER_BYTES + BLOCK_HEADER_BYTES + INDEX_ENTRY_BYTES;
        if self.room < self.held() + needed {
            self.make_room(needed)?;
        }
        match &self.open {
            Some(open) if open.header.id.partition == partition => Ok(()),
            _ => self.start_partition(partition),
        }
    }

    /// Number of bytes of buffer and index.
    #[inline]
    fn held(&self) -> usize {
        self.buffer.len() + self.index.memory_bytes()
    }

    #[inline]
    fn added(&mut self) -> Result<(), WriteError> {
        let open = self.open.as_mut().expect("a segment is open: `prepare` has opened it");
        open.header.records += 1;
        if BLOCK_BYTES <= self.buffer.len() - open.block - BLOCK_HEADER_BYTES {
            self.end_block(true)?;
        }
        Ok(())
    }

    #[cold]
    fn start_partition(&mut self, partition: u32) -> Result<(), WriteError> {
        self.end()?;
        assert!(self.index.may_start(partition), "partition {partition} comes after a later one");
        let header = self.setting.header(partition);
        let start = self.flushed + self.buffer.len() as u64;
        self.buffer.extend_from_slice(&[0; HEADER_BYTES]);
        self.open = Some(OpenSegment { header, start, block: self.buffer.len(), checksum: header.seed() });
        self.buffer.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
        Ok(())
    }

    /// Ends the open block; with `more`, opens another one. An empty block is dropped.
    fn end_block(&mut self, more: bool) -> Result<(), WriteError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let payload = open.block + BLOCK_HEADER_BYTES;
        let raw = (self.buffer.len() - payload) as u32;
        if raw == 0 {
            self.buffer.truncate(open.block);
        } else {
            let compresses = self.setting.compression == SpillCompression::Lz4
                && self.buffer.len() - payload <= COMPRESS_BYTES_MAX;
            if compresses && matches!(self.place, Writing::File(_)) {
                compress(&mut self.buffer, payload, &mut self.compressed);
            }
            let stored = (self.buffer.len() - payload) as u32;
            open.checksum = block_checksum(open.checksum, stored, raw, &self.buffer[payload..]);
            let header = &mut self.buffer[open.block..payload];
            header[..4].copy_from_slice(&stored.to_le_bytes());
            header[4..8].copy_from_slice(&raw.to_le_bytes());
            header[8..].copy_from_slice(&open.checksum.to_le_bytes());
            open.header.block_max = open.header.block_max.max(raw);
            open.block = self.buffer.len();
        }
        if WRITE_BYTES <= self.buffer.len() {
            self.flush()?;
        }
        if more {
            if self.room < self.held() + BLOCK_HEADER_BYTES {
                self.make_room(BLOCK_HEADER_BYTES)?;
            }
            self.buffer.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
        }
        Ok(())
    }

    /// Ends the open segment, whose header is only known now.
    fn end(&mut self) -> Result<(), WriteError> {
        self.end_block(false)?;
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.header.length = self.flushed + self.buffer.len() as u64 - open.start;
        let SegmentHeader { id, records, length, .. } = open.header;
        self.index.push(id.partition, length, records);
        let bytes = open.header.to_bytes();
        match open.start.checked_sub(self.flushed) {
            Some(at) => self.buffer[at as usize..at as usize + HEADER_BYTES].copy_from_slice(&bytes),
            None => {
                let Writing::File(file) = &mut self.place else { unreachable!("memory is never flushed") };
                file.rewrite(open.start, &bytes)
                    .map_err(|source| WriteError::Spill { path: file.path().to_owned(), source })?;
            }
        }
        Ok(())
    }

    /// Writes the buffer up to the open block to the file, if there is one.
    fn flush(&mut self) -> Result<(), WriteError> {
        let Writing::File(file) = &mut self.place else { return Ok(()) };
        let end = self.open.as_ref().map_or(self.buffer.len(), |open| open.block);
        file.write(&self.buffer[..end])
            .map_err(|source| WriteError::Spill { path: file.path().to_owned(), source })?;
        self.buffer.drain(..end);
        self.flushed += end as u64;
        if let Some(open) = &mut self.open {
            open.block = 0;
        }
        Ok(())
    }

    /// Requests `more` bytes from the budget; if rejected, moves the data to a spill file.
    #[cold]
    fn make_room(&mut self, more: usize) -> Result<(), WriteError> {
        let held = self.held();
        let Writing::Memory(reservation) = &mut self.place else { return Ok(()) };
        let needed = held + more - self.room;
        // In steps of half the size, so that a growing buffer is copied a bounded number of times; if that is rejected,
        // just the needed bytes.
        for step in [needed.max(self.room / 2), needed] {
            if reservation.try_grow(step) {
                self.room += step;
                self.buffer.reserve_exact(self.room - held);
                return Ok(());
            }
        }
        self.place = Writing::File(create(&self.setting)?);
        self.room = usize::MAX;
        self.flush()
    }

    /// Ends the output.
    ///
    /// # Errors
    /// A disk error.
    pub fn finish(mut self) -> Result<MapOutput, WriteError> {
        self.end()?;
        self.flush()?;
        self.index.shrink_to_fit();
        let place = match self.place {
            Writing::Memory(mut reservation) => {
                if self.buffer.len() + self.buffer.len() / 8 < self.buffer.capacity() {
                    self.buffer.shrink_to_fit();
                }
                reservation.shrink_to(self.buffer.capacity() + self.index.memory_bytes());
                OutputPlace::Memory(Bytes::from_owner(KeptBytes {
                    bytes: self.buffer,
                    _reservation: reservation,
                }))
            }
            Writing::File(file) => {
                let path = file.path().to_owned();
                let file = file.finish().map_err(|source| WriteError::Spill { path, source })?;
                OutputPlace::File(Arc::new(file))
            }
        };
        let fingerprint = self.fingerprint.as_ref().map(Printing::of_keys).unwrap_or_default();
        Ok(MapOutput { index: self.index, fingerprint, place })
    }
}

/// Compresses the buffer from `payload` on in place, unless the result is not smaller.
fn compress(buffer: &mut Vec<u8>, payload: usize, scratch: &mut Vec<u8>) {
    let raw = &buffer[payload..];
    scratch.resize(lz4_flex::block::get_maximum_output_size(raw.len()), 0);
    if let Ok(size) = lz4_flex::block::compress_into(raw, scratch)
        && size < raw.len()
    {
        buffer.truncate(payload);
        buffer.extend_from_slice(&scratch[..size]);
    }
}

/// Returns the bytes of a pair in a block.
#[must_use]
pub(crate) fn framed_length(key: &[u8], value: &[u8]) -> usize {
    varint_length(key.len()) + varint_length(value.len()) + key.len() + value.len()
}

fn varint_length(number: usize) -> usize {
    if number < 0x80 { 1 } else { (number | 1).ilog2() as usize / 7 + 1 }
}

/// Appends a pair as stored in a block: both lengths, key, value.
#[inline]
pub(crate) fn put_frame(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    put_varint(key.len(), out);
    put_varint(value.len(), out);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

#[inline]
fn put_varint(mut number: usize, out: &mut Vec<u8>) {
    while 0x80 <= number {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

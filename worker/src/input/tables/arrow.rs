//! The batches of a file of Arrow's IPC format, one after another.
//!
//! The crate that decodes believes the lengths that a file says, and makes room for them: so the file is taken apart here,
//! and each length is compared with what is there before a batch is handed on. A batch is decoded as a whole.
//! Invariant: what is asked of the decoder takes no more than the file has, or [`Expansion`] allows of it.

use super::batches::{Batches, DecodeError, Decoded};
use super::bytes::TableBytes;
use super::expansion::Expansion;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, Footer, MessageHeader, RecordBatch, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use std::sync::Arc;

/// Length of the footer and the mark behind it, at the end of a file.
const TRAILER_BYTES: usize = 10;

/// The mark and the length before a message, and the length alone, as files of old have it.
const PREFIX_BYTES: usize = 8;
const OLD_PREFIX_BYTES: usize = 4;

/// The mark itself.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Length that is written before each compressed buffer.
const UNPACKED_BYTES: usize = 8;

/// Rows of a column whatever the bytes it has: columns of nulls have none.
const ROWS_FREE_MAX: u64 = i32::MAX as u64;

/// A file that is open.
pub(super) struct ArrowFile {
    bytes: TableBytes,
    expansion: Expansion,
    schema: SchemaRef,
    footer: Bytes,
}

struct ArrowBatches {
    bytes: TableBytes,
    expansion: Expansion,
    decoder: FileDecoder,
    blocks: std::vec::IntoIter<Block>,
    /// Rows before the next batch.
    rows: u64,
}

impl ArrowFile {
    pub fn open(bytes: TableBytes, expansion: Expansion) -> Result<Self, DecodeError> {
        let size = bytes.size();
        let end = size.checked_sub(TRAILER_BYTES as u64).ok_or("it is shorter than any")?;
        let mut trailer = [0; TRAILER_BYTES];
        trailer.copy_from_slice(&bytes.range(end, TRAILER_BYTES)?);
        let length = read_footer_length(trailer)?;
        let start = end.checked_sub(length as u64).ok_or("its footer is said to be longer than the file")?;
        let footer = bytes.range(start, length)?;
        let parsed = footer_of(&footer)?;
        let schema = parsed.schema().ok_or("its footer has no schema")?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err("its bytes are in the order of another kind of machine".into());
        }
        let schema = Arc::new(try_fb_to_schema(schema)?);
        Ok(Self { bytes, expansion, schema, footer })
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The batches, with these columns of them.
    pub fn batches(self, columns: Vec<usize>) -> Result<Batches, DecodeError> {
        let Self { bytes, expansion, schema, footer } = self;
        let footer = footer_of(&footer)?;
        let mut decoder = FileDecoder::new(schema, footer.version());
        let mut kept = 0_u64;
        for block in footer.dictionaries().into_iter().flatten() {
            let (data, unpacked) = checked_block(&bytes, &expansion, block)?;
            kept = kept.saturating_add(unpacked);
            expansion.hold(bytes.size(), kept)?;
            decoder.read_dictionary(block, &data)?;
        }
        let blocks: Vec<Block> = footer.recordBatches().into_iter().flatten().copied().collect();
        let decoder = decoder.with_projection(columns);
        Ok(Box::new(ArrowBatches { bytes, expansion, decoder, blocks: blocks.into_iter(), rows: 0 }))
    }
}

impl Iterator for ArrowBatches {
    type Item = Result<Decoded, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let block = self.blocks.next()?;
            let read = checked_block(&self.bytes, &self.expansion, &block)
                .and_then(|(data, _)| Ok(self.decoder.read_record_batch(&block, &data)?));
            match read {
                Ok(Some(batch)) => {
                    let first = self.rows;
                    self.rows = first.saturating_add(batch.num_rows() as u64);
                    return Some(Ok(Decoded { batch, first }));
                }
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn footer_of(bytes: &[u8]) -> Result<Footer<'_>, DecodeError> {
    root_as_footer(bytes).map_err(|error| format!("its footer is none: {error}").into())
}

/// The bytes of a block whose lengths can be believed, and how many its buffers make.
fn checked_block(
    bytes: &TableBytes,
    expansion: &Expansion,
    block: &Block,
) -> Result<(Buffer, u64), DecodeError> {
    let place = || {
        let offset = u64::try_from(block.offset()).ok()?;
        let metadata = usize::try_from(block.metaDataLength()).ok()?;
        let whole = usize::try_from(block.bodyLength()).ok()?.checked_add(metadata)?;
        Some((offset, metadata, whole))
    };
    let (offset, metadata, whole) = place().ok_or("a block of it has a length below zero")?;
    let data = bytes.range(offset, whole)?;
    let (head, body) = data.split_at(metadata);
    let prefix = if head.starts_with(&CONTINUATION) { PREFIX_BYTES } else { OLD_PREFIX_BYTES };
    let message = head.get(prefix..).ok_or("a block of it is shorter than any message")?;
    let message = root_as_message(message).map_err(|error| format!("a message of it is none: {error}"))?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|batch| batch.data()),
        // The decoder says what it makes of it.
        _ => None,
    };
    let unpacked = batch.map_or(Ok(0), |batch| checked_batch(expansion, &batch, body))?;
    Ok((Buffer::from(data), unpacked))
}

/// Looks at the lengths of a batch; answers the bytes that its buffers make.
fn checked_batch(expansion: &Expansion, batch: &RecordBatch<'_>, body: &[u8]) -> Result<u64, DecodeError> {
    let is_packed = batch.compression().is_some();
    let mut unpacked = 0_u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let bytes = usize::try_from(buffer.offset())
            .ok()
            .zip(usize::try_from(buffer.length()).ok())
            .and_then(|(offset, length)| body.get(offset..offset.checked_add(length)?));
        let bytes = bytes.ok_or("a buffer of it is said to lie outside of its block")?;
        let length = match bytes.first_chunk::<UNPACKED_BYTES>() {
            // Less than nothing: it is not compressed.
            Some(said) if is_packed => u64::try_from(i64::from_le_bytes(*said)).unwrap_or(bytes.len() as u64),
            _ => bytes.len() as u64,
        };
        unpacked = unpacked.saturating_add(length);
    }
    expansion.hold(body.len() as u64, unpacked)?;
    // The least that a value takes is a bit.
    let rows_max = ROWS_FREE_MAX.max(unpacked.saturating_mul(8));
    let mut counts = vec![(batch.length(), 0)];
    counts.extend(batch.nodes().into_iter().flatten().map(|node| (node.length(), node.null_count())));
    for (rows, nulls) in counts {
        let is_sound = 0 <= nulls && nulls <= rows && u64::try_from(rows).is_ok_and(|rows| rows <= rows_max);
        if !is_sound {
            return Err(format!("a column of it is said to have {rows} rows and {nulls} nulls").into());
        }
    }
    Ok(unpacked)
}

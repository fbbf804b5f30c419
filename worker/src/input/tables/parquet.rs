//! The batches of a Parquet file's row groups, one after another, each of a bounded number of bytes.
//!
//! A row group has a reader of its own, whose batches have as many rows as fit by what its columns and dictionaries say;
//! where its pages turn out to have larger values, it begins again with fewer ([`WatchedPages`]).
//! A row is decoded as a whole, and so is a page: that is what a batch takes at least.

use super::batches::{Batches, DecodeError, Decoded, UnreadCodec};
use super::bytes::TableBytes;
use super::expansion::Expansion;
use super::pages::WatchedPages;
use super::thrift::schema_is_sound;
use crate::input::Piece;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection, RowSelector,
};
use parquet::basic::{Compression, LogicalType};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use std::sync::Arc;

/// Length of the footer and the mark behind it, at the end of a file.
const TRAILER_BYTES: usize = 8;

/// The mark of a file that is not encrypted.
const MARK: &[u8] = b"PAR1";

/// Rows that are decoded at once, at most.
const BATCH_ROWS: u64 = 1024;

/// A file that is open.
pub(super) struct ParquetFile {
    bytes: TableBytes,
    expansion: Expansion,
    about: ArrowReaderMetadata,
}

/// The row groups of a piece.
#[derive(Default)]
pub(super) struct Groups {
    /// Their numbers, each with the rows before it in the file.
    numbers: Vec<(usize, u64)>,
    /// Bytes of all their columns.
    pub(super) packed: u64,
}

struct ParquetBatches {
    file: ParquetFile,
    mask: ProjectionMask,
    groups: std::vec::IntoIter<(usize, u64)>,
    reading: Option<Reading>,
}

/// A row group that is being read.
struct Reading {
    number: usize,
    /// Rows of the file before it.
    first: u64,
    /// Rows that it is said to have.
    rows: u64,
    /// Rows of it that have been handed on.
    done: usize,
    pages: WatchedPages,
    reader: ParquetRecordBatchReader,
}

impl ParquetFile {
    pub fn open(bytes: TableBytes, expansion: Expansion) -> Result<Self, DecodeError> {
        let end = bytes.size().checked_sub(TRAILER_BYTES as u64).ok_or("it is shorter than any")?;
        let trailer = bytes.range(end, TRAILER_BYTES)?;
        let (length, mark) = trailer.split_first_chunk().ok_or("it is shorter than any")?;
        if mark != MARK {
            return Err("it does not end in the mark of a Parquet file that is not encrypted".into());
        }
        let length = u32::from_le_bytes(*length);
        let start = end.checked_sub(length.into()).ok_or("its footer is said to be longer than the file")?;
        let footer = bytes.range(start, length as usize)?;
        // The crate would make room for as many columns as a group says to have.
        if schema_is_sound(&footer) != Some(true) {
            return Err("its footer has no schema that can be read".into());
        }
        let footer = ParquetMetaDataReader::decode_metadata(&footer)?;
        check_groups(&footer, start)?;
        let about = ArrowReaderMetadata::try_new(Arc::new(footer), ArrowReaderOptions::new())?;
        Ok(Self { bytes, expansion, about })
    }

    pub fn schema(&self) -> &SchemaRef {
        self.about.schema()
    }

    /// Whether the values of a column are UUIDs.
    pub fn is_uuid(&self, column: usize) -> bool {
        let about = self.about.parquet_schema().root_schema().get_fields().get(column);
        about.is_some_and(|about| about.get_basic_info().logical_type_ref() == Some(&LogicalType::Uuid))
    }

    /// The row groups that begin in a piece.
    pub fn groups(&self, piece: &Piece) -> Groups {
        let (mut groups, mut rows) = (Groups::default(), 0_u64);
        for (number, group) in self.about.metadata().row_groups().iter().enumerate() {
            if (piece.offset..piece.end()).contains(&begins(group)) {
                groups.numbers.push((number, rows));
                let packed = group.columns().iter().map(|column| column.byte_range().1);
                groups.packed = packed.fold(groups.packed, u64::saturating_add);
            }
            rows = rows.saturating_add(group.num_rows().max(0).cast_unsigned());
        }
        groups.packed = groups.packed.min(self.bytes.size());
        groups
    }

    /// The batches of row groups, with these columns of them, in the file's order.
    pub fn batches(self, groups: Groups, columns: &[usize]) -> Batches {
        let mask = ProjectionMask::roots(self.about.parquet_schema(), columns.iter().copied());
        let groups = groups.numbers.into_iter();
        Box::new(ParquetBatches { file: self, mask, groups, reading: None })
    }
}

/// Sees to it that each row group belongs to one piece, and that no row is said to be there that no group has, or the other
/// way round. `end` is where the data of the file ends.
fn check_groups(footer: &ParquetMetaData, end: u64) -> Result<(), DecodeError> {
    let (mut places, mut rows) = (Vec::new(), 0_u64);
    for group in footer.row_groups() {
        let group_rows = u64::try_from(group.num_rows()).ok();
        let sum = group_rows.and_then(|group| rows.checked_add(group));
        rows = sum.ok_or("a row group of it is said to have less than no rows")?;
        // Of one without rows nothing needs to lie anywhere.
        if 0 < group.num_rows() && 0 < group.num_columns() {
            places.push((begins(group), ends(group)));
        }
    }
    // They may be listed in any order.
    places.sort_unstable();
    let next = places.iter().skip(1).map(|(begins, _)| *begins).chain([end]);
    for ((begins, ends), next) in places.iter().zip(next) {
        if end <= *begins || next < *ends {
            return Err(format!("a row group of it is said to lie from byte {begins} to {ends}").into());
        }
    }
    let said = footer.file_metadata().num_rows();
    if u64::try_from(said) != Ok(rows) {
        return Err(format!("it is said to have {said} rows, and its row groups {rows}").into());
    }
    Ok(())
}

/// The name of a compression that is not unpacked here.
fn unread_codec(codec: Compression) -> Option<&'static str> {
    match codec {
        Compression::LZO => Some("LZO"),
        Compression::BROTLI(_) => Some("Brotli"),
        _ => None,
    }
}

/// Where the bytes of a row group end.
fn ends(group: &RowGroupMetaData) -> u64 {
    let ends = group.columns().iter().map(|column| {
        let (begins, length) = column.byte_range();
        begins.saturating_add(length)
    });
    ends.max().unwrap_or(0)
}

/// Where the bytes of a row group begin; one without columns has none, and belongs to the first piece.
fn begins(group: &RowGroupMetaData) -> u64 {
    group.columns().iter().map(|column| column.byte_range().0).min().unwrap_or(0)
}

impl Groups {
    /// Rows of the file before the first of them.
    pub fn first(&self) -> u64 {
        self.numbers.first().map_or(0, |(_, rows)| *rows)
    }
}

impl ParquetBatches {
    /// Reads a row group behind so many rows of it, so many at once.
    fn open(&self, number: usize, first: u64, done: usize, rows_max: u64) -> Result<Reading, DecodeError> {
        let ParquetFile { bytes, expansion, about } = &self.file;
        let group = about.metadata().row_group(number);
        let read = (0..group.num_columns()).filter(|column| self.mask.leaf_included(*column));
        if let Some(name) = read.clone().find_map(|column| unread_codec(group.column(column).compression())) {
            return Err(UnreadCodec(name).into());
        }
        let pages = WatchedPages::new(bytes.clone(), expansion.clone(), group, read)?;
        let rows = pages.set_rows(rows_max);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages.clone(), about.clone())
            .with_row_groups(vec![number])
            .with_projection(self.mask.clone())
            .with_batch_size(usize::try_from(rows)?);
        let builder = match usize::try_from(group.num_rows())?.saturating_sub(done) {
            _ if done == 0 => builder,
            left => {
                let selected = vec![RowSelector::skip(done), RowSelector::select(left)];
                builder.with_row_selection(RowSelection::from(selected))
            }
        };
        let rows = u64::try_from(group.num_rows())?;
        Ok(Reading { number, first, rows, done, pages, reader: builder.build()? })
    }

    fn next_batch(&mut self) -> Result<Option<Decoded>, DecodeError> {
        loop {
            let mut reading = match self.reading.take() {
                Some(reading) => reading,
                None => {
                    let Some((number, first)) = self.groups.next() else { return Ok(None) };
                    self.open(number, first, 0, BATCH_ROWS)?
                }
            };
            match reading.reader.next() {
                None if reading.done as u64 == reading.rows => {}
                None => {
                    return Err(format!(
                        "a row group is said to have {} rows, and has {}",
                        reading.rows, reading.done
                    )
                    .into());
                }
                Some(Ok(batch)) => {
                    let first = reading.first.saturating_add(reading.done as u64);
                    reading.done += batch.num_rows();
                    self.reading = Some(reading);
                    return Ok(Some(Decoded { batch, first }));
                }
                Some(Err(error)) => {
                    let Reading { number, first, done, pages, .. } = reading;
                    let fewer = pages.take_fewer().ok_or(error)?;
                    self.reading = Some(self.open(number, first, done, fewer)?);
                }
            }
        }
    }
}

impl Iterator for ParquetBatches {
    type Item = Result<Decoded, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::metadata::{ColumnChunkMetaData, FileMetaData};
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    /// The footer of a file with so many rows, of groups with so many each whose bytes lie from there to there.
    fn footer(rows: i64, groups: &[(i64, i64, i64)]) -> ParquetMetaData {
        let schema = Arc::new(parse_message_type("message m { required int32 a; }").unwrap());
        let schema = Arc::new(SchemaDescriptor::new(schema));
        let group = |&(rows, begins, ends): &(i64, i64, i64)| {
            let column = ColumnChunkMetaData::builder(schema.column(0))
                .set_data_page_offset(begins)
                .set_total_compressed_size(ends - begins);
            let column = column.build().unwrap();
            let group = RowGroupMetaData::builder(schema.clone()).set_num_rows(rows);
            group.set_column_metadata(vec![column]).build().unwrap()
        };
        let file = FileMetaData::new(2, rows, None, None, schema.clone(), None);
        ParquetMetaData::new(file, groups.iter().map(group).collect())
    }

    #[test]
    fn groups_are_sound_in_any_order_and_empty_ones_wherever_they_are_said_to_be() {
        let sound: [&[(i64, i64, i64)]; 3] = [
            &[(3, 4, 40), (0, 0, 0), (3, 40, 90)],
            &[(3, 40, 90), (3, 4, 40)],
            &[(6, 4, 100), (0, 200, 300)],
        ];
        for groups in sound {
            assert!(check_groups(&footer(6, groups), 100).is_ok(), "{groups:?}");
        }
    }

    #[test]
    fn groups_are_damage_that_lie_in_each_other_or_behind_the_data_or_have_other_rows() {
        let damaged: [&[(i64, i64, i64)]; 6] = [
            &[(3, 4, 41), (3, 40, 90)],
            &[(3, 4, 40), (3, 20, 90)],
            &[(3, 4, 40), (3, 100, 101)],
            &[(3, 4, 40), (3, 40, 101)],
            &[(3, 4, 40), (2, 40, 90)],
            &[(9, 4, 40), (-3, 40, 90)],
        ];
        for groups in damaged {
            assert!(check_groups(&footer(6, groups), 100).is_err(), "{groups:?}");
        }
    }
}

//! Batches of the row groups of a Parquet file that start in a piece.

use crate::batches::{Batches, TableDecodeError};
use crate::bytes::TableBytes;
use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use ::parquet::basic::LogicalType;
use ::parquet::file::metadata::RowGroupMetaData;
use arrow_schema::SchemaRef;
use gristmill_worker::input::Piece;

/// Rows of a batch, and its maximum average bytes, unless a single row has more.
const BATCH_ROWS: i64 = 1024;
const BATCH_BYTES: i64 = 8 << 20;

/// Open Parquet file.
pub(crate) struct ParquetFile {
    bytes: TableBytes,
    about: ArrowReaderMetadata,
}

impl ParquetFile {
    pub fn open(bytes: TableBytes) -> Result<Self, TableDecodeError> {
        let about = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new())?;
        Ok(Self { bytes, about })
    }

    pub fn schema(&self) -> &SchemaRef {
        self.about.schema()
    }

    /// True if the values of a column are UUIDs.
    pub fn is_uuid(&self, column: usize) -> bool {
        let about = self.about.parquet_schema().root_schema().get_fields().get(column);
        about.is_some_and(|about| about.get_basic_info().logical_type_ref() == Some(&LogicalType::Uuid))
    }

    /// Returns the batches of a piece with these of its columns, in the file's order, and the number of
    /// earlier rows of the file.
    pub fn batches(self, piece: &Piece, columns: &[usize]) -> Result<(Batches, u64), TableDecodeError> {
        let groups = self.about.metadata().row_groups();
        let is_own = |group: &RowGroupMetaData| (piece.offset..piece.end()).contains(&begins(group));
        let own: Vec<usize> = (0..groups.len()).filter(|number| is_own(&groups[*number])).collect();
        let before = groups.iter().take(own.first().copied().unwrap_or(0)).map(RowGroupMetaData::num_rows);
        let before = before.sum::<i64>().max(0).cast_unsigned();
        let row_bytes =
            |number: &usize| groups[*number].total_byte_size() / groups[*number].num_rows().max(1);
        let row_bytes = own.iter().map(row_bytes).max().unwrap_or(0).max(1);
        let mask = ProjectionMask::roots(self.about.parquet_schema(), columns.iter().copied());
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes, self.about.clone())
            .with_row_groups(own)
            .with_projection(mask)
            .with_batch_size((BATCH_BYTES / row_bytes).clamp(1, BATCH_ROWS) as usize)
            .build()?;
        Ok((Box::new(reader), before))
    }
}

/// Returns the offset of the first byte of a row group. One without columns has none, and belongs to the
/// first piece.
fn begins(group: &RowGroupMetaData) -> u64 {
    group.columns().iter().map(|column| column.byte_range().0).min().unwrap_or(0)
}

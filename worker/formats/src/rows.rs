//! The rows of a table as bytes that come one after another.
//!
//! Of a Parquet file a piece has the row groups that begin in it; an Arrow file is one piece. Rows are decoded a batch at a
//! time. The crates that decode believe the lengths in a file: one that claims too much costs the process that reads it,
//! which [`gristmill_worker::memory_watch`] ends, and the attempt is charged for it.

use crate::batches::{Batches, TableDecodeError};
use crate::bytes::{TableBytes, TableReader};
use crate::cell::{Cells, as_written};
use crate::parquet::ParquetFile;
use arrow_array::ArrayRef;
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, Schema};
use gristmill_worker::input::{
    Buffered, ByteSource, FilePath, Fill, InputError, Piece, RecordFormat, Table, TableKind, Window,
};
use gristmill_worker::text::write_csv_field;
use memchr::memchr2;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes assigned to each earlier row of the file in the offset of a row's text. Rows in other pieces are
/// not decoded, so their length is unknown, but later rows must have larger offsets. It is the default
/// limit of a record.
const ROW_SPAN: u64 = 64 << 20;

/// Name of the extension type of UUID columns in Arrow files.
const ARROW_UUID: &str = "arrow.uuid";

/// Batch that is being written.
struct RowBatch {
    /// Columns in the order in which they are written.
    columns: Vec<ArrayRef>,
    rows: usize,
    /// First row that is not written.
    from: usize,
}

/// Opens the rows of a piece as text, and says where that begins in the file.
///
/// # Errors
/// A file that is none of its kind, a column that it does not have, and what keeps it from being read.
pub(crate) fn open(
    piece: &Piece,
    table: &Table,
    format: RecordFormat,
    file: Box<dyn ByteSource>,
) -> Result<(Box<dyn Window>, u64), InputError> {
    let rows = TableRows::open(piece, table, format, file)?;
    let first = rows.first;
    Ok((Box::new(Buffered::new(rows, first)), first))
}

/// Rows of a piece.
struct TableRows {
    name: FilePath,
    kind: TableKind,
    bytes: TableBytes,
    batches: Batches,
    layout: RowText,
    /// File offset assigned to the text of its first row.
    first: u64,
    /// Number of rows of the file before the batch.
    rows_before: u64,
    /// Index in a batch of each column to write, in writing order.
    order: Vec<usize>,
    /// True for each column whose values are UUIDs.
    uuids: Vec<bool>,
    /// Names of the columns to read.
    names: Vec<String>,
    /// True if the names are to be written first.
    header: bool,
    batch: Option<RowBatch>,
}

impl TableRows {
    fn open(
        piece: &Piece,
        table: &Table,
        format: RecordFormat,
        file: Box<dyn ByteSource>,
    ) -> Result<Self, InputError> {
        let bytes = TableBytes::new(file, piece.stamp.size);
        let failed = |source| failed(&piece.name, table.kind, &bytes, source);
        let opened = guarded(|| match table.kind {
            TableKind::Parquet => parquet_rows(piece, table, bytes.clone()),
            TableKind::Arrow => arrow_rows(piece, table, bytes.clone()),
        });
        let Opened { names, order, uuids, rows_before, batches } = opened.map_err(failed)?;
        let header = matches!(format, RecordFormat::Csv { .. }) && piece.offset == 0;
        let layout = match format {
            RecordFormat::Csv { delimiter, .. } => RowText::Csv { delimiter },
            _ if order.len() == 1 => RowText::Text,
            _ => RowText::Tabs,
        };
        let (name, kind) = (piece.name.clone(), table.kind);
        let first = rows_before.saturating_mul(ROW_SPAN);
        let batch = None;
        Ok(Self {
            name,
            kind,
            bytes,
            batches,
            layout,
            first,
            rows_before,
            order,
            uuids,
            names,
            header,
            batch,
        })
    }

    fn failed(&self, source: TableDecodeError) -> InputError {
        failed(&self.name, self.kind, &self.bytes, source)
    }

    fn next_batch(&mut self) -> Result<Option<RowBatch>, TableDecodeError> {
        let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
        let columns: Result<_, ArrowError> =
            self.order.iter().map(|&column| as_written(batch.column(column))).collect();
        Ok(Some(RowBatch { columns: columns?, rows: batch.num_rows(), from: 0 }))
    }

    /// Writes rows of a batch until there is enough text; returns the first row that is not written.
    fn write(&self, batch: &RowBatch, out: &mut Vec<u8>, enough: usize) -> Result<usize, TableDecodeError> {
        let cells: Result<Vec<Cells<'_>>, ArrowError> = batch
            .columns
            .iter()
            .zip(&self.uuids)
            .map(|(column, is_uuid)| Cells::new(column.as_ref(), *is_uuid))
            .collect();
        let cells = cells?;
        let (mut row, mut scratch) = (batch.from, String::new());
        while row < batch.rows && out.len() < enough {
            for (place, column) in cells.iter().enumerate() {
                let put = |text: &[u8]| self.layout.field(place, cells.len(), text, out);
                column.with(row, &mut scratch, put).map_err(|source| InputError::NoText {
                    path: self.name.clone(),
                    column: self.names[place].clone(),
                    row: self.rows_before.saturating_add(row as u64).saturating_add(1),
                    source: source.into(),
                })?;
            }
            out.push(b'\n');
            row += 1;
        }
        Ok(row)
    }
}

impl Fill for TableRows {
    fn fill(&mut self, buffer: &mut Vec<u8>, wanted: usize) -> Result<bool, InputError> {
        if std::mem::take(&mut self.header) {
            for (place, name) in self.names.iter().enumerate() {
                self.layout.field(place, self.names.len(), name.as_bytes(), buffer);
            }
            buffer.push(b'\n');
            return Ok(true);
        }
        let enough = buffer.len().saturating_add(wanted);
        while buffer.len() < enough {
            let Some(mut batch) = self.batch.take() else {
                self.batch = guarded(|| self.next_batch()).map_err(|source| self.failed(source))?;
                if self.batch.is_none() {
                    return Ok(false);
                }
                continue;
            };
            batch.from =
                guarded(|| self.write(&batch, buffer, enough)).map_err(|source| self.failed(source))?;
            if batch.from < batch.rows {
                self.batch = Some(batch);
            } else {
                self.rows_before = self.rows_before.saturating_add(batch.rows as u64);
            }
        }
        Ok(true)
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        self.bytes.verify_unchanged()
    }
}

/// Runs code of the crates that decode. They panic on some damaged files, which is converted to an error
/// of the file.
fn guarded<T>(work: impl FnOnce() -> Result<T, TableDecodeError>) -> Result<T, TableDecodeError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("its decoder panicked".into()))
}

/// Format of fields.
enum RowText {
    Csv {
        delimiter: u8,
    },
    Tabs,
    /// The only column, unchanged.
    Text,
}

impl RowText {
    fn field(&self, place: usize, columns: usize, text: &[u8], out: &mut Vec<u8>) {
        match *self {
            Self::Text => out.extend_from_slice(text),
            Self::Tabs => {
                if 0 < place {
                    out.push(b'\t');
                }
                let mut rest = text;
                while let Some(at) =
                    memchr2(b'\\', b'\t', rest).into_iter().chain(memchr2(b'\n', b'\r', rest)).min()
                {
                    out.extend_from_slice(&rest[..at]);
                    out.extend_from_slice(match rest[at] {
                        b'\t' => b"\\t",
                        b'\n' => b"\\n",
                        b'\r' => b"\\r",
                        _ => b"\\\\",
                    });
                    rest = &rest[at + 1..];
                }
                out.extend_from_slice(rest);
            }
            Self::Csv { delimiter } => {
                if 0 < place {
                    out.push(delimiter);
                }
                if text.is_empty() && columns == 1 {
                    // A blank line would not be a row.
                    out.extend_from_slice(b"\"\"");
                } else {
                    write_csv_field(out, text, delimiter);
                }
            }
        }
    }
}

struct Opened {
    /// Names of the columns to read.
    names: Vec<String>,
    /// Their indices in a batch.
    order: Vec<usize>,
    /// True for each column whose values are UUIDs.
    uuids: Vec<bool>,
    /// Number of rows of the file before those of the piece.
    rows_before: u64,
    batches: Batches,
}

fn parquet_rows(piece: &Piece, table: &Table, bytes: TableBytes) -> Result<Opened, TableDecodeError> {
    let file = ParquetFile::open(bytes)?;
    let wanted = columns(piece, table, file.schema())?;
    let (names, order) = placed(file.schema(), &wanted);
    let uuids = wanted.iter().map(|column| file.is_uuid(*column)).collect();
    let (batches, rows_before) = file.batches(piece, &in_file_order(&wanted))?;
    Ok(Opened { names, order, uuids, rows_before, batches })
}

fn arrow_rows(piece: &Piece, table: &Table, bytes: TableBytes) -> Result<Opened, TableDecodeError> {
    let schema = FileReader::try_new(TableReader::new(bytes.clone()), None)?.schema();
    let wanted = columns(piece, table, &schema)?;
    let (names, order) = placed(&schema, &wanted);
    let is_uuid = |column: &usize| schema.field(*column).extension_type_name() == Some(ARROW_UUID);
    let uuids = wanted.iter().map(is_uuid).collect();
    let batches = Box::new(FileReader::try_new(TableReader::new(bytes), Some(in_file_order(&wanted)))?);
    Ok(Opened { names, order, uuids, rows_before: 0, batches })
}

/// Returns the file indices of the columns to read.
fn columns(piece: &Piece, table: &Table, schema: &Schema) -> Result<Vec<usize>, InputError> {
    if table.columns.is_empty() {
        return Ok((0..schema.fields().len()).collect());
    }
    let place = |name: &String| {
        let mut places = schema
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| field.name() == name)
            .map(|(place, _)| place);
        match (places.next(), places.count()) {
            (Some(place), 0) => Ok(place),
            (Some(_), others) => Err(InputError::refused(format!(
                "input {} has {} columns `{}`, so none of them can be read by that name (--read-columns)",
                piece.name,
                1 + others,
                name.escape_debug()
            ))),
            (None, _) => {
                // Formatted as on the command line, where a comma ends a name.
                let known =
                    schema.fields().iter().map(|field| field.name().replace('\\', r"\\").replace(',', r"\,"));
                Err(InputError::refused(format!(
                    "input {} has no column `{}` (--read-columns); it has {}",
                    piece.name,
                    name.escape_debug(),
                    known.collect::<Vec<_>>().join(", ")
                )))
            }
        }
    };
    table.columns.iter().map(place).collect()
}

/// Returns each column to read once, in the order of the file.
fn in_file_order(wanted: &[usize]) -> Vec<usize> {
    let each: BTreeSet<usize> = wanted.iter().copied().collect();
    each.into_iter().collect()
}

/// Returns the names of the columns to read, and their indices among those that are read, which are in
/// the file's order.
fn placed(schema: &Schema, wanted: &[usize]) -> (Vec<String>, Vec<usize>) {
    let in_order = in_file_order(wanted);
    let place = |column: &usize| in_order.partition_point(|other| other < column);
    let name = |column: &usize| schema.field(*column).name().clone();
    (wanted.iter().map(name).collect(), wanted.iter().map(place).collect())
}

fn failed(name: &FilePath, kind: TableKind, bytes: &TableBytes, source: TableDecodeError) -> InputError {
    bytes.take_failure().unwrap_or_else(|| match source.downcast::<InputError>() {
        Ok(ours) => *ours,
        Err(source) => InputError::Table { path: name.clone(), kind, source },
    })
}

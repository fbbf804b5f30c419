//! The rows of a table as bytes that come one after another.
//!
//! Of a Parquet file a piece has the row groups that begin in it; an Arrow file is one piece. Rows are decoded a batch at a time.

use super::arrow::ArrowFile;
use super::batches::{Batches, DecodeError, Decoded, UnreadCodec};
use super::bytes::TableBytes;
use super::cell::{Cells, Scratch, as_written};
use super::expansion::Expansion;
use super::guard::guarded;
use super::parquet::ParquetFile;
use super::{Table, TableKind};
use crate::input::path::FilePath;
use crate::input::record::RecordFormat;
use crate::input::window::Fill;
use crate::input::{InputError, InputLimits, OpenFile, Piece};
use crate::text::write_csv_field;
use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, Schema};
use memchr::memchr2;
use std::collections::BTreeSet;

/// Where the text of a row begins, for each row before it in its file: what lies in other pieces is not decoded, and so nobody
/// knows how long it is, but later rows have to lie behind it. As much as a record may have by default.
const ROW_SPAN: u64 = 64 << 20;

/// The name of the type that columns of UUIDs have in Arrow files.
const ARROW_UUID: &str = "arrow.uuid";

/// The batch that is being written.
struct Batch {
    /// In the order in which they are written.
    columns: Vec<ArrayRef>,
    rows: usize,
    /// Rows of the file before it.
    first: u64,
    /// Its first row that is not written.
    from: usize,
}

/// The rows of a piece.
pub(in crate::input) struct TableRows {
    name: FilePath,
    kind: TableKind,
    bytes: TableBytes,
    batches: Batches,
    expansion: Expansion,
    /// Bytes of the file that its rows are made of.
    packed: u64,
    /// Bytes of text that were made of them.
    written: u64,
    /// Bytes that the text of a row may have.
    row_max: u64,
    /// Rows could be longer if there were room for them.
    for_want_of_room: bool,
    layout: RowText,
    /// Where the text of its first row is said to begin in the file.
    first: u64,
    /// Where each column that is read lies in a batch, in the order in which it is written.
    order: Vec<usize>,
    /// Whether the values of each are UUIDs.
    uuids: Vec<bool>,
    /// The names of the columns that are read.
    names: Vec<String>,
    /// Whether these are to be written first.
    header: bool,
    batch: Option<Batch>,
}

impl TableRows {
    /// Opens the rows of a piece of such a file.
    ///
    /// # Errors
    /// A file that is none of its kind, a column that it does not have, and what keeps it from being read.
    pub fn open(
        piece: &Piece,
        table: &Table,
        format: RecordFormat,
        file: OpenFile,
        limits: &InputLimits,
    ) -> Result<Self, InputError> {
        let expansion = Expansion::new(piece.name.clone(), limits);
        let bytes = TableBytes::new(file, piece.stamp.size);
        let failed = |source| failed(&piece.name, table.kind, &bytes, source);
        let opened = guarded(|| match table.kind {
            TableKind::Parquet => parquet_rows(piece, table, bytes.clone(), expansion.clone()),
            TableKind::Arrow => arrow_rows(piece, table, bytes.clone(), expansion.clone()),
        });
        let Opened { names, order, uuids, first, packed, batches } = opened.map_err(failed)??;
        let header = matches!(format, RecordFormat::Csv { .. }) && piece.offset == 0;
        let layout = match format {
            RecordFormat::Csv { delimiter, .. } => RowText::Csv { delimiter },
            _ if order.len() == 1 => RowText::Text,
            _ => RowText::Tabs,
        };
        let (name, kind) = (piece.name.clone(), table.kind);
        let row_max = limits.record_max.min(limits.buffered_record_max);
        let (written, for_want_of_room) = (0, row_max < limits.record_max);
        Ok(Self {
            name,
            kind,
            bytes,
            batches,
            expansion,
            packed,
            written,
            row_max,
            for_want_of_room,
            layout,
            first,
            order,
            uuids,
            names,
            header,
            batch: None,
        })
    }

    /// Where its bytes begin.
    pub fn first(&self) -> u64 {
        self.first
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, DecodeError> {
        let Some(Decoded { batch, first }) = self.batches.next().transpose()? else { return Ok(None) };
        let columns: Result<_, ArrowError> =
            self.order.iter().map(|&column| as_written(batch.column(column))).collect();
        Ok(Some(Batch { columns: columns?, rows: batch.num_rows(), first, from: 0 }))
    }

    /// Writes rows of a batch until there is enough; answers the first that is not written.
    fn write(&self, batch: &Batch, out: &mut Vec<u8>, enough: usize) -> Result<usize, DecodeError> {
        let cells: Result<Vec<Cells<'_>>, ArrowError> = batch
            .columns
            .iter()
            .zip(&self.uuids)
            .map(|(column, is_uuid)| Cells::new(column.as_ref(), *is_uuid))
            .collect();
        let cells = cells?;
        let mut scratch = Scratch::new(self.row_max);
        let (mut row, before) = (batch.from, out.len());
        while row < batch.rows && out.len() < enough {
            let begins = out.len();
            for (place, column) in cells.iter().enumerate() {
                let put = |text: &[u8]| self.layout.field(place, cells.len(), text, out);
                let done = column.with(row, &mut scratch, put);
                // A list can have one large value many times: no more is written than a record may have. A text of several
                // lines is several records, and is there already.
                let row_bytes = (out.len() - begins) as u64;
                let is_row = !matches!(self.layout, RowText::Text);
                if scratch.is_full() || is_row && self.row_max.saturating_mul(2) < row_bytes {
                    return Err(self.too_long((begins - before) as u64).into());
                }
                done.map_err(|source| InputError::NoText {
                    path: self.name.clone(),
                    column: self.names[place].clone(),
                    row: batch.first.saturating_add(row as u64).saturating_add(1),
                    source: source.into(),
                })?;
            }
            out.push(b'\n');
            row += 1;
        }
        Ok(row)
    }

    /// A row so far behind what was written that is longer than a record may be.
    fn too_long(&self, behind: u64) -> InputError {
        let offset = self.first.saturating_add(self.written).saturating_add(behind);
        let (path, limit) = (self.name.clone(), self.row_max);
        match self.for_want_of_room {
            true => InputError::NoRoom { path, offset, limit },
            false => InputError::RecordTooLong { path, offset, limit, quote: None },
        }
    }
}

impl Fill for TableRows {
    fn fill(&mut self, buffer: &mut Vec<u8>, wanted: usize) -> Result<bool, InputError> {
        if std::mem::take(&mut self.header) {
            let before = buffer.len();
            for (place, name) in self.names.iter().enumerate() {
                self.layout.field(place, self.names.len(), name.as_bytes(), buffer);
            }
            buffer.push(b'\n');
            self.written = (buffer.len() - before) as u64;
            return Ok(true);
        }
        let enough = buffer.len().saturating_add(wanted);
        while buffer.len() < enough {
            let Some(mut batch) = self.batch.take() else {
                match guarded(|| self.next_batch()) {
                    Ok(Some(batch)) => self.batch = Some(batch),
                    Ok(None) => return Ok(false),
                    Err(source) => return Err(failed(&self.name, self.kind, &self.bytes, source)),
                }
                continue;
            };
            let before = buffer.len();
            let until = guarded(|| self.write(&batch, buffer, enough));
            self.written += (buffer.len() - before) as u64;
            let until = until.and_then(|until| {
                self.expansion.expect(self.packed, self.written)?;
                Ok(until)
            });
            batch.from = until.map_err(|source| failed(&self.name, self.kind, &self.bytes, source))?;
            self.batch = Some(batch).filter(|batch| batch.from < batch.rows);
        }
        Ok(true)
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        self.bytes.verify_unchanged()
    }
}

/// How fields are written.
enum RowText {
    Csv {
        delimiter: u8,
    },
    Tabs,
    /// The only column, as it is.
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
                    // A blank line would be no row.
                    out.extend_from_slice(b"\"\"");
                } else {
                    write_csv_field(out, text, delimiter);
                }
            }
        }
    }
}

struct Opened {
    /// The names of the columns that are read.
    names: Vec<String>,
    /// Their places in a batch.
    order: Vec<usize>,
    /// Whether their values are UUIDs.
    uuids: Vec<bool>,
    first: u64,
    /// Bytes of the file that the rows of the piece are made of.
    packed: u64,
    batches: Batches,
}

fn parquet_rows(
    piece: &Piece,
    table: &Table,
    bytes: TableBytes,
    expansion: Expansion,
) -> Result<Result<Opened, InputError>, DecodeError> {
    let file = ParquetFile::open(bytes, expansion)?;
    let schema = file.schema().clone();
    let wanted = match columns(piece, table, &schema) {
        Ok(wanted) => wanted,
        Err(missing) => return Ok(Err(missing)),
    };
    let read = in_file_order(&wanted);
    let (names, order) = placed(&schema.project(&read)?, &wanted);
    let uuids = wanted.iter().map(|column| file.is_uuid(*column)).collect();
    let groups = file.groups(piece);
    let (first, packed) = (groups.first().saturating_mul(ROW_SPAN), groups.packed);
    Ok(Ok(Opened { names, order, uuids, first, packed, batches: file.batches(groups, &read) }))
}

fn arrow_rows(
    piece: &Piece,
    table: &Table,
    bytes: TableBytes,
    expansion: Expansion,
) -> Result<Result<Opened, InputError>, DecodeError> {
    let packed = bytes.size();
    let file = ArrowFile::open(bytes, expansion)?;
    let schema = file.schema().clone();
    let wanted = match columns(piece, table, &schema) {
        Ok(wanted) => wanted,
        Err(missing) => return Ok(Err(missing)),
    };
    let read = in_file_order(&wanted);
    let (names, order) = placed(&schema.project(&read)?, &wanted);
    let is_uuid = |column: &usize| schema.field(*column).extension_type_name() == Some(ARROW_UUID);
    let uuids = wanted.iter().map(is_uuid).collect();
    Ok(Ok(Opened { names, order, uuids, first: 0, packed, batches: file.batches(read)? }))
}

/// The columns that are read by their places in the file.
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
            (Some(_), others) => Err(InputError::SameColumn {
                path: piece.name.clone(),
                column: name.clone(),
                count: 1 + others,
            }),
            (None, _) => Err(InputError::NoColumn {
                path: piece.name.clone(),
                column: name.clone(),
                there: schema
                    .fields()
                    .iter()
                    // As they are typed, for whom a comma ends a name.
                    .map(|field| field.name().replace('\\', r"\\").replace(',', r"\,"))
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    };
    table.columns.iter().map(place).collect()
}

/// Each column that is read once, in the order of the file.
fn in_file_order(wanted: &[usize]) -> Vec<usize> {
    let each: BTreeSet<usize> = wanted.iter().copied().collect();
    each.into_iter().collect()
}

/// The names of the columns that are read, and their places among those that are read, which are in the file's order.
fn placed(read: &Schema, wanted: &[usize]) -> (Vec<String>, Vec<usize>) {
    let in_order = in_file_order(wanted);
    let order: Vec<usize> =
        wanted.iter().map(|column| in_order.partition_point(|other| other < column)).collect();
    let names = order.iter().map(|&place| read.field(place).name().clone()).collect();
    (names, order)
}

fn failed(name: &FilePath, kind: TableKind, bytes: &TableBytes, source: DecodeError) -> InputError {
    bytes.take_failure().unwrap_or_else(|| match source.downcast::<InputError>() {
        Ok(ours) => *ours,
        Err(source) => match source.downcast::<UnreadCodec>() {
            Ok(unread) => InputError::TableCodec { path: name.clone(), kind, codec: unread.0 },
            Err(source) => InputError::Table { path: name.clone(), kind, source },
        },
    })
}

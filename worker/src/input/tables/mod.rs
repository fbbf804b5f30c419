//! Files with columnar tables, Parquet and Arrow: their detection, and the conversion of their rows to text.
//!
//! A job of lines reads a row as a line, with tabs between its columns. Tabs, line breaks and backslashes
//! within a column are written `\t`, `\n`, `\r` and `\\`, so that a row stays one line. The text of a
//! single column is passed unchanged: texts of several lines are several lines. A job of CSV reads the
//! file as a table with a header, quoted where necessary. A row without columns is an empty line. Empty
//! fields also represent nulls. Jobs of whole files and of records of fixed length read the raw bytes.
//! Not here: writing such files.

#[cfg(feature = "tables")]
mod batches;
#[cfg(feature = "tables")]
mod bytes;
#[cfg(feature = "tables")]
mod cell;
#[cfg(feature = "tables")]
mod parquet;
#[cfg(feature = "tables")]
mod rows;

use super::error::InputError;
use super::format::RecordFormat;
use super::source::ByteSource;
use super::split::Piece;
use super::table::Table;
#[cfg(feature = "tables")]
use super::window::Buffered;
use super::window::Window;
#[cfg(feature = "tables")]
use rows::TableRows;

/// Returns the rows of a piece of a table's file as text, and the file offset assigned to its start.
///
/// # Errors
/// A file that is not of its kind, a column that does not exist, errors of reading, and a program built
/// without support for such files.
pub(super) fn table_rows(
    piece: &Piece,
    table: &Table,
    format: RecordFormat,
    file: Box<dyn ByteSource>,
) -> Result<(Box<dyn Window>, u64), InputError> {
    #[cfg(feature = "tables")]
    {
        let rows = TableRows::open(piece, table, format, file)?;
        let first = rows.first();
        Ok((Box::new(Buffered::new(rows, first)), first))
    }
    #[cfg(not(feature = "tables"))]
    {
        let _ = (format, file);
        Err(InputError::TablesNotBuiltIn { path: piece.name.clone(), kind: table.kind })
    }
}

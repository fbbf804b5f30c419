//! Files that hold tables by columns, Parquet and Arrow: which they are, and how their rows become text.
//!
//! A job of lines reads a row as a line, with tabs between its columns; tabs, line breaks and backslashes within one are
//! written `\t`, `\n`, `\r` and `\\`, so that a row stays one line. Of a single column the text is taken as it is: texts of
//! several lines are several lines. A job of CSV reads the file as the table with a header that it stands for, quoted where
//! need be. A row without columns is an empty line. Empty fields stand for nulls too. Jobs of whole files and of records of fixed length see the bytes as they lie.
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

/// The rows of a piece of a table's file as text, and where that is said to begin in the file.
///
/// # Errors
/// A file that is none of its kind, a column that it does not have, what keeps it from being read, and a program that was
/// built without what reads such files.
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

//! Where the rows of files that hold tables by columns, Parquet and Arrow, become text: the crate `gristmill-formats` reads
//! them and is [plugged in](plug_in_tables) by the program.
//!
//! A job of lines reads a row as a line, with tabs between its columns; tabs, line breaks and backslashes within one are
//! written `\t`, `\n`, `\r` and `\\`, so that a row stays one line. Of a single column the text is taken as it is: texts of
//! several lines are several lines. A job of CSV reads the file as the table with a header that it stands for, quoted where
//! need be. A row without columns is an empty line. Empty fields stand for nulls too. Jobs of whole files and of records of
//! fixed length see the bytes as they lie.

use super::error::InputError;
use super::format::RecordFormat;
use super::source::ByteSource;
use super::split::{Piece, Split};
use super::table::Table;
use super::window::Window;
use std::sync::OnceLock;

/// Opens the rows of a piece of a table's file as text, and says where that begins in the file.
pub type OpenRows =
    fn(&Piece, &Table, RecordFormat, Box<dyn ByteSource>) -> Result<(Box<dyn Window>, u64), InputError>;

static OPEN: OnceLock<OpenRows> = OnceLock::new();

/// Sets what reads tables in this process. Only the first call counts.
pub fn plug_in_tables(open: OpenRows) {
    let _ = OPEN.set(open);
}

/// The rows of a piece of a table's file as text, and where that begins in the file.
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
    let open = OPEN.get().ok_or_else(|| not_built_in(piece, table))?;
    open(piece, table, format, file)
}

fn not_built_in(piece: &Piece, table: &Table) -> InputError {
    InputError::refused(format!(
        "input {} is a {} file, which this program was built without reading (the feature `formats`)",
        piece.name, table.kind
    ))
}

/// Checks that this program reads the tables among the pieces of splits, by the names of their files.
///
/// # Errors
/// A table in a program that was built without what reads such files.
pub fn check_tables(splits: &[Split]) -> Result<(), InputError> {
    let mut pieces = splits.iter().flat_map(|split| &split.pieces);
    match pieces.find_map(|piece| piece.table.as_ref().map(|table| (piece, table))) {
        Some((piece, table)) if OPEN.get().is_none() => Err(not_built_in(piece, table)),
        _ => Ok(()),
    }
}

//! Files that hold tables by columns, Parquet and Arrow: which they are, and how their rows become text.
//!
//! A job of lines reads a row as a line, with tabs between its columns; tabs, line breaks and backslashes within one are
//! written `\t`, `\n`, `\r` and `\\`, so that a row stays one line. Of a single column the text is taken as it is: texts of
//! several lines are several lines. A job of CSV reads the file as the table with a header that it stands for, quoted where
//! need be. A row without columns is an empty line. Empty fields stand for nulls too. Jobs of whole files and of records of fixed length see the bytes as they lie.
//! Not here: writing such files.

#[cfg(feature = "tables")]
mod arrow;
#[cfg(feature = "tables")]
mod batches;
#[cfg(feature = "tables")]
mod bytes;
#[cfg(feature = "tables")]
mod cell;
#[cfg(feature = "tables")]
mod expansion;
#[cfg(feature = "tables")]
mod guard;
#[cfg(feature = "tables")]
mod pages;
#[cfg(feature = "tables")]
mod parquet;
#[cfg(feature = "tables")]
mod rows;
#[cfg(feature = "tables")]
mod thrift;

use super::path::FilePath;
use super::record::RecordFormat;
#[cfg(feature = "tables")]
use super::window::Buffered;
use super::window::Window;
use super::{InputError, InputLimits, OpenFile, Piece};
#[cfg(feature = "tables")]
use rows::TableRows;
use serde::{Deserialize, Serialize};

/// A file that holds a table by columns, and what is read of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// How it holds it.
    pub kind: TableKind,
    /// The columns that are read, in this order; none named: all.
    pub columns: Vec<String>,
}

/// How a file holds a table; decided by its name or its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TableKind {
    /// `.parquet` or `.pq`: Apache Parquet, compressed by snappy, gzip, zstd or lz4, or not at all.
    Parquet,
    /// `.arrow` or `.feather`: a file of Apache Arrow's IPC format, compressed by lz4 or zstd, or not at all.
    Arrow,
}

impl Table {
    /// What a file of this name holds for jobs that read in this format.
    #[must_use]
    pub fn of_name(path: &FilePath, format: RecordFormat, columns: &[String]) -> Option<Box<Self>> {
        let kind = TableKind::of_name(path).filter(|_| is_by_rows(format))?;
        Some(Box::new(Self { kind, columns: columns.to_vec() }))
    }
}

impl TableKind {
    /// What the names of files end in that we write like this.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Parquet => ".parquet",
            Self::Arrow => ".arrow",
        }
    }

    /// What the end of a file name says; upper or lower case.
    #[must_use]
    pub fn of_name(path: &FilePath) -> Option<Self> {
        if path.has_suffix(".parquet") || path.has_suffix(".pq") {
            Some(Self::Parquet)
        } else if path.has_suffix(".arrow") || path.has_suffix(".feather") {
            Some(Self::Arrow)
        } else {
            None
        }
    }

    /// What a compressed file of this name holds that jobs which read in this format would take for a table.
    #[must_use]
    pub(super) fn of_packed_name(path: &FilePath, format: RecordFormat) -> Option<Self> {
        let name = path.as_bytes();
        let at = memchr::memrchr(b'.', name).filter(|_| is_by_rows(format))?;
        Self::of_name(&FilePath::new(name[..at].to_vec()))
    }
}

/// Whether jobs that read in this format read tables by their rows.
pub(super) fn is_by_rows(format: RecordFormat) -> bool {
    matches!(format, RecordFormat::Lines | RecordFormat::Csv { .. })
}

/// The rows of a piece of a table's file as text, and where that is said to begin in the file.
///
/// # Errors
/// A file that is none of its kind, a column that it does not have, what keeps it from being read, and a program that was
/// built without what reads such files.
pub(super) fn table_rows(
    piece: &Piece,
    table: &Table,
    format: RecordFormat,
    file: OpenFile,
    limits: &InputLimits,
) -> Result<(Box<dyn Window>, u64), InputError> {
    #[cfg(feature = "tables")]
    {
        let rows = TableRows::open(piece, table, format, file, limits)?;
        let first = rows.first();
        Ok((Box::new(Buffered::new(rows, first)), first))
    }
    #[cfg(not(feature = "tables"))]
    {
        let _ = (format, file, limits);
        Err(InputError::TablesNotBuiltIn { path: piece.name.clone(), kind: table.kind })
    }
}

impl std::fmt::Display for TableKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow",
        })
    }
}

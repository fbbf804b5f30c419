//! Kinds of files that hold tables by columns, by their names.

use super::format::RecordFormat;
use super::path::FilePath;
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

impl std::fmt::Display for TableKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow",
        })
    }
}

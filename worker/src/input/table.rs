//! Kinds of files with columnar tables, by their names.

use super::format::RecordFormat;
use super::path::FilePath;
use serde::{Deserialize, Serialize};

/// File with a columnar table, and the columns that are read of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// Kind of the file.
    pub kind: TableKind,
    /// Columns that are read, in this order; empty for all.
    pub columns: Vec<String>,
}

/// Kind of a columnar table, determined by the name or the first bytes of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TableKind {
    /// `.parquet` or `.pq`: Apache Parquet, compressed by snappy, gzip, zstd or lz4, or not at all.
    Parquet,
    /// `.arrow` or `.feather`: a file of Apache Arrow's IPC format, compressed by lz4 or zstd, or not at all.
    Arrow,
}

impl Table {
    /// Returns the table in a file of this name for jobs that read in this format.
    #[must_use]
    pub fn of_name(path: &FilePath, format: RecordFormat, columns: &[String]) -> Option<Box<Self>> {
        let kind = TableKind::of_name(path).filter(|_| is_by_rows(format))?;
        Some(Box::new(Self { kind, columns: columns.to_vec() }))
    }
}

impl TableKind {
    /// Returns the suffix of the names of files that this program writes in this format.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Parquet => ".parquet",
            Self::Arrow => ".arrow",
        }
    }

    /// Returns the kind according to the suffix of a file name, ignoring case.
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

    /// Returns the kind of table in a compressed file of this name, for jobs whose format reads tables.
    #[must_use]
    pub(super) fn of_packed_name(path: &FilePath, format: RecordFormat) -> Option<Self> {
        let name = path.as_bytes();
        let at = memchr::memrchr(b'.', name).filter(|_| is_by_rows(format))?;
        Self::of_name(&FilePath::new(name[..at].to_vec()))
    }
}

/// True if jobs that read in this format read tables by their rows.
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

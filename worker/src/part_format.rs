//! Formats of parts, which are known by the ends of their names.

use crate::input::{Compression, FilePath, TableKind};
use serde::{Deserialize, Serialize};

/// Format of a part's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PartFormat {
    /// The bytes that the job writes, optionally compressed.
    Bytes(Compression),
    /// A columnar table of the lines that the job writes.
    Table(TableKind),
}

impl Default for PartFormat {
    fn default() -> Self {
        Self::Bytes(Compression::None)
    }
}

impl From<Compression> for PartFormat {
    fn from(compression: Compression) -> Self {
        Self::Bytes(compression)
    }
}

impl PartFormat {
    /// Returns the end of the names of such parts.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Bytes(compression) => compression.suffix(),
            Self::Table(kind) => kind.suffix(),
        }
    }

    /// True if files of this format, one after another, are one file of it: for text, and for gzip, Zstandard and bzip2,
    /// whose files are sequences of members. A table has one footer, which describes the whole file.
    #[must_use]
    pub fn is_joinable(self) -> bool {
        match self {
            Self::Bytes(Compression::None | Compression::Gzip | Compression::Zstd | Compression::Bzip2) => {
                true
            }
            Self::Table(_) => false,
        }
    }

    /// Returns the format by the end of a part's name.
    #[must_use]
    pub fn of_name(name: &FilePath) -> Self {
        match TableKind::of_name(name) {
            Some(kind) => Self::Table(kind),
            None => Self::Bytes(Compression::of_name(name)),
        }
    }
}

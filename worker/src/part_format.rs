//! How parts lie in their files, and what tells it: the end of their names.

use crate::input::{Compression, FilePath, TableKind};
use serde::{Deserialize, Serialize};

/// How a part lies in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PartFormat {
    /// The bytes that the job writes, perhaps compressed.
    Bytes(Compression),
    /// A table by columns, of the lines that the job writes.
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
    /// What the names of such parts end in.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Bytes(compression) => compression.suffix(),
            Self::Table(kind) => kind.suffix(),
        }
    }

    /// What the end of a part's name says.
    #[must_use]
    pub fn of_name(name: &FilePath) -> Self {
        match TableKind::of_name(name) {
            Some(kind) => Self::Table(kind),
            None => Self::Bytes(Compression::of_name(name)),
        }
    }
}

//! What a map task reads, as it travels from the submitter to a worker.

use super::format::RecordFormat;
use super::path::FilePath;
use super::table::Table;
use gristmill_scheduler::ids::WorkerId;
use serde::{Deserialize, Serialize};

/// The input of one map task: pieces of files, read one after another. Only a side input may be without a
/// piece.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Split {
    /// Which input of the plan it belongs to, from 0.
    pub input: u32,
    /// How the files fall into records.
    pub format: RecordFormat,
    /// In input order.
    pub pieces: Vec<Piece>,
}

impl Split {
    /// Bytes of all pieces as they lie in their files (compressed files count compressed).
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.length))
    }
}

/// A stretch of one file. Its records are those whose first byte lies in `offset..offset + length`.
///
/// Invariant: pieces of CSV files begin and end at borders of records, pieces of fixed-length files at
/// multiples of the length, compressed files are one piece. Pieces of lines may begin and end anywhere. Of a Parquet
/// file they may too: a piece has the row groups that begin in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Absolute, as it is opened; of an object in a store its URL.
    pub path: FilePath,
    /// As the user named it, for messages and [`Source::path`](crate::input::record::Source::path).
    pub name: FilePath,
    /// Whose file system `path` belongs to.
    pub place: Place,
    /// First byte of the stretch.
    pub offset: u64,
    /// Bytes of the stretch, at least 1.
    pub length: u64,
    /// What the file looked like when it was listed.
    pub stamp: FileStamp,
    /// How the file is compressed.
    pub compression: Compression,
    /// What is read of it if it holds a table by columns.
    pub table: Option<Box<Table>>,
}

impl Piece {
    /// First byte after the stretch.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Whether what is read of it is not what lies in the file: it has to be decoded from its beginning on.
    #[must_use]
    pub fn is_decoded(&self) -> bool {
        self.compression != Compression::None || self.table.is_some()
    }
}

/// Whose file system a path belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Place {
    /// Where the job was submitted; a worker may see the same file.
    Submitter,
    /// This worker alone.
    Worker(WorkerId),
    /// An object store, which everybody asks for himself.
    Store,
}

/// By which a file is recognised as the one that was listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct FileStamp {
    /// Bytes.
    pub size: u64,
    /// Last change of the contents, in nanoseconds since 1970; of an object in whole seconds.
    pub modified_ns: i64,
    /// Number of the file in its file system; of an object a hash of its `ETag`, 0 if that is not known.
    pub inode: u64,
}

impl std::fmt::Display for FileStamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, modified at {} ns, inode {}", self.size, self.modified_ns, self.inode)
    }
}

impl FileStamp {
    /// The stamp of a file of this machine.
    #[must_use]
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            size: metadata.size(),
            modified_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
            inode: metadata.ino(),
        }
    }
}

/// How a file is compressed; decided by its name, or by its first bytes where the name does not say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// `.gz`: gzip, any number of members.
    Gzip,
    /// `.zst` or `.zstd`: Zstandard, any number of frames, windows up to 128 MiB (what the `zstd` tool accepts).
    Zstd,
    /// `.bz2`: bzip2, any number of streams.
    Bzip2,
}

impl Compression {
    /// What the name of a file ends in that we compress like this.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gzip => ".gz",
            Compression::Zstd => ".zst",
            Compression::Bzip2 => ".bz2",
        }
    }

    /// What the end of a file name says; upper or lower case.
    #[must_use]
    pub fn of_name(path: &FilePath) -> Self {
        if path.has_suffix(".gz") {
            Compression::Gzip
        } else if path.has_suffix(".zst") || path.has_suffix(".zstd") {
            Compression::Zstd
        } else if path.has_suffix(".bz2") {
            Compression::Bzip2
        } else {
            Compression::None
        }
    }
}

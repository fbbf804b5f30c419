//! Input of a map task, as sent from the submitter to a worker.

use super::format::RecordFormat;
use super::path::FilePath;
use super::table::Table;
use gristmill_scheduler::ids::WorkerId;
use serde::{Deserialize, Serialize};

/// Input of one map task: pieces of files, read one after another. Only a side input may have no piece.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Split {
    /// Index of the input in the plan, from 0.
    pub input: u32,
    /// Format of the records.
    pub format: RecordFormat,
    /// Pieces in input order.
    pub pieces: Vec<Piece>,
}

impl Split {
    /// Returns the bytes of all pieces in their files (compressed files count compressed).
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.length))
    }

    /// Divides this split after its first `kept` bytes: the records of both parts, one after the other, are its records.
    /// Returns `None` if it cannot be divided there: at its start or end, or within a compressed file, a table or a
    /// record.
    #[must_use]
    pub fn divide(&self, kept: u64) -> Option<(Split, Split)> {
        let mut left = kept;
        let whole = |piece: &&Piece| {
            let fits = piece.length <= left;
            left -= if fits { piece.length } else { 0 };
            fits
        };
        let count = self.pieces.iter().take_while(whole).count();
        let (mut front, mut rest) = (self.pieces[..count].to_vec(), self.pieces[count..].to_vec());
        if 0 < left {
            let first = rest.first_mut().filter(|piece| piece.may_be_cut(self.format, left))?;
            front.push(Piece { length: left, ..first.clone() });
            (first.offset, first.length) = (first.offset + left, first.length - left);
        }
        let part = |pieces| Split { input: self.input, format: self.format, pieces };
        (!front.is_empty() && !rest.is_empty()).then(|| (part(front), part(rest)))
    }
}

/// Range of one file. Its records are those whose first byte is in `offset..offset + length`.
///
/// Invariant: pieces of CSV files start and end at record boundaries, pieces of fixed-length files at
/// multiples of the length, compressed files are one piece. Pieces of lines may start and end anywhere.
/// Pieces of Parquet files may too: a piece has the row groups that start in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Absolute path to open, or the URL of an object in a store.
    pub path: FilePath,
    /// Path as the user named it, for messages and [`Source::path`](crate::input::record::Source::path).
    pub name: FilePath,
    /// File system that contains `path`.
    pub place: Place,
    /// First byte of the range.
    pub offset: u64,
    /// Bytes of the range, at least 1.
    pub length: u64,
    /// Stamp of the file when it was listed.
    pub stamp: FileStamp,
    /// Compression of the file.
    pub compression: Compression,
    /// Table and its columns to read, if it is a columnar table.
    pub table: Option<Box<Table>>,
}

impl Piece {
    /// Returns the steps of a task without input. The first step of each task follows the last one of the task before.
    #[must_use]
    pub fn of_steps(task: u32, steps: u32) -> Self {
        let (offset, length) = (u64::from(task) * u64::from(steps), u64::from(steps));
        let name = FilePath::from("the steps of a task without input");
        let stamp = FileStamp { size: offset + length, modified_ns: 0, inode: 0 };
        let (place, compression) = (Place::Steps, Compression::None);
        Self { path: name.clone(), name, place, offset, length, stamp, compression, table: None }
    }

    /// Returns the first byte after the range.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// True if the piece may be cut after its first `bytes`.
    #[must_use]
    pub(crate) fn may_be_cut(&self, format: RecordFormat, bytes: u64) -> bool {
        let is_border = match format {
            RecordFormat::Lines => true,
            RecordFormat::Fixed { length } => bytes.is_multiple_of(u64::from(length.max(1))),
            RecordFormat::Csv { .. } | RecordFormat::WholeFile => false,
        };
        is_border && !self.is_decoded() && 0 < bytes && bytes < self.length
    }

    /// True if its records are not the bytes of the file: it must be decoded from its start on.
    #[must_use]
    pub fn is_decoded(&self) -> bool {
        self.compression != Compression::None || self.table.is_some()
    }
}

/// Location of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Place {
    /// File system of the submitter; a worker may see the same file.
    Submitter,
    /// File system of this worker.
    Worker(WorkerId),
    /// Object store, which every process accesses itself.
    Store,
    /// No file: a task without input that counts steps ([`Input::steps`](super::Input::steps)). Each byte of the piece is
    /// a step.
    Steps,
}

/// Properties by which a file is recognized as the one that was listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct FileStamp {
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of the contents, in nanoseconds since 1970; for an object in whole seconds.
    pub modified_ns: i64,
    /// Inode number of the file; for an object a hash of its `ETag`, 0 if that is unknown.
    pub inode: u64,
}

impl std::fmt::Display for FileStamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, modified at {} ns, inode {}", self.size, self.modified_ns, self.inode)
    }
}

impl FileStamp {
    /// Returns the stamp of a file of this machine.
    #[must_use]
    pub fn from_metadata(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            size: metadata.size(),
            modified_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
            inode: metadata.ino(),
        }
    }
}

/// Compression of a file, determined by its name, or by its first bytes where the name does not show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Compression {
    /// No compression.
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
    /// Returns the suffix of the names of files that this program compresses in this format.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gzip => ".gz",
            Compression::Zstd => ".zst",
            Compression::Bzip2 => ".bz2",
        }
    }

    /// Returns the compression according to the suffix of a file name, ignoring case.
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

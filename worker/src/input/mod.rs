//! Input: from paths to blocks of whole records.
//!
//! Where a job is submitted, paths become files ([`list`]) and files become splits ([`plan`]). On a worker, a
//! map task reads its split block by block ([`open_split`]) through whatever [`FileAccess`] reaches the files.

pub mod bad_records;
mod blocks;
mod border;
mod compressed;
mod content;
mod error;
mod glob;
pub mod list;
mod local;
mod lost_pages;
mod maps;
mod path;
mod piece_text;
pub mod plan;
pub(crate) mod private;
pub mod record;
pub mod records;
mod split;
mod stored;
mod tables;
#[cfg(test)]
mod tests;
pub mod wildcards;
mod window;

pub use bad_records::{BadRecord, BadRecords, FileBadRecords};
pub use blocks::{SplitBlocks, open_split};
pub use content::recognized_whole;
pub use error::InputError;
pub use list::Input;
pub use local::FilePlace;
pub(crate) use local::MappedFile;
pub use local::{LocalFile, LocalFiles};
pub use path::FilePath;
pub(crate) use private::open_regular;
pub use record::{Block, Record, RecordFormat, Source};
pub use split::{Compression, FileStamp, Piece, Place, Split};
pub use tables::{Table, TableKind};

/// The blocks of one split, in order.
pub trait Blocks {
    /// The next block, never empty; `None` after the last.
    ///
    /// # Errors
    /// Input that cannot be read or is not as planned. After an error nothing more may be asked.
    fn next_block(&mut self) -> Result<Option<Block<'_>>, InputError>;
}

/// A way to the bytes of files. Shared by all tasks of a worker.
pub trait FileAccess: Send + Sync {
    /// Opens the file of a piece and checks that it is still the one that was listed.
    ///
    /// # Errors
    /// A file that is missing, changed or out of reach.
    fn open(&self, piece: &Piece) -> Result<OpenFile, InputError>;
}

/// An open file.
pub enum OpenFile {
    /// A file this process sees, as a whole.
    Local(LocalFile),
    /// A file this process sees and cannot map: it is read range by range.
    Read(Box<dyn RangeRead>),
    /// A file that is read through another process.
    Remote(Box<dyn RangeRead>),
}

/// Reads ranges of a file: of another process, or of one that cannot be mapped.
pub trait RangeRead: Send {
    /// Fills `buffer` with the bytes from `offset` on. The range lies within the size of the piece's stamp.
    ///
    /// # Errors
    /// A range that could not be fetched, or a file that changed.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError>;

    /// Called after the last range: whether the file is still the one that was listed. The default leaves
    /// that to each `read_at`.
    ///
    /// # Errors
    /// A file that changed.
    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        Ok(())
    }
}

/// Limits of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    /// Bytes of a record without its line end; at least 1.
    pub record_max: u64,
    /// The same of a record that has to be held in memory, because its file is compressed, far away or cannot be
    /// mapped.
    pub buffered_record_max: u64,
    /// Bytes of a batch, dictionary or page of a table by columns, each of which is held whole.
    pub held_max: u64,
    /// Bytes of a block, unless one record needs more.
    pub block_bytes: usize,
    /// Bytes that may come out of a compressed file, or of one that holds a table, for each that goes in.
    pub expansion_max: u32,
    /// Bytes that may come out of such a file whatever the ratio.
    pub expansion_floor: u64,
    /// Bad records that may be left out of the whole job.
    pub bad_records_max: u64,
}

impl Default for InputLimits {
    /// No bad record, records up to 64 MiB, blocks of 1 MiB (they stay in the second-level cache), 200 times after 64 MiB.
    fn default() -> Self {
        Self {
            record_max: 64 << 20,
            buffered_record_max: u64::MAX,
            held_max: u64::MAX,
            block_bytes: 1 << 20,
            expansion_max: 200,
            expansion_floor: 64 << 20,
            bad_records_max: 0,
        }
    }
}

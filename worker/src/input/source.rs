//! Bytes of a file, wherever it lies.
//!
//! Decoders and windows read a [`ByteSource`] and do not know which one: `local` implements it for files of this machine,
//! `stored` for objects, `agent` for files that another process serves.

use super::error::InputError;
use super::mapped::MappedFile;
use super::split::Piece;
use std::sync::Arc;

/// A way to the bytes of files. Shared by all tasks of a worker.
pub trait FileAccess: Send + Sync {
    /// Opens the file of a piece and checks that it is still the one that was listed.
    ///
    /// # Errors
    /// A file that is missing, changed or out of reach.
    fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError>;
}

/// The bytes of an open file: read range by range, or all in the address space.
pub trait ByteSource: Send {
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

    /// The whole file, if it lies in the address space.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Says that bytes up to `end` of [`ByteSource::bytes`] will be used now, and more after them.
    fn populate(&mut self, _end: usize) {}

    /// The mapped file whose bytes these are.
    fn mapping(&self) -> Option<&Arc<MappedFile>> {
        None
    }

    /// True if the bytes come over a network.
    fn is_remote(&self) -> bool {
        true
    }
}

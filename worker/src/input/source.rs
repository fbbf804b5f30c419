//! Bytes of a file in any place.
//!
//! Decoders and windows read a [`ByteSource`] independent of its kind: `local` implements it for files of
//! this machine, `stored` for objects, `agent` for files that another process serves.

use super::error::InputError;
use super::mapped::MappedFile;
use super::split::Piece;
use std::sync::Arc;

/// Opens files. Shared by all tasks of a worker.
pub trait FileAccess: Send + Sync {
    /// Opens the file of a piece and checks that it is still the one that was listed.
    ///
    /// # Errors
    /// A file that does not exist, has changed or is unreachable.
    fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError>;
}

/// Bytes of an open file: read range by range, or all in the address space.
pub trait ByteSource: Send {
    /// Fills `buffer` with the bytes from `offset` on. The range lies within the size of the piece's stamp.
    ///
    /// # Errors
    /// A range that could not be fetched, or a file that changed.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError>;

    /// Checks that the file is still the one that was listed. Called after the last range. The default
    /// leaves the check to each `read_at`.
    ///
    /// # Errors
    /// The file has changed.
    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        Ok(())
    }

    /// Returns the whole file, if it is in the address space.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Announces that bytes up to `end` of [`ByteSource::bytes`] will be used now, and more after them.
    fn populate(&mut self, _end: usize) {}

    /// Returns the mapped file of these bytes.
    fn mapping(&self) -> Option<&Arc<MappedFile>> {
        None
    }

    /// True if the bytes come over a network.
    fn is_remote(&self) -> bool {
        true
    }
}

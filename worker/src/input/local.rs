//! Opens input files that this process can read itself, and checks that they have not changed since they were listed.
//!
//! Large files are mapped (`mapped`). Small files, and those that cannot be mapped, are read. A small
//! file is read as a whole when it is opened, and its stamp is checked then on the open file. Later
//! changes have no effect, and its name is looked up only once, which is most of the cost of a small
//! file.

use super::error::InputError;
use super::mapped::{FilePlace, MappedFile, check_stamp};
use super::maps::{MAPS, MappedFiles};
use super::path::FilePath;
use super::private::open_regular;
use super::source::{ByteSource, FileAccess};
use super::split::{Compression, FileStamp, Piece, Place};
use super::stored::open_stored;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::sync::Arc;

/// Maximum size of files that are read: mapping one costs more than copying it.
const READ_BYTES_MAX: u64 = 64 << 10;

/// Bytes whose pages are mapped at once, ahead of their use. This saves faults, and starts the disk read
/// early.
const POPULATE_BYTES: usize = 4 << 20;

/// Opens files that this process sees, whatever place their piece names, and checks their stamps. Objects
/// are read from their store.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalFiles;

impl FileAccess for LocalFiles {
    fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
        match piece.place {
            Place::Store => open_stored(piece),
            Place::Steps => Ok(Box::new(Steps)),
            Place::Submitter | Place::Worker(_) => open(piece, &MAPS),
        }
    }
}

/// Steps of a task without input: zeros.
struct Steps;

impl ByteSource for Steps {
    fn read_at(&mut self, _offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
        buffer.fill(0);
        Ok(())
    }

    fn is_remote(&self) -> bool {
        false
    }
}

/// File with its whole contents in the address space, and its stamp when it was listed.
struct LocalFile {
    contents: FileContents,
    /// Offset up to which pages have been populated.
    populated: usize,
    /// End of the piece. Pages after it are not populated ahead of their use.
    piece_end: usize,
}

enum FileContents {
    /// Copy that was verified against the listed stamp.
    Read(Vec<u8>),
    Mapped(Arc<MappedFile>),
}

/// Maps a file that another process of this machine has mapped; `None` if it is too small, or cannot be
/// mapped here.
///
/// # Errors
/// The errors of [`open`].
pub(crate) fn open_mapped(place: FilePlace) -> Result<Option<Arc<MappedFile>>, InputError> {
    let FilePlace { path, name, stamp } = place;
    // Nothing is populated ahead of its use.
    let (offset, length, compression) = (stamp.size, 0, Compression::None);
    let piece =
        Piece { path, name, place: Place::Submitter, offset, length, stamp, compression, table: None };
    Ok(open(&piece, &MAPS)?.mapping().cloned())
}

/// Opens the file of a piece that this process sees.
///
/// # Errors
/// A file that does not exist, is unreadable, not a regular file, or not the one that was listed.
pub(super) fn open(piece: &Piece, maps: &MappedFiles) -> Result<Box<dyn ByteSource>, InputError> {
    let failed = |source| InputError::from_io(&piece.name, source);
    let file = open_regular(piece.path.to_path()).map_err(failed)?;
    if piece.stamp.size <= READ_BYTES_MAX {
        return Ok(Box::new(read_whole(piece, &file)?));
    }
    check_listed(piece, &file)?;
    let place = FilePlace::from_piece(piece);
    let piece_start = usize::try_from(piece.offset).unwrap_or(usize::MAX);
    let piece_end = usize::try_from(piece.end()).unwrap_or(usize::MAX);
    let mapped = match maps.map(&file, place.clone(), piece_start..piece_end) {
        Ok(mapped) => mapped,
        // The address space is full, or the file system has no maps. Reading reports any other error.
        Err(error) => {
            tracing::debug!(%error, name = %piece.name, "input is read because it cannot be mapped");
            return Ok(Box::new(ReadFile { file, place }));
        }
    };
    check_length(piece, mapped.bytes().len())?;
    let contents = FileContents::Mapped(mapped);
    Ok(Box::new(LocalFile { contents, populated: piece_start, piece_end }))
}

/// Reads a small file as a whole. After the last byte, the open file is compared with the listed stamp.
fn read_whole(piece: &Piece, file: &File) -> Result<LocalFile, InputError> {
    let mut bytes = Vec::with_capacity(piece.stamp.size as usize);
    let read = file.take(piece.stamp.size).read_to_end(&mut bytes);
    // A changed stamp is more informative than the error of reading.
    check_listed(piece, file)?;
    read.map_err(|source| InputError::from_io(&piece.name, source))?;
    if (bytes.len() as u64) < piece.stamp.size {
        // The file has the listed stamp, and ends before its size.
        return Err(ends_early(&piece.name, piece.stamp));
    }
    Ok(LocalFile { contents: FileContents::Read(bytes), populated: 0, piece_end: 0 })
}

/// Checks that the open file is the regular file that was listed.
fn check_listed(piece: &Piece, file: &File) -> Result<(), InputError> {
    let metadata = file.metadata().map_err(|source| InputError::from_io(&piece.name, source))?;
    refuse_special(&piece.name, &metadata)?;
    check_stamp(&piece.name, piece.stamp, &metadata)
}

fn ends_early(name: &FilePath, stamp: FileStamp) -> InputError {
    InputError::size_unknown(name, stamp.size, "fewer bytes")
}

/// Checks that the listed number of bytes was read.
fn check_length(piece: &Piece, bytes: usize) -> Result<(), InputError> {
    if bytes as u64 == piece.stamp.size {
        return Ok(());
    }
    Err(InputError::Changed { path: piece.name.clone(), was: piece.stamp, now: None })
}

/// File of this machine that is read range by range.
struct ReadFile {
    file: File,
    place: FilePlace,
}

impl ByteSource for ReadFile {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
        self.file.read_exact_at(buffer, offset).map_err(|source| match source.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                let changed = self.place.verify_unchanged();
                changed.err().unwrap_or_else(|| ends_early(&self.place.name, self.place.stamp))
            }
            _ => InputError::from_io(&self.place.name, source),
        })
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        self.place.verify_unchanged()
    }

    fn is_remote(&self) -> bool {
        false
    }
}

impl ByteSource for LocalFile {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
        buffer.copy_from_slice(&self.whole()[offset as usize..][..buffer.len()]);
        Ok(())
    }

    fn verify_unchanged(&mut self) -> Result<(), InputError> {
        match &self.contents {
            FileContents::Mapped(file) => file.verify_unchanged(),
            FileContents::Read(_) => Ok(()),
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self.whole())
    }

    fn populate(&mut self, end: usize) {
        if let FileContents::Mapped(file) = &self.contents
            && self.populated < end
        {
            let ahead = self.populated.saturating_add(POPULATE_BYTES).min(self.piece_end);
            let until = end.max(ahead).min(file.bytes().len());
            if self.populated < until {
                file.populate(self.populated..until);
            }
            self.populated = until.max(end);
        }
    }

    fn mapping(&self) -> Option<&Arc<MappedFile>> {
        match &self.contents {
            FileContents::Mapped(map) => Some(map),
            FileContents::Read(_) => None,
        }
    }

    fn is_remote(&self) -> bool {
        false
    }
}

impl LocalFile {
    fn whole(&self) -> &[u8] {
        match &self.contents {
            FileContents::Read(bytes) => bytes,
            FileContents::Mapped(file) => file.bytes(),
        }
    }
}

/// Refuses everything but regular files.
pub(super) fn refuse_special(name: &FilePath, metadata: &Metadata) -> Result<(), InputError> {
    let file_type = metadata.file_type();
    if file_type.is_file() {
        return Ok(());
    }
    let kind = if file_type.is_dir() {
        "a directory"
    } else if file_type.is_fifo() {
        "a pipe"
    } else if file_type.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(InputError::refused(format!("input {name} is {kind}, not a regular file")))
}

//! Files that this process sees.
//!
//! Large files are mapped (`mapped`), small ones read, and so are those that cannot be mapped. A small file is read as a whole when it is opened, and asked about right then, through what
//! was opened: what happens to it afterwards changes nothing, and its name is looked up once, which is most of what a
//! small file costs.

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

/// Files up to this size are read; mapping one costs more than copying it.
const READ_BYTES_MAX: u64 = 64 << 10;

/// Bytes whose pages are mapped at once, ahead of their use: fewer faults, and the disk is asked early.
const POPULATE_BYTES: usize = 4 << 20;

/// Opens files that this process sees, wherever the piece says they lie, and checks their stamps; objects it asks their store
/// for.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalFiles;

impl FileAccess for LocalFiles {
    fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
        if piece.place == Place::Store { open_stored(piece) } else { open(piece, &MAPS) }
    }
}

/// A file with its whole contents in the address space, and what it looked like when it was listed.
struct LocalFile {
    contents: FileContents,
    /// Pages up to here have been asked for.
    populated: usize,
    /// Where the piece ends: pages behind it are not asked for ahead of their use.
    piece_end: usize,
}

enum FileContents {
    /// A copy, of which it is known that it is what was listed.
    Read(Vec<u8>),
    Mapped(Arc<MappedFile>),
}

/// Maps a file that another process of this machine has mapped; `None` if it is too small to be mapped, or cannot
/// be mapped here.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_mapped(place: FilePlace) -> Result<Option<Arc<MappedFile>>, InputError> {
    let FilePlace { path, name, stamp } = place;
    // Nothing is asked for ahead of its use.
    let (offset, length, compression) = (stamp.size, 0, Compression::None);
    let piece =
        Piece { path, name, place: Place::Submitter, offset, length, stamp, compression, table: None };
    Ok(open(&piece, &MAPS)?.mapping().cloned())
}

/// Opens the file of a piece that this process sees.
///
/// # Errors
/// A file that is missing, unreadable, no regular file, or not the one that was listed.
pub(super) fn open(piece: &Piece, maps: &MappedFiles) -> Result<Box<dyn ByteSource>, InputError> {
    let failed = |source| InputError::from_io(&piece.name, source);
    let file = open_regular(piece.path.to_path()).map_err(failed)?;
    if piece.stamp.size <= READ_BYTES_MAX {
        return Ok(Box::new(read_whole(piece, &file)?));
    }
    check_listed(piece, &file)?;
    let place = FilePlace::of(piece);
    let piece_start = usize::try_from(piece.offset).unwrap_or(usize::MAX);
    let piece_end = usize::try_from(piece.end()).unwrap_or(usize::MAX);
    let mapped = match maps.map(&file, place.clone(), piece_start..piece_end) {
        Ok(mapped) => mapped,
        // No room in the address space, or a file system without maps: reading reports whatever else is wrong.
        Err(error) => {
            tracing::debug!(%error, name = %piece.name, "input is read because it cannot be mapped");
            return Ok(Box::new(ReadFile { file, place }));
        }
    };
    check_length(piece, mapped.bytes().len())?;
    let contents = FileContents::Mapped(mapped);
    Ok(Box::new(LocalFile { contents, populated: piece_start, piece_end }))
}

/// Reads a small file as a whole. That it was the listed one is asked behind the last byte, of what was opened.
fn read_whole(piece: &Piece, file: &File) -> Result<LocalFile, InputError> {
    let mut bytes = Vec::with_capacity(piece.stamp.size as usize);
    let read = file.take(piece.stamp.size).read_to_end(&mut bytes);
    // What else it has become says more than why that cannot be read.
    check_listed(piece, file)?;
    read.map_err(|source| InputError::from_io(&piece.name, source))?;
    if (bytes.len() as u64) < piece.stamp.size {
        // It is the one that was listed, and ends before its size.
        return Err(ends_early(&piece.name, piece.stamp));
    }
    Ok(LocalFile { contents: FileContents::Read(bytes), populated: 0, piece_end: 0 })
}

/// Whether what was opened is the regular file that was listed.
fn check_listed(piece: &Piece, file: &File) -> Result<(), InputError> {
    let metadata = file.metadata().map_err(|source| InputError::from_io(&piece.name, source))?;
    refuse_special(&piece.name, &metadata)?;
    check_stamp(&piece.name, piece.stamp, &metadata)
}

fn ends_early(name: &FilePath, stamp: FileStamp) -> InputError {
    InputError::SizeUnknown { path: name.clone(), size: stamp.size, held: "fewer bytes" }
}

/// Whether as many bytes came as were listed.
fn check_length(piece: &Piece, bytes: usize) -> Result<(), InputError> {
    if bytes as u64 == piece.stamp.size {
        return Ok(());
    }
    Err(InputError::Changed { path: piece.name.clone(), was: piece.stamp, now: None })
}

/// A file of this machine that is read range by range.
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
    Err(InputError::NotAFile { path: name.clone(), kind })
}

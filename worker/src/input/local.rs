//! Files that this process sees.
//!
//! Large files are mapped, small ones read, and so are those that cannot be mapped. Of a mapped file that another program
//! cuts short while a task reads it, zeros are read from there on (`lost_pages`), and the task fails when it asks whether
//! the file is what it was. A small file is read as a whole when it is opened, and asked about right then, through what
//! was opened: what happens to it afterwards changes nothing, and its name is looked up once, which is most of what a
//! small file costs.

use super::lost_pages::Watch;
use super::maps::{MAPS, MappedFiles};
use super::path::FilePath;
use super::private::open_regular;
use super::split::{Compression, FileStamp, Piece, Place};
use super::stored::open_stored;
use super::{FileAccess, InputError, OpenFile, RangeRead};
use memmap2::{Advice, Mmap, MmapOptions, UncheckedAdvice};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io::Read;
use std::ops::Range;
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
    fn open(&self, piece: &Piece) -> Result<OpenFile, InputError> {
        if piece.place == Place::Store { open_stored(piece) } else { open(piece, &MAPS) }
    }
}

/// A file with its whole contents in the address space, and what it looked like when it was listed.
pub struct LocalFile {
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

/// Which file it is, as another process of this machine can open it too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FilePlace {
    path: FilePath,
    name: FilePath,
    stamp: FileStamp,
}

impl FilePlace {
    /// Where the file of a piece lies and what it looked like.
    pub(super) fn of(piece: &Piece) -> Self {
        Self { path: piece.path.clone(), name: piece.name.clone(), stamp: piece.stamp }
    }

    /// Bytes of the file.
    pub(super) fn size(&self) -> u64 {
        self.stamp.size
    }

    fn verify_unchanged(&self) -> Result<(), InputError> {
        match std::fs::metadata(self.path.to_path()) {
            Ok(metadata) => check_stamp(&self.name, self.stamp, &metadata),
            Err(source) => match InputError::from_io(&self.name, source) {
                InputError::Missing { path } => Err(InputError::Changed { path, was: self.stamp, now: None }),
                other => Err(other),
            },
        }
    }
}

/// The one map of a file in this process. Whoever needs it asks [`MappedFiles`].
pub(super) struct WholeMap {
    // Dropped first.
    watch: Watch,
    map: Mmap,
}

impl WholeMap {
    pub fn new(file: &File) -> std::io::Result<Self> {
        let map = map(file)?;
        Ok(Self { watch: Watch::over(&map)?, map })
    }

    /// Whether something of the file was gone when it was read.
    pub fn is_lost(&self) -> bool {
        self.watch.is_lost()
    }

    /// Gives the pages of a piece back, which stay in memory otherwise for as long as anything of the file is needed.
    #[allow(unsafe_code, reason = "memmap2 cannot know that the pages of this map come back as they were")]
    fn give_back(&self, piece: Range<usize>) {
        let piece = piece.start..piece.end.min(self.map.len());
        if piece.is_empty() {
            return;
        }
        // SAFETY: the map is a read-only one of a file: whoever reads there again is given the same page of it again.
        // Only an advice.
        let _ =
            unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, piece.start, piece.len()) };
    }
}

/// A mapped file, which may outlive the reading of its piece.
pub(crate) struct MappedFile {
    whole: Arc<WholeMap>,
    place: FilePlace,
    /// What is read of it, and no longer needed afterwards.
    piece: Range<usize>,
}

impl MappedFile {
    pub(super) fn new(whole: Arc<WholeMap>, place: FilePlace, piece: Range<usize>) -> Self {
        Self { whole, place, piece }
    }

    /// The whole file.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.whole.map
    }

    /// Whether what was read so far are the bytes of the file that was listed, and its name still leads there.
    pub(crate) fn verify_unchanged(&self) -> Result<(), InputError> {
        self.place.verify_unchanged()?;
        if self.is_lost() {
            // It looks as it did: its disk could not read it, or it was cut short and made whole again.
            let path = self.place.name.clone();
            return Err(InputError::Unavailable { path, source: rustix::io::Errno::IO.into() });
        }
        Ok(())
    }

    /// Whether something of it was gone when it was read, so that zeros were read in its stead.
    pub(crate) fn is_lost(&self) -> bool {
        self.whole.is_lost()
    }

    /// Where it lies and what it looked like.
    pub fn place(&self) -> FilePlace {
        self.place.clone()
    }

    /// Maps a file that another process of this machine has mapped; `None` if it is too small to be mapped, or cannot
    /// be mapped here.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(place: FilePlace) -> Result<Option<Arc<Self>>, InputError> {
        let FilePlace { path, name, stamp } = place;
        // Nothing is asked for ahead of its use.
        let (offset, length, compression) = (stamp.size, 0, Compression::None);
        let piece =
            Piece { path, name, place: Place::Submitter, offset, length, stamp, compression, table: None };
        Ok(match open(&piece, &MAPS)? {
            OpenFile::Local(file) => file.mapping().cloned(),
            OpenFile::Read(_) | OpenFile::Remote(_) => None,
        })
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // The last one unmaps it all.
        if 1 < Arc::strong_count(&self.whole) {
            self.whole.give_back(self.piece.clone());
        }
    }
}

impl std::fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MappedFile").field("name", &self.place.name).finish_non_exhaustive()
    }
}

/// Opens the file of a piece that this process sees.
///
/// # Errors
/// A file that is missing, unreadable, no regular file, or not the one that was listed.
pub(super) fn open(piece: &Piece, maps: &MappedFiles) -> Result<OpenFile, InputError> {
    let failed = |source| InputError::from_io(&piece.name, source);
    let file = open_regular(piece.path.to_path()).map_err(failed)?;
    if piece.stamp.size <= READ_BYTES_MAX {
        return read_whole(piece, &file).map(OpenFile::Local);
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
            return Ok(OpenFile::Read(Box::new(ReadFile { file, place })));
        }
    };
    check_length(piece, mapped.bytes().len())?;
    let contents = FileContents::Mapped(mapped);
    Ok(OpenFile::Local(LocalFile { contents, populated: piece_start, piece_end }))
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

impl RangeRead for ReadFile {
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
}

impl LocalFile {
    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.contents {
            FileContents::Read(bytes) => bytes,
            FileContents::Mapped(file) => file.bytes(),
        }
    }

    /// The mapped file, if it is large enough to be mapped.
    pub(super) fn mapping(&self) -> Option<&Arc<MappedFile>> {
        match &self.contents {
            FileContents::Mapped(map) => Some(map),
            FileContents::Read(_) => None,
        }
    }

    /// Says that bytes up to `end` will be used now, and more after them.
    pub(super) fn populate(&mut self, end: usize) {
        if let FileContents::Mapped(file) = &self.contents
            && self.populated < end
        {
            let map = &file.whole.map;
            let ahead = self.populated.saturating_add(POPULATE_BYTES).min(self.piece_end);
            let until = end.max(ahead).min(map.len());
            if self.populated < until {
                // Only an advice: without it pages come one fault at a time.
                let _ = map.advise_range(Advice::PopulateRead, self.populated, until - self.populated);
            }
            self.populated = until.max(end);
        }
    }

    /// Whether what was read so far are the bytes of the file that was listed.
    ///
    /// # Errors
    /// [`InputError::Changed`] if not, or an error of the file system.
    pub(crate) fn verify_unchanged(&self) -> Result<(), InputError> {
        match &self.contents {
            FileContents::Mapped(file) => file.verify_unchanged(),
            FileContents::Read(_) => Ok(()),
        }
    }
}

#[allow(unsafe_code, reason = "memmap2 cannot know that nobody cuts the file short; see the module's text")]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is read-only and lives as long as its slices. Another program may change the file: bytes
    // then change under a reader, which treats them as plain data of any value, and the stamp tells afterwards.
    // If the file is cut short, `Watch` puts zeros where its bytes were.
    let map = unsafe { MmapOptions::new().map(file) }?;
    // Only an advice: a larger read-ahead.
    let _ = map.advise(Advice::Sequential);
    Ok(map)
}

fn check_stamp(name: &FilePath, was: FileStamp, metadata: &Metadata) -> Result<(), InputError> {
    let now = FileStamp::of(metadata);
    if now == was { Ok(()) } else { Err(InputError::Changed { path: name.clone(), was, now: Some(now) }) }
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

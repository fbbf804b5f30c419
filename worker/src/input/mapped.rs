//! Maps of files that outlive the reading of their pieces, and by which another process can find the same file.
//!
//! Of a mapped file that another program cuts short while a task reads it, zeros are read from there on (`lost_pages`), and
//! the task fails when it asks whether the file is what it was.

use super::error::InputError;
use super::lost_pages::Watch;
use super::path::FilePath;
use super::split::{FileStamp, Piece};
use memmap2::{Advice, Mmap, MmapOptions, UncheckedAdvice};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::ops::Range;
use std::sync::Arc;

/// Which file it is, as another process of this machine can open it too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FilePlace {
    pub(super) path: FilePath,
    pub(super) name: FilePath,
    pub(super) stamp: FileStamp,
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

    pub(super) fn verify_unchanged(&self) -> Result<(), InputError> {
        match std::fs::metadata(self.path.to_path()) {
            Ok(metadata) => check_stamp(&self.name, self.stamp, &metadata),
            Err(source) => match InputError::from_io(&self.name, source) {
                InputError::Missing { path } => Err(InputError::Changed { path, was: self.stamp, now: None }),
                other => Err(other),
            },
        }
    }
}

/// The one map of a file in this process. It is asked for by `maps`.
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
pub struct MappedFile {
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
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.whole.map
    }

    /// Maps pages ahead of their use. Only an advice: without it they come one fault at a time.
    pub(super) fn populate(&self, range: Range<usize>) {
        let _ = self.whole.map.advise_range(Advice::PopulateRead, range.start, range.len());
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
    pub(crate) fn place(&self) -> FilePlace {
        self.place.clone()
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

pub(super) fn check_stamp(name: &FilePath, was: FileStamp, metadata: &Metadata) -> Result<(), InputError> {
    let now = FileStamp::of(metadata);
    if now == was { Ok(()) } else { Err(InputError::Changed { path: name.clone(), was, now: Some(now) }) }
}

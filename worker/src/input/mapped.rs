//! Maps of files that outlive the reading of their pieces, and by which another process can find the same
//! file.
//!
//! If another program truncates a mapped file while a task reads it, zeros are read from there on
//! (`lost_pages`). The task then fails when it verifies that the file is unchanged.

use super::error::InputError;
use super::lost_pages::Watch;
use super::path::FilePath;
use super::split::{FileStamp, Piece};
use memmap2::{Advice, Mmap, MmapOptions, UncheckedAdvice};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::ops::Range;
use std::sync::Arc;

/// Identity of a file, by which another process of this machine can open it too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FilePlace {
    pub(super) path: FilePath,
    pub(super) name: FilePath,
    pub(super) stamp: FileStamp,
}

impl FilePlace {
    /// Returns the path and listed stamp of the file of a piece.
    pub(super) fn from_piece(piece: &Piece) -> Self {
        Self { path: piece.path.clone(), name: piece.name.clone(), stamp: piece.stamp }
    }

    /// Returns the size of the file in bytes.
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

/// Only map of a file in this process, created by `maps`.
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

    /// True if pages of the file were lost when they were read.
    pub(crate) fn is_lost(&self) -> bool {
        self.watch.is_lost()
    }

    /// Releases the pages of a piece, which otherwise stay in memory while any part of the file is needed.
    #[allow(unsafe_code, reason = "memmap2 cannot know that the pages of this map come back as they were")]
    fn give_back(&self, piece: Range<usize>) {
        let piece = piece.start..piece.end.min(self.map.len());
        if piece.is_empty() {
            return;
        }
        // SAFETY: the map is read-only and of a file, so a later read gets the same page again. The call
        // is only an advice.
        let _ =
            unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, piece.start, piece.len()) };
    }
}

/// Mapped file, which may outlive the reading of its piece.
pub struct MappedFile {
    whole: Arc<WholeMap>,
    place: FilePlace,
    /// Range that is read, and not needed afterwards.
    piece: Range<usize>,
}

impl MappedFile {
    pub(super) fn new(whole: Arc<WholeMap>, place: FilePlace, piece: Range<usize>) -> Self {
        Self { whole, place, piece }
    }

    /// Returns the whole file.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.whole.map
    }

    /// Maps pages ahead of their use. Only an advice: without it they are mapped one fault at a time.
    pub(super) fn populate(&self, range: Range<usize>) {
        let _ = self.whole.map.advise_range(Advice::PopulateRead, range.start, range.len());
    }

    /// Checks that the bytes read so far are those of the listed file, and that its name still leads to it.
    pub(crate) fn verify_unchanged(&self) -> Result<(), InputError> {
        self.place.verify_unchanged()?;
        if self.is_lost() {
            // The stamp is unchanged: the disk could not read it, or it was truncated and restored.
            let path = self.place.name.clone();
            return Err(InputError::Unavailable { path, source: rustix::io::Errno::IO.into() });
        }
        Ok(())
    }

    /// True if pages of it were lost when they were read, so that zeros were read instead.
    pub(crate) fn is_lost(&self) -> bool {
        self.whole.is_lost()
    }

    /// Returns its path and listed stamp.
    pub(crate) fn place(&self) -> FilePlace {
        self.place.clone()
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // The last user unmaps the whole file.
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

#[allow(
    unsafe_code,
    reason = "memmap2 cannot know that no process truncates the file; see the module's text"
)]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is read-only and lives as long as its slices. Another program may change the file:
    // bytes then change under a reader, which treats them as plain data of any value, and the stamp shows
    // the change afterwards. If the file is truncated, `Watch` puts zeros where its bytes were.
    let map = unsafe { MmapOptions::new().map(file) }?;
    // Only an advice: a larger read-ahead.
    let _ = map.advise(Advice::Sequential);
    Ok(map)
}

pub(super) fn check_stamp(name: &FilePath, was: FileStamp, metadata: &Metadata) -> Result<(), InputError> {
    let now = FileStamp::from_metadata(metadata);
    if now == was { Ok(()) } else { Err(InputError::Changed { path: name.clone(), was, now: Some(now) }) }
}

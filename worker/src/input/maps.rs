//! Maps of files: each file is mapped once, for all splits and map outputs of this process that use it.
//!
//! A sort keeps its pairs in the input, so a file stays mapped as long as any of its outputs. With a map
//! for each split the address space would be exhausted at the square of the number of splits. A file that
//! cannot be mapped, because the address space is exhausted or its file system has no maps, is read.

use super::mapped::{FilePlace, MappedFile, WholeMap};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Size above which files are read: an eighth of the address space of a process on the smallest 64-bit
/// machines.
const MAP_BYTES_MAX: u64 = 16 << 40;

/// Maximum number of entries of unmapped files, in addition to the number of mapped ones.
const STALE_MAX: usize = 64;

/// Maps of this process.
pub(super) static MAPS: MappedFiles = MappedFiles::new(MAP_BYTES_MAX);

/// Mapped files by place and stamp.
pub(super) struct MappedFiles {
    held: Mutex<HeldMaps>,
    map_bytes_max: u64,
}

struct HeldMaps {
    files: BTreeMap<FilePlace, Weak<WholeMap>>,
    /// Number of entries at which unused ones are removed.
    sweep_at: usize,
}

impl MappedFiles {
    /// Creates maps of files of up to this many bytes.
    pub const fn new(map_bytes_max: u64) -> Self {
        Self { held: Mutex::new(HeldMaps { files: BTreeMap::new(), sweep_at: STALE_MAX }), map_bytes_max }
    }

    fn held(&self) -> MutexGuard<'_, HeldMaps> {
        // Every change is one insert or one removal.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the map of `file`, which is at `place` and has its stamp, and of which `piece` is read.
    ///
    /// # Errors
    /// The file cannot be mapped now and must be read.
    pub fn map(&self, file: &File, place: FilePlace, piece: Range<usize>) -> io::Result<Arc<MappedFile>> {
        if self.map_bytes_max < place.size() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut held = self.held();
        let mapped = |whole, place| Ok(Arc::new(MappedFile::new(whole, place, piece)));
        if let Some(whole) = held.files.get(&place).and_then(Weak::upgrade).filter(|whole| !whole.is_lost()) {
            return mapped(whole, place);
        }
        let whole = Arc::new(WholeMap::new(file)?);
        held.files.insert(place.clone(), Arc::downgrade(&whole));
        if held.sweep_at <= held.files.len() {
            held.files.retain(|_, whole| 0 < whole.strong_count());
            held.sweep_at = 2 * held.files.len() + STALE_MAX;
        }
        mapped(whole, place)
    }

    /// Returns the number of mapped files.
    #[cfg(test)]
    pub fn mapped(&self) -> usize {
        self.held().files.values().filter(|whole| 0 < whole.strong_count()).count()
    }

    /// Returns the number of entries of files, mapped or not.
    #[cfg(test)]
    pub fn entries(&self) -> usize {
        self.held().files.len()
    }
}

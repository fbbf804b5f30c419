//! Maps of files: each file is mapped once, however many splits and map outputs of this process lie in it.
//!
//! A sort leaves its pairs in the input, so a file stays mapped as long as any of its outputs; with a map for each
//! split the address space would end at the square of the number of splits. Where a file cannot be mapped at all,
//! because the address space is used up or its file system has no maps, it is read.

use super::mapped::{FilePlace, MappedFile, WholeMap};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Larger files are read: an eighth of the address space that a process has on the smallest 64-bit machines.
const MAP_BYTES_MAX: u64 = 16 << 40;

/// Entries that may be left of files that nobody has mapped any more, besides as many as there are mapped ones.
const STALE_MAX: usize = 64;

/// The maps of this process.
pub(super) static MAPS: MappedFiles = MappedFiles::new(MAP_BYTES_MAX);

/// Mapped files by place and stamp.
pub(super) struct MappedFiles {
    held: Mutex<HeldMaps>,
    map_bytes_max: u64,
}

struct HeldMaps {
    files: BTreeMap<FilePlace, Weak<WholeMap>>,
    /// Entries from which on it is worth while to look for those that are not held any more.
    sweep_at: usize,
}

impl MappedFiles {
    /// Maps of files of up to so many bytes.
    pub const fn new(map_bytes_max: u64) -> Self {
        Self { held: Mutex::new(HeldMaps { files: BTreeMap::new(), sweep_at: STALE_MAX }), map_bytes_max }
    }

    fn held(&self) -> MutexGuard<'_, HeldMaps> {
        // Every change is one insert or one removal.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map of `file`, which lies at `place` and has the stamp that this says, of which `piece` is read.
    ///
    /// # Errors
    /// A file that cannot be mapped now: it has to be read.
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

    /// Files that are mapped.
    #[cfg(test)]
    pub fn mapped(&self) -> usize {
        self.held().files.values().filter(|whole| 0 < whole.strong_count()).count()
    }

    /// Entries of files, mapped or not.
    #[cfg(test)]
    pub fn entries(&self) -> usize {
        self.held().files.len()
    }
}

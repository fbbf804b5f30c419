//! Maps of files: each file is mapped once, however many splits and map outputs of this process lie in it.
//!
//! A sort leaves its pairs in the input, so a file stays mapped as long as any of its outputs; with a map for each
//! split the address space would end at the square of the number of splits. Where a file cannot be mapped at all,
//! because the address space is used up or its file system has no maps, it is read.
//!
//! Not here: what a mapped file is read for (`local`).

use super::local::{FilePlace, MappedFile};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Larger files are read: an eighth of the address space that a process has on the smallest 64-bit machines.
const MAP_BYTES_MAX: u64 = 16 << 40;

/// Entries that may be left of files that nobody has mapped any more, besides as many as there are mapped ones.
const STALE_MAX: usize = 64;

/// The maps of this process.
pub(super) static MAPS: Maps = Maps::new(MAP_BYTES_MAX);

/// Mapped files by place and stamp.
pub(super) struct Maps {
    held: Mutex<Held>,
    map_bytes_max: u64,
}

struct Held {
    files: BTreeMap<FilePlace, Weak<MappedFile>>,
    /// Entries from which on it is worth while to look for those that are not held any more.
    sweep_at: usize,
}

impl Maps {
    /// Maps of files of up to so many bytes.
    pub const fn new(map_bytes_max: u64) -> Self {
        Self { held: Mutex::new(Held { files: BTreeMap::new(), sweep_at: STALE_MAX }), map_bytes_max }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Every change is one insert or one removal.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map of `file`, which lies at `place` and has the stamp that this says.
    ///
    /// # Errors
    /// A file that cannot be mapped now: it has to be read.
    pub fn map(&self, file: &File, place: FilePlace) -> io::Result<Arc<MappedFile>> {
        if self.map_bytes_max < place.size() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut held = self.held();
        if let Some(mapped) = held.files.get(&place).and_then(Weak::upgrade) {
            return Ok(mapped);
        }
        let mapped = Arc::new(MappedFile::map(file, place.clone())?);
        held.files.insert(place, Arc::downgrade(&mapped));
        if held.sweep_at <= held.files.len() {
            held.files.retain(|_, mapped| 0 < mapped.strong_count());
            held.sweep_at = 2 * held.files.len() + STALE_MAX;
        }
        Ok(mapped)
    }

    /// Files that are mapped.
    #[cfg(test)]
    pub fn mapped(&self) -> usize {
        self.held().files.values().filter(|mapped| 0 < mapped.strong_count()).count()
    }

    /// Entries of files, mapped or not.
    #[cfg(test)]
    pub fn entries(&self) -> usize {
        self.held().files.len()
    }
}

//! Directory that stores the runs of experiments until their page is written, so that an interrupted
//! command resumes where it stopped.
//!
//! Not here: its content (`compare::ComparisonStore`, one for each experiment), and the page (`crate::PaperDirectory`).

use crate::PaperWriteError;
use gristmill_lab::IoError;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Name of the file that is locked while experiments run.
const LOCK_FILE: &str = "lock";

/// Directory of runs, held by one process at a time.
#[derive(Debug)]
pub struct RunsDirectory {
    path: PathBuf,
    /// Open for its lock, which the system releases with the process.
    _lock: File,
}

impl RunsDirectory {
    /// Returns the directory that belongs to a page at this path, next to the page.
    #[must_use]
    pub fn for_page(page: &Path) -> PathBuf {
        let mut name = page.file_name().unwrap_or_default().to_owned();
        name.push("-runs");
        page.with_file_name(name)
    }

    /// Opens or creates the directory, and locks it.
    ///
    /// # Errors
    /// Another process holds it, or a file operation failed.
    pub fn lock(path: &Path) -> Result<Self, PaperWriteError> {
        let path = std::path::absolute(path).map_err(IoError::during("resolve", path))?;
        fs::create_dir_all(&path).map_err(IoError::during("make", &path))?;
        let file = path.join(LOCK_FILE);
        let lock = File::create(&file).map_err(IoError::during("open", &file))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(PaperWriteError::Held { path }),
            Err(TryLockError::Error(source)) => Err(IoError::during("lock", &file)(source).into()),
        }
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory once the page holds the results.
    ///
    /// # Errors
    /// A file operation failed.
    pub fn remove(self) -> Result<(), PaperWriteError> {
        let Self { path, .. } = self;
        Ok(fs::remove_dir_all(&path).map_err(IoError::during("remove", &path))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_keeps_what_is_in_it_for_the_next_call_until_it_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let path = RunsDirectory::for_page(&root.path().join("page"));
        assert!(path.ends_with("page-runs"));
        let first = RunsDirectory::lock(&path).unwrap();
        fs::write(first.path().join("finished"), "run").unwrap();
        drop(first);
        let second = RunsDirectory::lock(&path).unwrap();
        assert_eq!(fs::read_to_string(second.path().join("finished")).unwrap(), "run");
        second.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn second_holder_is_refused_while_the_first_runs() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("runs");
        let first = RunsDirectory::lock(&path).unwrap();
        let error = RunsDirectory::lock(&path).unwrap_err();
        assert!(matches!(error, PaperWriteError::Held { .. }), "{error}");
        drop(first);
        assert!(RunsDirectory::lock(&path).is_ok());
    }
}

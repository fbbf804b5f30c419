//! Spill files: created where only this process looks, deleted when nobody reads them any more.
//!
//! Not here: what is in them (`write`, `read`).

use rustix::fs::statvfs;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The folders of a worker for spill files, used in turn. Cloning shares them. They must exist and belong to
/// this process alone.
#[derive(Clone, Debug)]
pub struct SpillDirs(Arc<Dirs>);

#[derive(Debug)]
struct Dirs {
    paths: Vec<PathBuf>,
    created: AtomicUsize,
}

impl SpillDirs {
    /// These folders.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>) -> Self {
        assert!(!paths.is_empty(), "a worker needs at least one folder for spill files");
        Self(Arc::new(Dirs { paths, created: AtomicUsize::new(0) }))
    }

    /// The first folder.
    #[must_use]
    pub fn first(&self) -> &Path {
        &self.0.paths[0]
    }

    /// Bytes that can still be written to the folder that has the least; 0 if that cannot be told.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        let free = |path: &PathBuf| statvfs(path.as_path()).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
        self.0.paths.iter().map(free).min().unwrap_or(0)
    }

    /// Creates a file, mode 0600, whose name begins with `name` and did not exist before.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(&self, name: &str) -> io::Result<SpillWriter> {
        let number = self.0.created.fetch_add(1, Ordering::Relaxed);
        let path = self.0.paths[number % self.0.paths.len()].join(format!("{name}-{number}.spill"));
        // `create_new` is O_CREAT with O_EXCL: it follows no link and opens nothing that is already there.
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(SpillWriter(SpillFile { file, path, length: 0 }))
    }
}

/// A spill file that is being written. Dropped before [`finish`](SpillWriter::finish), it is deleted.
#[derive(Debug)]
pub struct SpillWriter(SpillFile);

impl SpillWriter {
    /// Appends bytes, without a buffer.
    ///
    /// # Errors
    /// What the file system says, such as a full disk.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.file.write_all(bytes)?;
        self.0.length += bytes.len() as u64;
        Ok(())
    }

    /// Replaces bytes that were written before.
    pub(super) fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.file.write_all_at(bytes, offset)
    }

    /// The file, ready to be read. It is not synced: it does not outlive its process.
    ///
    /// # Errors
    /// None today; file systems that report errors late may add some.
    pub fn finish(self) -> io::Result<SpillFile> {
        Ok(self.0)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

/// A file of this process, deleted when dropped.
#[derive(Debug)]
pub struct SpillFile {
    file: File,
    path: PathBuf,
    length: u64,
}

impl SpillFile {
    /// Fills `buffer` from `offset` on. May be called from several threads at once.
    ///
    /// # Errors
    /// What the file system says, or an end of the file before the buffer is full.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// Bytes of the file.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        // What cannot be deleted now goes with the folder when the worker ends.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn spill_files_are_private_and_go_when_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = SpillDirs::new(vec![dir.path().to_owned()]);
        let mut writer = dirs.create("run").unwrap();
        writer.write(b"some").unwrap();
        writer.write(b" bytes").unwrap();
        writer.rewrite(0, b"SOME").unwrap();
        let file = writer.finish().unwrap();
        let mut back = [0; 10];
        file.read_at(0, &mut back).unwrap();
        assert_eq!((&back, file.length()), (b"SOME bytes", 10));
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(file.read_at(1, &mut back).is_err());
        drop(file);
        drop(dirs.create("unfinished").unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn spill_files_are_spread_over_folders_and_never_replace_anything() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dirs = SpillDirs::new(vec![a.path().to_owned(), b.path().to_owned()]);
        let files: Vec<_> = (0..4).map(|_| dirs.create("run").unwrap()).collect();
        for dir in [&a, &b] {
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        }
        fs::write(a.path().join("run-4.spill"), "not mine").unwrap();
        assert_eq!(dirs.create("run").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(0 < dirs.free_bytes());
        drop(files);
    }
}

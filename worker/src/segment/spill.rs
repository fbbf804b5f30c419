//! Spill files: created in private directories, deleted when they are no longer read.
//!
//! Their number may exceed the limit of open files of a process: only a limited number of finished files stays open,
//! the others are opened for each read.

use crate::descriptors::{KeptOpen, open_patiently};
use crate::directory::Directory;
use rustix::fs::statvfs;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Spill directories of a worker, used in turn. Clones share them. They must exist and be used by this process only.
#[derive(Clone, Debug)]
pub struct SpillDirs(Arc<Dirs>);

#[derive(Debug)]
struct Dirs {
    paths: Vec<PathBuf>,
    created: AtomicUsize,
    /// Bytes of each directory's file system that stay free.
    reserve_bytes: u64,
}

/// Bytes written to a file between two checks of the free space.
const LOOK_BYTES: u64 = 64 << 20;

impl SpillDirs {
    /// Creates it with these directories.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self::with_reserve(paths, 0)
    }

    /// Creates it with these directories, on whose file systems `reserve_bytes` stay free: a completely full disk
    /// affects all processes of the machine.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub(crate) fn with_reserve(paths: Vec<PathBuf>, reserve_bytes: u64) -> Self {
        assert!(!paths.is_empty(), "a worker needs at least one directory for spill files");
        Self(Arc::new(Dirs { paths, created: AtomicUsize::new(0), reserve_bytes }))
    }

    /// Returns the first directory. It is created again if it is missing; errors show when it is used.
    #[must_use]
    pub fn first(&self) -> &Path {
        let first = &self.0.paths[0];
        if let Err(error) = ensure(first) {
            tracing::warn!(directory = %first.display(), %error, "the directory for spill files cannot be used");
        }
        first
    }

    /// Returns the bytes that can still be written to the fullest directory, and to the emptiest.
    ///
    /// # Errors
    /// A directory whose file system does not report its free space.
    pub fn free_bytes(&self) -> io::Result<(u64, u64)> {
        let free = self.0.paths.iter().map(|path| free_bytes(path)).collect::<io::Result<Vec<_>>>()?;
        Ok((free.iter().copied().min().unwrap_or(0), free.iter().copied().max().unwrap_or(0)))
    }

    /// Returns the bytes that must stay free in each directory.
    #[must_use]
    pub(crate) fn reserve_bytes(&self) -> u64 {
        self.0.reserve_bytes
    }

    /// Creates a file, mode 0600, whose name starts with `name` and did not exist before. The directories are used in
    /// turn; one that fails or has no more than its reserve is skipped.
    ///
    /// # Errors
    /// The error of the last directory, if none can be used.
    pub fn create(&self, name: &str) -> io::Result<SpillWriter> {
        let number = self.0.created.fetch_add(1, Ordering::Relaxed);
        let count = self.0.paths.len();
        let mut created = Err(io::ErrorKind::NotFound.into());
        for turn in 0..count {
            created =
                self.create_in(&self.0.paths[(number + turn) % count], &format!("{name}-{number}.spill"));
            if created.is_ok() {
                break;
            }
        }
        created
    }

    fn create_in(&self, directory: &Path, name: &str) -> io::Result<SpillWriter> {
        check_reserve(directory, self.0.reserve_bytes)?;
        let path = directory.join(name);
        // `create_new` is O_CREAT with O_EXCL: it follows no link and opens no existing file.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = open_patiently(|| options.open(&path))?;
        let spill = SpillFile { kept: None, path, length: 0 };
        Ok(SpillWriter { file, spill, reserve_bytes: self.0.reserve_bytes, looked_at: 0 })
    }
}

fn free_bytes(path: &Path) -> io::Result<u64> {
    ensure(path)?;
    let stat = statvfs(path)?;
    Ok(stat.f_bavail * stat.f_frsize)
}

/// Creates a directory again, mode 0700, with its parents, if a cleaner of temporary files has removed them. Its files
/// are lost, which shows when they are read.
///
/// # Errors
/// One that cannot be created, or whose place belongs to another user, who could control its contents.
fn ensure(directory: &Path) -> io::Result<()> {
    if fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    let missing: Vec<&Path> =
        directory.ancestors().take_while(|path| fs::symlink_metadata(path).is_err()).collect();
    if let Some(around) = missing.last().and_then(|path| path.parent()) {
        Directory::open(around)?.refuse_foreign(true)?;
    }
    for path in missing.iter().rev() {
        match fs::DirBuilder::new().mode(0o700).create(path) {
            // Another thread created it first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Directory::open(path)?.refuse_foreign(false)?;
            }
            made => made?,
        }
    }
    tracing::warn!(
        directory = %directory.display(),
        "the directory for spill files was removed, as cleaners of temporary files do, and is made again; maps whose outputs \
         were in it run again"
    );
    Ok(())
}

/// Fails if no more than the reserve is free.
fn check_reserve(directory: &Path, reserve_bytes: u64) -> io::Result<()> {
    let free = free_bytes(directory)?;
    if 0 < reserve_bytes && free <= reserve_bytes {
        let message = format!("{free} bytes are free, and {reserve_bytes} are to stay free (--disk-reserve)");
        return Err(io::Error::new(io::ErrorKind::StorageFull, message));
    }
    Ok(())
}

/// Spill file that is being written. If it is dropped before [`finish`](SpillWriter::finish), it is deleted.
#[derive(Debug)]
pub struct SpillWriter {
    file: File,
    spill: SpillFile,
    reserve_bytes: u64,
    /// Length of the file at the last check of the free space.
    looked_at: u64,
}

impl SpillWriter {
    /// Appends bytes, without a buffer.
    ///
    /// # Errors
    /// An error of the file system, such as a full disk, or no more than the reserve is free.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if LOOK_BYTES <= self.spill.length - self.looked_at {
            self.looked_at = self.spill.length;
            check_reserve(self.spill.path.parent().unwrap_or(Path::new("/")), self.reserve_bytes)?;
        }
        self.file.write_all(bytes)?;
        self.spill.length += bytes.len() as u64;
        Ok(())
    }

    /// Replaces bytes that were written before.
    pub(super) fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Returns the file, ready to be read. It is not synced: it does not outlive its process.
    ///
    /// # Errors
    /// None currently; file systems that report errors late may add some.
    pub fn finish(self) -> io::Result<SpillFile> {
        let Self { file, mut spill, .. } = self;
        spill.kept = KeptOpen::acquire().map(|permit| (file, permit));
        Ok(spill)
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.spill.path
    }

    /// Number of bytes written so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.spill.length
    }
}

/// File of this process, deleted when dropped.
#[derive(Debug)]
pub struct SpillFile {
    /// Open file, if it may be kept open.
    kept: Option<(File, KeptOpen)>,
    path: PathBuf,
    length: u64,
}

impl SpillFile {
    /// Fills `buffer` from `offset` on. May be called from several threads at once. Blocks.
    ///
    /// # Errors
    /// An error of the file system, or an end of the file before the buffer is full.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match &self.kept {
            Some((file, _)) => file.read_exact_at(buffer, offset),
            None => open_patiently(|| File::open(&self.path))?.read_exact_at(buffer, offset),
        }
    }

    /// Number of bytes of the file.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        // A file that cannot be deleted now is removed with the directory when the worker ends.
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
    fn directory_that_a_cleaner_has_removed_is_made_again_and_is_not_a_full_disk() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("private/worker-1");
        let dirs = SpillDirs::with_reserve(vec![directory.clone()], 1);
        for _ in 0..2 {
            assert!(0 < dirs.free_bytes().unwrap().0);
            drop(dirs.create("run").unwrap());
            for made in [&directory, directory.parent().unwrap()] {
                assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700);
            }
            fs::remove_dir_all(place.path().join("private")).unwrap();
            drop(dirs.create("run").unwrap());
            assert!(dirs.first().is_dir());
            fs::remove_dir_all(place.path().join("private")).unwrap();
        }
        fs::write(place.path().join("private"), "in its place").unwrap();
        assert!(dirs.free_bytes().is_err(), "a probe that fails is no disk without room");
        assert_ne!(dirs.create("run").unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn spill_files_that_are_not_kept_open_read_and_go_like_others() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = SpillDirs::new(vec![dir.path().to_owned()]).create("run").unwrap();
        writer.write(b"some bytes").unwrap();
        let mut file = writer.finish().unwrap();
        file.kept = None;
        let mut back = [0; 5];
        file.read_at(5, &mut back).unwrap();
        assert_eq!(&back, b"bytes");
        drop(file);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn spill_files_are_spread_over_directories_and_never_replace_anything() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dirs = SpillDirs::new(vec![a.path().to_owned(), b.path().to_owned()]);
        let files: Vec<_> = (0..4).map(|_| dirs.create("run").unwrap()).collect();
        for dir in [&a, &b] {
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        }
        for dir in [&a, &b] {
            fs::write(dir.path().join("run-4.spill"), "not mine").unwrap();
        }
        assert_eq!(dirs.create("run").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(0 < dirs.free_bytes().unwrap().0);
        drop(files);
    }

    #[test]
    fn spill_files_go_where_they_can_if_a_directory_is_broken() {
        let works = tempfile::tempdir().unwrap();
        let dirs = SpillDirs::new(vec![PathBuf::from("/dev/null/spill"), works.path().to_owned()]);
        let files: Vec<_> = (0..3).map(|_| dirs.create("run").unwrap()).collect();
        assert!(files.iter().all(|file| file.path().parent() == Some(works.path())));
    }

    #[test]
    fn spill_files_leave_the_reserve_alone() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = SpillDirs::with_reserve(vec![dir.path().to_owned()], u64::MAX);
        let error = dirs.create("run").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("--disk-reserve"), "{error}");
        let mut writer = SpillDirs::new(vec![dir.path().to_owned()]).create("run").unwrap();
        writer.reserve_bytes = u64::MAX;
        writer.write(&vec![7; LOOK_BYTES as usize]).unwrap();
        assert_eq!(writer.write(b"more").unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

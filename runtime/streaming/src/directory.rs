//! Working directory of an attempt: new, private, with links to shipped files, and removed after the attempt.

use super::job::ShippedFile;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Bits of a mode that permit execution by any user.
pub(super) const EXECUTABLE: u32 = 0o111;

/// Creates a private directory, in place of one that an attempt of that name may have left when its process
/// was killed.
pub(super) fn create_private(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => DirBuilder::new().mode(0o700).create(path),
    }
}

/// Directory that is removed on drop.
#[derive(Debug)]
pub(super) struct TaskDirectory(PathBuf);

impl TaskDirectory {
    /// Creates a new directory of this name, with a directory for temporary files and links to `files`.
    /// The `program` is copied if it is among them and its mode does not permit execution.
    ///
    /// # Errors
    /// A file that does not exist, or an error of the file system.
    pub fn make(within: &Path, name: &str, files: &[ShippedFile], program: &str) -> io::Result<Self> {
        let path = within.join(name);
        create_private(&path)?;
        let directory = Self(path);
        create_private(&directory.0.join("tmp"))?;
        for file in files {
            directory.add(file, file.name == program)?;
        }
        Ok(directory)
    }

    fn add(&self, file: &ShippedFile, is_program: bool) -> io::Result<()> {
        let named =
            |source: io::Error| io::Error::new(source.kind(), format!("{}: {source}", file.path.display()));
        let found = fs::metadata(&file.path).map_err(named)?;
        let place = self.0.join(&file.name);
        if is_program && found.is_file() && found.permissions().mode() & EXECUTABLE == 0 {
            fs::copy(&file.path, &place).map_err(named)?;
            return fs::set_permissions(&place, fs::Permissions::from_mode(0o700));
        }
        symlink(&file.path, &place).map_err(named)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TaskDirectory {
    fn drop(&mut self) {
        // Files that a command has protected from its own user stay until the worker's directory is removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

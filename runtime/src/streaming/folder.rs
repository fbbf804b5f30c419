//! The working directory of an attempt: fresh, private, with links to what was shipped, and gone with the attempt.

use super::ShippedFile;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Bits of a mode that let somebody execute a file.
pub(super) const EXECUTABLE: u32 = 0o111;

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub(super) struct TaskFolder(PathBuf);

impl TaskFolder {
    /// A fresh folder of this name, with a folder for temporary files and links to `files`. Those that are named among the
    /// `programs` are copied if they may not be executed where they lie.
    ///
    /// # Errors
    /// A file that is not there, or an error of the file system.
    pub fn make(within: &Path, name: &str, files: &[ShippedFile], programs: &[&str]) -> io::Result<Self> {
        let path = within.join(name);
        // An attempt of that name may have left one when its process was killed.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let private = |path: &Path| DirBuilder::new().mode(0o700).create(path);
        private(&path)?;
        let folder = Self(path);
        private(&folder.0.join("tmp"))?;
        for file in files {
            folder.add(file, programs.contains(&file.name.as_str()))?;
        }
        Ok(folder)
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

impl Drop for TaskFolder {
    fn drop(&mut self) {
        // What a command has closed to its own user stays until the worker's folder goes.
        let _ = fs::remove_dir_all(&self.0);
    }
}

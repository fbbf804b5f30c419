//! Files that a command writes for one person: 0600, as they name files and tell what jobs said.

use crate::terminal::own_stream;
use anyhow::Context as _;
use gristmill_runtime::submit::resolved;
use gristmill_worker::folder::id_of;
use rustix::fs::{Access, Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file that is there already and was not to be replaced, exit code 3.
#[derive(Debug, thiserror::Error)]
#[error("could not write {what} {path}: there is a file already", path = path.display())]
pub struct FileExists {
    /// What was to be written.
    what: &'static str,
    path: PathBuf,
}

/// Whether two paths lead to one file, there already or not.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).ok().map(|found| id_of(&found));
    resolved(one) == resolved(other) || id(one).is_some_and(|one| Some(one) == id(other))
}

/// Opens a named pipe to write to it.
///
/// # Errors
/// Nobody reads from it, and one would wait for a reader that may never come.
fn open_pipe(path: &Path) -> io::Result<fs::File> {
    let opened = rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let pipe = opened.map_err(|error| match error {
        Errno::NXIO => io::Error::other("nobody reads from this pipe"),
        error => error.into(),
    })?;
    let flags = fcntl_getfl(&pipe)?;
    fcntl_setfl(&pipe, flags - OFlags::NONBLOCK)?;
    Ok(pipe.into())
}

/// Whether such a file could be written there, asked before the work whose result it is to hold.
///
/// # Errors
/// [`FileExists`] without `overwrite`; a folder that is not there, a folder in the file's place, or one that this user may not write.
pub fn expect_place(what: &'static str, path: &Path, overwrite: bool) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let look = || -> io::Result<()> {
        let written = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder,
            Err(error) => return Err(error),
        };
        Ok(rustix::fs::access(written, Access::WRITE_OK)?)
    };
    look().with_context(|| {
        format!("could not write {what} {}; nothing was run, name another place", path.display())
    })?;
    // What goes behind what is there already takes no place.
    let is_own = matches!(own_stream(path), Ok(Some(_)));
    match !overwrite && !is_own && fs::metadata(path).is_ok_and(|there| there.is_file()) {
        true => Err(FileExists { what, path: path.to_owned() }.into()),
        false => Ok(()),
    }
}

/// Writes such a file: with `overwrite` as [`write`] does, else as [`write_new`].
pub fn write_asked(what: &'static str, path: &Path, overwrite: bool, bytes: &[u8]) -> anyhow::Result<()> {
    if overwrite { write(what, path, bytes) } else { write_new(what, path, bytes) }
}

/// Writes a file that only its owner may read; `what` it is stands in the error.
fn write(what: &str, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let write = || {
        if let Some(mut stream) = own_stream(path)? {
            return stream.write_all(bytes);
        }
        let is_pipe = fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo());
        let mut options = fs::File::options();
        let mut file = match is_pipe {
            true => open_pipe(path)?,
            false => options.write(true).create(true).truncate(true).mode(0o600).open(path)?,
        };
        // One that was there keeps its mode otherwise; a pipe or a terminal is whose it is.
        if file.metadata()?.is_file() {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
        file.write_all(bytes)
    };
    write().with_context(|| format!("could not write {what} {}; name another place", path.display()))
}

/// As [`write`], but in the place of no other file. What is no file, such as a pipe or a terminal, takes it as ever.
///
/// # Errors
/// [`FileExists`], or what the file system says: then there is no half a file.
fn write_new(what: &'static str, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let failed = || format!("could not write {what} {}; name another place", path.display());
    let mut file = match fs::File::options().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // A link to nothing is no place of ours: the file would come to be where somebody else says.
            let is_own = matches!(own_stream(path), Ok(Some(_)));
            return match is_own || fs::metadata(path).is_ok_and(|there| !there.is_file()) {
                true => write(what, path, bytes),
                false => Err(FileExists { what, path: path.to_owned() }.into()),
            };
        }
        Err(error) => return Err(error).with_context(failed),
    };
    file.write_all(bytes).with_context(failed).inspect_err(|_| {
        // The first error is the one worth telling.
        let _ = fs::remove_file(path);
    })
}

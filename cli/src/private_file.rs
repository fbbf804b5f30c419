//! Files that a command writes for one person: 0600, as they name files and tell what jobs said.

use crate::terminal::own_stream;
use anyhow::Context as _;
use gristmill_runtime::submit::resolved;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::folder::id_of;
use gristmill_worker::whole_file::{self, Promise};
use rustix::fs::{Access, Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// A file that is there already and was not to be replaced, exit code 3.
#[derive(Debug, thiserror::Error)]
#[error("could not write {what} {path}: there is a file already", path = path.display())]
pub struct FileExists {
    /// What was to be written.
    what: &'static str,
    path: PathBuf,
}

impl ExitsWith for FileExists {
    fn exit(&self) -> Exit {
        Exit::hinted(exit::ENVIRONMENT, "choose another file, or add --overwrite")
    }
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
        Errno::NXIO => io::Error::other("this pipe has no reader"),
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
    let look = || -> io::Result<()> {
        let real = place_of(path);
        let folder = real.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let written = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            // A new one takes its place, when it is whole.
            Ok(there) if there.is_file() => folder,
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
    // A link that leads nowhere is in the way, too.
    let is_taken = match fs::metadata(path) {
        Ok(there) => there.is_file(),
        Err(_) => fs::symlink_metadata(path).is_ok(),
    };
    match !overwrite && !is_own && is_taken {
        true => Err(FileExists { what, path: path.to_owned() }.into()),
        false => Ok(()),
    }
}

/// Writes such a file: with `overwrite` as [`write`] does, else as [`write_new`].
pub fn write_asked(what: &'static str, path: &Path, overwrite: bool, bytes: &[u8]) -> anyhow::Result<()> {
    if overwrite { write(what, path, bytes) } else { write_new(what, path, bytes) }
}

/// Where a file is written: in the place of one that is there, also behind a link.
fn place_of(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What is to be written to as it is, and not to be replaced: the program's own output, a pipe, a device.
fn stream_at(path: &Path) -> io::Result<Option<fs::File>> {
    if let Some(stream) = own_stream(path)? {
        return Ok(Some(stream));
    }
    match fs::metadata(path) {
        Ok(there) if there.file_type().is_fifo() => open_pipe(path).map(Some),
        Ok(there) if !there.is_file() => fs::File::options().write(true).open(path).map(Some),
        _ => Ok(None),
    }
}

/// Writes a file that only its owner may read, whole or not at all; `what` it is stands in the error.
fn write(what: &str, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let write = || match stream_at(path)? {
        Some(mut stream) => stream.write_all(bytes),
        None => whole_file::replace(&place_of(path), Promise::Private, |file| file.write_all(bytes)),
    };
    write().with_context(|| format!("could not write {what} {}; name another place", path.display()))
}

/// As [`write`], but in the place of no other file.
///
/// # Errors
/// [`FileExists`], or what the file system says.
fn write_new(what: &'static str, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let write = || match stream_at(path)? {
        Some(mut stream) => stream.write_all(bytes),
        None => whole_file::create_new(path, Promise::Private, |file| file.write_all(bytes)),
    };
    write().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => FileExists { what, path: path.to_owned() }.into(),
        _ => anyhow::Error::new(error)
            .context(format!("could not write {what} {}; name another place", path.display())),
    })
}

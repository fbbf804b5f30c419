//! Files that a command writes for one user: mode 0600, since they contain file names and output of jobs.

use crate::terminal::own_stream;
use anyhow::Context as _;
use gristmill_runtime::submit::resolved;
use gristmill_worker::directory::id_of;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::whole_file::{self, Promise};
use rustix::fs::{Access, Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// A file that exists and must not be replaced, exit code 3.
#[derive(Debug, thiserror::Error)]
#[error("could not write {what} {path}: the file exists already", path = path.display())]
pub struct FileExists {
    /// Kind of file, such as `the trace`.
    what: &'static str,
    path: PathBuf,
}

impl ExitsWith for FileExists {
    fn exit(&self) -> Exit {
        Exit::hinted(exit::ENVIRONMENT, "choose another file, or add --overwrite")
    }
}

/// True if two paths lead to one file, whether it exists or not.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).ok().map(|found| id_of(&found));
    resolved(one) == resolved(other) || id(one).is_some_and(|one| Some(one) == id(other))
}

/// Opens a named pipe to write to it.
///
/// # Errors
/// A pipe without a reader: opening it would wait for one.
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

/// Checks that a file can be written, before the work whose result it holds.
///
/// # Errors
/// [`FileExists`] without `overwrite`; a directory that does not exist, a directory in the file's place, or
/// one that this user may not write.
pub fn expect_place(what: &'static str, path: &Path, overwrite: bool) -> anyhow::Result<()> {
    let look = || -> io::Result<()> {
        let real = place_of(path);
        let directory =
            real.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let written = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            // A new file replaces it, once it is complete.
            Ok(there) if there.is_file() => directory,
            Ok(_) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => directory,
            Err(error) => return Err(error),
        };
        Ok(rustix::fs::access(written, Access::WRITE_OK)?)
    };
    look().with_context(|| {
        format!("could not write {what} {}; nothing was run, name another place", path.display())
    })?;
    // Output that is appended to an existing stream replaces nothing.
    let is_own = matches!(own_stream(path), Ok(Some(_)));
    // A dangling link counts as an existing file too.
    let is_taken = match fs::metadata(path) {
        Ok(there) => there.is_file(),
        Err(_) => fs::symlink_metadata(path).is_ok(),
    };
    match !overwrite && !is_own && is_taken {
        true => Err(FileExists { what, path: path.to_owned() }.into()),
        false => Ok(()),
    }
}

/// Writes a file that only its owner may read, whole or not at all. With `overwrite` it replaces an existing one.
///
/// # Errors
/// [`FileExists`], or an error of the file system; it names `what` the file is.
pub fn write_asked(what: &'static str, path: &Path, overwrite: bool, bytes: &[u8]) -> anyhow::Result<()> {
    let write = || match stream_at(path)? {
        Some(mut stream) => stream.write_all(bytes),
        None if overwrite => {
            whole_file::replace(&place_of(path), Promise::Private, |file| file.write_all(bytes))
        }
        None => whole_file::create_new(path, Promise::Private, |file| file.write_all(bytes)),
    };
    write().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => FileExists { what, path: path.to_owned() }.into(),
        _ => anyhow::Error::new(error)
            .context(format!("could not write {what} {}; name another place", path.display())),
    })
}

/// Returns the path where a file is written: that of the existing one, also behind a link.
fn place_of(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Opens a stream that is written to and not replaced: the program's own output, a pipe, a device.
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

//! Atomically written files: written next to their place under an unpredictable name, then renamed. Links at their
//! place are not followed.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// Prefix of the names of incomplete files, which no other files have.
const DRAFT: &str = ".gristmill-draft-";

/// Guarantees of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// Only its owner may read it. It and its name are on disk before it counts.
    PrivateAndDurable,
    /// Only its owner may read it; the system decides when it is on disk.
    Private,
    /// The process's umask decides who may read it; it is on disk before it counts.
    Durable,
    /// The process's umask decides who may read it, and the system when it is on disk.
    Plain,
}

impl Promise {
    fn is_durable(self) -> bool {
        matches!(self, Self::PrivateAndDurable | Self::Durable)
    }
}

/// Writes a file, and replaces an existing one.
///
/// # Errors
/// An error of `write` or the file system; then nothing has changed.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    promise: Promise,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let draft = draft(path, promise, write)?;
    draft.persist(path).map_err(|error| error.error)?;
    Ok(sync_name(path, promise)?)
}

/// Writes a file, unless one exists.
///
/// # Errors
/// An error of `write` or the file system.
pub fn create<E: From<io::Error>>(
    path: &Path,
    promise: Promise,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    match persist_new(draft(path, promise, write)?, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(sync_name(path, promise)?),
    }
}

/// Writes a file that must not exist.
///
/// # Errors
/// An error of `write` or the file system, [`io::ErrorKind::AlreadyExists`] if one exists by then.
pub fn create_new(
    path: &Path,
    promise: Promise,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    persist_new(draft(path, promise, write)?, path)?;
    sync_name(path, promise)
}

/// True if a name is that of an incomplete file, which may be left by a killed process.
fn is_draft(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(DRAFT.as_bytes())
}

/// Error of reading a file as a whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The path is not a regular file.
    #[error("it is {kind}, not a regular file")]
    NotAFile {
        /// Kind of the entry, with an article.
        kind: &'static str,
    },
    /// The file is longer than the limit.
    #[error("it has {bytes} bytes, more than the {bytes_max} that are read")]
    TooLong {
        /// Length of the file.
        bytes: u64,
        /// Maximum length.
        bytes_max: u64,
    },
    /// The file system failed.
    #[error("it could not be read")]
    Io {
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
}

/// Reads a regular file of at most this many bytes. It never waits for other entries, such as a pipe, and follows no
/// link.
///
/// # Errors
/// Another entry at this path, a longer file, or an error of the file system.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    use rustix::fs::OFlags;
    let failed = |source| ReadError::Io { source };
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|source| match rustix::io::Errno::from_io_error(&source) {
        Some(rustix::io::Errno::LOOP) => ReadError::NotAFile { kind: "a link" },
        // Error of the kernel for a socket.
        Some(rustix::io::Errno::NXIO) => ReadError::NotAFile { kind: "a socket" },
        _ => failed(source),
    })?;
    let metadata = file.metadata().map_err(failed)?;
    let file_type = metadata.file_type();
    if !file_type.is_file() {
        let kinds = [(file_type.is_dir(), "a directory"), (file_type.is_fifo(), "a pipe")];
        let kind = kinds.iter().find_map(|(is_it, kind)| is_it.then_some(*kind)).unwrap_or("a device");
        return Err(ReadError::NotAFile { kind });
    }
    let mut bytes = Vec::new();
    // One more byte: a file that grows in the meantime is too long, and not truncated.
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    let length = (bytes.len() as u64).max(metadata.len());
    if bytes_max < length {
        return Err(ReadError::TooLong { bytes: length, bytes_max });
    }
    Ok(bytes)
}

/// Removes incomplete files of killed processes from a directory. To be called only by the sole writer of the
/// directory.
///
/// # Errors
/// An error of the file system.
pub fn remove_drafts(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_draft(&entry.file_name()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn draft<E: From<io::Error>>(
    path: &Path,
    promise: Promise,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<NamedTempFile, E> {
    let mode = match promise {
        Promise::PrivateAndDurable | Promise::Private => 0o600,
        Promise::Durable | Promise::Plain => 0o666, // less what the umask takes
    };
    let mut draft =
        named_as_draft().permissions(Permissions::from_mode(mode)).tempfile_in(directory(path))?;
    write(draft.as_file_mut())?;
    if promise.is_durable() {
        draft.as_file().sync_all()?;
    }
    Ok(draft)
}

/// Renames a draft, unless the name exists. Without hard links (exFAT, many FUSE mounts) an empty file claims the name,
/// and is then replaced.
fn persist_new(draft: NamedTempFile, path: &Path) -> io::Result<()> {
    use io::ErrorKind::{PermissionDenied, Unsupported};
    match draft.persist_noclobber(path) {
        Err(error) if matches!(error.error.kind(), PermissionDenied | Unsupported) => {
            File::options().write(true).create_new(true).open(path)?;
            Ok(error.file.persist(path).map(drop)?)
        }
        persisted => Ok(persisted.map(drop)?),
    }
}

fn named_as_draft() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(DRAFT);
    builder
}

/// Without this a power failure could restore the old content.
fn sync_name(path: &Path, promise: Promise) -> io::Result<()> {
    match promise.is_durable() {
        true => File::open(directory(path))?.sync_all(),
        false => Ok(()),
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    fn text(words: &str) -> impl FnOnce(&mut File) -> io::Result<()> {
        move |file| file.write_all(words.as_bytes())
    }

    #[test]
    fn file_is_replaced_whole_and_a_failure_leaves_the_old_one_and_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept");
        replace(&path, Promise::PrivateAndDurable, text("old")).unwrap();
        let failed = replace(&path, Promise::PrivateAndDurable, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        replace(&path, Promise::PrivateAndDurable, text("new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn link_in_the_place_of_a_file_is_replaced_and_what_it_names_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (path, target) = (directory.path().join("link"), directory.path().join("target"));
        fs::write(&target, "untouched").unwrap();
        symlink(&target, &path).unwrap();
        replace(&path, Promise::Plain, text("new")).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn what_is_no_regular_file_or_too_long_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("file"), "12345").unwrap();
        assert_eq!(read(&path("file"), 5).unwrap(), b"12345");
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        symlink("file", path("link")).unwrap();
        fs::create_dir(path("directory")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        for (name, expected) in [
            ("file", "it has 5 bytes, more than the 4 that are read"),
            ("pipe", "it is a pipe, not a regular file"),
            ("link", "it is a link, not a regular file"),
            ("directory", "it is a directory, not a regular file"),
            ("socket", "it is a socket, not a regular file"),
            ("missing", "it could not be read"),
        ] {
            assert_eq!(read(&path(name), 4).unwrap_err().to_string(), expected, "{name}");
        }
    }

    #[test]
    fn file_that_comes_while_one_is_written_stays_and_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let late = create_new(&path, Promise::Plain, |file| {
            fs::write(&path, "first")?;
            file.write_all(b"second")
        });
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let other = directory.path().join("other");
        create_new(&other, Promise::Plain, text("second")).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "second");
    }

    #[test]
    fn file_that_is_there_stays_when_one_is_to_be_created() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        create(&path, Promise::PrivateAndDurable, text("first")).unwrap();
        create(&path, Promise::PrivateAndDurable, text("second")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

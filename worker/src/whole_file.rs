//! Files that are there whole or not at all: written beside their place under a name that nobody can guess, then put
//! there. No link at their place is followed.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use tempfile::NamedTempFile;

/// How the names of what is not whole yet begin, as nobody's own do.
const DRAFT: &str = ".gristmill-draft-";

/// What is promised of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// Only its owner may read it, and it is on disk before it counts, its name too.
    PrivateAndDurable,
    /// Only its owner may read it; when it is on disk is up to the system.
    Private,
    /// Who may read it is up to the process's umask; it is on disk before it counts.
    Durable,
    /// Who may read it is up to the process's umask, and when it is on disk to the system.
    Plain,
}

impl Promise {
    fn is_durable(self) -> bool {
        matches!(self, Self::PrivateAndDurable | Self::Durable)
    }
}

/// Writes a file anew, in the place of one that may be there.
///
/// # Errors
/// What `write` or the file system says; then nothing has changed.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    promise: Promise,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let draft = draft(path, promise, write)?;
    draft.persist(path).map_err(|error| error.error)?;
    Ok(sync_name(path, promise)?)
}

/// Writes a file, unless one is there already.
///
/// # Errors
/// What `write` or the file system says.
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

/// Writes a file where none is.
///
/// # Errors
/// What `write` or the file system says, [`io::ErrorKind::AlreadyExists`] if there is one by then.
pub fn create_new(
    path: &Path,
    promise: Promise,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    persist_new(draft(path, promise, write)?, path)?;
    sync_name(path, promise)
}

/// Makes a link, in the place of a file or link that may be there.
///
/// # Errors
/// What the file system says; then nothing has changed.
pub fn replace_link(path: &Path, to: &Path) -> io::Result<()> {
    let draft = named_as_draft().make_in(folder(path), |draft| symlink(to, draft))?;
    Ok(draft.into_temp_path().persist(path)?)
}

/// Whether a name is that of a file that is not whole yet, or never became so as its writer was killed.
pub fn is_draft(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(DRAFT.as_bytes())
}

/// Why a file could not be read whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// What is there is no regular file.
    #[error("it is {kind}, not a regular file")]
    NotAFile {
        /// What it is, with its article.
        kind: &'static str,
    },
    /// It is longer than whoever reads it can use.
    #[error("it has {bytes} bytes, more than the {bytes_max} that are read")]
    TooLong {
        /// Bytes of the file.
        bytes: u64,
        /// Bytes that are read.
        bytes_max: u64,
    },
    /// The file system refuses.
    #[error("it could not be read")]
    Io {
        /// Its error.
        #[source]
        source: io::Error,
    },
}

/// Reads a regular file of at most so many bytes. Never waits for what is none, such as a pipe, and follows no link.
///
/// # Errors
/// Something else in its place, a longer file, or what the file system says.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    use rustix::fs::OFlags;
    let failed = |source| ReadError::Io { source };
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|source| match rustix::io::Errno::from_io_error(&source) {
        Some(rustix::io::Errno::LOOP) => ReadError::NotAFile { kind: "a link" },
        // As the kernel answers for a socket.
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
    // One more: a file that grows meanwhile is too long, and not cut.
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    let length = (bytes.len() as u64).max(metadata.len());
    if bytes_max < length {
        return Err(ReadError::TooLong { bytes: length, bytes_max });
    }
    Ok(bytes)
}

/// Removes what processes that were killed while they wrote have left in a folder. For whoever is the only one that
/// writes there.
///
/// # Errors
/// What the file system says.
pub fn remove_drafts(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
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
    let mut draft = named_as_draft().permissions(Permissions::from_mode(mode)).tempfile_in(folder(path))?;
    write(draft.as_file_mut())?;
    if promise.is_durable() {
        draft.as_file().sync_all()?;
    }
    Ok(draft)
}

/// Gives a draft its name, unless something has it. Without hard links (exFAT, many FUSE mounts) an empty file claims the
/// name, and is then replaced.
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

/// Without this the loss of power could bring the old content back.
fn sync_name(path: &Path, promise: Promise) -> io::Result<()> {
    match promise.is_durable() {
        true => File::open(folder(path))?.sync_all(),
        false => Ok(()),
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn text(words: &str) -> impl FnOnce(&mut File) -> io::Result<()> {
        move |file| file.write_all(words.as_bytes())
    }

    #[test]
    fn file_is_replaced_whole_and_a_failure_leaves_the_old_one_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
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
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn link_in_the_place_of_a_file_is_replaced_and_what_it_names_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("link"), folder.path().join("target"));
        fs::write(&target, "untouched").unwrap();
        symlink(&target, &path).unwrap();
        replace(&path, Promise::Plain, text("new")).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn what_is_no_regular_file_or_too_long_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "12345").unwrap();
        assert_eq!(read(&path("file"), 5).unwrap(), b"12345");
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        symlink("file", path("link")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        for (name, expected) in [
            ("file", "it has 5 bytes, more than the 4 that are read"),
            ("pipe", "it is a pipe, not a regular file"),
            ("link", "it is a link, not a regular file"),
            ("folder", "it is a directory, not a regular file"),
            ("socket", "it is a socket, not a regular file"),
            ("missing", "it could not be read"),
        ] {
            assert_eq!(read(&path(name), 4).unwrap_err().to_string(), expected, "{name}");
        }
    }

    #[test]
    fn file_that_comes_while_one_is_written_stays_and_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let late = create_new(&path, Promise::Plain, |file| {
            fs::write(&path, "first")?;
            file.write_all(b"second")
        });
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let other = folder.path().join("other");
        create_new(&other, Promise::Plain, text("second")).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "second");
    }

    #[test]
    fn file_that_is_there_stays_when_one_is_to_be_created() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        create(&path, Promise::PrivateAndDurable, text("first")).unwrap();
        create(&path, Promise::PrivateAndDurable, text("second")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

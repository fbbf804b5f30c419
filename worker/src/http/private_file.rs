//! Small files that only their owner may read: the cluster's secret, a server's key, and other private files of a
//! master.
//!
//! Created and replaced atomically, so that processes which start together agree on one content. Read only if they are
//! regular files of this user that no other user may read, and never through a link. Contents have few kilobytes.

use crate::directory::{Closed, ForeignError, refuse_access, refuse_foreign};
use crate::exit::ExitsWith;
use crate::whole_file::{self, Promise};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Maximum size of a secret or key file, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 16 * 1024;

/// Error of a private file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum PrivateFileError {
    /// An operation of the file system failed.
    #[error("could not {action} {}", path.display())]
    Io {
        /// Attempted operation.
        action: &'static str,
        /// File or directory of the operation.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file or its directory belongs to another user, or others have access to it.
    #[error("refused {0}")]
    Foreign(ForeignError),
    /// The file is larger than any private file, or is not text.
    #[error("refused {}: it is not a key or secret file", path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
}

impl ExitsWith for PrivateFileError {}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PrivateFileError {
    let path = path.to_path_buf();
    move |source| PrivateFileError::Io { action, path, source }
}

/// Returns the content of `path`. If the file does not exist, the result of `make` is stored there first.
pub(super) fn read_or_create<E: From<PrivateFileError>>(
    path: &Path,
    make: impl FnOnce() -> Result<Zeroizing<String>, E>,
) -> Result<Zeroizing<String>, E> {
    let directory = directory_of(path);
    make_private_directory(directory)?;
    if let Some(content) = read_private(path, FILE_BYTES_MAX)? {
        return Ok(content);
    }
    let content = make()?;
    whole_file::create(path, Promise::PrivateAndDurable, |file| file.write_all(content.as_bytes()))
        .map_err(io_error("create", path))?;
    // Read back rather than returned: another process may have been first, and its content counts.
    match read_private(path, FILE_BYTES_MAX)? {
        Some(content) => Ok(content),
        None => Err(PrivateFileError::Io {
            action: "read back",
            path: path.to_path_buf(),
            source: io::ErrorKind::NotFound.into(),
        }
        .into()),
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a directory for private files, unless it exists.
///
/// # Errors
/// A directory that other users may use, or that belongs to another user.
pub fn make_private_directory(directory: &Path) -> Result<(), PrivateFileError> {
    if !directory.exists() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(io_error("create directory", directory))?;
    }
    let metadata = fs::metadata(directory).map_err(io_error("examine directory", directory))?;
    check_private(directory, &metadata)
}

fn check_private(path: &Path, metadata: &fs::Metadata) -> Result<(), PrivateFileError> {
    let closed = || refuse_access(path, metadata, Closed::Altogether);
    refuse_foreign(path, metadata, false).and_then(|()| closed()).map_err(PrivateFileError::Foreign)
}

/// Returns the content of a private file of at most this many bytes; `None` if the file does not exist.
///
/// # Errors
/// A file that other users may read, that belongs to another user, is too long, not text, or not a regular
/// file. A link is not followed, and a pipe is not waited for.
pub fn read_private(path: &Path, bytes_max: u64) -> Result<Option<Zeroizing<String>>, PrivateFileError> {
    use rustix::fs::OFlags;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", path)(error)),
    };
    // The open file is checked, not the name, which could refer to another file by now.
    let metadata = file.metadata().map_err(io_error("examine", path))?;
    check_private(path, &metadata)?;
    if !metadata.is_file() || bytes_max < metadata.len() {
        return Err(PrivateFileError::Content { path: path.to_path_buf() });
    }
    let mut content = Zeroizing::new(String::with_capacity(metadata.len() as usize + 1));
    match file.take(bytes_max).read_to_string(&mut content) {
        Ok(_) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(PrivateFileError::Content { path: path.to_path_buf() })
        }
        Err(error) => Err(io_error("read", path)(error)),
    }
}

/// Replaces a private file atomically; it is on disk when this returns.
///
/// # Errors
/// An error of the file system.
pub fn replace_private(path: &Path, content: &str) -> Result<(), PrivateFileError> {
    whole_file::replace(path, Promise::PrivateAndDurable, |file| file.write_all(content.as_bytes()))
        .map_err(io_error("write", path))
}

//! Small files that only their owner may read: the cluster's secret, a server's key, and what a master keeps with them.
//!
//! Created whole or not at all, so that processes which start together agree on one content, and replaced likewise.
//! Read only if they are regular files of this user that nobody else may read, and never through a link. It is not a
//! general file store: a content has few kilobytes.

use crate::whole_file::{self, Promise};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Largest secret or key file, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 16 * 1024;
/// Bits of a mode that let others in.
const OTHERS: u32 = 0o077;

/// Why a private file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum PrivateFileError {
    /// An operation of the file system failed.
    #[error("could not {action} {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file or its directory belongs to somebody else.
    #[error("refused {}: it belongs to user {owner}, not to user {user} who runs this", path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// User number of its owner.
        owner: u32,
        /// User number of this process.
        user: u32,
    },
    /// Others may read or write the file or its directory.
    #[error("refused {}: its mode is {mode:04o}, which lets others in; it must be {wanted:04o}", path.display())]
    Permissive {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// What they must be.
        wanted: u32,
    },
    /// The file is larger than any we write, or is not text.
    #[error("refused {}: it is not a key or secret file", path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PrivateFileError {
    let path = path.to_path_buf();
    move |source| PrivateFileError::Io { action, path, source }
}

/// The content of `path`; if there is no such file, what `make` returns, stored there first.
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

/// Makes a directory for private files, unless it is there.
///
/// # Errors
/// A directory that others may use, or that is not ours.
pub fn make_private_directory(directory: &Path) -> Result<(), PrivateFileError> {
    if !directory.exists() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(io_error("create directory", directory))?;
    }
    let metadata = fs::metadata(directory).map_err(io_error("examine directory", directory))?;
    check_private(directory, &metadata, 0o700)
}

fn check_private(path: &Path, metadata: &fs::Metadata, wanted: u32) -> Result<(), PrivateFileError> {
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(PrivateFileError::Foreign { path: path.to_path_buf(), owner: metadata.uid(), user });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(PrivateFileError::Permissive { path: path.to_path_buf(), mode, wanted });
    }
    Ok(())
}

/// The content of a private file of at most so many bytes; `None` if there is none of that name.
///
/// # Errors
/// A file that others may read, that is not ours, too long, no text, or no regular file: a link is not followed, and a
/// pipe is not waited for.
pub fn read_private(path: &Path, bytes_max: u64) -> Result<Option<Zeroizing<String>>, PrivateFileError> {
    use rustix::fs::OFlags;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", path)(error)),
    };
    // The open file is examined, not the name, which could mean another file by now.
    let metadata = file.metadata().map_err(io_error("examine", path))?;
    check_private(path, &metadata, 0o600)?;
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

/// Writes a private file anew, on disk before this returns, whole or not at all.
///
/// # Errors
/// An error of the file system.
pub fn replace_private(path: &Path, content: &str) -> Result<(), PrivateFileError> {
    whole_file::replace(path, Promise::PrivateAndDurable, |file| file.write_all(content.as_bytes()))
        .map_err(io_error("write", path))
}

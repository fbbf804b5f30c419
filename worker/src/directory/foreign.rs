//! Checks of the owner of a file or directory.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Error of a file or directory that another user could change.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum ForeignError {
    /// It belongs to another user.
    #[error(
        "{} belongs to user {owner}, not to user {user} who runs this; copy it, or run `chown {user} {}`",
        path.display(),
        path.display()
    )]
    Owner {
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        user: u32,
    },
    /// Other users have access that they must not have.
    #[error("{} has mode {mode:04o}, which gives other users access; run `chmod {change} {}`", path.display(), path.display())]
    Mode {
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Change that takes the access away.
        change: &'static str,
    },
}

/// Access that other users must not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closed {
    /// Write it.
    ToWriting,
    /// Any access.
    Altogether,
}

impl From<ForeignError> for io::Error {
    fn from(error: ForeignError) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, error)
    }
}

/// Rejects a file or directory of another user; with `or_root`, those of root are accepted.
///
/// # Errors
/// Another owner.
pub fn refuse_foreign(path: &Path, metadata: &Metadata, or_root: bool) -> Result<(), ForeignError> {
    let user = rustix::process::geteuid().as_raw();
    let owner = metadata.uid();
    if owner == user || (or_root && owner == 0) {
        return Ok(());
    }
    Err(ForeignError::Owner { path: path.to_path_buf(), owner, user })
}

/// Rejects a file or directory to which other users have this access.
///
/// # Errors
/// A mode that gives it.
pub fn refuse_access(path: &Path, metadata: &Metadata, closed: Closed) -> Result<(), ForeignError> {
    let (bits, change) = match closed {
        Closed::ToWriting => (0o022, "go-w"),
        Closed::Altogether => (0o077, "go-rwx"),
    };
    let mode = metadata.mode() & 0o7777;
    match mode & bits {
        0 => Ok(()),
        _ => Err(ForeignError::Mode { path: path.to_path_buf(), mode, change }),
    }
}

//! Whether a file or folder belongs to somebody else.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Something belongs to somebody who could change it under our hands.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum ForeignError {
    /// Another user's.
    #[error("{} belongs to user {owner}, not to user {user} who runs this", path.display())]
    Owner {
        path: PathBuf,
        /// User number of its owner.
        owner: u32,
        /// User number of this process.
        user: u32,
    },
    /// Others may write there.
    #[error("{} has mode {mode:04o}: others may write there; run `chmod go-w {}`", path.display(), path.display())]
    Writable {
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

impl From<ForeignError> for io::Error {
    fn from(error: ForeignError) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, error)
    }
}

/// Refuses what belongs to another user; `or_root`: root's is as good as ours.
///
/// # Errors
/// Whose it is.
pub fn refuse_foreign(path: &Path, metadata: &Metadata, or_root: bool) -> Result<(), ForeignError> {
    let user = rustix::process::geteuid().as_raw();
    let owner = metadata.uid();
    if owner == user || (or_root && owner == 0) {
        return Ok(());
    }
    Err(ForeignError::Owner { path: path.to_path_buf(), owner, user })
}

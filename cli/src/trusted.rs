//! Trusted files: settings and join lines. A user who can write one decides what this program does, and
//! a user who can read a join line can act as its owner.

use gristmill_worker::directory::{Closed, ForeignError, refuse_access, refuse_foreign};
use gristmill_worker::exit::ExitsWith;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum length of such a file, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reason why a file is not trusted. Exit code 3.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It belongs to another user, or others have access that they must not have.
    #[error("refused {0}")]
    Foreign(ForeignError),
    /// It is longer than any valid file.
    #[error("refused {}: it has more than {FILE_BYTES_MAX} bytes", path.display())]
    Long {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("could not read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl ExitsWith for TrustError {}

/// Reads a file of this user or of root that others cannot access.
///
/// # Errors
/// A file that does not exist, or that is not trusted.
pub fn read(path: &Path, closed: Closed) -> Result<String, TrustError> {
    let failed = |source| TrustError::Io { path: path.to_path_buf(), source };
    // The creator of a link chose the file, and a pipe of another user must not be waited for.
    let check_owner = |found: &Metadata| refuse_foreign(path, found, true).map_err(TrustError::Foreign);
    check_owner(&std::fs::symlink_metadata(path).map_err(failed)?)?;
    check_owner(&std::fs::metadata(path).map_err(failed)?)?;
    let file = File::open(path).map_err(failed)?;
    // The open file is examined, not the name, which could mean another file by now.
    let metadata = file.metadata().map_err(failed)?;
    check_owner(&metadata)?;
    refuse_access(path, &metadata, closed).map_err(TrustError::Foreign)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if FILE_BYTES_MAX < text.len() as u64 {
        return Err(TrustError::Long { path: path.to_path_buf() });
    }
    Ok(text)
}

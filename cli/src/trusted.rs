//! Trusted files: settings and join lines. A user who can write one decides what this program does, and
//! a user who can read a join line can act as its owner.

use gristmill_worker::exit::ExitsWith;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum length of such a file, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Rights that others must not have on a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closed {
    /// Write it.
    ToWriting,
    /// Read or write it.
    Altogether,
}

impl Closed {
    /// Mode bits that give others this access, and the arguments of `chmod` that remove them.
    fn bits(self) -> (u32, &'static str) {
        match self {
            Closed::ToWriting => (0o022, "go-w"),
            Closed::Altogether => (0o066, "go-rwx"),
        }
    }
}

/// Reason why a file is not trusted. Exit code 3.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It belongs to another user.
    #[error(
        "refused {}: it belongs to user {owner}, not to user {user} who runs this or to root; \
         copy it, or run `chown {user} {}`", path.display(), path.display()
    )]
    Owner {
        /// The file, or the link by that name.
        path: PathBuf,
        /// User number of its owner.
        owner: u32,
        /// User number of this process.
        user: u32,
    },
    /// Others have access that they must not have.
    #[error(
        "refused {}: its mode {mode:04o} gives other users access; run `chmod {change} {}`",
        path.display(), path.display()
    )]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Command that removes the rights that are too many.
        change: &'static str,
    },
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
    check_owner(path, &std::fs::symlink_metadata(path).map_err(failed)?)?;
    check_owner(path, &std::fs::metadata(path).map_err(failed)?)?;
    let file = File::open(path).map_err(failed)?;
    // The open file is examined, not the name, which could mean another file by now.
    let metadata = file.metadata().map_err(failed)?;
    check_owner(path, &metadata)?;
    let (bits, change) = closed.bits();
    let mode = metadata.mode() & 0o7777;
    if mode & bits != 0 {
        return Err(TrustError::Mode { path: path.to_path_buf(), mode, change });
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if FILE_BYTES_MAX < text.len() as u64 {
        return Err(TrustError::Long { path: path.to_path_buf() });
    }
    Ok(text)
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), TrustError> {
    let user = rustix::process::geteuid().as_raw();
    let owner = metadata.uid();
    if owner == user || owner == 0 {
        return Ok(());
    }
    Err(TrustError::Owner { path: path.to_path_buf(), owner, user })
}

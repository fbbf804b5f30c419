//! Small files that only their owner may read: the cluster's secret and a server's key.
//!
//! Created whole or not at all, so that processes which start together agree on one content. It is
//! not a general file store: a content is at most a few kilobytes and is never changed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Largest private file, in bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024;
/// Bits of a mode that let others in.
const OTHERS: u32 = 0o077;

/// Why a private file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateFileError {
    /// An operation of the file system failed.
    #[error("could not {action} {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
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
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    private_directory(directory)?;
    if let Some(content) = read(path)? {
        return Ok(content);
    }
    publish(directory, path, &make()?)?;
    // Read back rather than returned: another process may have been first, and its content counts.
    match read(path)? {
        Some(content) => Ok(content),
        None => Err(PrivateFileError::Io {
            action: "read back",
            path: path.to_path_buf(),
            source: io::ErrorKind::NotFound.into(),
        }
        .into()),
    }
}

fn private_directory(directory: &Path) -> Result<(), PrivateFileError> {
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

fn read(path: &Path) -> Result<Option<Zeroizing<String>>, PrivateFileError> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(no_follow).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", path)(error)),
    };
    // The open file is examined, not the name, which could mean another file by now.
    let metadata = file.metadata().map_err(io_error("examine", path))?;
    check_private(path, &metadata, 0o600)?;
    if !metadata.is_file() || FILE_BYTES_MAX < metadata.len() {
        return Err(PrivateFileError::Content { path: path.to_path_buf() });
    }
    let mut content = Zeroizing::new(String::with_capacity(metadata.len() as usize + 1));
    match file.take(FILE_BYTES_MAX).read_to_string(&mut content) {
        Ok(_) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(PrivateFileError::Content { path: path.to_path_buf() })
        }
        Err(error) => Err(io_error("read", path)(error)),
    }
}

/// Writes the content beside `path` and links it there, unless something is there already.
fn publish(directory: &Path, path: &Path, content: &str) -> Result<(), PrivateFileError> {
    let mut nonce = [0; 8];
    getrandom::fill(&mut nonce)
        .map_err(|error| io_error("name a temporary file in", directory)(error.into()))?;
    let draft = directory.join(format!(".draft-{:016x}", u64::from_le_bytes(nonce)));
    let written = write_new(&draft, content).and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => File::open(directory)?.sync_all(),
    });
    let removed = fs::remove_file(&draft);
    written.map_err(io_error("create", path))?;
    removed.map_err(io_error("remove", &draft))
}

fn write_new(path: &Path, content: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

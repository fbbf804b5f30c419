//! Standard input as the input of a job: stored in a file until the job has ended, because tasks read it in pieces and
//! may read it again.

use gristmill_worker::input::{FilePath, InputError};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Name of standard input in a list of inputs.
pub(crate) const NAME: &[u8] = b"-";

/// Maximum number of bytes stored, 1 TiB.
const BYTES_MAX: u64 = 1 << 40;

/// Place where standard input is stored, and its file if it has been read already.
pub(crate) struct StandardInput {
    directory: Option<PathBuf>,
    kept: Mutex<Option<FilePath>>,
}

impl StandardInput {
    /// Stores it in this directory; without one, it must not be read.
    pub(crate) fn in_directory(directory: Option<PathBuf>) -> Self {
        Self { directory, kept: Mutex::new(None) }
    }

    /// The file with all of it. The first caller reads it to its end.
    ///
    /// # Errors
    /// No directory, or a file that cannot be written.
    pub(crate) fn file(&self) -> Result<FilePath, InputError> {
        let Some(directory) = &self.directory else {
            return Err(InputError::refused(
                "standard input (`-`) is read by `run` and by `submit` that stays attached; write it to a file and name that",
            ));
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &*kept {
            return Ok(path.clone());
        }
        let path = directory.join("standard-input");
        let failed = |source| InputError::Unreadable { path: FilePath::new(NAME), source };
        let made = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = made.map_err(failed)?;
        let copied = io::copy(&mut io::stdin().lock().take(BYTES_MAX + 1), &mut file).map_err(failed)?;
        if BYTES_MAX < copied {
            return Err(failed(io::Error::other(format!("it has more than {BYTES_MAX} bytes"))));
        }
        let path = FilePath::from(path.as_path());
        *kept = Some(path.clone());
        Ok(path)
    }

    /// The regular file from which it was read; `None` if it was not read, or was not a regular file.
    pub(crate) fn source(&self) -> Option<Metadata> {
        let was_read = self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let found = was_read.then(|| fs::metadata("/dev/stdin")).and_then(Result::ok);
        found.filter(Metadata::is_file)
    }
}

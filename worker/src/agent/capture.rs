//! Output of user code on stdout and stderr, captured in a file and attributed to attempts.
//!
//! Both descriptors of the process point to one file in the spill directory. A pipe would lose the last
//! output of a process that aborts; the supervisor reads it from the file. The worker's own log goes to
//! the former stderr.
//!
//! Invariant: the file never grows much beyond [`FILE_BYTES_MAX`].

use rustix::fs::{Mode, OFlags, ftruncate, open};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Name of the file in the worker's first spill directory.
pub const FILE_NAME: &str = "user-output";

/// Length above which the file is truncated once it has been read.
pub const FILE_BYTES_MAX: u64 = 8 << 20;

/// File with a read position.
pub struct Capture {
    file: Arc<File>,
    read: u64,
}

/// Reads the number of bytes written so far. Clones share the file.
#[derive(Clone)]
pub struct CaptureMark(Arc<File>);

impl CaptureMark {
    /// Returns the number of bytes in the file now.
    #[must_use]
    pub fn now(&self) -> u64 {
        // The position of the file is not used otherwise: writers append, readers give an offset. Seeking
        // is the cheapest way to get the length.
        (&*self.0).seek(SeekFrom::End(0)).unwrap_or(0)
    }
}

impl Capture {
    /// Redirects stdout and stderr of this process to the file and returns it with the old stderr.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn start(directory: &Path) -> io::Result<(Self, OwnedFd)> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
        let file = open(directory.join(FILE_NAME), flags, Mode::RUSR | Mode::WUSR)?;
        // Not inherited by programs that user code starts, which would keep the caller's terminal or pipe
        // open.
        let before = rustix::io::fcntl_dupfd_cloexec(io::stderr().as_fd(), 3)?;
        rustix::stdio::dup2_stdout(&file)?;
        rustix::stdio::dup2_stderr(&file)?;
        Ok((Self { file: Arc::new(File::from(file)), read: 0 }, before))
    }

    /// Returns a handle that reads the number of bytes written.
    #[must_use]
    pub fn mark(&self) -> CaptureMark {
        CaptureMark(self.file.clone())
    }

    /// Returns the bytes written since the last call up to this byte of the file (from a
    /// [`CaptureMark`]), at most `limit` bytes. Later calls return the rest.
    ///
    /// # Errors
    /// The file cannot be read.
    /// A file that cannot be read.
    pub fn take(&mut self, end: u64, limit: usize) -> io::Result<Vec<u8>> {
        if end <= self.read {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; (end - self.read).min(limit as u64) as usize];
        let got = self.file.read_at(&mut bytes, self.read)?;
        bytes.truncate(got);
        self.read += got as u64;
        if FILE_BYTES_MAX < end {
            // Output that is written faster than it is read is dropped: a runaway loop must not fill the
            // disk.
            ftruncate(&*self.file, 0)?;
            self.read = 0;
        }
        Ok(bytes)
    }
}

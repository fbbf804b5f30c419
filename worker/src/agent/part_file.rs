//! File in which an attempt builds its part, the output of one task. It is in the output directory of the job if this
//! worker sees that, else in a directory of the worker, from where it is sent.

use crate::commit;
use crate::directory::{Directory, PlainName};
use crate::fault;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// File in which an attempt builds its part.
#[derive(Clone, Debug)]
pub struct PartFile {
    pub(super) directory: Arc<Directory>,
    pub(super) name: String,
    /// True if the directory is that of the output, not this worker's own.
    pub(super) in_output: bool,
}

impl PartFile {
    /// Returns the file of a named output's part, next to this one.
    pub(super) fn named(&self, output: &PlainName) -> Self {
        Self { name: commit::named_built_name(&self.name, output), ..self.clone() }
    }

    /// Returns its path, for messages.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path(&self.name)
    }

    /// Creates it, empty.
    pub(super) fn create(&self) -> io::Result<File> {
        fault::error("part.write").and_then(|()| self.directory.create(&self.name))
    }

    /// Opens it for reading.
    pub(super) fn open(&self) -> io::Result<File> {
        self.directory.open_file(&self.name)
    }

    /// Removes it. On failure it is removed with its directory, when the job or the worker ends.
    pub(super) fn remove(&self) {
        let _ = self.directory.remove_file(&self.name);
    }
}

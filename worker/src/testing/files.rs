//! Files of a trial: real ones, in a separate directory, under the names used by the job.

use crate::api::{Input, PlanError, Submitter};
use crate::error_text::chain;
use crate::input::list::{ListedFile, Listing, list_local};
use crate::input::plan::{FirstRecord, first_records, input_bytes};
use crate::input::{FilePath, InputError, InputLimits, LocalFiles, Place};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Files that a job finds by their names, as if they were in the directory where it is submitted. Other names refer to
/// files of this machine.
pub struct TrialFiles {
    directory: TempDir,
}

impl TrialFiles {
    /// Creates an empty set of files.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn new() -> io::Result<Self> {
        Ok(Self { directory: tempfile::tempdir()? })
    }

    /// Adds a file; directories in its name are created.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn add(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let place = self.place(Path::new(name));
        if let Some(directory) = place.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(place, contents)
    }

    fn place(&self, name: &Path) -> PathBuf {
        self.directory.path().join("files").join(name.strip_prefix("/").unwrap_or(name))
    }

    /// Returns a directory without files of the job.
    pub(super) fn spill_directory(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    /// Returns the job's name of a file that was listed here.
    pub(super) fn name_of(&self, path: &FilePath) -> Option<FilePath> {
        let name = path.to_path().strip_prefix(self.directory.path().join("files")).ok()?;
        Some(FilePath::from(name))
    }
}

impl Listing for TrialFiles {
    fn list(&self, place: Place, path: &FilePath) -> Result<Vec<ListedFile>, InputError> {
        let Place::Submitter = place else { return Err(InputError::out_of_reach(path)) };
        let own = self.place(path.to_path());
        if own.exists() { list_local(&FilePath::from(own.as_path())) } else { list_local(path) }
    }
}

impl Submitter for TrialFiles {
    fn size(&self, input: &Input) -> Result<u64, PlanError> {
        input_bytes(input, self).map_err(|error| unusable(input, &error))
    }

    fn first_records(&self, input: &Input) -> Result<Vec<FirstRecord>, PlanError> {
        let records = first_records(input, self, &LocalFiles, &InputLimits::default());
        records.map_err(|error| unusable(input, &error))
    }
}

fn unusable(input: &Input, error: &InputError) -> PlanError {
    PlanError::Input { path: input.paths.join(", "), reason: chain(error) }
}

//! Files found for the input paths of a job, and the trait that lists them on this machine or on workers. Used where
//! the job is submitted, before its input is cut into splits.

use super::error::InputError;
use super::path::FilePath;
use super::split::{FileStamp, Place};
use serde::{Deserialize, Serialize};

/// Listed file on any machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListedFile {
    /// Requested path, or a name in that directory.
    pub path: FilePath,
    /// Stamp of the file.
    pub stamp: FileStamp,
}

/// Lists files of this machine and of workers.
pub trait Listing {
    /// Returns the file of this path, or the files of this directory that are input (see the module
    /// documentation).
    ///
    /// # Errors
    /// A path that does not exist, is unreadable or not a regular file.
    fn list(&self, place: Place, path: &FilePath) -> Result<Vec<ListedFile>, InputError>;
}

/// Handling of directories in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Subdirectories {
    /// They are an error.
    #[default]
    Refused,
    /// Their files are read too, including those of nested directories.
    Read,
}

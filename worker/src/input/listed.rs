//! Files as they are listed, and a way to list them.

use super::error::InputError;
use super::path::FilePath;
use super::split::{FileStamp, Place};
use serde::{Deserialize, Serialize};

/// A file as it was found, on whatever machine it lies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListedFile {
    /// The path that was asked for, or a name in that directory.
    pub path: FilePath,
    /// What it looks like.
    pub stamp: FileStamp,
}

/// A way to list files of this machine and of workers.
pub trait Listing {
    /// The file of this path, or the files of this directory; see the module's text for which.
    ///
    /// # Errors
    /// A path that is missing, unreadable or no regular file.
    fn list(&self, place: Place, path: &FilePath) -> Result<Vec<ListedFile>, InputError>;
}

/// What is made of directories in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Subdirectories {
    /// They are an error.
    #[default]
    Refused,
    /// Their files are read too, and those of directories in them.
    Read,
}

//! Failed file operation: the error shared by the stores of runs and pages.

use std::io;
use std::path::{Path, PathBuf};

/// Failed file operation, with its path and cause.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {path}")]
pub struct IoError {
    /// Operation that failed.
    pub action: &'static str,
    /// Path of the operation.
    pub path: PathBuf,
    /// Cause.
    #[source]
    pub source: io::Error,
}

impl IoError {
    /// Returns a function that converts an error of the system to the error of this operation.
    pub fn during<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self { action, path: path.to_path_buf(), source }
    }
}

//! A step in the file system that failed: the error that stores of runs and pages share.

use std::io;
use std::path::{Path, PathBuf};

/// What was tried, on which path, and why not.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {path}")]
pub struct IoError {
    /// What was tried.
    pub action: &'static str,
    /// On what.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: io::Error,
}

impl IoError {
    /// Makes the error of this step of what the system says.
    pub fn of<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self { action, path: path.to_path_buf(), source }
    }
}

//! Directories that are never replaced, whoever asks: those that hold what a person has or stands on.
//!
//! Not here: whose a directory is, and whether it holds an input of the job (`output_dir`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// What this directory is or holds that makes it too precious to be replaced.
pub(super) fn why(directory: &Path) -> Option<&'static str> {
    let whole = fs::canonicalize(directory).ok()?;
    let places: [(Option<PathBuf>, &str); 4] = [
        (env::home_dir(), "your home directory"),
        (Some(env::temp_dir()), "the directory for temporary files"),
        (env::current_dir().ok(), "the directory you are in"),
        (env::current_exe().ok(), "this program"),
    ];
    let within = |place: &PathBuf| fs::canonicalize(place).is_ok_and(|place| place.starts_with(&whole));
    places.into_iter().find(|(place, _)| place.as_ref().is_some_and(within)).map(|(_, what)| what)
}

//! Directories that are never replaced, whoever asks: those that hold what a person has or stands on, or what the job
//! reads.

use super::OutputError;
use gristmill_worker::input::{FileStamp, Piece, Place};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io;
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

/// Refuses an output directory that holds a file of these pieces of input.
///
/// # Errors
/// Which one; or a directory that cannot be looked at.
pub(super) fn refuse_inputs<'a>(
    output: &Path,
    pieces: impl Iterator<Item = &'a Piece>,
) -> Result<(), OutputError> {
    let whole = match fs::canonicalize(output) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(OutputError::io("resolve", output))?,
    };
    if whole.parent().is_none() {
        return Err(OutputError::Root { path: output.to_path_buf() });
    }
    let mut seen = BTreeSet::new();
    for piece in pieces.filter(|piece| seen.insert((piece.place == Place::Submitter, &piece.path))) {
        // A worker's file of this name may be another one than ours.
        let same = |path: &Path| fs::metadata(path).is_ok_and(|found| FileStamp::of(&found) == piece.stamp);
        let inside = fs::canonicalize(piece.path.to_path()).is_ok_and(|path| path.starts_with(&whole));
        if inside && (piece.place == Place::Submitter || same(piece.path.to_path())) {
            return Err(OutputError::HoldsInput {
                path: output.to_path_buf(),
                input: piece.path.to_path().to_path_buf(),
            });
        }
    }
    Ok(())
}

//! Folders with all that is in them: listed and added up.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders one within the other that are gone through.
pub const DEPTH_MAX: usize = 64;

/// What is in a folder, in the order of names.
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    entries.sort_unstable();
    Ok(entries)
}

/// Folders, files and bytes of a tree.
pub fn tally(path: &Path, depth: usize) -> (u64, u64, u64) {
    let Ok(metadata) = fs::metadata(path) else { return (0, 0, 0) };
    if !metadata.is_dir() {
        return (0, 1, metadata.len());
    }
    let below = if depth < DEPTH_MAX { entries(path).unwrap_or_default() } else { Vec::new() };
    below
        .iter()
        .map(|path| tally(path, depth + 1))
        .fold((1, 0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1, sum.2 + more.2))
}

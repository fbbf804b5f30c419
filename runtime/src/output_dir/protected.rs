//! What is never replaced, whoever asks: directories that hold what a person has or stands on, or what the job reads, and
//! whatever is no output of a job.

use super::{OutputError, Success};
use gristmill_worker::folder::Folder;
use gristmill_worker::input::{FileStamp, Piece, Place};
use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where the accounts of this machine stand with their home directories.
const ACCOUNTS: &str = "/etc/passwd";

/// What this directory is or holds that makes it too precious to be replaced.
pub(super) fn why(directory: &Path) -> Option<&'static str> {
    why_kept(&fs::canonicalize(directory).ok()?)
}

/// The same of a file or directory by its canonical path. A link that stands there is itself, not what it leads to.
pub fn why_kept(whole: &Path) -> Option<&'static str> {
    let holds = |place: &Path| place.starts_with(whole);
    let within = |place: &Path| holds(place) || fs::canonicalize(place).is_ok_and(|place| holds(&place));
    let places: [(Option<PathBuf>, &str); 4] = [
        (env::home_dir(), "your home directory"),
        (Some(env::temp_dir()), "the directory for temporary files"),
        (env::current_dir().ok(), "the directory you are in"),
        (env::current_exe().ok(), "this program"),
    ];
    let own = places.into_iter().find(|(place, _)| place.as_deref().is_some_and(within));
    own.map(|(_, what)| what).or_else(|| {
        // `HOME` may name another one than the account has.
        let accounts = fs::read(ACCOUNTS).unwrap_or_default();
        homes(&accounts).any(within).then_some("the home directory of an account of this machine")
    })
}

/// The home directories that a table of accounts names: the sixth field of each line.
fn homes(accounts: &[u8]) -> impl Iterator<Item = &Path> {
    let lines = accounts.split(|byte| *byte == b'\n');
    let homes = lines.filter_map(|line| line.split(|byte| *byte == b':').nth(5));
    homes.map(|home| Path::new(OsStr::from_bytes(home))).filter(|home| home.is_absolute())
}

/// The first of the names in a directory, by order, that no job has put there: neither a part, nor a folder of parts that
/// its `_SUCCESS` names, nor what the programs of MapReduce say about those, in `_SUCCESS`, `_logs` or `.part-00000.crc`.
pub(super) fn first_other(folder: &Folder, names: &[OsString]) -> Option<OsString> {
    let success = Success::read_in(folder).ok();
    let parts = success.iter().flat_map(|success| &success.parts);
    let folders: BTreeSet<&[u8]> =
        parts.flat_map(|part| &part.named).map(|named| named.output.as_str().as_bytes()).collect();
    let is_jobs = |name: &OsString| {
        let name = name.as_encoded_bytes();
        let is_checksum = name.starts_with(b".") && name.ends_with(b".crc");
        name.starts_with(b"part-") || name.starts_with(b"_") || is_checksum || folders.contains(name)
    };
    names.iter().filter(|name| !is_jobs(name)).min().cloned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_the_sixth_fields_that_name_a_place() {
        let accounts =
            b"root:x:0:0:root:/root:/bin/bash\nold:x:9\nme:x:1:1::/home/m\xff:\nnone:x:2:2::none:\n";
        let expected = [Path::new("/root"), Path::new(OsStr::from_bytes(b"/home/m\xff"))];
        assert_eq!(homes(accounts).collect::<Vec<_>>(), expected);
    }
}

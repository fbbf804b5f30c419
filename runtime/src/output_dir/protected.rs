//! Paths that are never replaced, whatever the options: system and home directories, the job's input, and everything
//! that is not the output of a job.

use super::claimed_directory::REPLACED;
use super::undo::is_part_behind;
use super::{BAD_RECORDS, OutputError, SUCCESS, Success};
use gristmill_worker::directory::Directory;
use gristmill_worker::input::{FileStamp, Piece, Place};
use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Table of the accounts of this machine, with their home directories.
const ACCOUNTS: &str = "/etc/passwd";

/// Prefixes of the names of parts: those of this program, and of Hadoop's maps and reduces.
const PARTS: [&str; 3] = ["part-", "part-m-", "part-r-"];

/// Reason why this directory must not be replaced; `None` if it may be.
pub(super) fn why(directory: &Path) -> Option<&'static str> {
    why_kept(&fs::canonicalize(directory).ok()?)
}

/// The same for the canonical path of a file or directory. A link at this path is not followed.
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
        // `HOME` may differ from the home directory of the account.
        let accounts = fs::read(ACCOUNTS).unwrap_or_default();
        homes(&accounts).any(within).then_some("the home directory of an account of this machine")
    })
}

/// Home directories in a table of accounts: the sixth field of each line.
fn homes(accounts: &[u8]) -> impl Iterator<Item = &Path> {
    let lines = accounts.split(|byte| *byte == b'\n');
    let homes = lines.filter_map(|line| line.split(|byte| *byte == b':').nth(5));
    homes.map(|home| Path::new(OsStr::from_bytes(home))).filter(|home| home.is_absolute())
}

/// Rejects a directory that is not the output of a job. That is one in which a listed name does not belong to a job's
/// output, or one without `_SUCCESS`, unless everything in it is left from a job that died.
///
/// # Errors
/// The first such name in order, or the lack of `_SUCCESS`.
pub(super) fn refuse_other(directory: &Directory, names: &[OsString]) -> Result<(), OutputError> {
    let outputs = named_outputs(directory);
    let is_jobs =
        |name: &&OsString| is_of_output(directory, outputs.as_ref(), name) || is_aside(directory, name);
    if let Some(name) = names.iter().filter(|name| !is_jobs(name)).min() {
        return Err(OutputError::NotAnOutput { path: directory.path(""), name: name.into() });
    }
    if outputs.is_some() || names.iter().all(|name| is_aside(directory, name)) {
        return Ok(());
    }
    Err(OutputError::NoSuccess { path: directory.path("") })
}

/// Named outputs in the `_SUCCESS` of a directory; that of Hadoop is empty. `None` without `_SUCCESS`.
fn named_outputs(directory: &Directory) -> Option<BTreeSet<OsString>> {
    if directory.entry_metadata(SUCCESS).is_ok_and(|found| found.is_file() && found.len() == 0) {
        return Some(BTreeSet::new());
    }
    let success = Success::read_in(directory).ok()?;
    let named = success.parts.iter().flat_map(|part| &part.named);
    Some(named.map(|named| named.output.as_str().into()).collect())
}

/// True if this entry belongs to the output of a job: a file with a name used by jobs, or a directory that `_SUCCESS`
/// lists and that contains only parts.
fn is_of_output(directory: &Directory, outputs: Option<&BTreeSet<OsString>>, name: &OsStr) -> bool {
    let is_own = match name.to_str() {
        Some(SUCCESS) => outputs.is_some(),
        Some(BAD_RECORDS) => true,
        _ => is_part_or_sum(name),
    };
    if is_own {
        return is_file(directory, name);
    }
    let all_parts = |within: Directory| {
        let names = within.names()?;
        Ok(names.iter().all(|name| is_part_or_sum(name) && is_file(&within, name)))
    };
    let is_named = outputs.is_some_and(|outputs| outputs.contains(name));
    is_named && directory.directory(name).and_then(all_parts).unwrap_or(false)
}

/// True if this is a directory of overwritten files that contains nothing else.
fn is_aside(directory: &Directory, name: &OsStr) -> bool {
    let all_jobs = |aside: Directory| {
        let outputs = named_outputs(&aside);
        Ok(aside.names()?.iter().all(|name| is_of_output(&aside, outputs.as_ref(), name)))
    };
    name.as_encoded_bytes().starts_with(REPLACED.as_bytes())
        && directory.directory(name).and_then(all_jobs).unwrap_or(false)
}

/// True if this is a regular file; links are not followed.
fn is_file(directory: &Directory, name: &OsStr) -> bool {
    directory.entry_metadata(name).is_ok_and(|found| found.is_file())
}

/// True if a file is named like a part, Hadoop's included, or like Hadoop's checksum files.
fn is_part_or_sum(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let summed = name.strip_prefix('.').and_then(|name| name.strip_suffix(".crc"));
    let name = summed.unwrap_or(name);
    PARTS.iter().any(|beginning| is_part_behind(beginning, name)) || (summed.is_some() && name == SUCCESS)
}

/// True if this file is below a directory given by its canonical name.
fn is_within(path: &Path, directory: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|path| path.starts_with(directory))
}

/// Rejects an output directory that contains a file of these pieces of input.
///
/// # Errors
/// The first such file, or a directory that cannot be examined.
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
    let mut last: Option<(&Path, bool)> = None;
    for piece in pieces.filter(|piece| seen.insert((piece.place == Place::Submitter, &piece.path))) {
        let path = piece.path.to_path();
        // Files of one directory follow each other, and most are no links: each would be looked up name by name.
        let parent = path.parent().unwrap_or(path);
        let within = match last {
            Some((directory, within)) if directory == parent => within,
            _ => is_within(parent, &whole),
        };
        last = Some((parent, within));
        let inside = match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => is_within(path, &whole),
            found => found.is_ok() && within,
        };
        // A worker's file of this name may be another file than the local one.
        let is_same =
            || fs::metadata(path).is_ok_and(|found| FileStamp::from_metadata(&found) == piece.stamp);
        if inside && (piece.place == Place::Submitter || is_same()) {
            return Err(OutputError::HoldsInput { path: output.to_path_buf(), input: path.to_path_buf() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_worker::input::{Compression, FilePath};

    #[test]
    fn inputs_in_the_output_are_refused_wherever_they_are_named_and_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for directory in ["out", "in"] {
            fs::create_dir(path(directory)).unwrap();
            fs::write(path(directory).join("text"), "a").unwrap();
        }
        std::os::unix::fs::symlink(path("out/text"), path("in/link")).unwrap();
        std::os::unix::fs::symlink(path("in/text"), path("out/link")).unwrap();
        let piece = |name: &str| {
            let stamp = FileStamp::from_metadata(&fs::metadata(path(name)).unwrap());
            let path = FilePath::from(&*path(name));
            let (place, compression) = (Place::Submitter, Compression::None);
            Piece { name: path.clone(), path, place, offset: 0, length: 1, stamp, compression, table: None }
        };
        let is_refused = |names: &[&str]| {
            let pieces: Vec<Piece> = names.iter().map(|name| piece(name)).collect();
            refuse_inputs(&path("out"), pieces.iter()).is_err()
        };
        assert!(!is_refused(&["in/text", "out/link"]), "a link out of the output");
        assert!(is_refused(&["in/text", "out/text"]) && is_refused(&["in/text", "in/link"]));
        assert!(is_refused(&["in/text", "out/link", "in/text", "out/text"]), "directories in turn");
        let gone = [piece("out/text")];
        fs::remove_file(path("out/text")).unwrap();
        assert!(refuse_inputs(&path("out"), gone.iter()).is_ok(), "a file that is gone");
    }

    #[test]
    fn homes_are_the_sixth_fields_that_name_a_place() {
        let accounts =
            b"root:x:0:0:root:/root:/bin/bash\nold:x:9\nme:x:1:1::/home/m\xff:\nnone:x:2:2::none:\n";
        let expected = [Path::new("/root"), Path::new(OsStr::from_bytes(b"/home/m\xff"))];
        assert_eq!(homes(accounts).collect::<Vec<_>>(), expected);
    }
}

//! Names with wildcards, for those whose shell did not expand them: `logs/*.gz`, `day-[0-9]?.csv`, `**/part-*`.
//!
//! What the signs stand for is said in `wildcards`; `**` as a whole name stands for any folders or none, those behind links
//! left out as in a shell. Names that begin with `_` or `.` are found by wildcards that begin so themselves. What cannot be
//! looked at is an error and never left out silently.

use super::InputError;
use super::path::FilePath;
use super::wildcards::{fits, only_name};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Folders that are gone into, one within the other.
pub(super) const DEPTH_MAX: usize = 256;

/// The files and folders that a name with wildcards stands for, in the order of their names, at most `limit`.
///
/// # Errors
/// A folder that cannot be read, none that fits, or more than `limit`.
pub(super) fn expand(pattern: &FilePath, limit: usize) -> Result<Vec<FilePath>, InputError> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.to_path().components() {
        let mut next = Vec::new();
        for base in &found {
            match component {
                Component::Normal(name) if name == "**" => folders_below(base, 0, &mut next, limit)?,
                Component::Normal(name) => match only_name(name.as_bytes()) {
                    Some(name) => {
                        next.extend(Some(base.join(OsStr::from_bytes(&name))).filter(|path| is_there(path)));
                    }
                    None => {
                        let mut names = names_in(base)?;
                        names.retain(|found| is_match(name.as_bytes(), found));
                        next.extend(names.iter().map(|found| base.join(OsStr::from_bytes(found))));
                    }
                },
                other => next.extend(Some(base.join(other)).filter(|path| is_there(path))),
            }
            if limit < next.len() {
                return Err(InputError::TooManyFiles { path: pattern.clone(), limit });
            }
        }
        // Folders that two `**` lead to are looked at once.
        next.sort_unstable();
        next.dedup();
        found = next;
    }
    match found.as_slice() {
        [] => Err(InputError::NoMatch { path: pattern.clone() }),
        found => Ok(found.iter().map(|path| FilePath::from(named(path))).collect()),
    }
}

/// Whether there is such a name. One that cannot be looked at is: whoever lists it says why.
fn is_there(path: &Path) -> bool {
    !fs::metadata(path).is_err_and(|error| is_absent(&error))
}

/// Whether an error says that there is nothing of that name.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The same path, by a name: that of the folder we are in, from which all others are counted, is empty.
fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// What is in a folder; nothing if it is none.
fn names_in(folder: &Path) -> Result<Vec<Vec<u8>>, InputError> {
    let place = named(folder);
    let failed = |source| InputError::from_io(&FilePath::from(place), source);
    let entries = match fs::read_dir(place) {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    entries.map(|entry| Ok(entry.map_err(failed)?.file_name().as_bytes().to_vec())).collect()
}

/// A folder and all that lie in it, those in these likewise; links are not followed.
fn folders_below(
    folder: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
    limit: usize,
) -> Result<(), InputError> {
    if depth == DEPTH_MAX {
        return Err(InputError::TooDeep { path: FilePath::from(folder), limit: DEPTH_MAX });
    }
    found.push(folder.to_owned());
    if limit < found.len() {
        // The caller says so.
        return Ok(());
    }
    for name in names_in(folder)? {
        let path = folder.join(OsStr::from_bytes(&name));
        if matches!(name.first(), Some(b'_' | b'.')) {
            continue;
        }
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => folders_below(&path, depth + 1, found, limit)?,
            Err(error) if !is_absent(&error) => {
                return Err(InputError::from_io(&FilePath::from(&*path), error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a name fits a pattern.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let own = pattern.strip_prefix(b"\\").unwrap_or(pattern);
    if let Some(first @ (b'_' | b'.')) = name.first()
        && own.first() != Some(first)
    {
        return false;
    }
    fits(pattern, name)
}

/// How many of the first names of a path a pattern fits, as many as it can; `None` if it fits none. What follows them lies
/// below what was found.
pub(super) fn names_fitted(pattern: &str, path: &str) -> Option<usize> {
    let signs: Vec<&str> = pattern.split('/').collect();
    // Places in the pattern that the names so far can lead to.
    let mut places = vec![false; signs.len() + 1];
    let folders_follow = |places: &mut [bool]| {
        for at in 0..signs.len() {
            if places[at] && signs[at] == "**" {
                places[at + 1] = true;
            }
        }
    };
    places[0] = true;
    folders_follow(&mut places);
    let mut fitted = None;
    for (index, name) in path.split('/').enumerate() {
        let mut next = vec![false; signs.len() + 1];
        for (at, sign) in signs.iter().enumerate().filter(|(at, _)| places[*at]) {
            if *sign == "**" {
                next[at] |= !name.starts_with(['_', '.']);
            } else {
                next[at + 1] |= is_match(sign.as_bytes(), name.as_bytes());
            }
        }
        folders_follow(&mut next);
        places = next;
        if places[signs.len()] {
            fitted = Some(index + 1);
        }
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_fit_names_as_in_a_shell() {
        for (pattern, yes, no) in [
            ("*.csv", vec!["a.csv", "b.c.csv"], vec![".csv", "_a.csv", "a.csv2", "csv"]),
            ("day-?", vec!["day-1"], vec!["day-", "day-12"]),
            ("[a-c]x[!0-9]", vec!["axy", "cxz"], vec!["dxy", "ax1", "ax"]),
            ("_*", vec!["_SUCCESS"], vec!["part"]),
            ("a*b*c", vec!["abc", "axbxbxc"], vec!["ab", "acb"]),
            ("[x", vec!["[x"], vec!["x"]),
            ("[]]", vec!["]"], vec!["["]),
            ("[ä]*", vec!["ärger"], vec!["über"]),
            (r"\_*", vec!["_x"], vec!["x"]),
        ] {
            yes.iter()
                .for_each(|name| assert!(is_match(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}"));
            no.iter()
                .for_each(|name| assert!(!is_match(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}"));
        }
    }

    #[test]
    fn wildcards_fit_the_first_names_of_a_path_as_far_as_they_go() {
        for (pattern, path, expected) in [
            ("logs/*.gz", "logs/a.gz", Some(2)),
            ("logs/*", "logs/2026/a.gz", Some(2)),
            ("logs/*.gz", "logs/a.csv", None),
            ("**/part-*", "a/b/part-0", Some(3)),
            ("**/part-*", "part-0", Some(1)),
            ("**/part-*", "a/_b/part-0", None),
            ("a/**", "a/b/c", Some(3)),
            ("*", "_SUCCESS", None),
            ("a/b", "a", None),
        ] {
            assert_eq!(names_fitted(pattern, path), expected, "{pattern} {path}");
        }
        let deep = "a/".repeat(500);
        let pattern = format!("{}b", "**/".repeat(100));
        assert_eq!(names_fitted(&pattern, &deep), None, "in no time to speak of");
    }

    #[test]
    fn a_long_name_with_many_stars_takes_no_time_to_speak_of() {
        let name = vec![b'a'; 250];
        assert!(!is_match(&b"a*".repeat(60).into_iter().chain(*b"b").collect::<Vec<u8>>(), &name));
    }

    #[test]
    fn wildcards_find_files_in_order_and_in_folders_below() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b/x.txt", "a/x.txt", "a/deep/x.txt", "a/y.txt", "_no/x.txt", ".no/x.txt"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| {
            let pattern = FilePath::from(folder.path().join(pattern).as_path());
            expand(&pattern, 100).map(|found| {
                let names =
                    found.iter().map(|path| path.to_path().strip_prefix(folder.path()).unwrap().to_owned());
                names.map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>()
            })
        };
        assert_eq!(found("*/x.txt").unwrap(), ["a/x.txt", "b/x.txt"]);
        assert_eq!(found("**/x.txt").unwrap(), ["a/deep/x.txt", "a/x.txt", "b/x.txt"]);
        assert_eq!(found("a/[xy].*").unwrap(), ["a/x.txt", "a/y.txt"]);
        assert!(matches!(found("*.csv"), Err(InputError::NoMatch { .. })));
    }

    #[test]
    fn wildcards_find_files_below_many_folders_and_refuse_folders_that_lie_too_deep() {
        let folder = tempfile::tempdir().unwrap();
        let pattern = FilePath::from(folder.path().join("**/x.txt").as_path());
        // The first folder is the one that stands before the wildcards.
        let deep = |count: usize| folder.path().join("d/".repeat(count - 1));
        fs::create_dir_all(deep(DEPTH_MAX)).unwrap();
        fs::write(deep(DEPTH_MAX).join("x.txt"), "").unwrap();
        std::os::unix::fs::symlink("..", folder.path().join("back")).unwrap();
        assert_eq!(expand(&pattern, 1000).unwrap().len(), 1, "links are not followed");
        fs::create_dir(deep(DEPTH_MAX + 1)).unwrap();
        let error = expand(&pattern, 1000).unwrap_err();
        assert!(matches!(error, InputError::TooDeep { limit: DEPTH_MAX, .. }), "{error}");
    }
}

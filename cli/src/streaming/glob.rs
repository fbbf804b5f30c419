//! Names with wildcards and braces as in Hadoop. They match names that start with `_` or `.` too.

use anyhow::Context as _;
use gristmill_worker::input::wildcards::NamePattern;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// True if a name contains a wildcard or a brace.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[', '{', '\\'])
}

/// Returns the paths that match a pattern, in the order of their names. Each part between slashes is a
/// separate pattern.
///
/// # Errors
/// A directory that cannot be read.
pub fn matching(pattern: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for part in pattern {
        let part = part.to_string_lossy();
        if !is_pattern(&part) {
            found = found.iter().map(|directory| directory.join(&*part)).collect();
            found.retain(|path| path.symlink_metadata().is_ok());
            continue;
        }
        let glob = NamePattern::new(part.as_bytes());
        let mut matching = Vec::new();
        for directory in found.iter().filter(|path| path.is_dir()) {
            let entries = entries(directory).with_context(|| format!("`{}'", directory.display()))?;
            let fits = |path: &PathBuf| path.file_name().is_some_and(|name| glob.fits(name.as_bytes()));
            matching.extend(entries.into_iter().filter(fits));
        }
        found = matching;
    }
    Ok(found)
}

/// Returns the entries of a directory, in the order of their names.
///
/// # Errors
/// A directory that cannot be read.
pub fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort_unstable();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_part_by_part_and_hidden_names_too() {
        let root = tempfile::tempdir().unwrap();
        for name in ["d/a*", "d/ab", "d/_x", "e/ab", "e/{y}"] {
            fs::create_dir_all(root.path().join(name).parent().unwrap()).unwrap();
            fs::write(root.path().join(name), "").unwrap();
        }
        let names = |pattern: &str| {
            let found = matching(&root.path().join(pattern)).unwrap();
            let below = found.iter().map(|path| path.strip_prefix(root.path()).unwrap().to_str().unwrap());
            below.collect::<Vec<_>>().join(" ")
        };
        for (pattern, expected) in [
            ("*/ab", "d/ab e/ab"),
            ("d/*", "d/_x d/a* d/ab"),
            (r"d/a\*", "d/a*"),
            ("{d,e}/a?", "d/a* d/ab e/ab"),
            ("d/[!a]*", "d/_x"),
            (r"e/\{y\}", "e/{y}"),
            ("{d,}/*", "d/_x d/a* d/ab"),
            ("none/*", ""),
        ] {
            assert_eq!(names(pattern), expected, "{pattern}");
        }
    }
}

//! Names with wildcards, for users whose shell did not expand them: `logs/*.gz`, `day-[0-9]?.csv`,
//! `**/part-*`.
//!
//! `*` matches any bytes of a name, `?` one, `[a-c]` one of these, `[!a-c]` or `[^a-c]` any other, and
//! `{a,b}` one of these patterns. A `\` escapes the next character. `**` as a whole name matches any
//! number of directories, without following links, as in a shell. Names that start with `_` or `.` are
//! matched only by patterns that start so themselves. An unreadable directory is an error and never
//! omitted silently.

use super::error::InputError;
use super::path::FilePath;
use globset::{GlobBuilder, GlobMatcher};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use walkdir::WalkDir;

/// Maximum depth of nested directories.
pub(super) const DEPTH_MAX: usize = 256;

/// True if it contains wildcards, or escaped ones.
#[must_use]
pub(crate) fn has_wildcards(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| b"*?[\\".contains(byte))
}

/// Pattern of names, or of paths. An invalid one, such as `[z-a]`, matches nothing.
pub struct NamePattern {
    text: String,
    matcher: Option<GlobMatcher>,
    /// Number of names in it that start like hidden ones.
    hidden: usize,
}

impl NamePattern {
    /// Compiles a pattern. A `[` that is never closed is literal.
    #[must_use]
    pub fn new(pattern: &[u8]) -> Self {
        let text = String::from_utf8_lossy(pattern).into_owned();
        let matcher = compile(&text);
        let names = pattern.split(|byte| *byte == b'/');
        let hidden = names.filter(|name| is_hidden(name.strip_prefix(b"\\").unwrap_or(name))).count();
        Self { text, matcher, hidden }
    }

    /// True if a name matches.
    #[must_use]
    pub fn fits(&self, name: &[u8]) -> bool {
        let matches = |matcher: &Option<GlobMatcher>, name: &[u8]| {
            matcher.as_ref().is_some_and(|matcher| matcher.is_match(OsStr::from_bytes(name)))
        };
        // The matcher treats bytes as characters, so each other character becomes one byte that keeps
        // their order.
        let signs: BTreeSet<char> = match std::str::from_utf8(name) {
            Ok(name) => name.chars().chain(self.text.chars()).filter(|sign| !sign.is_ascii()).collect(),
            Err(_) => BTreeSet::new(),
        };
        if signs.is_empty() || STAND_INS < signs.len() {
            return matches(&self.matcher, name);
        }
        let stand_in = |text: &str| -> String {
            let place = |sign: char| signs.iter().position(|other| *other == sign);
            text.chars().map(|sign| place(sign).map_or(sign, |place| char::from(place as u8 + 1))).collect()
        };
        let name = stand_in(&String::from_utf8_lossy(name));
        match self.text.is_ascii() {
            true => matches(&self.matcher, name.as_bytes()),
            false => matches(&compile(&stand_in(&self.text)), name.as_bytes()),
        }
    }

    /// True if a path matches, where names that start with `_` or `.` are matched only by names of the
    /// pattern that start so.
    pub(super) fn finds(&self, path: &[u8]) -> bool {
        path.split(|byte| *byte == b'/').filter(|name| is_hidden(name)).count() == self.hidden
            && self.fits(path)
    }
}

/// Maximum number of distinct characters beyond ASCII in a pattern and a name. Control characters
/// represent them.
const STAND_INS: usize = 31;

fn compile(pattern: &str) -> Option<GlobMatcher> {
    let mut glob = GlobBuilder::new(pattern);
    let glob = glob.literal_separator(true).backslash_escape(true).allow_unclosed_class(true);
    glob.build().ok().map(|glob| glob.compile_matcher())
}

/// True if a name is omitted unless it is requested.
pub(super) fn is_hidden(name: &[u8]) -> bool {
    matches!(name.first(), Some(b'_' | b'.'))
}

/// Returns the only name that matches a pattern; `None` where wildcards match several, and for `.` and
/// `..`, which name no file, written with a `\`.
#[must_use]
pub(crate) fn only_name(pattern: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(pattern.len());
    let mut rest = pattern.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'*' | b'?' | b'[' => return None,
            b'\\' => name.push(*rest.next().unwrap_or(byte)),
            byte => name.push(*byte),
        }
    }
    let is_hidden = name != pattern && matches!(&*name, b"." | b"..");
    (!is_hidden).then_some(name)
}

/// Returns the files and directories that match a name with wildcards, in the order of their names, at
/// most `limit`.
///
/// # Errors
/// A directory that cannot be read, no match, or more than `limit`.
pub(super) fn expand(path: &FilePath, limit: usize) -> Result<Vec<FilePath>, InputError> {
    let mut found = vec![PathBuf::new()];
    for component in path.to_path().components() {
        let mut next = Vec::new();
        for base in &found {
            match component {
                Component::Normal(name) if name == "**" => directories_below(base, &mut next, limit)?,
                Component::Normal(name) => match only_name(name.as_bytes()) {
                    Some(name) => {
                        next.extend(Some(base.join(OsStr::from_bytes(&name))).filter(|path| is_there(path)));
                    }
                    None => {
                        let (pattern, mut names) = (NamePattern::new(name.as_bytes()), names_in(base)?);
                        names.retain(|found| pattern.finds(found));
                        next.extend(names.iter().map(|found| base.join(OsStr::from_bytes(found))));
                    }
                },
                other => next.extend(Some(base.join(other)).filter(|path| is_there(path))),
            }
            if limit < next.len() {
                return Err(InputError::too_many_files(path, limit));
            }
        }
        // Directories that two `**` lead to are read once.
        next.sort_unstable();
        next.dedup();
        found = next;
    }
    match found.as_slice() {
        [] => Err(InputError::NoMatch { path: path.clone() }),
        found => Ok(found.iter().map(|path| FilePath::from(named(path))).collect()),
    }
}

/// True if the name exists, even if it cannot be read: that is an error when it is listed.
fn is_there(path: &Path) -> bool {
    !fs::metadata(path).is_err_and(|error| is_absent(&error))
}

/// True if an error means that the name does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the same path with a name: the current directory is the empty path.
fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Returns the names in a directory; none if it is not one.
fn names_in(directory: &Path) -> Result<Vec<Vec<u8>>, InputError> {
    let place = named(directory);
    let failed = |source| InputError::from_io(&FilePath::from(place), source);
    let entries = match fs::read_dir(place) {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    entries.map(|entry| Ok(entry.map_err(failed)?.file_name().as_bytes().to_vec())).collect()
}

/// Collects a directory and all directories below it. Links are not followed.
fn directories_below(directory: &Path, found: &mut Vec<PathBuf>, limit: usize) -> Result<(), InputError> {
    let is_seen = |entry: &walkdir::DirEntry| entry.depth() == 0 || !is_hidden(entry.file_name().as_bytes());
    for entry in WalkDir::new(named(directory)).into_iter().filter_entry(is_seen) {
        let entry = match entry {
            Ok(entry) if entry.depth() == 0 || entry.file_type().is_dir() => entry,
            Ok(_) => continue,
            // A dangling link has no directories below it.
            Err(error) if error.io_error().is_some_and(is_absent) => continue,
            Err(error) => return Err(walk_failed(directory, error)),
        };
        if entry.depth() == DEPTH_MAX {
            return Err(InputError::too_deep(&FilePath::from(entry.path()), DEPTH_MAX));
        }
        // Paths are relative to the current directory, without its name.
        found.push(entry.path().strip_prefix(".").unwrap_or(entry.path()).to_owned());
        if limit < found.len() {
            // The caller reports it.
            break;
        }
    }
    Ok(())
}

/// Converts an error of walking below this directory.
pub(super) fn walk_failed(directory: &Path, error: walkdir::Error) -> InputError {
    let path = FilePath::from(error.path().unwrap_or(directory));
    let to = error.loop_ancestor().map(FilePath::from);
    match (to, error.into_io_error()) {
        (Some(to), _) => InputError::refused(format!(
            "input {path} leads back to {to}, in which it lies: reading it would never end; remove that link, or name the \
             directories to read one by one"
        )),
        (None, Some(source)) => InputError::from_io(&path, source),
        (None, None) => InputError::Missing { path },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &[u8], name: &[u8]) -> bool {
        NamePattern::new(pattern).fits(name)
    }

    #[test]
    fn wildcards_stand_for_characters_and_not_for_their_bytes() {
        for (pattern, name, expected) in [
            ("caf?", "café", true),
            ("caf??", "café", false),
            ("[ä]*", "ö.txt", false),
            ("[ä]*", "ä.txt", true),
            ("[à-ü]x", "éx", true),
            ("[!é]", "ä", true),
            ("é*", "étude", true),
            ("*é", "école", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
        assert!(fits(b"a?", b"a\xff"), "a byte that is no UTF-8");
    }

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
            (r"\_*", vec!["_x"], vec!["x"]),
            ("é*", vec!["été"], vec!["e"]),
            ("part-?", vec!["part-1"], vec!["part-10"]),
            ("[!a-c]x", vec!["dx"], vec!["bx"]),
            ("[!]a]x", vec!["bx"], vec!["]x"]),
            ("[z-a]", vec![], vec!["m", "z"]),
            (r"\*", vec!["*"], vec!["a"]),
            (r"\[a]", vec!["[a]"], vec!["a"]),
            (r"a\\*", vec![r"a\b"], vec!["ab"]),
            ("{a,b?}", vec!["a", "bc"], vec!["b", "{a,bc}"]),
        ] {
            let pattern_of = NamePattern::new(pattern.as_bytes());
            yes.iter().for_each(|name| assert!(pattern_of.finds(name.as_bytes()), "{pattern} {name}"));
            no.iter().for_each(|name| assert!(!pattern_of.finds(name.as_bytes()), "{pattern} {name}"));
        }
        assert!(NamePattern::new(b"*.csv").fits(b"_a.csv") && fits(b"a?b", b"a\xffb"));
    }

    #[test]
    fn wildcards_find_files_in_order_and_in_directories_below() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b/x.txt", "a/x.txt", "a/deep/x.txt", "a/y.txt", "_no/x.txt", ".no/x.txt"] {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| {
            let pattern = FilePath::from(directory.path().join(pattern).as_path());
            expand(&pattern, 100).map(|found| {
                let names = found
                    .iter()
                    .map(|path| path.to_path().strip_prefix(directory.path()).unwrap().to_owned());
                names.map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>()
            })
        };
        assert_eq!(found("*/x.txt").unwrap(), ["a/x.txt", "b/x.txt"]);
        assert_eq!(found("**/x.txt").unwrap(), ["a/deep/x.txt", "a/x.txt", "b/x.txt"]);
        assert_eq!(found("a/[xy].*").unwrap(), ["a/x.txt", "a/y.txt"]);
        assert!(matches!(found("*.csv"), Err(InputError::NoMatch { .. })));
    }

    #[test]
    fn wildcards_find_files_below_many_directories_and_refuse_directories_that_lie_too_deep() {
        let directory = tempfile::tempdir().unwrap();
        let pattern = FilePath::from(directory.path().join("**/x.txt").as_path());
        // The first directory is the one before the wildcards.
        let deep = |count: usize| directory.path().join("d/".repeat(count - 1));
        fs::create_dir_all(deep(DEPTH_MAX)).unwrap();
        fs::write(deep(DEPTH_MAX).join("x.txt"), "").unwrap();
        std::os::unix::fs::symlink("..", directory.path().join("back")).unwrap();
        assert_eq!(expand(&pattern, 1000).unwrap().len(), 1, "links are not followed");
        fs::create_dir(deep(DEPTH_MAX + 1)).unwrap();
        let error = expand(&pattern, 1000).unwrap_err();
        assert!(error.to_string().contains("lies 256 directories deep"), "{error}");
    }

    #[test]
    fn pattern_stands_for_one_name_when_all_its_wildcards_are_escaped() {
        for (pattern, expected) in [
            ("a", Some("a")),
            (r"\*\[", Some("*[")),
            (r"\\", Some(r"\")),
            (r"a\", Some(r"a\")),
            ("a?", None),
            (r"\\*", None),
            (r"\.", None),
            (r".\.", None),
            ("..", Some("..")),
        ] {
            assert_eq!(only_name(pattern.as_bytes()).as_deref(), expected.map(str::as_bytes), "{pattern}");
        }
    }
}

//! Names with wildcards, as `hadoop fs` takes them: also those that begin with `_` or `.`, unlike inputs of jobs. What a
//! copy that was killed has left half is meant only by a pattern that begins as its name does.

use super::trees::entries;
use gristmill_worker::whole_file;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A folder that cannot be looked at, though names in it were asked for.
#[derive(Debug)]
pub struct Unreadable {
    pub folder: PathBuf,
    pub error: io::Error,
}

/// The files whose names fit a path with wildcards, in the order of their names.
///
/// # Errors
/// A folder that cannot be looked at.
pub fn glob(pattern: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let wanted = component.as_os_str();
        let is_seen = |path: &PathBuf| {
            path.file_name().is_some_and(|name| {
                let is_meant = whole_file::is_draft(wanted) || !whole_file::is_draft(name);
                is_meant && fits(wanted.as_encoded_bytes(), name.as_encoded_bytes())
            })
        };
        let mut next = Vec::new();
        for base in found {
            if has_wildcards(Path::new(wanted)) {
                next.extend(names_in(base)?.into_iter().filter(is_seen));
            } else {
                next.extend(Some(base.join(component)).filter(|path| path.exists()));
            }
        }
        found = next;
    }
    Ok(found)
}

/// What is in a folder; there is nothing in a file.
fn names_in(folder: PathBuf) -> Result<Vec<PathBuf>, Unreadable> {
    match entries(&folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => {
            Ok(Vec::new())
        }
        entries => entries.map_err(|error| Unreadable { folder, error }),
    }
}

/// Whether there are wildcards in it.
pub(super) fn has_wildcards(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// Whether a name fits a pattern of `*`, `?` and `[a-c]`, character by character. Bytes that are no UTF-8 are each a
/// character of its own.
pub(super) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (pattern, name) = (characters(pattern), characters(name));
    let (mut at, mut in_name) = (0, 0);
    // Where the pattern goes on behind its last star, and up to where that star takes the name: an earlier one need
    // never take more.
    let mut star = None;
    while in_name < name.len() {
        if pattern.get(at) == Some(&STAR) {
            at += 1;
            star = Some((at, in_name));
        } else if let Some(length) = fitting(&pattern[at..], name[in_name]) {
            at += length;
            in_name += 1;
        } else if let Some((behind, taken)) = star {
            star = Some((behind, taken + 1));
            (at, in_name) = (behind, taken + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|letter| *letter == STAR)
}

const STAR: u32 = '*' as u32;
const ANY: u32 = '?' as u32;
const OPEN: u32 = '[' as u32;
const CLOSE: u32 = ']' as u32;
const NOT: [u32; 2] = ['!' as u32, '^' as u32];
const TO: u32 = '-' as u32;

fn characters(text: &[u8]) -> Vec<u32> {
    let of_chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let wrong = chunk.invalid().iter().map(|byte| char::MAX as u32 + 1 + u32::from(*byte));
        chunk.valid().chars().map(u32::from).chain(wrong).collect::<Vec<_>>()
    };
    text.utf8_chunks().flat_map(of_chunk).collect()
}

/// How much of a pattern stands for one character, if it is this one.
fn fitting(pattern: &[u32], letter: u32) -> Option<usize> {
    match pattern {
        [ANY, ..] => Some(1),
        [OPEN, rest @ ..] if let Some(close) = closing(rest) => {
            let (negated, set) = match &rest[..close] {
                [first, set @ ..] if NOT.contains(first) => (true, set),
                set => (false, set),
            };
            (class_holds(set, letter) != negated).then_some(close + 2)
        }
        [first, ..] => (*first == letter).then_some(1),
        [] => None,
    }
}

fn closing(set: &[u32]) -> Option<usize> {
    set.iter().skip(1).position(|letter| *letter == CLOSE).map(|at| at + 1)
}

fn class_holds(mut set: &[u32], letter: u32) -> bool {
    loop {
        let (range, rest) = match set {
            [low, TO, high, rest @ ..] => (*low..=*high, rest),
            [one, rest @ ..] => (*one..=*one, rest),
            [] => return false,
        };
        if range.contains(&letter) {
            return true;
        }
        set = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, expected) in [
            ("part-*", "part-00000", true),
            ("*", "", true),
            ("part-?", "part-10", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbYcZ", false),
            ("*ab", "aab", true),
            ("a", "ab", false),
            ("a[", "a[", true),
            ("[a-]x", "-x", true),
            ("[]a]x", "]x", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn characters_fit_whole_when_they_have_several_bytes() {
        for (pattern, name, expected) in [
            ("[ä]*", "ärger".as_bytes(), true),
            ("[ä]*", "über".as_bytes(), false),
            ("[ä]*", b"\xc3\xff", false),
            ("?", "é".as_bytes(), true),
            ("??", "é".as_bytes(), false),
            ("[à-é]", "è".as_bytes(), true),
            ("[!a]", "é".as_bytes(), true),
            ("a?b", b"a\xffb", true),
            ("a?b", b"a\xff\xfeb", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name), expected, "{pattern} {}", name.escape_ascii());
        }
        assert!(fits(b"\xff*", b"\xffa") && !fits(b"\xfe*", b"\xffa"));
    }

    #[test]
    fn pattern_of_many_stars_is_done_when_nothing_fits() {
        assert!(!fits(format!("{}b", "*a".repeat(60)).as_bytes(), "a".repeat(200).as_bytes()));
    }
}

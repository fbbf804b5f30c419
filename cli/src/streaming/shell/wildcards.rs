//! Names with wildcards, as `hadoop fs` takes them: also those that begin with `_` or `.`, unlike inputs of jobs.

use super::trees::entries;
use std::path::{Path, PathBuf};

/// The files whose names fit a path with wildcards, in the order of their names.
pub fn glob(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let text = component.as_os_str().to_string_lossy();
        let mut next = Vec::new();
        for base in found {
            if text.contains(['*', '?', '[']) {
                let names = entries(&base).unwrap_or_default();
                let fits = |path: &PathBuf| {
                    path.file_name()
                        .is_some_and(|name| fits(text.as_bytes(), name.to_string_lossy().as_bytes()))
                };
                next.extend(names.into_iter().filter(fits));
            } else {
                next.extend(Some(base.join(component)).filter(|path| path.exists()));
            }
        }
        found = next;
    }
    found
}

/// Whether a name fits a pattern of `*`, `?` and `[a-c]`.
pub(super) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            fits(rest, name) || name.split_first().is_some_and(|(_, name)| fits(pattern, name))
        }
        ([b'?', rest @ ..], [_, name @ ..]) => fits(rest, name),
        ([b'[', rest @ ..], [first, name @ ..]) => {
            let Some(close) = memchr_close(rest) else { return *first == b'[' && fits(rest, name) };
            let (set, after) = (&rest[..close], &rest[close + 1..]);
            let (negated, set) = match set {
                [b'!' | b'^', set @ ..] => (true, set),
                set => (false, set),
            };
            class_holds(set, *first) != negated && fits(after, name)
        }
        ([letter, rest @ ..], [first, name @ ..]) => letter == first && fits(rest, name),
        _ => false,
    }
}

fn memchr_close(set: &[u8]) -> Option<usize> {
    set.iter().skip(1).position(|byte| *byte == b']').map(|at| at + 1)
}

fn class_holds(set: &[u8], byte: u8) -> bool {
    match set {
        [low, b'-', high, rest @ ..] => (*low..=*high).contains(&byte) || class_holds(rest, byte),
        [one, rest @ ..] => *one == byte || class_holds(rest, byte),
        [] => false,
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
            ("a", "ab", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}

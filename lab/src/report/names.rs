//! Unique names for files and anchors, valid on every system.
//!
//! Not here: the content of the files.

use std::collections::BTreeSet;

/// Maximum length of a name, without its unique suffix.
const NAME_MAX: usize = 80;

/// Set of names in use.
#[derive(Debug, Default)]
pub struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// Returns the name itself if it is free, or with a suffix `-2`, `-3` and so on.
    pub fn unique_name(&mut self, name: &str) -> String {
        let base = slug(name);
        let mut name = base.clone();
        let mut number = 1_u64;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{base}-{number}");
        }
        name
    }
}

/// Converts a name to lower-case letters, digits and single hyphens.
#[must_use]
pub fn slug(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars() {
        if character.is_ascii_alphanumeric() {
            out.push(character.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if NAME_MAX <= out.len() {
            break;
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "unnamed".to_owned() } else { out.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Names, slug};

    #[test]
    fn names_are_safe_for_files_and_anchors() {
        assert_eq!(slug("figure-9-load-0.75"), "figure-9-load-0-75");
        assert_eq!(slug("../../etc/passwd"), "etc-passwd");
        assert_eq!(slug("Größe <b>"), "gr-e-b");
        assert_eq!(slug("…"), "unnamed");
        assert!(slug(&"long ".repeat(100)).len() <= super::NAME_MAX);
    }

    #[test]
    fn no_name_is_given_twice() {
        let mut names = Names::default();
        assert_eq!(["a", "a", "a-2", "a"].map(|name| names.unique_name(name)), ["a", "a-2", "a-2-2", "a-3"]);
    }
}

//! Circles of imports, and the sources that they are found in: tokens without comments, strings and tests.

use super::{read, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Words and punctuation of a source, without comments, strings, characters and lifetimes.
pub fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let word = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let after = &rest[word..];
        let hashes = after.len() - after.trim_start_matches('#').len();
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment_length(rest)
        } else if ["r", "br", "cr"].contains(&&rest[..word]) && after[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = word + hashes + 1;
            body + rest[body..].find(&close).expect("a raw string ends") + close.len()
        } else if 0 < word {
            words.push(&rest[..word]);
            word
        } else if first == '"' {
            quoted_length(rest, '"')
        } else if first == '\'' {
            let mut letters = rest.chars().skip(1);
            let is_character = letters.next() == Some('\\') || letters.next() == Some('\'');
            if is_character { quoted_length(rest, '\'') } else { 1 + word_length(&rest[1..]) }
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            words.push(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    words
}

fn word_length(text: &str) -> usize {
    text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len())
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if letter == quote && !escaped {
            return at + 1;
        }
        escaped = letter == '\\' && !escaped;
    }
    text.len()
}

/// Length of a block comment; these nest.
fn comment_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        match text.get(at..at + 2) {
            Some("/*") => (depth, at) = (depth + 1, at + 2),
            Some("*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Index of the bracket that closes the one at `open`.
pub fn closing(words: &[&str], open: usize) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(open) {
        depth += i32::from(["(", "[", "{"].contains(word)) - i32::from([")", "]", "}"].contains(word));
        if depth == 0 {
            return at;
        }
    }
    words.len() - 1
}

/// Returns the index after the item that starts at `at`, with or without attributes.
fn behind_item(words: &[&str], mut at: usize) -> usize {
    while at < words.len() {
        match words[at] {
            "#" => at = closing(words, at + 1) + 1,
            "{" => return closing(words, at) + 1,
            "(" | "[" => at = closing(words, at) + 1,
            ";" | "," | "}" => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Returns the code that is compiled without tests.
fn without_tests<'text>(words: &[&'text str]) -> Vec<&'text str> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if words[at..].starts_with(&["#", "[", "cfg"]) {
            let attribute = &words[at..closing(words, at + 1)];
            if attribute.contains(&"test") && !attribute.windows(3).any(|three| three == ["not", "(", "test"])
            {
                at = behind_item(words, at);
                continue;
            }
        }
        kept.push(words[at]);
        at += 1;
    }
    kept
}

/// The paths of a tree of imports: `a::{b, c::D as E}` are `a b` and `a c D as E`.
pub fn paths<'text>(words: &[&'text str]) -> Vec<Vec<&'text str>> {
    let mut path = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if words[at] == "{" {
            let end = closing(words, at);
            let mut found = Vec::new();
            let mut start = at + 1;
            for place in at + 1..=end {
                let nested = words[at + 1..place]
                    .iter()
                    .fold(0, |depth, word| depth + i32::from(*word == "{") - i32::from(*word == "}"));
                if place == end || (words[place] == "," && nested == 0) {
                    found.extend(
                        paths(&words[start..place]).into_iter().map(|below| [&path[..], &below].concat()),
                    );
                    start = place + 1;
                }
            }
            return found;
        }
        path.push(words[at]);
        at = match words.get(at + 1) {
            Some(&"::") => at + 2,
            Some(&"as") => at + 1,
            _ if words[at] == "as" => at + 1,
            _ => break,
        };
    }
    if path.is_empty() { Vec::new() } else { vec![path] }
}

/// A crate's sources below one root, without tests: the module path of each, and its words.
pub struct Modules {
    pub files: Vec<(Vec<String>, PathBuf, Vec<String>)>,
}

impl Modules {
    /// Follows `mod` from the file `root`; `text` reads a file, if it exists.
    pub fn below(root: &Path, text: &dyn Fn(&Path) -> Option<String>) -> Self {
        let mut files = Vec::new();
        let mut open = vec![(Vec::new(), root.to_owned())];
        while let Some((module, path)) = open.pop() {
            let Some(text_here) = text(&path) else { continue };
            let words = words(&text_here);
            let words = without_tests(&words);
            let is_directory = module.is_empty() || path.ends_with("mod.rs");
            let directory =
                if is_directory { path.parent().unwrap().to_owned() } else { path.with_extension("") };
            for three in words.windows(3).filter(|three| three[0] == "mod" && three[2] == ";") {
                let below = [&module[..], &[three[1].to_owned()]].concat();
                open.push((below.clone(), directory.join(format!("{}.rs", three[1]))));
                open.push((below, directory.join(three[1]).join("mod.rs")));
            }
            files.push((module, path, words.into_iter().map(str::to_owned).collect()));
        }
        Self { files }
    }
}

/// All modules that `start` reaches.
fn reached<'map>(start: &str, imports: &'map BTreeMap<(String, String), PathBuf>) -> BTreeSet<&'map str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(from) = open.pop() {
        for (_, second) in imports.keys().filter(|(first, _)| first == from) {
            if seen.insert(second.as_str()) {
                open.push(second);
            }
        }
    }
    seen
}

/// Sets of modules in which each reaches every other.
pub fn circles(imports: &BTreeMap<(String, String), PathBuf>) -> Vec<Vec<String>> {
    let far: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|(first, _)| (first.as_str(), reached(first, imports))).collect();
    let mut found = BTreeSet::new();
    for (name, reached) in &far {
        let back = reached.iter().filter(|other| far.get(*other).is_some_and(|far| far.contains(name)));
        let circle: Vec<String> = back.map(|other| (*other).to_owned()).collect();
        found.extend((!circle.is_empty()).then_some(circle));
    }
    found.into_iter().collect()
}

/// Directories of the crates of the workspace.
pub fn members() -> Vec<String> {
    let manifest = read(&root().join("Cargo.toml"));
    let (_, members) = manifest.split_once("\nmembers = [").expect("the workspace lists its members");
    let members = members.split(']').next().unwrap_or_default().split(',');
    members.map(|member| member.trim().trim_matches('"').to_owned()).collect()
}

//! The top-level modules of a crate import each other in one direction.
//!
//! Read from the tokens of the sources, without tests: `crate::`, `super::`, and the root's re-exports.

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

    /// Imports between top-level modules, and a file for each.
    fn imports(&self) -> BTreeMap<(String, String), PathBuf> {
        let names: BTreeSet<&str> =
            self.files.iter().filter_map(|(module, ..)| module.first().map(String::as_str)).collect();
        let mut exported = BTreeMap::new();
        let mut imports = BTreeMap::new();
        for (module, path, words) in &self.files {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            // The root comes first.
            let Some(own) = module.first() else {
                for at in (0..words.len()).filter(|&at| words[at] == "use") {
                    for path in paths(&words[at + 1..]) {
                        let own = usize::from(path[0] == "crate" || path[0] == "self");
                        if let Some(&first) = path.get(own).filter(|first| names.contains(**first)) {
                            exported.insert(path[path.len() - 1].to_owned(), first.to_owned());
                        }
                    }
                }
                continue;
            };
            let mut inline: Vec<usize> = Vec::new();
            for at in 0..words.len() {
                inline.retain(|end| at < *end);
                if words[at..].starts_with(&["mod"]) && words.get(at + 2) == Some(&"{") {
                    inline.push(closing(&words, at + 2));
                }
                let begins = ["crate", "super"].contains(&words[at]) && words.get(at + 1) == Some(&"::");
                let before = if at == 0 { "" } else { words[at - 1] };
                // `in` belongs to a visibility.
                if !begins || ["::", "in"].contains(&before) {
                    continue;
                }
                for named in paths(&words[at..]) {
                    let up = named.iter().take_while(|word| **word == "super").count();
                    let at_root = named[0] == "crate" || up == module.len() + inline.len();
                    let Some(&first) = named.get(up.max(1)).filter(|_| at_root) else { continue };
                    let seen = names.get(first).map(|name| (*name).to_owned());
                    if let Some(seen) =
                        seen.or_else(|| exported.get(first).cloned()).filter(|seen| seen != own)
                    {
                        imports.entry((own.clone(), seen)).or_insert_with(|| path.clone());
                    }
                }
            }
        }
        imports
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

#[test]
fn modules_of_a_crate_import_each_other_in_no_circle() {
    let mut looked_at = 0;
    for directory in &members() {
        let mut found = Vec::new();
        let mut places = String::new();
        for start in ["src/lib.rs", "src/main.rs"] {
            let text = |path: &Path| std::fs::read_to_string(path).ok();
            let modules = Modules::below(&root().join(directory).join(start), &text);
            looked_at += modules.files.len();
            let imports = modules.imports();
            for circle in circles(&imports) {
                for ((first, second), path) in &imports {
                    if circle.contains(first) && circle.contains(second) {
                        places.push_str(&format!("{first} imports {second} in {}\n", path.display()));
                    }
                }
                found.push(circle);
            }
        }
        assert!(
            found.is_empty(),
            "modules of {directory} import each other in a circle, {found:?}:\n{places}"
        );
    }
    assert!(400 < looked_at, "only {looked_at} files were found");
}

/// Checks the circles of a crate of these files.
fn check(files: &[(&str, &str)], expected: &[&[&str]]) {
    let text = |path: &Path| {
        files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
    };
    let imports = Modules::below(Path::new("lib.rs"), &text).imports();
    assert_eq!(circles(&imports), expected, "{imports:?}");
}

#[test]
fn a_circle_is_found_by_every_way_of_naming_a_module() {
    let root = ("lib.rs", "mod a;\npub mod b;\nmod c;\npub use self::c::{inner::Deep as Export, x};\n");
    let to_b = [("b.rs", "use crate::{c::x, a::{self, y}};\n"), ("c.rs", "")];
    for text in [
        "use crate::b::B;",
        "fn f() { crate::b::B }",
        "use super::b;",
        "use {std::fs, super::{c, b as other}};",
        "mod own { use super::super::b; }",
        "#[cfg(not(test))] use crate::b;",
        "const QUOTE: char = '\"'; use crate::b; // '\"'",
        "fn f<'a>(x: &'a str) { \"\\\"\"; crate::b::f::<'a>() }",
    ] {
        check(&[root, ("a.rs", text), to_b[0], to_b[1]], &[&["a", "b"]]);
    }
    // Through the root's re-export, from a file further down, and three in a circle.
    let deep = [root, ("a/mod.rs", "mod deep;"), ("a/deep.rs", "use super::super::b;"), to_b[0], to_b[1]];
    check(&deep, &[&["a", "b"]]);
    let three = [root, ("a.rs", "use crate::Export;"), ("c.rs", "use crate::b;"), to_b[0]];
    check(&three, &[&["a", "b", "c"]]);
}

#[test]
fn no_circle_is_seen_in_tests_comments_strings_and_names_of_ones_own() {
    let root = ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod testing;\n");
    for text in [
        "//! See `crate::b`.\n/* crate::b /* nested */ crate::b */",
        "const TEXT: &str = \"crate::b\"; const RAW: &str = r#\"\" crate::b\"#;",
        "#[cfg(test)]\nmod tests { use crate::b; }",
        "#[cfg(test)]\nmod tests;",
        "#[cfg(all(test, unix))]\n#[rustfmt::skip]\nuse crate::b;\n",
        "mod own { use super::b; } pub(in crate::b) struct A;",
        "use crate::a::b; use std::b; mod crate_b {}",
    ] {
        let tests = [("a/tests.rs", "use crate::b;"), ("testing.rs", "use crate::{a, b};")];
        let b = ("b.rs", "use crate::a; use crate::testing;");
        check(&[root, ("a.rs", text), tests[0], tests[1], b], &[]);
    }
}

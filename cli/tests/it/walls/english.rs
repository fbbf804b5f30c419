//! Words and sentences that are refused in doc comments, strings and documents.

use super::{read, root, sources};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// Words that a doc comment must not start with.
const STARTS: [&str; 4] = ["What ", "Whether ", "Who ", "How "];

/// Words that are refused everywhere.
const WORDS: [&str; 14] = [
    " anew",
    "folder",
    "whence",
    "whoever",
    "nobody",
    "somebody",
    "so many",
    "in the mean ",
    " is told",
    " are told",
    "looked for for",
    "took its leave",
    "came to nothing",
    "(s)",
];

/// Maximum number of words of a sentence in a document.
const SENTENCE_WORDS_MAX: usize = 40;

/// Refused places in doc comments and strings of Rust code.
fn in_code(text: &str) -> usize {
    let refused = |text: &str| WORDS.iter().filter(|word| text.to_lowercase().contains(**word)).count();
    let mut count = 0;
    let mut continues = false;
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        match comment {
            Some(comment) => {
                let comment = comment.trim_start();
                count += usize::from(!continues && STARTS.iter().any(|start| comment.starts_with(start)));
                count += refused(comment);
                continues = !comment.is_empty();
            }
            None => {
                continues = false;
                let is_code = !line.starts_with("//");
                count += line.split('"').skip(1).step_by(2).filter(|_| is_code).map(refused).sum::<usize>();
            }
        }
    }
    count
}

/// Refused words and sentences in a document, without its code and tables.
fn in_document(text: &str) -> usize {
    let mut is_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        match is_code || line.starts_with(['|', '#', '`']) || line.trim_start().starts_with(['-', '*']) {
            true => prose.push_str(". "),
            false => _ = write!(prose, "{line} "),
        }
        if line.is_empty() {
            prose.push_str(". ");
        }
    }
    let sentences =
        prose.split(['.', '!', '?', ':', ';']).map(|sentence| sentence.split_whitespace().count());
    let long = sentences.filter(|words| SENTENCE_WORDS_MAX < *words).count();
    long + WORDS.iter().map(|word| prose.to_lowercase().matches(word).count()).sum::<usize>()
}

/// Number of refused places of each directory and document that has some.
fn found() -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for directory in ["scheduler", "worker", "runtime", "lab", "cli", "examples", "benches"] {
        let code = sources(directory).into_iter().filter(|path| !path.iter().any(|part| part == "tests"));
        found.insert(directory.to_owned(), code.map(|path| in_code(&read(&path))).sum());
    }
    let chapters = fs::read_dir(root().join("docs/book")).unwrap().map(|entry| entry.unwrap().path());
    let chapters = chapters.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let documents =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name));
    for path in chapters.chain(documents) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        found.insert(name, in_document(&read(&path)));
    }
    found.retain(|_, count| 0 < *count);
    found
}

#[test]
fn no_code_and_no_document_has_a_refused_word() {
    let found = found();
    assert!(found.is_empty(), "refused words, by place: {found:?}; CONTRIBUTING.md says what to write");
}

#[test]
fn refused_words_are_found_and_plain_ones_are_not() {
    assert_eq!(in_code("/// What the job does.\nfn f() {}\n"), 1);
    assert_eq!(in_code("/// Number of bytes\n/// Whether full or not.\n"), 0, "a sentence that goes on");
    assert_eq!(in_code("//! Starts anew.\nlet text = \"1 map(s)\";\n// nobody sees this"), 2);
    assert_eq!(in_code("/// Returns the number of maps.\nlet text = \"2 maps\";\n"), 0);
    let long = format!("One {}end.", "word ".repeat(40));
    assert_eq!(in_document(&long), 1);
    assert_eq!(in_document(&format!("```\n{long}\n```\nWhoever reads this.\n")), 1);
    assert_eq!(in_document("A short sentence. Another one.\n"), 0);
}

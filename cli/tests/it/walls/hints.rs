//! Commands that code and documents name in backquotes, looked up in the command line.

use super::{read, root, sources};
use clap::Command;
use gristmill::cli::visible_command;
use gristmill::prelude::Registry;
use std::fs;

/// Commands that the program calls itself, and those named as words that are not commands.
const OTHERS: [&str; 1] = ["unpack"];

/// Text of code or of a document with its lines joined, also within comments and strings.
fn joined(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_start();
        let line = ["///", "//!", "//"].iter().find_map(|start| line.strip_prefix(start)).unwrap_or(line);
        line.trim_end_matches('\\').trim()
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// Commands in backquotes of a text that do not exist.
fn unknown(program: &Command, text: &str) -> Vec<String> {
    let text = joined(text);
    let named = text.split("`gristmill ").skip(1).filter_map(|rest| rest.split('`').next());
    named.filter(|named| !exists(program, named)).map(str::to_owned).collect()
}

/// True if a command line names a command, in its group. Placeholders and flags end it.
fn exists(program: &Command, line: &str) -> bool {
    let mut command = program;
    for word in line.split([' ', ',']) {
        let is_name = word.chars().all(|sign| sign.is_ascii_lowercase() || sign == '-');
        if !is_name || word.is_empty() || word.starts_with('-') || !command.has_subcommands() {
            break;
        }
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None => return OTHERS.contains(&word),
        }
    }
    true
}

#[test]
fn every_command_that_is_named_exists() {
    let mut program = visible_command(&Registry::standard());
    program.build();
    let directories = ["scheduler", "worker", "runtime", "lab", "cli", "examples", "benches"];
    let code = directories.into_iter().flat_map(sources);
    let chapters = fs::read_dir(root().join("docs/book")).unwrap().map(|entry| entry.unwrap().path());
    let chapters = chapters.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"];
    let documents = documents.map(|name| root().join(name));
    for path in code.chain(chapters).chain(documents) {
        if path.ends_with("walls/hints.rs") {
            continue;
        }
        let unknown = unknown(&program, &read(&path));
        assert!(unknown.is_empty(), "{} names commands that do not exist: {unknown:?}", path.display());
    }
}

#[test]
fn command_that_does_not_exist_is_found() {
    let mut program = visible_command(&Registry::standard());
    program.build();
    let unknown = |text| unknown(&program, text);
    assert_eq!(unknown("hint: `gristmill history` shows it"), ["history"]);
    assert_eq!(unknown("see `gristmill job \\\n    lits`"), ["job lits"]);
    assert_eq!(unknown("`gristmill wait` without its group"), ["wait"]);
    assert!(
        unknown("`gristmill job list --ended`, `gristmill run wordcount FILE`, `gristmill COMMAND`")
            .is_empty()
    );
}

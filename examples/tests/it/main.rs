//! The examples as a user runs them: real processes on generated input, against plain single-threaded answers.
//!
//! The answers share no code with the examples or the engine.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is test code, helpers included")]

mod inverted_index;
mod own_partitioner;
mod own_policy;
mod pagerank;
mod rounds;
mod secondary_sort;
mod stage;

use std::fs;
use std::path::Path;

#[test]
fn inverted_index_stays_under_sixty_lines() {
    let lines = include_str!("../../src/bin/inverted_index.rs").lines().count();
    assert!(lines < 60, "{lines} lines");
}

#[test]
fn readme_has_a_command_for_every_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for program in fs::read_dir(root.join("src/bin")).unwrap() {
        let path = program.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(readme.contains(&format!("--bin {name} ")), "no command for {name}");
    }
}

//! The examples as users run them: real processes on generated input, compared with plain single-threaded
//! results.
//!
//! The expected results share no code with the examples or the engine.

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
fn examples_stay_short() {
    for (name, text, lines_max) in [
        ("inverted_index", include_str!("../../src/bin/inverted_index.rs"), 59),
        ("spending", include_str!("../../src/bin/spending.rs"), 70),
        ("k_means", include_str!("../../src/bin/k_means.rs"), 80),
        ("tf_idf", include_str!("../../src/bin/tf_idf.rs"), 110),
    ] {
        let lines = text.lines().count();
        assert!(lines <= lines_max, "{name}: {lines} lines");
    }
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

//! Compares `inverted_index` with a map of sets. Words have ASCII letters only, so that the expected
//! result needs no tables.

use crate::stage::{SHAPES, Stage, random, sorted_lines};
use rand::RngExt;
use std::collections::{BTreeMap, BTreeSet};

const PROGRAM: &str = env!("CARGO_BIN_EXE_inverted_index");

fn text(seed: u64) -> String {
    let mut random = random(seed);
    let mut text = String::new();
    for _ in 0..800 {
        for _ in 0..random.random_range(1..4) {
            text.push(random.random_range(b'a'..=b'f') as char);
        }
        if random.random_range(0..9) == 0 {
            text.make_ascii_uppercase();
        }
        text.push_str([" ", " ", " ", ", ", ".\n", "\r\n", "\n\n", " -- "][random.random_range(0..8)]);
    }
    text
}

#[test]
fn inverted_index_lists_the_files_of_each_word_for_any_cluster_and_any_number_of_parts() {
    let stage = Stage::new();
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let files = ["one.txt", "two.txt", "three.txt", "four.txt"];
    for (seed, name) in files.iter().enumerate() {
        let text = text(seed as u64);
        for word in text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
            expected.entry(word.to_ascii_lowercase()).or_default().insert((*name).to_owned());
        }
        stage.write(name, &text);
    }
    let mut expected: Vec<String> = expected
        .into_iter()
        .map(|(word, files)| format!("{word}\t{}", Vec::from_iter(files).join(" ")))
        .collect();
    expected.sort_unstable();
    for shape in SHAPES {
        let output = format!("index-{}-{}", shape.0, shape.1);
        stage.run(PROGRAM, shape, &format!("inverted-index {} --output {output}", files.join(" ")));
        let parts = stage.parts(&output);
        assert_eq!(parts.len(), shape.1 as usize);
        assert_eq!(sorted_lines(&parts), expected, "{shape:?}");
    }
}

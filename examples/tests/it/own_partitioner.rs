//! Compares `own_partitioner` with counting in a map, and with splitting lines at commas.

use crate::stage::{SHAPES, Stage, random};
use rand::RngExt;
use std::collections::BTreeMap;

const PROGRAM: &str = env!("CARGO_BIN_EXE_own_partitioner");

/// Returns lines of words and commas, some capitalized, some starting with digits or umlauts.
fn lines(seed: u64) -> String {
    let mut random = random(seed);
    let letters = ['a', 'B', 'c', 'z', 'Z', '7', 'ä', '-'];
    let mut text = String::new();
    for _ in 0..2000 {
        for _ in 0..random.random_range(1..4) {
            text.push(letters[random.random_range(0..letters.len())]);
        }
        text.push([' ', ' ', ',', '\n'][random.random_range(0..4)]);
    }
    text
}

#[test]
fn by_initial_puts_each_word_into_the_part_of_its_first_letter_whatever_reduces_says() {
    let stage = Stage::new();
    let text = lines(11);
    stage.write("words.txt", &text);
    let mut counts: [BTreeMap<&str, u64>; 27] = Default::default();
    for word in text.split_ascii_whitespace() {
        let part = match word.chars().next() {
            Some(initial) if initial.is_ascii_alphabetic() => {
                initial.to_ascii_lowercase() as usize - 'a' as usize
            }
            _ => 26,
        };
        *counts[part].entry(word).or_default() += 1;
    }
    let expected = counts
        .map(|counts| counts.iter().map(|(word, count)| format!("{word}\t{count}\n")).collect::<String>());
    for shape in SHAPES {
        let output = format!("initials-{}-{}", shape.0, shape.1);
        stage.run(PROGRAM, shape, &format!("by-initial words.txt --output {output}"));
        assert_eq!(stage.parts(&output), expected, "{shape:?}");
    }
}

#[test]
fn cut_writes_fields_in_the_order_of_the_input_for_any_cluster() {
    let stage = Stage::new();
    let text = lines(12);
    stage.write("rows.txt", &text);
    let fields = text.lines().filter_map(|line| line.split(',').nth(1));
    let expected: String = fields.map(|field| format!("{field}\n")).collect();
    for shape in SHAPES {
        assert_eq!(stage.run(PROGRAM, shape, "cut rows.txt --field 2"), expected, "{shape:?}");
    }
}

#[test]
fn cut_refuses_field_zero_before_anything_runs() {
    let stage = Stage::new();
    stage.write("rows.txt", "a,b\n");
    let done = stage.command(PROGRAM, "run --workers 1 cut rows.txt --field 0").output().unwrap();
    let words = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{words}");
    assert!(words.contains("--field cannot be 0: the first field is 1"), "{words}");
}

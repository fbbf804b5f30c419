//! Tests with correct outputs, and with each kind of error.

use super::*;
use clap::{Args, FromArgMatches};
use proptest::prelude::*;
use std::path::Path;

fn sort(flags: &[&str], input: &Path) -> Sort {
    let command = Sort::augment_args(clap::Command::new("sort").no_binary_name(true));
    let input = input.to_str().unwrap();
    let matches = command.try_get_matches_from(flags.iter().copied().chain([input])).unwrap();
    Sort::from_arg_matches(&matches).unwrap()
}

/// Verifies parts with these bytes against an input with those.
fn report(flags: &[&str], input: &[u8], parts: &[&[u8]]) -> Result<VerifyReport, VerifyError> {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: String, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let path = write("input".to_owned(), input);
    let part = |(index, bytes): (usize, &&[u8])| {
        write(format!("part-{index:05}"), bytes).to_str().unwrap().to_owned()
    };
    let parts = parts.iter().enumerate().map(part).collect();
    verify(&VerifyOptions { parts, sort: sort(flags, &path), limits: InputLimits::default() })
}

fn problems(flags: &[&str], input: &[u8], parts: &[&[u8]]) -> Vec<Problem> {
    report(flags, input, parts).unwrap().problems()
}

/// Place of the disorder: the number of the part, and the offset in it.
fn disorder(problems: &[Problem]) -> Option<(char, u64)> {
    problems.iter().find_map(|problem| match problem {
        Problem::Disorder(Disorder { part, offset }) => Some((part.chars().last().unwrap(), *offset)),
        _ => None,
    })
}

#[test]
fn sorted_parts_with_the_records_of_the_input_have_no_problem() {
    let report = report(&[], b"b\na\n\nc", &[b"\na\n", b"", b"b\nc\n"]).unwrap();
    assert_eq!(report.problems(), []);
    assert_eq!((report.output.records, report.output.bytes), (4, 3));
}

#[test]
fn disorder_is_found_within_and_across_parts() {
    assert_eq!(disorder(&problems(&[], b"a\nb\nc\n", &[b"b\na\n", b"c\n"])), Some(('0', 2)));
    assert_eq!(disorder(&problems(&[], b"a\nb\nc\n", &[b"b\nc\n", b"a\n"])), Some(('1', 0)));
    assert_eq!(disorder(&problems(&["-r"], b"a\nb\n", &[b"a\nb\n"])), Some(('0', 2)));
    assert_eq!(disorder(&problems(&["--numeric"], b"9\n10\n", &[b"10\n", b"9\n"])), Some(('1', 0)));
}

#[test]
fn records_with_equal_keys_must_be_in_their_own_order_unless_stable() {
    let (input, parts) = (b"1b\n1a\n", [&b"1b\n1a\n"[..]]);
    assert_eq!(disorder(&problems(&["--numeric"], input, &parts)), Some(('0', 3)));
    assert_eq!(problems(&["--numeric", "--stable"], input, &parts), []);
}

#[test]
fn lost_and_added_records_are_found() {
    let lost = [Problem::Records { input: 2, output: 1 }];
    assert_eq!(problems(&[], b"a\nb\n", &[b"b\n"]), lost);
    let added = [Problem::Records { input: 1, output: 2 }];
    assert_eq!(problems(&[], b"a\n", &[b"a\na\n"]), added);
}

#[test]
fn exchanged_records_are_found_by_their_hashes() {
    for parts in [&b"a\nc\n"[..], b"a\na\n", b"ab\n\n"] {
        let found = problems(&[], b"a\nb\n", &[parts]);
        assert!(found.iter().any(|problem| matches!(problem, Problem::Contents { .. })), "{found:?}");
    }
}

#[test]
fn unique_outputs_may_hold_fewer_records_but_no_key_twice() {
    let input = b"b\na\nb\n";
    assert_eq!(problems(&["-u"], input, &[b"a\nb\n"]), []);
    assert_eq!(disorder(&problems(&["-u"], input, &[b"a\nb\nb\n"])), Some(('0', 4)));
    assert_eq!(problems(&["-u"], input, &[]), [Problem::Records { input: 3, output: 0 }]);
}

#[test]
fn records_of_fixed_length_are_verified_as_such() {
    let flags = ["--record-length", "2", "--key-bytes", "1..2"];
    assert_eq!(problems(&flags, b"\n2\n1", &[b"\n1\n2"]), []);
    assert_eq!(disorder(&problems(&flags, b"\n2\n1", &[b"\n2\n1"])), Some(('0', 2)));
}

#[test]
fn missing_files_are_told_apart_by_side() {
    let missing = VerifyOptions {
        parts: vec!["/nonexistent/part-00000".to_owned()],
        sort: sort(&[], Path::new("/nonexistent/input")),
        limits: InputLimits::default(),
    };
    assert!(matches!(verify(&missing), Err(VerifyError::Output { .. })));
    let no_parts = VerifyOptions { parts: Vec::new(), ..missing };
    assert!(matches!(verify(&no_parts), Err(VerifyError::Input { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sorting_the_lines_and_nothing_else_passes(
        lines in proptest::collection::vec("[ab]{0,2}", 0..6),
        other in proptest::collection::vec("[ab]{0,2}", 0..6),
        cut in 0_usize..6,
    ) {
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut sorted = lines.clone();
        sorted.sort();
        let (first, second) = sorted.split_at(cut.min(sorted.len()));
        let parts = [text(first), text(second)];
        let parts = [parts[0].as_bytes(), parts[1].as_bytes()];
        prop_assert_eq!(problems(&[], text(&lines).as_bytes(), &parts), []);
        let found = problems(&[], text(&lines).as_bytes(), &[text(&other).as_bytes()]);
        prop_assert_eq!(found.is_empty(), sorted == other);
    }
}

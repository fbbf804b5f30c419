//! Tests of the search of whole blocks against the plain definition, line by line.

use super::count::{CountPerFile, FileCount};
use super::pattern::{LinePattern, PatternError};
use proptest::prelude::*;
use regex::bytes::RegexBuilder;

/// Options of a pattern.
#[derive(Clone, Copy, Debug)]
struct PatternOptions {
    ignore_case: bool,
    fixed_strings: bool,
}

fn compile(text: &str, options: PatternOptions) -> Result<LinePattern, PatternError> {
    LinePattern::new(text, options.ignore_case, options.fixed_strings)
}

const PLAIN: PatternOptions = PatternOptions { ignore_case: false, fixed_strings: false };

fn lines_of(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if bytes.is_empty() || bytes.ends_with(b"\n") {
        lines.pop();
    }
    lines
}

fn found(pattern: &LinePattern, bytes: &[u8], invert: bool) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    pattern.for_each_line(bytes, invert, |line| found.push(line.to_vec()));
    found
}

fn pieces(pattern: &LinePattern, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    pattern.for_each_line(bytes, false, |line| {
        pattern.for_each_match(line, |piece| found.push(piece.to_vec()));
    });
    found
}

/// Checks one pattern against the regex crate's own search of each line.
fn check(text: &str, options: PatternOptions, bytes: &[u8]) {
    let pattern = match compile(text, options) {
        Ok(pattern) => pattern,
        Err(PatternError::LineBreak) => return,
        Err(error) => panic!("{text:?}: {error}"),
    };
    let plain = if options.fixed_strings { regex::escape(text) } else { text.to_owned() };
    let plain =
        RegexBuilder::new(&plain).multi_line(true).case_insensitive(options.ignore_case).build().unwrap();
    for invert in [false, true] {
        let expected: Vec<Vec<u8>> = lines_of(bytes)
            .into_iter()
            .filter(|line| plain.is_match(line) != invert)
            .map(<[u8]>::to_vec)
            .collect();
        assert_eq!(found(&pattern, bytes, invert), expected, "{text:?} {options:?} on {bytes:?}");
    }
    let expected: Vec<Vec<u8>> = lines_of(bytes)
        .into_iter()
        .flat_map(|line| plain.find_iter(line).map(|found| found.as_bytes().to_vec()))
        .filter(|piece| !piece.is_empty())
        .collect();
    assert_eq!(pieces(&pattern, bytes), expected, "{text:?} {options:?} on {bytes:?}");
}

/// Patterns made of pieces that are likely to meet line breaks and the ends of lines.
fn patterns() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        Just("a"),
        Just("b"),
        Just("B"),
        Just("."),
        Just(r"\s"),
        Just(r"\S"),
        Just("[^a]"),
        Just("^"),
        Just("$"),
        Just(r"\b"),
        Just(r"\B"),
        Just(r"\A"),
        Just(r"\z"),
        Just(r"\r"),
        Just("(?s:.)"),
        Just("(?-u:.)"),
        Just("é"),
        Just(r"(?-u:\xC3)"),
        Just("(?R:$)"),
        Just("(?R:^)"),
        Just(r"\b{start}"),
        Just(r"\b{start-half}"),
        Just(r"\b{end-half}"),
        Just(r"(?-u:\B)"),
        Just("()"),
        Just("(?-m:$)"),
        Just(r"\W"),
        Just(r"\x00"),
    ];
    let repeats = ["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{2,3}?", "{0}"];
    let repeat = move || proptest::sample::select(repeats.to_vec());
    let atom = atom.prop_map(str::to_owned);
    // Depth, nodes and branches: small enough to be searched at once, large enough to nest constructs that a printer
    // could get wrong.
    atom.prop_recursive(5, 24, 4, move |inner| {
        prop_oneof![
            4 => (inner.clone(), repeat()).prop_map(|(sub, repeat)| format!("(?:{sub}){repeat}")),
            1 => (inner.clone(), repeat()).prop_map(|(sub, repeat)| format!("({sub}){repeat}")),
            4 => proptest::collection::vec(inner.clone(), 0..4).prop_map(|parts| parts.concat()),
            2 => proptest::collection::vec(inner.clone(), 1..4)
                .prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => inner.prop_map(|sub| format!("(?i:{sub})")),
        ]
    })
}

/// Text of few different characters, with empty lines, CRLF, bytes that are not UTF-8, and any last line.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 13] = [
        b"a",
        b"b",
        b"A",
        b" ",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        "é".as_bytes(),
        b"\xC3",
        b"\xA9",
        b"\xFF",
        b"\0",
    ];
    let piece = proptest::sample::select(pieces.to_vec());
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Number of random cases: `PROPTEST_CASES`, or as many as take about a second.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn block_search_finds_the_lines_that_a_search_of_each_line_finds(
        pattern in patterns(),
        text in texts(),
        ignore_case in any::<bool>(),
    ) {
        check(&pattern, PatternOptions { ignore_case, fixed_strings: false }, &text);
    }

    #[test]
    fn plain_text_is_found_like_its_escaped_pattern(
        pattern in "[aAb. é\r]{0,2}",
        text in texts(),
        ignore_case in any::<bool>(),
    ) {
        check(&pattern, PatternOptions { ignore_case, fixed_strings: true }, &text);
    }
}

#[test]
fn repetitions_of_repetitions_mean_what_their_groups_say() {
    let cases: [(&str, &[u8]); 7] = [
        ("x(?:a+)?b", b"xb\nxab\nxaab\nx\nb\n"),
        (r"^(?:[0-9]+)?[.][0-9]+$", b".5\n0.5\n12.25\n12.\nx.5\n"),
        ("(?:a{2})?b", b"b\nab\naab\na\n"),
        ("(?:a*)?", b"aaa\nb\nbaab\n\n"),
        ("(?:a{2}){3}b", b"aaab\naaaaaab\naab\n"),
        ("(?:a?){2,3}?b", b"b\naaab\naaaab\n"),
        ("(?:(?:a|b+)*?)+c", b"c\nabbc\nab\n"),
    ];
    for (pattern, text) in cases {
        for ignore_case in [false, true] {
            check(pattern, PatternOptions { ignore_case, fixed_strings: false }, text);
        }
    }
}

#[test]
fn patterns_that_spell_out_a_line_break_are_refused() {
    for (text, fixed_strings) in [("a\\nb", false), ("a\nb", false), ("(x|a\\x0Ab)", false), ("a\nb", true)] {
        for ignore_case in [false, true] {
            let pattern = compile(text, PatternOptions { ignore_case, fixed_strings });
            assert!(matches!(pattern, Err(PatternError::LineBreak)), "{text:?}");
        }
    }
}

#[test]
fn patterns_with_wrong_syntax_or_of_monstrous_size_are_refused() {
    assert!(matches!(compile("(", PLAIN), Err(PatternError::Syntax { .. })));
    let huge = r"\w{1000}{1000}";
    assert!(matches!(compile(huge, PLAIN), Err(PatternError::Compile { .. })));
}

#[test]
fn a_dollar_matches_before_the_line_feed_but_not_before_a_carriage_return() {
    let pattern = compile("foo$", PLAIN).unwrap();
    assert_eq!(found(&pattern, b"foo\r\nfoo\nxfoo", false), [&b"foo"[..], b"xfoo"]);
}

#[test]
fn a_negated_class_does_not_run_through_the_block_once_for_each_line() {
    // Quadratic time would be minutes here.
    let text = b"a,b\n".repeat(200_000);
    let pattern = compile("a[^;]*$", PLAIN).unwrap();
    assert_eq!(found(&pattern, &text, false).len(), 200_000);
}

fn counted(one_input: bool, stretches: &[(&str, u64, u64)]) -> Vec<(String, u64)> {
    let mut reducer = CountPerFile::new(one_input);
    let mut files = Vec::new();
    for (path, offset, lines) in stretches {
        files.extend(reducer.add(FileCount { path: (*path).to_owned(), offset: *offset, lines: *lines }));
    }
    files.extend(reducer.take_last());
    files.into_iter().map(|file| (file.path, file.lines)).collect()
}

#[test]
fn counts_of_the_stretches_of_a_file_are_added_up() {
    let stretches = [("a", 0, 1), ("a", 64, 2), ("a", 128, 0), ("b", 0, 3), ("a", 0, 4)];
    let expected = [("a".to_owned(), 3), ("b".to_owned(), 3), ("a".to_owned(), 4)];
    assert_eq!(counted(false, &stretches), expected);
}

#[test]
fn counts_of_a_file_named_twice_stay_apart() {
    let stretches = [("a", 0, 1), ("a", 64, 2), ("a", 0, 1), ("a", 64, 2)];
    assert_eq!(counted(false, &stretches), [("a".to_owned(), 3), ("a".to_owned(), 3)]);
}

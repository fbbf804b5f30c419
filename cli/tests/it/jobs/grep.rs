//! `grep` prints the lines that ripgrep prints, and its counts equal those of a plain search.

use crate::support::Sandbox;
use crate::support::data::{Random, files_of, shared, tool};
use crate::support::oracle::{self, counts};
use regex::bytes::Regex;

/// Patterns with flags that both programs support.
const SAME: [&[&str]; 9] = [
    &["Holmes"],
    &["-i", "holmes"],
    &["-v", "e"],
    &["-o", "[A-Z][a-z]+ing"],
    &["-i", "-o", r"\bthe\s+\w+"],
    &["-F", "..."],
    &["-F", "-i", "mr."],
    &["^$"],
    &["[.?!]\"?\r?$"],
];

#[test]
fn grep_of_books_prints_the_lines_of_ripgrep() {
    let Some(books) = shared("books", "grep of books") else { return };
    if !tool("rg", "grep against ripgrep") {
        return;
    }
    let files: Vec<String> = files_of(&books).iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let sandbox = Sandbox::new();
    for flags in SAME {
        for count in [&[] as &[&str], &["-c"]] {
            if flags.contains(&"-o") && !count.is_empty() {
                continue;
            }
            let names: &[&str] = if count.is_empty() { &["--no-filename"] } else { &["--with-filename"] };
            let theirs: Vec<&str> =
                [&["-N", "--no-heading", "-a", "-j1"], names, count, flags, &files[..]].concat();
            // Exit code 1 means that nothing matched.
            let expected = oracle::shell(r#"rg "$@" || [ $? = 1 ]"#, &theirs);
            let ours: Vec<&str> =
                [&["run", "grep", "--split-size", "150KiB"], count, flags, &files[..]].concat();
            let printed = sandbox.run_well(&ours).stdout;
            assert!(printed == expected, "grep {count:?} {flags:?} differs from ripgrep");
        }
    }
}

fn generated(seed: u64) -> Vec<u8> {
    Random::seeded(seed).text(40_000, &[" ", " ", "\n", "\u{e9}\n", ", "])
}

#[test]
fn grep_prints_matching_lines_in_input_order() {
    let sandbox = Sandbox::new();
    let text = generated(41);
    let input = sandbox.write("text", &text);
    let pattern = Regex::new("Wordb|ng").unwrap();
    for (flag, wanted) in [(None, true), (Some("-v"), false)] {
        let arguments = ["run", "grep", "Wordb|ng", &input, "--split-size", "1500"];
        let finished = sandbox.run_well(arguments.into_iter().chain(flag));
        let lines = oracle::lines(&text).into_iter().filter(|line| pattern.is_match(line) == wanted);
        let expected: Vec<u8> = lines.flat_map(|line| [line, b"\n"].concat()).collect();
        assert!(finished.stdout == expected, "{flag:?}");
    }
}

#[test]
fn grep_keeps_the_groups_of_nested_repetitions() {
    let sandbox = Sandbox::new();
    let text = sandbox.write("text", "xb\nxab\nxaab\n.5\n0.5\nab\n");
    let cases: [(&[&str], &str); 5] = [
        (&["x(?:a+)?b"], "xb\nxab\nxaab\n"),
        (&["-v", "^(?:[0-9]+)?[.][0-9]+$"], "xb\nxab\nxaab\nab\n"),
        (&["-c", "^(?:a{1})?b|x(?:a{2})?b"], "3\n"),
        (&["-o", "(?:a*)?"], "a\naa\na\n"),
        (&["--count-matches", "(?:a{2})?b"], "3\tb\n1\taab\n"),
    ];
    for (flags, expected) in cases {
        let finished = sandbox.run_well([&["run", "grep"], flags, &[text.as_str()]].concat());
        assert_eq!(finished.stdout_text(), expected, "{flags:?}");
    }
}

#[test]
fn grep_counts_lines_of_each_file() {
    let sandbox = Sandbox::new();
    let (one, two) = (sandbox.write("one", "tea\nmilk\ntea tea\n"), sandbox.write("two", "milk\n"));
    let three = sandbox.write("three", "TEA\n");
    let finished = sandbox.run_well(["run", "grep", "-i", "-c", "tea", &one, &two, &three]);
    assert_eq!(finished.stdout_text(), format!("{one}:2\n{three}:1\n"));
    let finished = sandbox.run_well(["run", "grep", "-c", "tea", &one]);
    assert_eq!(finished.stdout_text(), "2\n");
}

#[test]
fn grep_count_matches_ranks_matching_strings() {
    let sandbox = Sandbox::new();
    let text = generated(42);
    let input = sandbox.write("text", &text);
    let finished =
        sandbox.run_well(["run", "grep", "--count-matches", "Word[a-f]+", &input, "--split-size", "3KiB"]);
    let pattern = Regex::new("Word[a-f]+").unwrap();
    let mut ranked: Vec<(Vec<u8>, u64)> =
        counts(pattern.find_iter(&text).map(|found| found.as_bytes())).into_iter().collect();
    ranked.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
    let expected: String =
        ranked.iter().map(|(word, count)| format!("{count}\t{}\n", String::from_utf8_lossy(word))).collect();
    assert_eq!(finished.stdout_text(), expected);
}

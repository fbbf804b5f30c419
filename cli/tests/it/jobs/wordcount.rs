//! `wordcount` equals a count by `tr`, `sort` and `uniq -c`, and a plain map of words.

use crate::support::Sandbox;
use crate::support::data::{Random, shared};
use crate::support::oracle::{self, Counts, counts, counts_of_parts, word_counts};

/// Parses counts as `uniq -c` prints them: blanks, the number, a blank, the word.
fn uniq_counts(text: &[u8]) -> Counts {
    let line = |line: &[u8]| {
        let line = line.trim_ascii_start();
        let space = line.iter().position(|byte| *byte == b' ').unwrap();
        let count = std::str::from_utf8(&line[..space]).unwrap().parse().unwrap();
        (line[space + 1..].to_vec(), count)
    };
    oracle::lines(text).into_iter().map(line).collect()
}

#[test]
fn wordcount_of_books_equals_uniq_for_any_number_of_workers_and_reduces() {
    let Some(books) = shared("books", "wordcount of books") else { return };
    let books = books.to_str().unwrap();
    let script = r"cat $1/* | tr -s ' \t\n\v\f\r' '\n' | sed '/^$/d' | sort | uniq -c";
    let expected = uniq_counts(&oracle::shell(script, &[books]));
    let sandbox = Sandbox::new();
    for reduces in [1, 3, 7] {
        let mut of_one_worker = Vec::new();
        for workers in [1, 2, 5] {
            let out = sandbox.path(&format!("out-{workers}-{reduces}"));
            let (workers, reduces_text) = (workers.to_string(), reduces.to_string());
            let arguments = ["run", "wordcount", books, "--workers", &workers, "--reduces", &reduces_text];
            let rest = ["--split-size", "64KiB", "--json", "--output", out.to_str().unwrap()];
            let finished = sandbox.run_well(arguments.into_iter().chain(rest));
            let maps = finished.json()["status"]["maps"]["total"].as_u64().unwrap();
            assert!(maps > 40, "{maps} maps are too few to show anything");
            let parts = oracle::parts(&out);
            assert_eq!(parts.len(), reduces);
            assert!(counts_of_parts(&parts) == expected, "{workers} workers, {reduces} reduces");
            if of_one_worker.is_empty() {
                of_one_worker = parts;
            } else {
                assert!(of_one_worker == parts, "the bytes differ between 1 and {workers} workers");
            }
        }
    }
}

#[test]
fn wordcount_counts_words_between_the_six_spaces_of_ascii() {
    let sandbox = Sandbox::new();
    let text = Random::seeded(11).text(200_000, &[" ", "\t", "\n", "\x0b", "\x0c", "\r", "\n\n", " , "]);
    let input = sandbox.write("text", &text);
    let out = sandbox.text("out");
    let arguments = ["run", "wordcount", &input, "--split-size", "7KiB", "--reduces", "3", "--output", &out];
    sandbox.run_well(arguments);
    assert!(counts_of_parts(&oracle::parts(&sandbox.path("out"))) == word_counts(&text));
}

#[test]
fn wordcount_lowercase_counts_words_of_either_case_together() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "Tea tea TEA\ncup Cup\n\u{c4} \u{e4}\n");
    let finished = sandbox.run_well(["run", "wordcount", &input, "--lowercase", "--reduces", "1"]);
    // Without Unicode words only letters of ASCII are converted to lower case.
    assert_eq!(finished.stdout_text(), "cup\t2\ntea\t3\n\u{c4}\t1\n\u{e4}\t1\n");
}

#[test]
fn wordcount_unicode_leaves_punctuation_out() {
    let sandbox = Sandbox::new();
    let text = Random::seeded(12).text(50_000, &[" ", ", ", ". ", "!\n", "\n", " (", ") ", "-"]);
    let input = sandbox.write("text", &text);
    let finished = sandbox.run_well(["run", "wordcount", &input, "--words", "unicode", "--reduces", "1"]);
    let letters = text.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    assert!(counts_of_parts(&[finished.stdout]) == counts(letters));
    let input = sandbox.write("umlauts", "\u{c4}ste, \u{e4}ste!\n");
    let arguments = ["run", "wordcount", &input, "--words", "unicode", "--lowercase", "--reduces", "1"];
    assert_eq!(sandbox.run_well(arguments).stdout_text(), "\u{e4}ste\t2\n");
}

#[test]
fn wordcount_top_prints_the_most_frequent_words_first() {
    let sandbox = Sandbox::new();
    let text = Random::seeded(13).text(60_000, &[" ", "\n"]);
    let input = sandbox.write("text", &text);
    let finished = sandbox.run_well(["run", "wordcount", &input, "--top", "10", "--split-size", "9KiB"]);
    let mut ranked: Vec<(Vec<u8>, u64)> = word_counts(&text).into_iter().collect();
    ranked.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
    let expected: String = ranked
        .iter()
        .take(10)
        .map(|(word, count)| format!("{}\t{count}\n", String::from_utf8_lossy(word)))
        .collect();
    assert_eq!(finished.stdout_text(), expected);
}

#[test]
fn synthetic_runs_its_maps_and_hands_all_their_bytes_to_reduces() {
    let sandbox = Sandbox::new();
    let out = sandbox.text("out");
    let finished = sandbox.run_well([
        "run",
        "synthetic",
        "--maps",
        "6",
        "--map-time",
        "1ms",
        "--reduce-time",
        "1ms",
        "--map-bytes",
        "5000",
        "--reduces",
        "2",
        "--json",
        "--output",
        &out,
    ]);
    let status = &finished.json()["status"];
    assert_eq!(status["maps"]["done"], 6);
    assert_eq!(status["reduces"]["done"], 2);
    let whole = String::from_utf8(oracle::whole(&sandbox.path("out"))).unwrap();
    let numbers: Vec<u64> = whole.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let sum = |column: usize| numbers.iter().skip(column).step_by(2).sum::<u64>();
    // Pairs of 100 bytes each.
    assert_eq!((sum(0), sum(1)), (6 * 50, 6 * 5000));
}

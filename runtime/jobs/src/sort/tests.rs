//! Tests of orders against plain comparisons, and of the reconstruction of records.

use super::number::push_number;
use super::*;
use proptest::prelude::*;
use std::cmp::Ordering;

fn number(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    push_number(text.as_bytes(), &mut out);
    out
}

/// Compares as `sort -n` does, with both numbers written with the same number of digits.
fn compare_numbers(first: &str, second: &str) -> Ordering {
    fn digits(text: &str) -> (bool, String) {
        let text = text.trim_start_matches([' ', '\t']);
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (whole, rest) = text.split_at(end);
        let fraction = rest.strip_prefix('.').unwrap_or("");
        let end = fraction.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(fraction.len());
        let digits = format!("{whole:0>400}{:0<400}", &fraction[..end]);
        (negative && digits.contains(|digit| digit != '0'), digits)
    }
    let ((first_negative, first), (second_negative, second)) = (digits(first), digits(second));
    match (first_negative, second_negative) {
        (false, false) => first.cmp(&second),
        (true, true) => second.cmp(&first),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

#[test]
fn numbers_sort_by_value_whatever_their_form() {
    let ascending = [
        "-100",
        "-99.5",
        "-99.25",
        " -7x",
        "-0.5",
        "-.25",
        "0",
        "0.001",
        "0.01",
        ".5",
        "0.75",
        "1",
        "  2",
        "\t9",
        "10",
        "10.5",
        "99999999999999999999999",
        "100000000000000000000000",
    ];
    for (index, first) in ascending.iter().enumerate() {
        for (other, second) in ascending.iter().enumerate() {
            assert_eq!(number(first).cmp(&number(second)), index.cmp(&other), "{first:?} and {second:?}");
        }
    }
    for zero in ["", "-", "-0", "0.0", ".", "-.0", "+5", "abc", "--1", "- 1", "000"] {
        assert_eq!(number(zero), number("0"), "{zero:?}");
    }
    assert_eq!(number("007.500kg"), number("7.5"));
}

#[test]
fn numbers_of_more_than_254_digits_sort_by_value() {
    let digits = |count: usize| "9".repeat(count);
    for (less, more) in [(253, 254), (254, 255), (255, 256), (256, 300)] {
        assert!(number(&digits(less)) < number(&digits(more)));
        assert!(number(&format!("-{}", digits(less))) > number(&format!("-{}", digits(more))));
    }
}

proptest! {
    #[test]
    fn numbers_have_the_order_of_a_plain_comparison(
        first in "[ \t]?-?0{0,2}[0-9]{0,4}(\\.[0-9]{0,4})?[a.-]?",
        second in "[ \t]?-?0{0,2}[0-9]{0,4}(\\.[0-9]{0,4})?[a.-]?",
    ) {
        let (one, other) = (number(&first), number(&second));
        prop_assert_eq!(one.cmp(&other), compare_numbers(&first, &second));
        prop_assert!(one == other || (!one.starts_with(&other) && !other.starts_with(&one)));
    }
}

fn sort(flags: &str) -> Sort {
    use clap::{Args, FromArgMatches};
    let command = Sort::augment_args(clap::Command::new("sort").no_binary_name(true));
    let matches = command.try_get_matches_from(flags.split(' ').chain(["input"])).unwrap();
    Sort::from_arg_matches(&matches).unwrap()
}

/// Sorts records as a reducer of one part would.
fn sorted(sort: &Sort, records: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let order = RecordOrder::new(sort);
    let mut scratch = KeyBuffers::default();
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for record in records {
        let (key, value) = order.pair(record, &mut scratch);
        pairs.push((key.to_vec(), value.to_vec()));
    }
    pairs.sort_by(|first, second| first.0.cmp(&second.0));
    if sort.unique {
        pairs.dedup_by(|second, first| second.0 == first.0);
    }
    pairs.iter().map(|(key, value)| order.record(key, value, &mut scratch).to_vec()).collect()
}

/// The same by comparing keys and records directly.
fn plainly_sorted(sort: &Sort, records: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let key = |record: &Vec<u8>| -> Vec<u8> {
        match (sort.key_bytes, sort.field) {
            (Some(range), _) => {
                let end = range.end.unwrap_or(u32::MAX) as usize;
                let bytes = record.iter().take(end).skip(range.start as usize);
                bytes.copied().collect()
            }
            (None, Some(field)) => {
                let delimiter = sort.delimiter.unwrap_or(b'\t');
                let mut fields = record.split(|byte| *byte == delimiter);
                fields.nth(field as usize - 1).unwrap_or_default().to_vec()
            }
            (None, None) => record.clone(),
        }
    };
    let by_key = |first: &Vec<u8>, second: &Vec<u8>| {
        let (first, second) = (key(first), key(second));
        if sort.numeric {
            compare_numbers(&String::from_utf8_lossy(&first), &String::from_utf8_lossy(&second))
        } else {
            first.cmp(&second)
        }
    };
    let directed = |ordering: Ordering| if sort.reverse { ordering.reverse() } else { ordering };
    let mut records = records.to_vec();
    records.sort_by(|first, second| {
        let ordering = by_key(first, second);
        let last_resort = if sort.stable || sort.unique { Ordering::Equal } else { first.cmp(second) };
        directed(ordering.then(last_resort))
    });
    if sort.unique {
        records.dedup_by(|second, first| by_key(first, second).is_eq());
    }
    records
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn records_come_out_in_the_order_of_a_plain_comparison(
        records in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(b"ab\t,0123-.\0\xFF ".to_vec()), 0..8), 0..12),
        key in proptest::sample::select(vec![
            "", "--key-bytes 0..2", "--key-bytes 1..3", "--key-bytes 2..", "--field 1", "--field 2",
            "--field 2 --delimiter ,",
        ]),
        flags in proptest::sample::subsequence(vec!["--numeric", "-r", "-u", "--stable"], 0..=4),
    ) {
        let all: Vec<&str> = key.split(' ').chain(flags).filter(|flag| !flag.is_empty()).collect();
        let sort = match all.is_empty() {
            true => sort("--"),
            false => sort(&all.join(" ")),
        };
        prop_assert_eq!(sorted(&sort, &records), plainly_sorted(&sort, &records), "{:?}", sort);
    }
}

#[test]
fn key_bytes_are_read_as_half_open_ranges() {
    assert_eq!("0..10".parse(), Ok(ByteRange { start: 0, end: Some(10) }));
    assert_eq!("4..".parse(), Ok(ByteRange { start: 4, end: None }));
    for text in ["", "4", "..", "..4", "a..b", "4..-1", "1..2..3", "99999999999.."] {
        assert!(text.parse::<ByteRange>().is_err(), "{text}");
    }
}

#[test]
fn an_empty_key_range_is_refused() {
    assert!(matches!(sort("--key-bytes 4..4").plan(), Err(PlanError::Parameter { .. })));
    assert!(sort("--key-bytes 4..5").plan().is_ok());
}

//! Bad records that are skipped: the same ones, once each, and no others, however files are cut.

use super::super::bad_records::FileBadRecords;
use super::*;
use crate::text::csv_fields;

const CSV: RecordFormat = RecordFormat::Csv { delimiter: b',', header: false };
const CSV_HEADER: RecordFormat = RecordFormat::Csv { delimiter: b',', header: true };

fn leaving_out(block_bytes: usize, record_max: u64) -> InputLimits {
    InputLimits { block_bytes, record_max, bad_records_max: 100, ..InputLimits::default() }
}

/// Returns records and bad records of these files, split by split.
fn read_sound(
    paths: &[String],
    format: RecordFormat,
    split_bytes: u64,
    (access, limits): (&dyn FileAccess, InputLimits),
) -> Result<(Vec<Seen>, Vec<u64>), InputError> {
    let rules = SplitRules { split_bytes, leaving_out: Some(limits), ..SplitRules::default() };
    let splits = plan_splits(&[input(paths, format)], &LocalListing, rules)?;
    let (mut seen, mut bad) = (Vec::new(), Vec::new());
    for split in &splits {
        let mut blocks = open_split(split, access, &limits);
        while let Some(block) = blocks.next_block()? {
            seen.extend(block.records().map(|record| (record.offset(), record.bytes().to_vec())));
        }
        let of_file = |file: FileBadRecords| file.records.into_iter().map(|record| record.offset);
        bad.extend(blocks.bad_records().found().into_iter().flat_map(of_file));
    }
    Ok((seen, bad))
}

/// Returns a text of lines, of which the marked ones are bad, with the offsets of both.
fn marked(lines: &[(&str, bool)]) -> (String, Vec<Seen>, Vec<u64>) {
    let (mut text, mut good, mut bad) = (String::new(), Vec::new(), Vec::new());
    for (line, is_bad) in lines {
        match is_bad {
            true => bad.push(text.len() as u64),
            false => good.push((text.len() as u64, line.as_bytes().to_vec())),
        }
        text.push_str(line);
        text.push('\n');
    }
    (text, good, bad)
}

fn check_marked(format: RecordFormat, record_max: u64, lines: &[(&str, bool)]) {
    let files = Files::new();
    let (text, mut good, bad) = marked(lines);
    if format == CSV_HEADER {
        good.remove(0);
    }
    let path = [files.write("table", &text)];
    for split_bytes in 1..=text.len() as u64 + 1 {
        for block_bytes in [1, 2, 5, 1 << 20] {
            for access in [&LocalFiles as &dyn FileAccess, &AsRemote] {
                let limits = leaving_out(block_bytes, record_max);
                let read = read_sound(&path, format, split_bytes, (access, limits)).unwrap();
                assert_eq!(read, (good.clone(), bad.clone()), "{split_bytes} {block_bytes} of {text:?}");
            }
        }
    }
}

#[test]
fn rows_with_a_quote_never_closed_are_left_out_alone_whatever_the_split_size() {
    for format in [CSV, CSV_HEADER] {
        let lines =
            [("k,v", false), ("1,\"a\"", false), ("2,\"b", true), ("3,c", false), ("4,5\" pipe", false)];
        check_marked(format, 1 << 20, &lines);
        let lines =
            [("k,v", false), ("\"1,a", true), ("2,\"b,b\"", false), ("3,\"c", true), ("4,\"\"", false)];
        check_marked(format, 1 << 20, &lines);
        let lines =
            [("k,v", false), ("1,\"a\"\"", true), ("2,\"\"\"b\"", false), ("3,\"c\"x", true), ("4,", false)];
        check_marked(format, 1 << 20, &lines);
    }
}

#[test]
fn records_that_are_too_long_are_left_out_alone() {
    let lines =
        [("short", false), ("nine char", true), ("12345678", false), ("123456789012", true), ("", false)];
    check_marked(RecordFormat::Lines, 8, &lines);
    let lines =
        [("a,b", false), ("1,1234567", true), ("2,\"a,b\"", false), ("3,\"1234567\"", true), ("4,x", false)];
    check_marked(CSV, 8, &lines);
}

#[test]
fn line_breaks_within_quotes_are_no_fault() {
    let files = Files::new();
    let text = "1,\"a\nb\"\r\n2,\"c\n3,d\n\"4\n\",\"e\"\n";
    let path = [files.write("table", text)];
    let fields = |row: &Seen| csv_fields(&row.1, b',').map(|field| field.into_owned()).collect::<Vec<_>>();
    for split_bytes in 1..=text.len() as u64 {
        let limits = leaving_out(3, 1 << 20);
        let (seen, bad) = read_sound(&path, CSV, split_bytes, (&LocalFiles, limits)).unwrap();
        // The quote of the second row is closed by that of the fourth, after which more bytes follow.
        assert_eq!(bad, [9], "{split_bytes}");
        let expected =
            [["1", "a\nb"], ["3", "d"], ["4\n", "e"]].map(|row| row.map(|f| f.as_bytes().to_vec()));
        assert_eq!(seen.iter().map(fields).collect::<Vec<_>>(), expected, "{split_bytes}");
    }
}

#[test]
fn the_rest_of_a_file_of_fixed_records_is_left_out() {
    let files = Files::new();
    let path = [files.write("records", b"abcdefgh\nij")];
    let format = RecordFormat::Fixed { length: 4 };
    for split_bytes in 1..12 {
        let limits = leaving_out(4, 1 << 20);
        let (seen, bad) = read_sound(&path, format, split_bytes, (&AsRemote, limits)).unwrap();
        assert_eq!(seen, [(0, b"abcd".to_vec()), (4, b"efgh".to_vec())], "{split_bytes}");
        assert_eq!(bad, [8], "{split_bytes}");
    }
}

#[test]
fn a_bad_header_is_no_bad_record() {
    let files = Files::new();
    let path = [files.write("table", "a,\"b\n1,2\n")];
    let error = read_sound(&path, CSV_HEADER, 100, (&LocalFiles, leaving_out(100, 100))).unwrap_err();
    assert!(matches!(error, InputError::BadRecord { offset: 0, .. }), "{error}");
}

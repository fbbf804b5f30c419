//! Tests of words, lines and fields that are found in text many bytes at once, against plain code.

use super::words::{white_space_mask, white_space_mask_plain};
use super::*;
use proptest::prelude::*;

fn owned<'a>(items: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    items.map(<[u8]>::to_vec).collect()
}

fn called(each: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    each(&mut |word| found.push(word.to_vec()));
    found
}

/// Bytes in which white space, letters and the neighbours of white space in the code table are all common.
fn wordy_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        Just(b' '),
        b'\x08'..=b'\x0e',
        Just(b'a'),
        Just(b'a'),
        Just(b'a'),
        any::<u8>(),
        Just(0x89),
        Just(0xa0),
    ];
    proptest::collection::vec(byte, 0..400)
}

#[test]
fn white_space_is_the_six_ascii_bytes() {
    let found: Vec<u8> = (0..=255).filter(|&byte| is_white_space(byte)).collect();
    assert_eq!(found, b"\t\n\x0b\x0c\r ");
}

#[test]
fn white_space_mask_equals_its_plain_twin_for_every_byte() {
    for byte in 0..=255 {
        for at in [0, 15, 16, 63] {
            let mut group = [b'a'; 64];
            group[at] = byte;
            assert_eq!(white_space_mask(&group), white_space_mask_plain(&group), "byte {byte} at {at}");
        }
    }
}

#[test]
fn words_are_found_at_every_place_of_a_group() {
    for begin in 0..130 {
        for length in 0..130 {
            let mut bytes = vec![b' '; begin];
            bytes.extend(vec![b'x'; length]);
            for tail in [0, 1] {
                bytes.extend(vec![b'\n'; tail]);
                let expected: Vec<Vec<u8>> = (0 < length).then(|| vec![b'x'; length]).into_iter().collect();
                assert_eq!(called(|word| for_each_word(&bytes, word)), expected, "{begin} {length} {tail}");
            }
        }
    }
}

#[test]
fn unicode_words_leave_out_punctuation_and_keep_apostrophes() {
    let found: Vec<&str> = unicode_words("“Don’t”, said Žofie — 3.14 times…").collect();
    assert_eq!(found, ["Don’t", "said", "Žofie", "3.14", "times"]);
}

#[test]
fn lines_keep_carriage_returns_and_empty_lines() {
    let check = |text: &str, expected: &[&str]| {
        let expected: Vec<Vec<u8>> = expected.iter().map(|line| line.as_bytes().to_vec()).collect();
        assert_eq!(owned(lines(text.as_bytes())), expected, "{text:?}");
    };
    check("", &[]);
    check("\n", &[""]);
    check("a\r\n\nb", &["a\r", "", "b"]);
}

#[test]
fn fields_split_at_every_delimiter_and_know_no_quotes() {
    assert_eq!(owned(fields(b"", b',')), [b""]);
    assert_eq!(owned(fields(b",\"a,", b',')), [&b""[..], b"\"a", b""]);
}

#[test]
fn csv_fields_follow_the_rule_of_quotes() {
    let check = |row: &str, expected: &[&str]| {
        let found: Vec<String> = csv_fields(row.as_bytes(), b',')
            .map(|field| String::from_utf8(field.into_owned()).unwrap())
            .collect();
        assert_eq!(found, expected, "{row:?}");
    };
    check("", &[""]);
    check("a,b,", &["a", "b", ""]);
    check(r#""a,b",c"#, &["a,b", "c"]);
    check(r#""say ""hi""",c"#, &[r#"say "hi""#, "c"]);
    check(r#""a"b"c",d"#, &[r#"ab"c""#, "d"]);
    check(r#"a"b,c"#, &[r#"a"b"#, "c"]);
    check(r#"  "a,b""#, &[r#"  "a"#, r#"b""#]);
    check(r#""never closed, c"#, &["never closed, c"]);
    check("\"\"\",\"\"\"", &["\",\""]);
}

#[test]
fn csv_fields_without_escapes_are_not_copied() {
    let copied = |row: &'static str| {
        matches!(csv_fields(row.as_bytes(), b',').next(), Some(std::borrow::Cow::Owned(_)))
    };
    assert!(!copied("plain,b"));
    assert!(!copied("\"a,b\",c"));
    assert!(copied("\"a\"\"b\",c"));
}

#[test]
fn numbers_of_every_length_are_read() {
    for number in (0..20).flat_map(|power| [10_u64.pow(power) - 1, 10_u64.pow(power)]).chain([u64::MAX]) {
        assert_eq!(parse_u64(number.to_string().as_bytes()), Some(number));
    }
    for text in ["", "-1", "+1", " 1", "1 ", "18446744073709551616", "1x"] {
        assert_eq!(parse_u64(text.as_bytes()), None, "{text:?}");
    }
}

proptest! {
    #[test]
    fn all_forms_of_words_agree(bytes in wordy_bytes()) {
        let expected = owned(words(&bytes));
        prop_assert_eq!(&called(|word| for_each_word(&bytes, word)), &expected);
    }

    #[test]
    fn csv_field_reads_back_what_was_written(
        written in proptest::collection::vec("[a,\"\r\n;]{0,6}", 1..5),
        delimiter in prop_oneof![Just(b','), Just(b';')],
    ) {
        let mut row = Vec::new();
        for (index, field) in written.iter().enumerate() {
            if 0 < index {
                row.push(delimiter);
            }
            write_csv_field(&mut row, field.as_bytes(), delimiter);
        }
        let read: Vec<Vec<u8>> = csv_fields(&row, delimiter).map(std::borrow::Cow::into_owned).collect();
        let written: Vec<Vec<u8>> = written.into_iter().map(String::into_bytes).collect();
        prop_assert_eq!(read, written);
    }
}

/// A limitation of the library; once it follows the rules, the first words are only letters.
#[test]
fn words_by_unicode_keep_punctuation_a_joiner_and_an_emoji_as_the_library_does() {
    for middle in ["'", ".", ":", "\u{b7}", ".\u{301}"] {
        let text = format!("a{middle}\u{200d}\u{1f6d1} b");
        assert_eq!(
            unicode_words(&text).collect::<Vec<_>>(),
            [text.strip_suffix(" b").unwrap(), "b"],
            "{text:?}"
        );
    }
    // With another letter instead of the emoji, and without a joiner, the rules are followed.
    assert_eq!(unicode_words("a.\u{200d}b").collect::<Vec<_>>(), ["a.\u{200d}b"]);
    assert_eq!(unicode_words("a.\u{1f6d1}").collect::<Vec<_>>(), ["a"]);
}

//! Tests that every record is read exactly once, however files are cut.

use super::*;
use crate::text::csv_fields;
use proptest::prelude::*;

const LINES: &[u8] = b"one\r\n\n\x00two\rtwo\n\xFF\xFE three  four\n\nlonger than a block of lines\nlast";

/// Returns pieces of one file between these cuts.
fn pieces(whole: &Piece, cuts: &[u64]) -> Vec<Split> {
    let mut begin = 0;
    let mut splits = Vec::new();
    for &end in cuts.iter().chain([&whole.length]) {
        if begin < end {
            let piece = Piece { offset: begin, length: end - begin, ..whole.clone() };
            splits.push(Split { input: 0, format: RecordFormat::Lines, pieces: vec![piece] });
        }
        begin = end;
    }
    splits
}

#[test]
fn lines_are_read_once_whatever_the_two_cuts() {
    assert_eq!(LINES.len(), 64);
    let files = Files::new();
    for (name, bytes) in [("unended", LINES), ("ended", &[LINES, b"\n"].concat()[..])] {
        let whole = files.piece(name, bytes);
        for first in 0..=whole.length {
            for second in first..=whole.length {
                check(
                    &pieces(&whole, &[first, second]),
                    &lines_of(bytes),
                    &format!("{name} {first} {second}"),
                );
            }
        }
    }
}

#[test]
fn lines_are_read_once_whatever_the_split_size() {
    let files = Files::new();
    for bytes in [LINES, b"\n", b"\n\n\n", b"x", b"no line end at all, and longer than a piece"] {
        let path = files.write("file", bytes);
        for split_bytes in 1..=bytes.len() as u64 + 1 {
            let splits = plan(&input(std::slice::from_ref(&path), RecordFormat::Lines), split_bytes).unwrap();
            assert_eq!(splits.len() as u64, (bytes.len() as u64).div_ceil(split_bytes));
            check(&splits, &lines_of(bytes), &format!("{bytes:?} {split_bytes}"));
        }
    }
}

#[test]
fn lines_of_a_mapped_file_are_read_once() {
    let files = Files::new();
    let text: String = (0..30_000).map(|number| format!("line {number} of a file\r\n")).collect();
    let path = files.write("file", &text);
    for split_bytes in [10_000, 65_536, 1 << 20] {
        let splits = plan(&input(std::slice::from_ref(&path), RecordFormat::Lines), split_bytes).unwrap();
        for (access, block_bytes) in
            [(&LocalFiles as &dyn FileAccess, 1 << 20), (&LocalFiles, 777), (&AsRemote, 4096)]
        {
            let seen = read(&splits, access, &limits(block_bytes)).unwrap();
            assert!(seen == lines_of(text.as_bytes()), "split size {split_bytes}, blocks of {block_bytes}");
        }
    }
}

#[test]
fn fixed_records_are_read_once_whatever_the_split_size() {
    let files = Files::new();
    for length in [1_u32, 4, 16, 64] {
        let format = RecordFormat::Fixed { length };
        let path = files.write("file", LINES);
        let expected: Vec<Seen> = LINES
            .chunks(length as usize)
            .enumerate()
            .map(|(index, bytes)| (index as u64 * u64::from(length), bytes.to_vec()))
            .collect();
        for split_bytes in 1..=65 {
            let splits = plan(&input(std::slice::from_ref(&path), format), split_bytes).unwrap();
            check(&splits, &expected, &format!("length {length}, split size {split_bytes}"));
        }
    }
}

#[test]
fn fixed_records_refuse_a_file_of_another_size() {
    let files = Files::new();
    let path = files.write("file", LINES);
    let error = plan(&input(&[path], RecordFormat::Fixed { length: 10 }), 1 << 20).unwrap_err();
    assert!(
        error.to_string().contains("64 bytes, which is not a multiple of the record length 10"),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.ends_with("file has 64 bytes, which is not a multiple of the record length 10"), "{text}");
}

const CSV: RecordFormat = RecordFormat::Csv { delimiter: b',', header: false };
const CSV_HEADER: RecordFormat = RecordFormat::Csv { delimiter: b',', header: true };

fn nasty_tables() -> Vec<Vec<u8>> {
    [
        "a,b\r\n1,\"two\nlines\"\r\n\"\"\"q\"\"\n\",x\n\n3,\"\"\r\n\"a\"b\"\n\",c\nlast,\"\n\n\"z\n\"",
        "\n\r\nh,\"e\na\"\n\"d\",er\n1,2",
        "\u{feff}\"h\n1\",h2\nx,y\n\"\n\",z\n",
        "a\"b\n\"c\"\"\n\"\"d\"\ne,\"\",\"\n\"\"\"\n\"closed\n\n,\"",
        "\r\r\n\rx\"\n\"y\"\r\n\"\"\"\"\n,\n,,\"\n\n\"",
        "\n\n\n",
        "\"\"",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Returns the fields of each row, read from splits of this size.
fn rows(path: &str, format: RecordFormat, split_bytes: u64, block_bytes: usize) -> Vec<Vec<Vec<u8>>> {
    try_rows(path, format, split_bytes, block_bytes).unwrap()
}

/// Returns the same, or the offset of a quote that opens and is never closed.
fn try_rows(
    path: &str,
    format: RecordFormat,
    split_bytes: u64,
    block_bytes: usize,
) -> Result<Vec<Vec<Vec<u8>>>, u64> {
    let unclosed = |error: InputError| -> u64 {
        let words = error.to_string();
        let offset = words.strip_prefix("the quote that opens a field at byte ");
        let offset = offset.and_then(|rest| rest.split_once(&format!(" of {path} is never closed")));
        offset.and_then(|(offset, _)| offset.parse().ok()).unwrap_or_else(|| panic!("{words}"))
    };
    let splits = plan(&input(&[path.to_owned()], format), split_bytes).map_err(unclosed)?;
    let seen = read(&splits, &LocalFiles, &limits(block_bytes)).map_err(unclosed);
    assert_eq!(seen, read(&splits, &AsRemote, &limits(block_bytes)).map_err(unclosed));
    let fields = |row: &[u8]| csv_fields(row, b',').map(std::borrow::Cow::into_owned).collect();
    Ok(seen?.iter().map(|(_, row)| fields(row)).collect())
}

/// Returns the offset of a quote that opens and is never closed, found byte by byte.
fn unclosed_quote(bytes: &[u8]) -> Option<u64> {
    let mark = if bytes.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
    let (mut opened, mut field_begins) = (None, true);
    let mut rest = bytes.iter().enumerate().skip(mark).peekable();
    while let Some((at, byte)) = rest.next() {
        match (opened, byte) {
            (Some(_), b'"') if rest.next_if(|(_, next)| **next == b'"').is_none() => opened = None,
            (None, b'"') if field_begins => opened = Some(at as u64),
            _ => {}
        }
        field_begins = matches!(byte, b',' | b'\n');
    }
    opened
}

/// Returns the rows as another implementation reads them.
fn oracle(bytes: &[u8], terminator: csv::Terminator) -> Vec<Vec<Vec<u8>>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(terminator)
        .from_reader(bytes)
        .byte_records()
        .map(|row| row.unwrap().iter().map(<[u8]>::to_vec).collect())
        .collect()
}

#[test]
fn csv_rows_are_read_once_whatever_the_split_size() {
    let files = Files::new();
    for bytes in nasty_tables() {
        let path = files.write("table", &bytes);
        let whole = rows(&path, CSV, u64::MAX, 1 << 20);
        for split_bytes in 1..=bytes.len() as u64 + 1 {
            for block_bytes in [1, 2, 5, 1 << 20] {
                let what = format!("{:?} {split_bytes} {block_bytes}", String::from_utf8_lossy(&bytes));
                assert_eq!(rows(&path, CSV, split_bytes, block_bytes), whole, "{what}");
                let rest = whole.get(1..).unwrap_or_default();
                assert_eq!(rows(&path, CSV_HEADER, split_bytes, block_bytes), rest, "with header: {what}");
            }
        }
    }
}

#[test]
fn csv_refuses_a_quote_that_is_never_closed_whatever_the_split_size() {
    let files = Files::new();
    let text = "a,b\n1,\"x\"\n2,\"y\n3,z\n\n4,zz\n";
    let path = files.write("table", text);
    let error = InputError::unclosed_quote(&FilePath::from(&*path), 12);
    let expected =
        format!("the quote that opens a field at byte 12 of {path} is never closed; close it or remove it");
    assert_eq!(error.to_string(), expected);
    assert!(error.is_input_fault());
    for split_bytes in 1..=text.len() as u64 + 1 {
        for block_bytes in [1, 2, 5, 1 << 20] {
            assert_eq!(
                try_rows(&path, CSV, split_bytes, block_bytes),
                Err(12),
                "{split_bytes} {block_bytes}"
            );
            assert_eq!(try_rows(&path, CSV_HEADER, split_bytes, block_bytes), Err(12));
        }
    }
    for (text, offset) in [("\"", 0), ("\u{feff}\"", 3), ("a\n\"\"\"", 2), ("a,\"b\"\"\n", 2)] {
        assert_eq!(try_rows(&files.write("short", text), CSV, 1 << 20, 1 << 20), Err(offset), "{text:?}");
    }
}

#[test]
fn csv_record_over_the_limit_names_the_quote_that_it_does_not_close() {
    let files = Files::new();
    let tight = InputLimits { record_max: 10, block_bytes: 4, ..InputLimits::default() };
    let path = files.write("table", "ab\nc,\"swallowed\nall\nthe\nrest");
    let splits = plan(&input(std::slice::from_ref(&path), CSV), 1 << 20).unwrap();
    let error = read(&splits, &LocalFiles, &tight).unwrap_err();
    let expected = format!(
        "record of more than 10 bytes at byte 3 of {path}, with a quote at byte 5 that is not closed (the limit is --max-record)"
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn csv_files_are_cut_behind_the_row_that_passes_the_split_size() {
    let files = Files::new();
    let path = files.write("table", "h1,h2\naa,\"b\nb\"\ncc,dd\nee,ff\n");
    let splits = plan(&input(&[path], CSV_HEADER), 8).unwrap();
    let cuts: Vec<(u64, u64)> =
        splits.iter().map(|split| (split.pieces[0].offset, split.pieces[0].end())).collect();
    assert_eq!(cuts, [(0, 15), (15, 21), (21, 27)]);
}

#[test]
fn csv_file_of_a_worker_is_one_split() {
    struct OnWorker;
    impl list::Listing for OnWorker {
        fn list(&self, _: Place, path: &FilePath) -> Result<Vec<list::ListedFile>, InputError> {
            let stamp = FileStamp { size: 1 << 30, modified_ns: 0, inode: 1 };
            Ok(vec![list::ListedFile { path: path.clone(), stamp }])
        }
    }
    let inputs = [
        input(&["worker-3:/data/t.csv".into()], CSV),
        input(&["worker-3:/data/t.txt".into()], RecordFormat::Lines),
    ];
    let splits = plan_splits(&inputs, &OnWorker, SplitRules::default()).unwrap();
    assert_eq!(splits.iter().filter(|split| split.input == 0).count(), 1);
    assert_eq!(splits.iter().filter(|split| split.input == 1).count(), 16);
    assert_eq!(splits[0].pieces[0].name.to_string(), "worker-3:/data/t.csv");
    assert_eq!(splits[0].pieces[0].path.to_string(), "/data/t.csv");
}

#[test]
fn csv_refuses_delimiters_that_mean_something_else() {
    for delimiter in [b'"', b'\n', b'\r'] {
        let error = plan(&input(&[], RecordFormat::Csv { delimiter, header: false }), 1).unwrap_err();
        assert!(error.to_string().contains("the delimiter of fields cannot be"), "{error}");
    }
}

/// Text of few tokens, so that quotes, delimiters and line ends occur in every combination.
fn table(tokens: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let tokens = proptest::collection::vec(proptest::sample::select(tokens), 0..40);
    (prop_oneof![Just(""), Just(""), Just("\u{feff}")], tokens)
        .prop_map(|(mark, tokens)| (mark.to_owned() + &tokens.concat()).into_bytes())
}

proptest! {
    #[test]
    fn csv_rows_and_fields_equal_those_of_the_csv_crate(
        bytes in table(&["a", "b", ",", ",", "\"", "\"", "\n", "\r\n", " ", "\"\"", "\",\"", ",\"", "\"\r\n"]),
        split_bytes in 1_u64..80,
        block_bytes in 1_usize..80,
    ) {
        let files = Files::new();
        let path = files.write("table", &bytes);
        let expected = unclosed_quote(&bytes).map_or_else(|| Ok(oracle(&bytes, csv::Terminator::CRLF)), Err);
        prop_assert_eq!(try_rows(&path, CSV, split_bytes, block_bytes), expected);
    }

    /// A `\r` that is not before `\n` is literal, as in that crate when only `\n` ends a row. A table
    /// without any `\n` is refused.
    #[test]
    fn csv_rows_with_lone_carriage_returns_equal_those_of_the_csv_crate(
        bytes in table(&["a", ",", "\"", "\"", "\n", "\rx", "\r,", "\r\"x", "\"\"", "\",\"", ",\""]),
        split_bytes in 1_u64..80,
        block_bytes in 1_usize..80,
    ) {
        prop_assume!(bytes.contains(&b'\n'));
        let files = Files::new();
        let path = files.write("table", &bytes);
        let terminator = csv::Terminator::Any(b'\n');
        let expected = unclosed_quote(&bytes).map_or_else(|| Ok(oracle(&bytes, terminator)), Err);
        prop_assert_eq!(try_rows(&path, CSV, split_bytes, block_bytes), expected);
    }

    #[test]
    fn csv_cuts_without_quotes_are_those_of_a_whole_scan(
        bytes in table(&["a", ",", "\n", "\n", "\r\n", "\u{feff}"]),
        split_bytes in 1_u64..80,
    ) {
        let first = if bytes.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
        let cuts = |quoted| border::row_cuts(&bytes, first, b',', split_bytes, quoted);
        prop_assert_eq!(cuts(false), cuts(true));
    }
}

#[test]
fn record_at_the_limit_is_read_and_one_byte_more_is_refused() {
    let files = Files::new();
    let tight = InputLimits { record_max: 10, block_bytes: 4, ..InputLimits::default() };
    for (format, end) in [(RecordFormat::Lines, "\n"), (CSV, "\r\n"), (CSV, "\n"), (RecordFormat::Lines, "")]
    {
        for (access, split_bytes) in [(&LocalFiles as &dyn FileAccess, 3), (&AsRemote, 3), (&LocalFiles, 100)]
        {
            let path = files.write("fits", format!("ab\n0123456789{end}"));
            let splits = plan(&input(&[path], format), split_bytes).unwrap();
            let expected = [(0, b"ab".to_vec()), (3, b"0123456789".to_vec())];
            assert_eq!(read(&splits, access, &tight).unwrap(), expected);

            let path = files.write("long", format!("ab\n0123456789x{end}"));
            let splits = plan(&input(std::slice::from_ref(&path), format), split_bytes).unwrap();
            let error = read(&splits, access, &tight).unwrap_err();
            assert!(error.is_input_fault());
            let expected =
                format!("record of more than 10 bytes at byte 3 of {path} (the limit is --max-record)");
            assert_eq!(error.to_string(), expected, "{format:?} {end:?} {split_bytes}");
        }
    }
}

#[test]
fn endless_record_is_refused_without_reading_it_all() {
    struct Endless;
    impl FileAccess for Endless {
        fn open(&self, _: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
            Ok(Box::new(Zeros))
        }
    }
    struct Zeros;
    impl ByteSource for Zeros {
        fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
            assert!(offset < 16 << 20, "read up to byte {offset}");
            buffer.fill(0);
            Ok(())
        }
    }
    let files = Files::new();
    let mut piece = files.piece("file", "x");
    piece.length = 1 << 40;
    piece.stamp.size = 1 << 40;
    let split = Split { input: 0, format: RecordFormat::Lines, pieces: vec![piece] };
    let tight = InputLimits { record_max: 1 << 20, ..InputLimits::default() };
    let error = read(&[split], &Endless, &tight).unwrap_err();
    assert!(error.to_string().starts_with("record of more than 1048576 bytes at byte 0 of"), "{error}");
}

/// Returns more lines than a file that is read at once when it is opened.
fn lines_of_a_large_file() -> String {
    "one\ntwo\n".repeat(10_000)
}

#[test]
fn changed_file_is_found_when_opened_and_when_read_to_the_end() {
    let files = Files::new();
    let lines = lines_of_a_large_file();
    let piece = files.piece("file", &lines);
    let splits = [Split { input: 0, format: RecordFormat::Lines, pieces: vec![piece.clone()] }];

    let mut blocks = open_split(&splits[0], &LocalFiles, &InputLimits::default());
    assert!(blocks.next_block().unwrap().is_some());
    files.write("file", format!("{lines}three\n"));
    let error = blocks.next_block().map(|_| ()).unwrap_err();
    assert!(matches!(&error, InputError::Changed { now: Some(now), .. } if now.size == 80_006), "{error}");

    let error = read(&splits, &LocalFiles, &InputLimits::default()).unwrap_err();
    assert!(matches!(error, InputError::Changed { was, .. } if was == piece.stamp));
    assert!(error.is_input_fault());
}

#[test]
fn deleted_file_is_missing_when_opened_and_changed_when_read_to_the_end() {
    let files = Files::new();
    let piece = files.piece("file", lines_of_a_large_file());
    let split = Split { input: 0, format: RecordFormat::Lines, pieces: vec![piece] };

    let mut blocks = open_split(&split, &LocalFiles, &InputLimits::default());
    assert!(blocks.next_block().unwrap().is_some());
    std::fs::remove_file(files.path("file")).unwrap();
    let error = blocks.next_block().map(|_| ()).unwrap_err();
    assert!(matches!(error, InputError::Changed { now: None, .. }), "{error}");

    let error = read(&[split], &LocalFiles, &InputLimits::default()).unwrap_err();
    assert!(matches!(error, InputError::Missing { .. }), "{error}");
}

#[test]
fn small_file_counts_as_it_was_when_it_was_opened() {
    let files = Files::new();
    let piece = files.piece("file", "one\ntwo\n");
    let split = Split { input: 0, format: RecordFormat::Lines, pieces: vec![piece.clone()] };
    let changes: [&dyn Fn(); 2] =
        [&|| drop(files.write("file", "other\n")), &|| std::fs::remove_file(files.path("file")).unwrap()];
    for change in changes {
        files.write("file", "one\ntwo\n");
        let stamp = files.piece("file", "one\ntwo\n").stamp;
        let split = Split { pieces: vec![Piece { stamp, ..piece.clone() }], ..split.clone() };
        let mut blocks = open_split(&split, &LocalFiles, &InputLimits::default());
        assert_eq!(blocks.next_block().unwrap().unwrap().bytes(), b"one\ntwo\n");
        change();
        assert!(blocks.next_block().unwrap().is_none());
    }
}

#[test]
fn small_file_that_is_not_the_listed_one_is_refused_when_it_is_opened() {
    let files = Files::new();
    let piece = files.piece("file", "one\ntwo\n");
    for content in ["one\n", "one\ntwo\nthree\n"] {
        files.write("file", content);
        let Err(error) = LocalFiles.open(&piece) else { panic!("{content:?} was opened") };
        assert!(
            matches!(error, InputError::Changed { was, now: Some(_), .. } if was == piece.stamp),
            "{error}"
        );
    }
    std::fs::remove_file(files.path("file")).unwrap();
    std::fs::create_dir(files.path("file")).unwrap();
    let Err(error) = LocalFiles.open(&piece) else { panic!("a directory was opened") };
    assert!(error.to_string().contains("is a directory, not a regular file"), "{error}");
}

#[test]
fn pipe_in_the_place_of_a_file_does_not_block() {
    let files = Files::new();
    let piece = files.piece("file", "one\n");
    std::fs::remove_file(files.path("file")).unwrap();
    listing::make_pipe(&files.path("file"));
    let Err(error) = LocalFiles.open(&piece) else { panic!("a pipe was opened") };
    assert!(error.to_string().contains("is a pipe, not a regular file"), "{error}");
}

#[test]
fn transport_errors_are_told_from_faults_of_the_input() {
    let path = FilePath::from("/a");
    let io = |errno: rustix::io::Errno| InputError::from_io(&path, errno.into());
    assert!(io(rustix::io::Errno::NOENT).is_input_fault());
    assert!(io(rustix::io::Errno::ACCESS).is_input_fault());
    assert!(!io(rustix::io::Errno::MFILE).is_input_fault());
    let remote = InputError::Remote { path: path.clone(), offset: 0, source: "refused".into() };
    assert!(!remote.is_input_fault());
}

#[test]
fn blocks_name_their_file_and_input_and_count_what_they_read() {
    let files = Files::new();
    let (a, b) = (files.write("a", "1\n"), files.write("b", "22\n"));
    let inputs = [input(&[], RecordFormat::Lines), input(&[a.clone(), b.clone()], RecordFormat::Lines)];
    let splits = plan_splits(&inputs, &LocalListing, SplitRules::default()).unwrap();
    let mut blocks = open_split(&splits[0], &LocalFiles, &InputLimits::default());
    for name in [a, b] {
        let block = blocks.next_block().unwrap().unwrap();
        assert_eq!((block.source().path.clone(), block.source().input), (name, 1));
    }
    assert!(blocks.next_block().unwrap().is_none());
    assert_eq!((blocks.local_bytes(), blocks.remote_bytes()), (5, 0));
}

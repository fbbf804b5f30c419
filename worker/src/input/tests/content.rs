//! Formats by the first bytes of files, byte order marks, and files that are not read.

use super::compressed::{bzip2, gzip, zstd};
use super::*;

const TEXT: &[u8] = b"alpha beta\nalpha\n";
const MARK: &str = "\u{feff}";

fn whole(files: &Files, name: &str, bytes: &[u8], format: RecordFormat) -> Result<Vec<Seen>, InputError> {
    let path = files.write(name, bytes);
    read(&plan(&input(&[path], format), 1 << 20)?, &LocalFiles, &InputLimits::default())
}

#[test]
fn compressed_files_are_read_whatever_their_names_and_however_they_would_be_cut() {
    let files = Files::new();
    for (packed, suffix) in [(gzip(TEXT), "gzip"), (zstd(TEXT), "zst.1"), (bzip2(TEXT), "bzip")] {
        for name in ["packed".to_owned(), format!("log.{suffix}"), "table.csv".to_owned()] {
            let path = files.write(&name, &packed);
            for split_bytes in [1, 5, 1 << 20] {
                let splits =
                    plan(&input(std::slice::from_ref(&path), RecordFormat::Lines), split_bytes).unwrap();
                check(&splits, &lines_of(TEXT), &format!("{name} {split_bytes}"));
            }
        }
    }
    let path = files.write("fixed", gzip(TEXT));
    let length = std::fs::metadata(&path).unwrap().len() as u32;
    let fixed = plan(&input(&[path], RecordFormat::Fixed { length }), 1).unwrap();
    assert_eq!(read(&fixed, &LocalFiles, &InputLimits::default()).unwrap()[0].1, gzip(TEXT), "any bytes");
    assert_eq!(whole(&files, "w", &gzip(TEXT), RecordFormat::WholeFile).unwrap(), [(0, TEXT.to_vec())]);
}

/// Listed as on a worker that only lists.
#[test]
fn compressed_file_that_was_cut_before_it_was_known_is_refused() {
    let files = Files::new();
    let piece = files.piece("packed", gzip(TEXT));
    let piece = Piece { length: 4, ..piece };
    let split = Split { input: 0, format: RecordFormat::Lines, pieces: vec![piece] };
    let error = read(&[split], &AsRemote, &InputLimits::default()).unwrap_err().to_string();
    assert!(error.contains("is a .gz file by its first bytes, but was cut"), "{error}");
}

#[test]
fn files_of_other_formats_are_refused_by_name() {
    let files = Files::new();
    let mut tar = vec![0; 600];
    tar[257..262].copy_from_slice(b"ustar");
    for (name, bytes, expected) in [
        ("a.xz", b"\xFD7zXZ\0..".to_vec(), "an xz file"),
        ("a.lz4", b"\x04\x22\x4D\x18..".to_vec(), "an lz4 file"),
        ("a.zip", b"PK\x03\x04..".to_vec(), "a zip archive"),
        ("a.tar", tar.clone(), "a tar archive"),
        ("a.tgz", gzip(&tar), "holds a tar archive"),
        ("a.tar.bz2", bzip2(&tar), "holds a tar archive"),
        ("a.gz", gzip(&gzip(TEXT)), "holds another compressed file"),
        ("a.avro", b"Obj\x01..".to_vec(), "an Avro file"),
        ("a.orc", b"ORC\x0A\x00..".to_vec(), "an ORC file"),
        ("a.br", b"\x0b\x05\x80\x81\xFF".to_vec(), "a Brotli file"),
        ("le.txt", b"\xFF\xFEa\0\n\0".to_vec(), "iconv -f UTF-16 -t UTF-8"),
        ("be.csv", b"\xFE\xFF\0a\0\n".to_vec(), "iconv -f UTF-16 -t UTF-8"),
        ("le.txt.gz", gzip(b"\xFF\xFEa\0\n\0"), "iconv -f UTF-16 -t UTF-8"),
    ] {
        for format in [RecordFormat::Lines, RecordFormat::Csv { delimiter: b',', header: false }] {
            let error = whole(&files, name, &bytes, format).unwrap_err();
            assert!(error.is_input_fault() && error.to_string().contains(expected), "{name}: {error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        let kept = whole(&files, name, &bytes, RecordFormat::WholeFile).unwrap();
        assert_eq!(kept.len(), 1, "{name} as a whole");
    }
    for text in ["ORCA whales\n", "PAR1,x\n", "BZh9 text\n", "Objects\n", "\u{1b}[0m\n"] {
        let seen = whole(&files, "text.br", text.as_bytes(), RecordFormat::Lines).unwrap();
        assert_eq!(seen, lines_of(text.as_bytes()), "{text:?} is a text");
    }
    let error = whole(&files, "text.gz", TEXT, RecordFormat::Lines).unwrap_err();
    assert!(matches!(error, InputError::Corrupt { .. }), "the name counts: {error}");
}

#[test]
fn byte_order_mark_is_no_part_of_the_first_record_however_the_file_is_cut() {
    let files = Files::new();
    for text in ["The end\nThe mid\n", "\nfoo", "x", "\n\n"] {
        let marked = format!("{MARK}{text}");
        let expected: Vec<Seen> =
            lines_of(text.as_bytes()).into_iter().map(|(offset, line)| (offset + 3, line)).collect();
        let path = files.write("marked", &marked);
        for split_bytes in 1..=marked.len() as u64 + 1 {
            let splits = plan(&input(std::slice::from_ref(&path), RecordFormat::Lines), split_bytes).unwrap();
            check(&splits, &expected, &format!("{text:?} {split_bytes}"));
            assert_eq!(splits.iter().map(Split::bytes).sum::<u64>(), marked.len() as u64);
        }
        assert_eq!(whole(&files, "m.gz", &gzip(marked.as_bytes()), RecordFormat::Lines).unwrap(), expected);
        let kept = whole(&files, "marked", marked.as_bytes(), RecordFormat::WholeFile).unwrap();
        assert_eq!(kept, [(3, text.as_bytes().to_vec())]);
    }
    let fixed = RecordFormat::Fixed { length: 4 };
    assert_eq!(whole(&files, "f", b"\xEF\xBB\xBFx", fixed).unwrap(), [(0, b"\xEF\xBB\xBFx".to_vec())]);
}

#[test]
fn table_whose_rows_end_with_carriage_returns_alone_is_refused() {
    let files = Files::new();
    let csv = RecordFormat::Csv { delimiter: b',', header: true };
    let error = whole(&files, "mac.csv", b"id,n\r1,a\r2,b\r", csv).unwrap_err();
    assert!(error.to_string().contains("end with carriage returns alone"), "{error}");
    let no_header = RecordFormat::Csv { delimiter: b',', header: false };
    for text in ["a,\"b\rc\"", "a,b\r", "a\rb,c\nd,e\n"] {
        assert!(whole(&files, "t.csv", text.as_bytes(), no_header).is_ok(), "{text:?}");
    }
}

#[test]
fn zstd_file_that_needs_a_larger_window_is_refused_with_both_sizes() {
    let files = Files::new();
    // A frame of a window of 256 MiB, and one of a single segment of 200 MiB.
    for (head, window) in [(&b"\x28\xB5\x2F\xFD\0\x90"[..], 256), (b"\x28\xB5\x2F\xFD\xA0\0\0\x80\x0C", 200)]
    {
        let bytes = [b"\x50\x2A\x4D\x18\x02\0\0\0ab", head, b"rest"].concat();
        let error = whole(&files, "long.zst", &bytes, RecordFormat::Lines).unwrap_err().to_string();
        assert!(error.contains(&format!("a window of {window} MiB")), "{error}");
        assert!(error.contains("128 MiB are allowed"), "{error}");
    }
}

#[test]
fn file_shorter_than_its_size_has_not_changed() {
    let path = "/sys/devices/system/cpu/online";
    if !std::path::Path::new(path).exists() {
        return;
    }
    let splits = plan(&input(&[path.to_owned()], RecordFormat::Lines), 1 << 20).unwrap();
    let error = read(&splits, &LocalFiles, &InputLimits::default()).unwrap_err().to_string();
    assert!(error.ends_with("but has fewer bytes; copy it and give the copy"), "{error}");
}

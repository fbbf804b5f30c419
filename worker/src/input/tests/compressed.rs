//! Compressed files: whole, damaged, and far too large.

use super::*;
use std::io::Write;

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

pub(super) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const TEXT: &[&[u8]] = &[b"one\ntw", b"", b"o\n\nthree\r\nlast"];

fn members() -> [(&'static str, Vec<u8>, Vec<usize>); 3] {
    [("file.gz", gzip as fn(&[u8]) -> Vec<u8>), ("file.bz2", bzip2), ("file.zst", zstd)].map(
        |(name, compress)| {
            let parts: Vec<Vec<u8>> = TEXT.iter().map(|part| compress(part)).collect();
            let borders = (0..=parts.len()).map(|count| parts[..count].iter().map(Vec::len).sum()).collect();
            (name, parts.concat(), borders)
        },
    )
}

fn splits(files: &Files, name: &str, bytes: &[u8], format: RecordFormat) -> Vec<Split> {
    let path = files.write(name, bytes);
    plan(&input(&[path], format), 1).unwrap()
}

#[test]
fn compressed_files_are_read_whole_with_all_their_members() {
    let files = Files::new();
    for (name, bytes, _) in members() {
        let splits = splits(&files, name, &bytes, RecordFormat::Lines);
        assert_eq!(splits.len(), 1);
        check(&splits, &lines_of(&TEXT.concat()), name);
    }
}

#[test]
fn compressed_tables_lose_their_header() {
    let files = Files::new();
    let table = b"\xEF\xBB\xBFa,\"b\n\"\n1,2\n";
    for (name, bytes) in [("file.gz", gzip(table)), ("file.bz2", bzip2(table)), ("file.zst", zstd(table))] {
        let format = RecordFormat::Csv { delimiter: b',', header: true };
        check(&splits(&files, name, &bytes, format), &[(10, b"1,2".to_vec())], name);
    }
}

#[test]
fn compressed_fixed_records_refuse_a_rest() {
    let files = Files::new();
    let digits = b"123456789";
    for (name, bytes) in [("file.gz", gzip(digits)), ("file.bz2", bzip2(digits)), ("file.zst", zstd(digits))]
    {
        let whole = splits(&files, name, &bytes, RecordFormat::Fixed { length: 3 });
        assert_eq!(read(&whole, &LocalFiles, &limits(4)).unwrap().len(), 3);
        let rest = splits(&files, name, &bytes, RecordFormat::Fixed { length: 4 });
        for block_bytes in [1, 4, 5, 100] {
            let error = read(&rest, &LocalFiles, &limits(block_bytes)).unwrap_err();
            assert!(
                error.to_string().contains("9 bytes, which is not a multiple of the record length 4"),
                "{error}"
            );
        }
    }
}

#[test]
fn truncated_file_is_corrupt_unless_cut_between_members() {
    let files = Files::new();
    for (name, bytes, borders) in members() {
        for length in 1..bytes.len() {
            let splits = splits(&files, name, &bytes[..length], RecordFormat::Lines);
            for access in [&LocalFiles as &dyn FileAccess, &AsRemote] {
                let result = read(&splits, access, &InputLimits::default());
                if borders.contains(&length) {
                    result.unwrap();
                } else {
                    let error = result.unwrap_err();
                    assert!(matches!(error, InputError::Corrupt { .. }), "{name} {length}: {error}");
                    assert!(error.is_input_fault());
                }
            }
        }
    }
}

#[test]
fn bytes_after_the_last_member_are_corrupt() {
    let files = Files::new();
    for (name, members) in [("file.gz", gzip(&TEXT.concat())), ("file.bz2", bzip2(&TEXT.concat()))] {
        for behind in [&b"\0"[..], b"garbage\n", b"\x1f", b"\x1f\x8b", b"B", b"BZh", b"BZh0"] {
            let splits = splits(&files, name, &[&members[..], behind].concat(), RecordFormat::Lines);
            for access in [&LocalFiles as &dyn FileAccess, &AsRemote] {
                let error = read(&splits, access, &InputLimits::default()).unwrap_err();
                assert!(matches!(error, InputError::Corrupt { .. }), "{name} {behind:?}: {error}");
            }
        }
    }
}

#[test]
fn bzip2_that_was_damaged_anywhere_is_corrupt() {
    let files = Files::new();
    let text: Vec<u8> = (0..2_000_u32).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    let whole = bzip2(&text);
    check(&splits(&files, "whole.bz2", &whole, RecordFormat::Lines), &lines_of(&text), "whole");
    // The last byte may have unused bits, and so has one of the code tables; Python's bz2 ignores them too.
    const MEANS_NOTHING: usize = 70;
    for at in (0..whole.len() - 1).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        let splits = splits(&files, "damaged.bz2", &damaged, RecordFormat::Lines);
        if at == MEANS_NOTHING {
            check(&splits, &lines_of(&text), "damaged where nothing is");
            continue;
        }
        let error = read(&splits, &LocalFiles, &InputLimits::default()).unwrap_err();
        assert!(matches!(error, InputError::Corrupt { .. }), "byte {at}: {error}");
        assert!(error.is_input_fault());
    }
}

#[test]
fn damaged_gzip_is_corrupt_and_says_where() {
    let files = Files::new();
    let mut bytes = gzip(&TEXT.concat());
    let last = bytes.len() - 5;
    bytes[last] ^= 1; // in the checksum
    let error =
        read(&splits(&files, "file.gz", &bytes, RecordFormat::Lines), &LocalFiles, &InputLimits::default())
            .unwrap_err();
    let length = bytes.len();
    assert!(error.to_string().contains(&format!("near byte {length} of the compressed file")), "{error}");
    let error = read(
        &splits(&files, "text.gz", b"no gzip", RecordFormat::Lines),
        &LocalFiles,
        &InputLimits::default(),
    )
    .unwrap_err();
    assert!(matches!(error, InputError::Corrupt { .. }), "{error}");
}

#[test]
fn bomb_is_given_up_at_the_allowed_ratio() {
    let files = Files::new();
    let zeros = vec![b'\n'; 8 << 20];
    let limits = InputLimits { expansion_floor: 1 << 20, ..InputLimits::default() };
    for (name, bytes) in [("file.gz", gzip(&zeros)), ("file.bz2", bzip2(&zeros)), ("file.zst", zstd(&zeros))]
    {
        let splits = splits(&files, name, &bytes, RecordFormat::Lines);
        let error = read(&splits, &LocalFiles, &limits).unwrap_err();
        let words = error.to_string();
        let (_, numbers) =
            words.split_once("grows more than 200 times (the limit is --max-expansion): ").unwrap();
        let (decoded, compressed) = numbers.split_once(" bytes came out of ").unwrap();
        let (decoded, compressed): (u64, u64) = (decoded.parse().unwrap(), compressed.parse().unwrap());
        assert!(decoded <= (1 << 20).max(compressed * 200) + (1 << 20), "{decoded} bytes came out");
        // A file is accepted at any ratio as long as it stays below the floor.
        assert_eq!(read(&splits, &LocalFiles, &InputLimits::default()).unwrap().len(), zeros.len());
    }
}

#[test]
fn transport_error_passes_through_the_decoders() {
    struct Broken;
    impl FileAccess for Broken {
        fn open(&self, _: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
            Ok(Box::new(Broken))
        }
    }
    impl ByteSource for Broken {
        fn read_at(&mut self, offset: u64, _: &mut [u8]) -> Result<(), InputError> {
            Err(InputError::Remote { path: FilePath::from("/a"), offset, source: "gone".into() })
        }
    }
    let files = Files::new();
    for (name, bytes, _) in members() {
        let splits = splits(&files, name, &bytes, RecordFormat::Lines);
        let error = read(&splits, &Broken, &InputLimits::default()).unwrap_err();
        assert!(!error.is_input_fault(), "{error}");
    }
}

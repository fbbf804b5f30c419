//! Guarantees of reading input, for files on disk and files of another process.

mod compressed;
mod content;
mod divisions;
mod listing;
mod lost_pages;
mod maps;
mod side;
mod splits;

use super::list::{LocalListing, list_input};
use super::plan::{FileCuts, SplitGoal, SplitRules, plan_splits};
use super::*;
use crate::input::RecordFormat;
use std::path::PathBuf;
use tempfile::TempDir;

/// Record that was read: its offset and its content.
type Seen = (u64, Vec<u8>);

/// Directory with files.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        self.text(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Returns the only piece of a file.
    fn piece(&self, name: &str, bytes: impl AsRef<[u8]>) -> Piece {
        let path = self.write(name, bytes);
        list_input(&input(&[path], RecordFormat::Lines), &LocalListing).unwrap().remove(0)
    }
}

fn input(paths: &[String], format: RecordFormat) -> Input {
    Input { paths: paths.to_vec(), format, columns: Vec::new(), bare_tasks: 0, steps: 0 }
}

fn plan(input: &Input, split_bytes: u64) -> Result<Vec<Split>, InputError> {
    plan_splits(
        std::slice::from_ref(input),
        &LocalListing,
        SplitRules { split_bytes, ..SplitRules::default() },
    )
}

/// Serves the files of this machine as if they were remote.
struct AsRemote;

impl FileAccess for AsRemote {
    fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
        Ok(Box::new(Ranges(std::fs::read(piece.path.to_path()).unwrap())))
    }
}

struct Ranges(Vec<u8>);

impl ByteSource for Ranges {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

/// Returns limits under which even small files need several blocks.
fn limits(block_bytes: usize) -> InputLimits {
    InputLimits { block_bytes, ..InputLimits::default() }
}

/// Reads the records of these splits, one after another.
fn read(splits: &[Split], access: &dyn FileAccess, limits: &InputLimits) -> Result<Vec<Seen>, InputError> {
    let mut seen = Vec::new();
    for split in splits {
        let mut blocks = open_split(split, access, limits);
        while let Some(block) = blocks.next_block()? {
            assert!(!block.bytes().is_empty(), "an empty block at {}", block.offset());
            seen.extend(block.records().map(|record| (record.offset(), record.bytes().to_vec())));
        }
    }
    Ok(seen)
}

/// Checks the records of these splits, read from disk and from another process, in blocks of several sizes.
fn check(splits: &[Split], expected: &[Seen], what: &str) {
    for block_bytes in [1, 2, 5, 1 << 20] {
        for (access, name) in [(&LocalFiles as &dyn FileAccess, "local"), (&AsRemote, "remote")] {
            let seen = read(splits, access, &limits(block_bytes)).unwrap();
            assert_eq!(seen, expected, "{what}, {name}, blocks of {block_bytes}");
        }
    }
}

/// Returns records with their offsets, found by the rules but without any of the code under test.
fn lines_of(bytes: &[u8]) -> Vec<Seen> {
    let mut offset = 0;
    bytes
        .split_inclusive(|&byte| byte == b'\n')
        .map(|line| {
            let begin = offset;
            offset += line.len() as u64;
            (begin, line.strip_suffix(b"\n").unwrap_or(line).to_vec())
        })
        .collect()
}

#[test]
fn file_path_survives_json_whatever_its_bytes() {
    let all: Vec<u8> = (1..=255).collect();
    for bytes in [&b"/plain/path.txt"[..], b"100%25 %", "/Žluť/本".as_bytes(), b"a\xFF\nb", &all] {
        let path = FilePath::new(bytes);
        let json = serde_json::to_string(&path).unwrap();
        assert!(!json.contains(char::is_control), "{json}");
        assert_eq!(serde_json::from_str::<FilePath>(&json).unwrap(), path, "{json}");
    }
    assert_eq!(serde_json::to_string(&FilePath::new(&b"a%\xFF\n"[..])).unwrap(), r#""a%25%FF%0A""#);
    for bad in [r#""%""#, r#""%4""#, r#""%+1""#, r#""%zz""#] {
        assert!(serde_json::from_str::<FilePath>(bad).is_err(), "{bad}");
    }
}

#[test]
fn file_path_shows_no_control_characters() {
    let path = FilePath::new("a\x1b[2J\u{202e}b\nc%".as_bytes());
    assert_eq!(path.to_string(), r"a\u{1b}[2J\u{202e}b\u{a}c%");
}

#[test]
fn compression_is_told_by_the_end_of_the_name() {
    let of = |name: &str| Compression::of_name(&FilePath::from(name));
    assert_eq!(of("a.gz"), Compression::Gzip);
    assert_eq!(of("a.GZ"), Compression::Gzip);
    assert_eq!(of("a.zst"), Compression::Zstd);
    assert_eq!(of("a.zstd"), Compression::Zstd);
    assert_eq!(of("a.bz2"), Compression::Bzip2);
    assert_eq!(of("gz"), Compression::None);
    assert_eq!(of("a.gz.txt"), Compression::None);
}

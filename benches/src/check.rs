//! Digest of an output, for any division into parts: order inside the parts, sums, hashes.
//!
//! Two programs have the same result if their [`Digest::result`] is equal, and the same files if their
//! [`Digest::content`] is. Reads part by part and holds one line, and for word counts a hash of each word.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Bytes of a line that a sort compares.
const SORT_KEY_BYTES: usize = 10;

/// Bytes read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Maximum length of a line, bytes; a longer one is an error.
const LINE_BYTES_MAX: usize = 1 << 30;

/// Kind of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputKind {
    /// `word<TAB>count`, each part sorted by word, no word twice.
    Counts,
    /// Lines of which the first ten bytes ascend over all parts in the order of their names.
    Sorted,
    /// Lines in any order.
    Lines,
}

/// Digest of an output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Digest {
    /// Number of part files that are not empty.
    pub parts: u32,
    /// Number of lines.
    pub lines: u64,
    /// Number of bytes, including line breaks.
    pub bytes: u64,
    /// Sum of the hashes of all lines: the same for the same lines in any order.
    pub multiset: u64,
    /// Sum of the counts; 0 if there are none.
    pub sum: u64,
    /// Hash of the keys in their order; 0 if the order is free.
    pub key_sequence: u64,
    /// Hash of all bytes of the parts one after another.
    pub content: u64,
    /// Number of lines out of order, duplicate words, and invalid counts.
    pub wrong: u64,
}

impl Digest {
    /// Returns the values that must be equal for programs that divide their output differently.
    pub fn result(&self) -> (u64, u64, u64, u64, u64) {
        (self.lines, self.bytes, self.multiset, self.sum, self.key_sequence)
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { parts, lines, bytes, multiset, sum, key_sequence, content, wrong } = self;
        write!(
            out,
            "{parts} parts, {lines} lines, {bytes} bytes, multiset {multiset:016x}, sum {sum}, \
             keys {key_sequence:016x}, content {content:016x}, {wrong} wrong"
        )
    }
}

/// Reads the output in a directory.
///
/// # Errors
/// Files that cannot be read.
pub fn digest(kind: OutputKind, output: &Path) -> io::Result<Digest> {
    let mut reading = DigestReader::new(kind);
    for part in parts(output)? {
        reading.part(BufReader::with_capacity(BUFFER_BYTES, File::open(part)?))?;
    }
    Ok(reading.end())
}

/// Returns part files in the order of their names, as readers of such outputs see them: without `_SUCCESS`, checksums
/// and hidden files.
fn parts(output: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(output)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(['.', '_']) && !name.ends_with(".crc") && entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

struct DigestReader {
    kind: OutputKind,
    digest: Digest,
    content: Xxh3,
    /// Key of the previous line.
    last: Vec<u8>,
    words: HashSet<u64>,
}

impl DigestReader {
    fn new(kind: OutputKind) -> Self {
        let digest = Digest {
            parts: 0,
            lines: 0,
            bytes: 0,
            multiset: 0,
            sum: 0,
            key_sequence: 0,
            content: 0,
            wrong: 0,
        };
        Self { kind, digest, content: Xxh3::new(), last: Vec::new(), words: HashSet::new() }
    }

    fn part(&mut self, mut part: impl BufRead) -> io::Result<()> {
        if part.fill_buf()?.is_empty() {
            return Ok(());
        }
        self.digest.parts += 1;
        if self.kind == OutputKind::Counts {
            self.last.clear();
        }
        let mut long = Vec::new();
        loop {
            let buffer = part.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let mut at = 0;
            while let Some(length) = memchr::memchr(b'\n', &buffer[at..]) {
                let piece = &buffer[at..at + length];
                if long.is_empty() {
                    self.line(piece);
                } else {
                    long.extend_from_slice(piece);
                    self.line(&long);
                    long.clear();
                }
                at += length + 1;
            }
            if LINE_BYTES_MAX < long.len() {
                return Err(io::Error::other("an output has a line of more than a gibibyte"));
            }
            long.extend_from_slice(&buffer[at..]);
            self.content.update(buffer);
            let read = buffer.len();
            part.consume(read);
        }
        if !long.is_empty() {
            self.line(&long);
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) {
        let hash = xxh3_64(line);
        self.digest.lines += 1;
        self.digest.bytes += line.len() as u64 + 1;
        self.digest.multiset = self.digest.multiset.wrapping_add(hash);
        match self.kind {
            OutputKind::Lines => {}
            OutputKind::Sorted => self.sorted(&line[..line.len().min(SORT_KEY_BYTES)]),
            OutputKind::Counts => self.count(line),
        }
    }

    fn sorted(&mut self, key: &[u8]) {
        if key < &self.last[..] {
            self.digest.wrong += 1;
        }
        self.remember(key);
        let mut chain = [0; 8 + SORT_KEY_BYTES];
        chain[..8].copy_from_slice(&self.digest.key_sequence.to_le_bytes());
        chain[8..8 + key.len()].copy_from_slice(key);
        self.digest.key_sequence = xxh3_64(&chain[..8 + key.len()]);
    }

    fn count(&mut self, line: &[u8]) {
        let tab = memchr::memrchr(b'\t', line);
        let split = tab.map(|tab| (&line[..tab], std::str::from_utf8(&line[tab + 1..])));
        let Some((word, Ok(count))) = split else {
            self.digest.wrong += 1;
            return;
        };
        let in_order = self.last.is_empty() || &self.last[..] < word;
        let is_new = self.words.insert(xxh3_64(word));
        match count.parse::<u64>() {
            Ok(count) if in_order && is_new => self.digest.sum += count,
            _ => self.digest.wrong += 1,
        }
        self.remember(word);
    }

    fn remember(&mut self, key: &[u8]) {
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    fn end(mut self) -> Digest {
        self.digest.content = self.content.digest();
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes these parts and returns their digest.
    fn digest_of(kind: OutputKind, parts: &[&str]) -> Digest {
        let directory = tempfile::tempdir().unwrap();
        for (number, part) in parts.iter().enumerate() {
            fs::write(directory.path().join(format!("part-{number:05}")), part).unwrap();
        }
        fs::write(directory.path().join("_SUCCESS"), "{}").unwrap();
        fs::write(directory.path().join(".part-0.crc"), "x").unwrap();
        digest(kind, directory.path()).unwrap()
    }

    #[test]
    fn digest_is_the_same_however_lines_are_cut_into_parts() {
        let one = digest_of(OutputKind::Lines, &["b\na\nc\n"]);
        let three = digest_of(OutputKind::Lines, &["a\n", "c\n", "b\n"]);
        assert_eq!(one.result(), three.result());
        assert_eq!((one.parts, three.parts, one.lines, one.bytes), (1, 3, 3, 6));
        assert_ne!(one.content, three.content);
    }

    #[test]
    fn digest_differs_when_a_line_is_there_twice() {
        assert_ne!(
            digest_of(OutputKind::Lines, &["a\nb\n"]).result(),
            digest_of(OutputKind::Lines, &["a\nb\nb\n"]).result()
        );
    }

    #[test]
    fn counts_are_summed_and_parts_need_not_follow_one_another() {
        let digest = digest_of(OutputKind::Counts, &["b\t2\nd\t3\n", "a\t1\nc\t4\n"]);
        assert_eq!((digest.sum, digest.wrong), (10, 0));
    }

    #[test]
    fn counts_are_wrong_when_a_word_is_out_of_order_or_there_twice_or_has_no_number() {
        assert_eq!(digest_of(OutputKind::Counts, &["b\t2\na\t3\n"]).wrong, 1);
        assert_eq!(digest_of(OutputKind::Counts, &["a\t2\n", "a\t3\n"]).wrong, 1);
        assert_eq!(digest_of(OutputKind::Counts, &["a\tmany\n"]).wrong, 1);
        assert_eq!(digest_of(OutputKind::Counts, &["a\n"]).wrong, 1);
    }

    #[test]
    fn sorted_compares_ten_bytes_over_all_parts() {
        assert_eq!(digest_of(OutputKind::Sorted, &["0123456789b\n0123456789a\n", "1\n"]).wrong, 0);
        assert_eq!(digest_of(OutputKind::Sorted, &["2\n", "1\n"]).wrong, 1);
    }

    #[test]
    fn empty_output_has_no_parts() {
        let digest = digest_of(OutputKind::Sorted, &["", ""]);
        assert_eq!((digest.parts, digest.lines, digest.wrong), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn digest_does_not_depend_on_the_size_of_the_buffer(
            lines in prop::collection::vec("[a-c]{0,20}", 0..30),
            capacity in 1_usize..40,
        ) {
            let text = lines.join("\n");
            let read = |capacity| {
                let mut reading = DigestReader::new(OutputKind::Sorted);
                reading.part(BufReader::with_capacity(capacity, text.as_bytes())).unwrap();
                reading.end()
            };
            prop_assert_eq!(read(capacity), read(BUFFER_BYTES));
        }
    }
}

//! Splits lines into key and value, and bytes into lines.

use serde::{Deserialize, Serialize};

/// Rule that splits lines of a command into key and value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FieldRule {
    /// Separator of fields; may have several bytes.
    pub separator: String,
    /// Number of fields of the key.
    pub key_fields: u32,
}

impl FieldRule {
    /// Returns key and value of a line: the text before and after the separator that ends the key. With
    /// too few separators the line is the key, and the value is empty.
    #[must_use]
    pub fn split<'a>(&self, line: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let separator = self.separator.as_bytes();
        if separator.is_empty() {
            return (line, &[]);
        }
        // Nearly all separators are one byte, for which a search needs no setup for each line.
        let find = |line: &[u8]| match separator {
            [byte] => memchr::memchr(*byte, line),
            _ => memchr::memmem::find(line, separator),
        };
        let mut from = 0;
        for _ in 1..self.key_fields {
            match find(&line[from..]) {
                Some(at) => from += at + separator.len(),
                None => return (line, &[]),
            }
        }
        match find(&line[from..]) {
            Some(at) => (&line[..from + at], &line[from + at + separator.len()..]),
            None => (line, &[]),
        }
    }

    /// Passes key and value of each line to `take`. Returns the number of lines. Each line has its `\n`.
    pub(super) fn split_lines<E>(
        &self,
        block: &[u8],
        mut take: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let Some(separator) = self.short_way() else {
            return each_line(block, |line| {
                let (key, value) = self.split(line);
                take(key, value)
            });
        };
        let (mut count, mut begin, mut value) = (0, 0, None);
        // Finds ends of keys and of lines in one pass.
        for at in memchr::memchr2_iter(b'\n', separator, block) {
            if block[at] != b'\n' {
                value.get_or_insert(at);
                continue;
            }
            match value.take() {
                Some(end) => take(&block[begin..end], &block[end + 1..at])?,
                None => take(&block[begin..at], &[])?,
            }
            begin = at + 1;
            count += 1;
        }
        Ok(count)
    }

    /// Returns the byte that ends a key of one field, the usual case.
    fn short_way(&self) -> Option<u8> {
        match self.separator.as_bytes() {
            [b'\n'] => None,
            [byte] if self.key_fields <= 1 => Some(*byte),
            _ => None,
        }
    }
}

/// Passes each line to `take`, without its `\n`, which each has. Returns the number of lines.
pub(super) fn each_line<E>(block: &[u8], mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<u64, E> {
    let (mut count, mut begin) = (0, 0);
    for end in memchr::memchr_iter(b'\n', block) {
        take(&block[begin..end])?;
        begin = end + 1;
        count += 1;
    }
    Ok(count)
}

/// Cuts a stream of bytes into lines, which end with `\n`, `\r` or `\r\n` as in Hadoop.
#[derive(Debug, Default)]
pub(super) struct LineCutter {
    /// Start of an incomplete line.
    rest: Vec<u8>,
    /// True if the last byte was a `\r` that ended a line: a `\n` that follows belongs to it.
    after_return: bool,
}

impl LineCutter {
    /// Passes blocks of complete lines, each with a `\n`, to `take`, which returns their number. Returns the
    /// sum.
    pub fn push<E>(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8]) -> Result<u64, E>) -> Result<u64, E> {
        let mut bytes = bytes;
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        let with_feeds;
        if memchr::memchr(b'\r', bytes).is_some() {
            self.after_return = bytes.ends_with(b"\r");
            with_feeds = with_line_feeds(bytes);
            bytes = &with_feeds;
        }
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let (mut lines, rest) = bytes.split_at(whole);
        let mut count = 0;
        if let Some(first) = memchr::memchr(b'\n', lines).filter(|_| !self.rest.is_empty()) {
            self.rest.extend_from_slice(&lines[..=first]);
            lines = &lines[first + 1..];
            count += take(&self.rest)?;
            self.rest.clear();
        }
        if !lines.is_empty() {
            count += take(lines)?;
        }
        self.rest.extend_from_slice(rest);
        Ok(count)
    }

    /// Returns the number of bytes of the incomplete line.
    pub fn held(&self) -> usize {
        self.rest.len()
    }

    /// Passes on the last line, if it has no end, with one.
    pub fn finish<E>(&mut self, take: impl FnOnce(&[u8]) -> Result<u64, E>) -> Result<u64, E> {
        if self.rest.is_empty() {
            return Ok(0);
        }
        self.rest.push(b'\n');
        let count = take(&self.rest)?;
        self.rest.clear();
        Ok(count)
    }
}

/// Returns the bytes with `\n` as the end of each line.
fn with_line_feeds(bytes: &[u8]) -> Vec<u8> {
    let (mut unified, mut begin) = (Vec::with_capacity(bytes.len()), 0);
    for end in memchr::memchr_iter(b'\r', bytes) {
        unified.extend_from_slice(&bytes[begin..end]);
        if bytes.get(end + 1) != Some(&b'\n') {
            unified.push(b'\n');
        }
        begin = end + 1;
    }
    unified.extend_from_slice(&bytes[begin..]);
    unified
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn rule(separator: &str, key_fields: u32) -> FieldRule {
        FieldRule { separator: separator.to_owned(), key_fields }
    }

    #[test]
    fn lines_fall_into_key_and_value_at_the_separator_that_ends_the_key() {
        let check = |separator, fields, line: &str, key: &str, value: &str| {
            let found = rule(separator, fields).split(line.as_bytes());
            assert_eq!(found, (key.as_bytes(), value.as_bytes()), "{line:?} by {separator:?} at {fields}");
        };
        check("\t", 1, "a\tb\tc", "a", "b\tc");
        check("\t", 2, "a\tb\tc", "a\tb", "c");
        check("\t", 3, "a\tb\tc", "a\tb\tc", "");
        check("\t", 1, "foo", "foo", "");
        check("\t", 1, "\tx", "", "x");
        check("\t", 1, "x\t", "x", "");
        check(".", 4, "11.12.1.2.x", "11.12.1.2", "x");
        check("::", 1, "a::b::c", "a", "b::c");
        check("::", 2, "a::b::c", "a::b", "c");
    }

    fn cut(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut cutter, mut lines) = (LineCutter::default(), Vec::new());
        let mut take = |block: &[u8]| -> Result<u64, Infallible> {
            each_line(block, |line| {
                lines.push(line.to_vec());
                Ok(())
            })
        };
        let mut count = 0;
        for piece in pieces {
            let Ok(passed) = cutter.push(piece, &mut take);
            count += passed;
        }
        let Ok(last) = cutter.finish(&mut take);
        assert_eq!(count + last, lines.len() as u64);
        lines
    }

    #[test]
    fn lines_end_as_in_hadoop() {
        assert_eq!(cut(&[b"a\nb\r\nc\rd\n\ne"]), [&b"a"[..], b"b", b"c", b"d", b"", b"e"]);
        assert_eq!(cut(&[b""]), [b""; 0]);
        assert_eq!(cut(&[b"\r\n"]), [b""]);
        assert_eq!(cut(&[b"a\r", b"", b"\nb"]), [b"a", b"b"]);
    }

    fn texts() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\t'), Just(b':'), Just(b'x')], 0..60)
    }

    proptest! {
        #[test]
        fn lines_that_are_split_at_once_are_those_that_are_split_one_by_one(mut text in texts()) {
            text.push(b'\n');
            for rule in [rule("\t", 1), rule("\t", 2), rule("::", 1), rule(":", 1), rule("", 1), rule("\n", 1)] {
                let mut pairs = Vec::new();
                let take = |key: &[u8], value: &[u8]| -> Result<(), Infallible> {
                    pairs.push((key.to_vec(), value.to_vec()));
                    Ok(())
                };
                let Ok(count) = rule.split_lines(&text, take);
                let lines = text[..text.len() - 1].split(|byte| *byte == b'\n');
                let expected: Vec<_> =
                    lines.map(|line| rule.split(line)).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                prop_assert_eq!(count, expected.len() as u64);
                prop_assert_eq!(pairs, expected, "{:?}", rule);
            }
        }

        #[test]
        fn lines_do_not_depend_on_how_bytes_come(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x')], 0..40),
            cuts in proptest::collection::vec(0usize..40, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
            prop_assert_eq!(cut(&pieces), cut(&[&bytes]));
        }
    }
}

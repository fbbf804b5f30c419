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
    /// Passes each complete line to `take`.
    pub fn push<E>(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            if self.rest.is_empty() {
                take(&bytes[..end])?;
            } else {
                self.rest.extend_from_slice(&bytes[..end]);
                let line = std::mem::take(&mut self.rest);
                take(&line)?;
            }
            let ended_by_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if ended_by_return {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    /// Does the same as [`push`](Self::push), but passes many lines without a `\r` at once: single lines
    /// to `line`, whole blocks with their `\n` to `lines`.
    pub fn push_many<S, E>(
        &mut self,
        bytes: &[u8],
        to: &mut S,
        mut line: impl FnMut(&mut S, &[u8]) -> Result<(), E>,
        lines: impl FnOnce(&mut S, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.after_return || memchr::memchr(b'\r', bytes).is_some() {
            return self.push(bytes, |one| line(to, one));
        }
        let Some(last) = memchr::memrchr(b'\n', bytes) else {
            self.rest.extend_from_slice(bytes);
            return Ok(());
        };
        let mut whole = &bytes[..=last];
        if let Some(first) = memchr::memchr(b'\n', whole).filter(|_| !self.rest.is_empty()) {
            self.rest.extend_from_slice(&whole[..first]);
            whole = &whole[first + 1..];
            let mut begun = std::mem::take(&mut self.rest);
            line(to, &begun)?;
            begun.clear();
            self.rest = begun;
        }
        lines(to, whole)?;
        self.rest.extend_from_slice(&bytes[last + 1..]);
        Ok(())
    }

    /// Returns the number of bytes of the incomplete line.
    pub fn held(&self) -> usize {
        self.rest.len()
    }

    /// Passes the last line, if it has no end.
    pub fn finish<E>(&mut self, take: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.rest);
        if line.is_empty() { Ok(()) } else { take(&line) }
    }
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
        let mut take = |line: &[u8]| -> Result<(), Infallible> {
            lines.push(line.to_vec());
            Ok(())
        };
        for piece in pieces {
            let Ok(()) = cutter.push(piece, &mut take);
        }
        let Ok(()) = cutter.finish(&mut take);
        lines
    }

    #[test]
    fn lines_end_as_in_hadoop() {
        assert_eq!(cut(&[b"a\nb\r\nc\rd\n\ne"]), [&b"a"[..], b"b", b"c", b"d", b"", b"e"]);
        assert_eq!(cut(&[b""]), [b""; 0]);
        assert_eq!(cut(&[b"\r\n"]), [b""]);
        assert_eq!(cut(&[b"a\r", b"", b"\nb"]), [b"a", b"b"]);
    }

    /// Returns the lines of input that is cut many lines at once.
    fn cut_many(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut cutter, mut lines) = (LineCutter::default(), Vec::new());
        for piece in pieces {
            let line = |lines: &mut Vec<Vec<u8>>, line: &[u8]| -> Result<(), Infallible> {
                lines.push(line.to_vec());
                Ok(())
            };
            let Ok(()) = cutter.push_many(piece, &mut lines, line, |lines, block| {
                let counted = each_line(block, |one| line(lines, one))?;
                assert_eq!(counted, memchr::memchr_iter(b'\n', block).count() as u64);
                Ok(())
            });
        }
        let Ok(()) = cutter.finish(|line| -> Result<(), Infallible> {
            lines.push(line.to_vec());
            Ok(())
        });
        lines
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
        fn lines_that_come_many_at_once_are_those_that_come_one_by_one(
            bytes in proptest::collection::vec(prop_oneof![8 => Just(b'x'), 4 => Just(b'\n'), 1 => Just(b'\r')], 0..60),
            cuts in proptest::collection::vec(0usize..60, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
            prop_assert_eq!(cut_many(&pieces), cut(&[&bytes]));
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

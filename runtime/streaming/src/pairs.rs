//! Pairs in the output of commands and in parts. A pair is a line or, for function runners, key and value,
//! each with its length in front (big-endian, 4 bytes).
//!
//! Not here: lines and fields ([`fields`](super::fields)).

use super::columns::{MARK, each_pair};
use super::fields::{FieldRule, LineCutter};
use super::job::StreamingJob;
use super::sink::LineSink;
use gristmill_worker::prelude::*;

/// Returns the bytes of a field's length.
pub(super) fn length_of(field: &[u8]) -> TaskResult<[u8; 4]> {
    let length = u32::try_from(field.len())
        .map_err(|_| TaskError::new("a key or a value has more than 4 GiB, which none may"))?;
    Ok(length.to_be_bytes())
}

/// Writer of pairs to a part.
pub(super) struct PartWriter {
    /// Separator of key and value in lines; `None` if pairs have lengths.
    separator: Option<Vec<u8>>,
}

impl PartWriter {
    pub fn new(job: &StreamingJob) -> Self {
        Self { separator: (!job.has_lengths).then(|| job.output_separator.as_bytes().to_vec()) }
    }

    /// Returns the separator, if a line that this rule cuts is written unchanged. A line with too few
    /// separators is the exception, as it gets another.
    fn kept_separator(&self, rule: &FieldRule) -> Option<u8> {
        match self.separator.as_deref() {
            Some(&[separator]) if separator != b'\n' => {
                (rule.separator.as_bytes() == [separator]).then_some(separator)
            }
            _ => None,
        }
    }

    /// Writes lines, each of which has its `\n`, as pairs by this rule. Returns the number of lines.
    pub fn write_lines(&mut self, rule: &FieldRule, lines: &[u8], out: &mut Output) -> TaskResult<u64> {
        let Some(separator) = self.kept_separator(rule) else {
            return rule.split_lines(lines, |key, value| self.write(key, value, out));
        };
        let (mut count, mut written, mut fields) = (0, 0, 1);
        for at in memchr::memchr2_iter(b'\n', separator, lines) {
            if lines[at] == separator {
                fields += 1;
                continue;
            }
            if fields <= rule.key_fields.max(1) {
                out.write(&lines[written..at]);
                out.write(&[separator]);
                written = at;
            }
            fields = 1;
            count += 1;
        }
        out.write(&lines[written..]);
        out.count_records(count);
        Ok(count)
    }

    /// Writes a pair. As a line it has the separator even if the value is empty.
    pub fn write(&mut self, key: &[u8], value: &[u8], out: &mut Output) -> TaskResult {
        match &self.separator {
            Some(separator) => [key, separator, value, b"\n"].iter().for_each(|piece| out.write(piece)),
            None => {
                let (key_length, value_length) = (length_of(key)?, length_of(value)?);
                [&key_length, key, &value_length, value].iter().for_each(|piece| out.write(piece));
            }
        }
        out.end_record();
        Ok(())
    }
}

/// Cuts the output of a command into lines or pairs, independent of the pieces in which it arrives.
pub(super) enum OutputCutter {
    Lines(LineCutter),
    /// Start of an incomplete pair.
    Pairs(Vec<u8>),
    /// Discards the output.
    Nothing,
}

impl OutputCutter {
    /// Creates a cutter for the output of this job's commands.
    pub fn new(job: &StreamingJob) -> Self {
        if job.has_lengths { Self::Pairs(Vec::new()) } else { Self::Lines(LineCutter::default()) }
    }

    /// Passes on all complete lines or pairs. Returns their number.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn LineSink) -> TaskResult<u64> {
        let mut count = 0;
        match self {
            Self::Lines(cutter) => count = cutter.push(bytes, |lines| sink.lines(lines))?,
            Self::Pairs(rest) => {
                let mut take = |key: &[u8], value: &[u8]| {
                    count += 1;
                    sink.pair(key, value)
                };
                if rest.is_empty() {
                    let used = cut_pairs(bytes, &mut take)?;
                    rest.extend_from_slice(&bytes[used..]);
                } else {
                    rest.extend_from_slice(bytes);
                    let used = cut_pairs(rest, &mut take)?;
                    rest.drain(..used);
                }
            }
            Self::Nothing => {}
        }
        Ok(count)
    }

    /// Returns the number of bytes of the incomplete line or pair.
    pub fn held(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.held(),
            Self::Pairs(rest) => rest.len(),
            Self::Nothing => 0,
        }
    }

    /// Passes on the last line, if it has no end.
    ///
    /// # Errors
    /// The last pair is incomplete.
    pub fn finish(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        match self {
            Self::Lines(cutter) => cutter.finish(|line| sink.lines(line)).map(drop),
            Self::Pairs(rest) if !rest.is_empty() => {
                let length = rest.len();
                Err(TaskError::new(format!(
                    "the output ends in the middle of a pair, after {length} bytes of it"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Passes on the pairs and the batches at the start of these bytes. Returns the number of their bytes.
fn cut_pairs(bytes: &[u8], take: &mut impl FnMut(&[u8], &[u8]) -> TaskResult) -> TaskResult<usize> {
    let mut rest = bytes;
    loop {
        if let Some(after_mark) = rest.strip_prefix(&MARK) {
            let Some((batch, after)) = cut_field(after_mark) else { break };
            each_pair(batch, take)?;
            rest = after;
        } else if let Some((key, after_key)) = cut_field(rest)
            && let Some((value, after)) = cut_field(after_key)
        {
            take(key, value)?;
            rest = after;
        } else {
            break;
        }
    }
    Ok(bytes.len() - rest.len())
}

/// Returns the first field and the bytes after it; `None` if it is incomplete.
fn cut_field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type KeyValue = (Vec<u8>, Vec<u8>);

    /// Sink that keeps pairs.
    struct Kept(Vec<KeyValue>);

    impl LineSink for Kept {
        fn lines(&mut self, _: &[u8]) -> TaskResult<u64> {
            Err(TaskError::new("lines"))
        }

        fn pair(&mut self, key: &[u8], value: &[u8]) -> TaskResult {
            self.0.push((key.to_vec(), value.to_vec()));
            Ok(())
        }

        fn is_cancelled(&self) -> bool {
            false
        }
    }

    fn cut(pieces: &[&[u8]]) -> TaskResult<Vec<KeyValue>> {
        let (mut cutter, mut pairs, mut count) = (OutputCutter::Pairs(Vec::new()), Kept(Vec::new()), 0);
        for piece in pieces {
            count += cutter.push(piece, &mut pairs)?;
        }
        cutter.finish(&mut pairs)?;
        assert_eq!(count, pairs.0.len() as u64);
        Ok(pairs.0)
    }

    fn writer(separator: &str) -> PartWriter {
        PartWriter { separator: Some(separator.as_bytes().to_vec()) }
    }

    /// Returns the content of a part, and the number of records it counts.
    fn part_of(write: impl FnOnce(&mut Output)) -> (Vec<u8>, u64) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("part");
        let mut out = Output::create(&path).unwrap();
        write(&mut out);
        let records = out.records();
        // Enough that bytes written before must go to the file.
        out.write(&vec![b'.'; 1 << 20]);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.retain(|byte| *byte != b'.');
        (bytes, records)
    }

    #[test]
    fn lines_that_stay_as_they_are_get_their_separator_where_it_is_missing() {
        let text = b"a\tb\n\nfoo\n\t\na\tb\tc\n";
        let rule = |key_fields| FieldRule { separator: "\t".to_owned(), key_fields };
        for (key_fields, expected) in
            [(1, &b"a\tb\n\t\nfoo\t\n\t\na\tb\tc\n"[..]), (2, b"a\tb\t\n\t\nfoo\t\n\t\t\na\tb\tc\n")]
        {
            let mut form = writer("\t");
            let written = part_of(|out| {
                assert_eq!(form.write_lines(&rule(key_fields), text, out).unwrap(), 5);
            });
            assert_eq!(written, (expected.to_vec(), 5), "{key_fields}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn lines_are_written_at_once_as_they_are_one_by_one(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\t'), Just(b'|'), Just(b'x')], 0..40),
        ) {
            let text = [&text[..], b"\n"].concat();
            let rules = [("\t", 1), ("\t", 2), ("|", 1)];
            for (separator, key_fields) in rules {
                let rule = FieldRule { separator: separator.to_owned(), key_fields };
                let (mut at_once, mut one_by_one) = (writer("\t"), writer("\t"));
                let found = part_of(|out| {
                    let lines = at_once.write_lines(&rule, &text, out).unwrap();
                    assert_eq!(lines, memchr::memchr_iter(b'\n', &text).count() as u64);
                });
                let expected = part_of(|out| {
                    for line in text[..text.len() - 1].split(|byte| *byte == b'\n') {
                        let (key, value) = rule.split(line);
                        one_by_one.write(key, value, out).unwrap();
                    }
                });
                prop_assert_eq!(found, expected, "{:?}", rule);
            }
        }
    }

    #[test]
    fn output_that_ends_in_a_pair_is_an_error() {
        for bytes in [&b"\0\0\0\x01ab"[..], b"\0\0\0\0\0\0\0", b"\xff\0\0\x01"] {
            assert!(cut(&[bytes]).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn pairs_do_not_depend_on_how_bytes_come(
            pairs in proptest::collection::vec(
                (proptest::collection::vec(0u8..40, 0..9), proptest::collection::vec(0u8..40, 0..9)), 0..6),
            cuts in proptest::collection::vec(0usize..90, 0..9),
        ) {
            let (bytes, _) = part_of(|out| {
                let mut form = PartWriter { separator: None };
                pairs.iter().for_each(|(key, value)| form.write(key, value, out).unwrap());
            });
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| (*cut).min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
            prop_assert_eq!(cut(&pieces).unwrap(), pairs);
        }
    }
}

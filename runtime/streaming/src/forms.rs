//! Formats of pairs in the input and output of commands, and in parts: text, typed bytes, raw bytes.
//!
//! The content of a pair of the engine follows from the format in which the mapper writes: texts, plain
//! bytes, or typed bytes with their codes. If it is read in another format it is wrapped as in Hadoop.
//!
//! Not here: the encoding of typed bytes ([`typed_bytes`](super::typed_bytes)), lines and fields
//! ([`fields`](super::fields)).

use super::fields::{FieldRule, LineCutter};
use super::sink::LineSink;
use super::typed_bytes::{self, BYTES, LONG, TEXT, Unfinished};
use gristmill_worker::prelude::*;
use serde::{Deserialize, Serialize};

/// Format in which a command reads or writes pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum PairForm {
    /// Lines with a separator between key and value.
    #[default]
    Text,
    /// Lines that are keys.
    KeyOnlyText,
    /// Key and value, each with its length in front (big-endian, 4 bytes).
    RawBytes,
    /// Key and value, each with the code of its type in front.
    TypedBytes,
}

impl PairForm {
    /// Returns the format of this name, ignoring case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match &*name.to_ascii_lowercase() {
            "text" => Some(Self::Text),
            "keyonlytext" => Some(Self::KeyOnlyText),
            "rawbytes" => Some(Self::RawBytes),
            "typedbytes" => Some(Self::TypedBytes),
            _ => None,
        }
    }

    /// True if pairs are lines.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::KeyOnlyText)
    }

    /// Returns the shape of keys and values that a command has written in this format.
    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Text | Self::KeyOnlyText => Shape::Text,
            Self::RawBytes => Shape::Bytes,
            Self::TypedBytes => Shape::Typed,
        }
    }
}

/// Formats of a job's pairs between its steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PairForms {
    /// Format that mappers read.
    pub map_input: PairForm,
    /// Format that mappers and combiners write.
    pub map_output: PairForm,
    /// Format that combiners and reducers read.
    pub reduce_input: PairForm,
    /// Format that reducers write.
    pub reduce_output: PairForm,
}

/// Format of pairs in parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum PartContent {
    /// Lines (`TextOutputFormat`).
    #[default]
    Text,
    /// Typed bytes, one pair after another.
    TypedBytes,
}

/// Encoding of the bytes of a key or a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    Text,
    Bytes,
    /// Typed bytes.
    Typed,
    /// Integer of 8 bytes.
    Long,
}

/// Adds a key or a value in the format in which a command reads it, which must not be one of text.
pub(super) fn push_field(form: PairForm, shape: Shape, bytes: &[u8], out: &mut Vec<u8>) -> TaskResult {
    let length = i32::try_from(bytes.len()).map_err(|_| {
        TaskError::new("a key or a value has more than 2 GiB, which has no place in this form")
    })?;
    match (form, shape) {
        (PairForm::TypedBytes, Shape::Typed) => {}
        (PairForm::TypedBytes, Shape::Long) => out.push(LONG),
        (PairForm::TypedBytes, Shape::Text | Shape::Bytes) => {
            out.push(if shape == Shape::Text { TEXT } else { BYTES });
            out.extend_from_slice(&length.to_be_bytes());
        }
        (_, Shape::Text) => {
            // As Hadoop stores a text: its length in as few bytes as possible, and its bytes.
            let mut stored = Vec::new();
            push_short_length(bytes.len(), &mut stored);
            out.extend_from_slice(&length.saturating_add(stored.len() as i32).to_be_bytes());
            out.extend_from_slice(&stored);
        }
        (_, Shape::Bytes | Shape::Typed | Shape::Long) => out.extend_from_slice(&length.to_be_bytes()),
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Writes a length like Hadoop's `WritableUtils.writeVInt`.
fn push_short_length(length: usize, out: &mut Vec<u8>) {
    const ONE_BYTE_MAX: usize = 127;
    if length <= ONE_BYTE_MAX {
        out.push(length as u8);
        return;
    }
    let length = length as u64;
    let bytes = length.to_be_bytes();
    let significant = &bytes[length.leading_zeros() as usize / 8..];
    // -113 for one byte that follows, -114 for two, and so on.
    out.push((-112 - significant.len() as i8).cast_unsigned());
    out.extend_from_slice(significant);
}

/// Conversion of pairs of one shape to the content of a part.
pub(super) struct PartForm {
    shape: Shape,
    content: PartContent,
    /// Separator of key and value; `None` to omit values and separators.
    separator: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl PartForm {
    /// Creates a conversion of pairs that were written in this format.
    pub fn new(form: PairForm, content: PartContent, separator: &str) -> Self {
        let separator = (form != PairForm::KeyOnlyText).then(|| separator.as_bytes().to_vec());
        Self { shape: form.shape(), content, separator, scratch: Vec::new() }
    }

    /// Returns the separator, if a line that this rule cuts is written unchanged. A line with too few
    /// separators is the exception, as it gets another.
    fn kept_separator(&self, rule: &FieldRule) -> Option<u8> {
        match (self.content, self.shape, self.separator.as_deref()) {
            (PartContent::Text, Shape::Text, Some(&[separator])) if separator != b'\n' => {
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

    /// Writes a pair. As text it has the separator even if the value is empty.
    pub fn write(&mut self, key: &[u8], value: &[u8], out: &mut Output) -> TaskResult {
        self.scratch.clear();
        match (self.content, self.shape) {
            (PartContent::TypedBytes, shape) => {
                push_field(PairForm::TypedBytes, shape, key, &mut self.scratch)?;
                push_field(PairForm::TypedBytes, shape, value, &mut self.scratch)?;
            }
            (PartContent::Text, Shape::Text) => {
                out.write(key);
                if let Some(separator) = &self.separator {
                    out.write(separator);
                    out.write(value);
                }
                out.write(b"\n");
                out.end_record();
                return Ok(());
            }
            (PartContent::Text, shape) => {
                push_line(shape, key, &mut self.scratch)?;
                if let Some(separator) = &self.separator {
                    self.scratch.extend_from_slice(separator);
                    push_line(shape, value, &mut self.scratch)?;
                }
                self.scratch.push(b'\n');
            }
        }
        out.write(&self.scratch);
        out.end_record();
        Ok(())
    }
}

/// Appends a key or a value that is not text, in Java's format for a line.
fn push_line(shape: Shape, bytes: &[u8], out: &mut Vec<u8>) -> TaskResult {
    if shape == Shape::Typed {
        return typed_bytes::push_text(bytes, out)
            .map_err(|error| TaskError::new(format!("a pair is not typed bytes: {error}")));
    }
    for (number, byte) in bytes.iter().enumerate() {
        let blank = if number == 0 { "" } else { " " };
        out.extend_from_slice(format!("{blank}{byte:02x}").as_bytes());
    }
    Ok(())
}

/// Cuts the output of a command into lines or pairs, independent of the pieces in which it arrives.
pub(super) enum OutputCutter {
    Lines(LineCutter),
    Pairs(PairCutter),
}

impl OutputCutter {
    /// Creates a cutter for output of this format.
    pub fn new(form: PairForm) -> Self {
        if form.is_text() { Self::Lines(LineCutter::default()) } else { Self::Pairs(PairCutter::new(form)) }
    }

    /// Passes on all complete lines or pairs. Returns their number.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn LineSink) -> TaskResult<u64> {
        let mut count = 0;
        match self {
            Self::Lines(cutter) => cutter.push_many(
                bytes,
                &mut (sink, &mut count),
                |(sink, count), line| {
                    **count += 1;
                    sink.line(line)
                },
                |(sink, count), lines| {
                    **count += sink.lines(lines)?;
                    Ok(())
                },
            )?,
            Self::Pairs(pairs) => pairs.push(bytes, &mut |key, value| {
                count += 1;
                sink.pair(key, value)
            })?,
        }
        Ok(count)
    }

    /// Returns the number of bytes of the incomplete line or pair.
    pub fn held(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.held(),
            Self::Pairs(pairs) => pairs.rest.len(),
        }
    }

    /// Passes on the last line, if it has no end.
    ///
    /// # Errors
    /// The last pair is incomplete.
    pub fn finish(&mut self, sink: &mut dyn LineSink) -> TaskResult {
        match self {
            Self::Lines(lines) => lines.finish(|line| sink.line(line)),
            Self::Pairs(pairs) => pairs.finish(&mut |key, value| sink.pair(key, value)),
        }
    }
}

/// Bytes of an incomplete pair above which it is parsed again only when half as many more have arrived.
/// Each attempt parses a value of many parts from its start.
const PATIENCE_BYTES: usize = 1 << 20;

/// Cuts a stream of bytes into pairs.
pub(super) struct PairCutter {
    form: PairForm,
    rest: Vec<u8>,
    /// Number of bytes before the next attempt to parse.
    due: usize,
}

type TakePair<'a> = dyn FnMut(&[u8], &[u8]) -> TaskResult + 'a;

impl PairCutter {
    pub fn new(form: PairForm) -> Self {
        Self { form, rest: Vec::new(), due: 0 }
    }

    /// Passes on each complete pair.
    pub fn push(&mut self, bytes: &[u8], take: &mut TakePair<'_>) -> TaskResult {
        if self.rest.is_empty() {
            let used = self.cut(bytes, take)?;
            self.rest.extend_from_slice(&bytes[used..]);
            return Ok(());
        }
        self.rest.extend_from_slice(bytes);
        if self.rest.len() < self.due { Ok(()) } else { self.cut_rest(take) }
    }

    /// Checks that no incomplete pair is left.
    pub fn finish(&mut self, take: &mut TakePair<'_>) -> TaskResult {
        self.cut_rest(take)?;
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(TaskError::new(format!(
                "pairs as {:?} end in the middle of one: {} bytes of it are there",
                self.form,
                self.rest.len()
            ))),
        }
    }

    fn cut_rest(&mut self, take: &mut TakePair<'_>) -> TaskResult {
        let mut rest = std::mem::take(&mut self.rest);
        let used = self.cut(&rest, take)?;
        rest.drain(..used);
        self.rest = rest;
        Ok(())
    }

    /// Passes on the pairs at the start of these bytes. Returns the number of their bytes.
    fn cut(&mut self, bytes: &[u8], take: &mut TakePair<'_>) -> TaskResult<usize> {
        let mut at = 0;
        loop {
            let pair = &bytes[at..];
            let found = field(self.form, pair, 0).and_then(|key| Ok((key, field(self.form, pair, key.1)?)));
            match found {
                Ok((key, value)) => {
                    take(&pair[key.0..key.1], &pair[value.0..value.1])?;
                    at += value.1;
                }
                Err(Unfinished::Short { needed }) => {
                    let held = pair.len();
                    let patient = if held < PATIENCE_BYTES { 0 } else { held + held / 2 };
                    self.due = needed.max(patient);
                    return Ok(at);
                }
                Err(error) => {
                    let form = self.form;
                    return Err(TaskError::new(format!("a pair as {form:?} was expected, and {error}")));
                }
            }
        }
    }
}

/// Returns the start of the content of a field, and the end of the field.
fn field(form: PairForm, bytes: &[u8], at: usize) -> Result<(usize, usize), Unfinished> {
    if form == PairForm::TypedBytes {
        return Ok((at, typed_bytes::value_end(bytes, at)?));
    }
    let begin = at + 4;
    let end = begin + typed_bytes::length(bytes, at)?;
    if end <= bytes.len() { Ok((begin, end)) } else { Err(Unfinished::Short { needed: end }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Pair = (Vec<u8>, Vec<u8>);

    fn cut(form: PairForm, pieces: &[&[u8]]) -> TaskResult<Vec<Pair>> {
        let (mut cutter, mut pairs) = (PairCutter::new(form), Vec::new());
        let mut take = |key: &[u8], value: &[u8]| -> TaskResult {
            pairs.push((key.to_vec(), value.to_vec()));
            Ok(())
        };
        pieces.iter().try_for_each(|piece| cutter.push(piece, &mut take))?;
        cutter.finish(&mut take)?;
        Ok(pairs)
    }

    fn pushed(form: PairForm, shape: Shape, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        push_field(form, shape, bytes, &mut out).unwrap();
        out
    }

    /// Returns the content of a part, and the number of records it counts.
    fn part_of(write: impl FnOnce(&mut Output)) -> (Vec<u8>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
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
            let mut form = PartForm::new(PairForm::Text, PartContent::Text, "\t");
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
            let forms = [PairForm::Text, PairForm::KeyOnlyText];
            for ((separator, key_fields), form) in rules.into_iter().flat_map(|rule| forms.map(|form| (rule, form))) {
                let rule = FieldRule { separator: separator.to_owned(), key_fields };
                let made = || PartForm::new(form, PartContent::Text, "\t");
                let (mut at_once, mut one_by_one) = (made(), made());
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
                prop_assert_eq!(found, expected, "{:?} {:?}", rule, form);
            }
        }
    }

    #[test]
    fn fields_are_wrapped_as_hadoop_wraps_them() {
        assert_eq!(pushed(PairForm::TypedBytes, Shape::Text, b"ab"), b"\x07\0\0\0\x02ab");
        assert_eq!(pushed(PairForm::TypedBytes, Shape::Bytes, b"ab"), b"\0\0\0\0\x02ab");
        assert_eq!(
            pushed(PairForm::TypedBytes, Shape::Long, &7_u64.to_be_bytes()),
            b"\x04\0\0\0\0\0\0\0\x07"
        );
        assert_eq!(pushed(PairForm::TypedBytes, Shape::Typed, b"\x01\x05"), b"\x01\x05");
        assert_eq!(pushed(PairForm::RawBytes, Shape::Bytes, b"ab"), b"\0\0\0\x02ab");
        // A text is stored with its own length, and again with that of the result.
        assert_eq!(pushed(PairForm::RawBytes, Shape::Text, b"ab"), b"\0\0\0\x03\x02ab");
        let long = [b'x'; 300];
        assert_eq!(pushed(PairForm::RawBytes, Shape::Text, &long)[..7], *b"\0\0\x01\x2f\x8e\x01\x2c");
        assert_eq!(pushed(PairForm::RawBytes, Shape::Text, &long[..200])[..6], *b"\0\0\0\xca\x8f\xc8");
    }

    #[test]
    fn output_that_ends_in_a_pair_or_holds_none_is_an_error() {
        for (form, bytes) in [
            (PairForm::TypedBytes, &b"\x01\x01"[..]),
            (PairForm::TypedBytes, b"\x0b\x01"),
            (PairForm::RawBytes, b"\0\0\0\x01ab"),
            (PairForm::RawBytes, b"\xff\0\0\x01"),
        ] {
            assert!(cut(form, &[bytes]).is_err(), "{form:?} {bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn pairs_do_not_depend_on_how_bytes_come(
            pairs in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..9), proptest::collection::vec(any::<u8>(), 0..9)), 0..6),
            cuts in proptest::collection::vec(0usize..90, 0..9),
        ) {
            for form in [PairForm::TypedBytes, PairForm::RawBytes] {
                let wrap = |bytes: &Vec<u8>| pushed(form, Shape::Bytes, bytes);
                let bytes: Vec<u8> = pairs.iter().flat_map(|(key, value)| [wrap(key), wrap(value)].concat()).collect();
                let mut cuts: Vec<usize> = cuts.iter().map(|cut| (*cut).min(bytes.len())).collect();
                cuts.extend([0, bytes.len()]);
                cuts.sort_unstable();
                let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
                let is_raw = form == PairForm::RawBytes;
                let expected: Vec<Pair> =
                    if is_raw { pairs.clone() } else { pairs.iter().map(|(k, v)| (wrap(k), wrap(v))).collect() };
                prop_assert_eq!(cut(form, &pieces).unwrap(), expected);
            }
        }
    }
}

//! Parts of a key, `-k2,2nr`, for the partitioner and the comparator by fields of keys.

use gristmill_runtime::jobs::sort::push_number;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Parts of a key that count, and their order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeySpecs {
    /// Separator of the fields of a key.
    separator: String,
    specs: Vec<KeySpec>,
    /// True if any `-k` was given. Without one the whole key is one field.
    by_fields: bool,
}

/// `-kF[.C][nr][,F[.C][nr]]`: fields and characters from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct KeySpec {
    start_field: usize,
    start_character: usize,
    /// Last field, 0 for the end of the key.
    end_field: usize,
    /// Last character, 0 for the end of the field.
    end_character: usize,
    numeric: bool,
    reverse: bool,
}

impl Default for KeySpec {
    fn default() -> Self {
        Self {
            start_field: 1,
            start_character: 1,
            end_field: 0,
            end_character: 0,
            numeric: false,
            reverse: false,
        }
    }
}

/// Option that names no part of a key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{word}` is no part of a key: it must be -kFIELD[.CHARACTER][nr][,FIELD[.CHARACTER][nr]], counted from 1"
)]
pub struct KeySpecError {
    /// Text of the option.
    pub word: String,
}

impl KeySpecs {
    /// Parses options such as `-k1,1 -k2nr`.
    ///
    /// # Errors
    /// A part is invalid.
    pub fn parse(options: &str, separator: &str) -> Result<Self, KeySpecError> {
        let (mut specs, mut all) = (Vec::new(), KeySpec::default());
        let mut words = options.split_ascii_whitespace();
        while let Some(word) = words.next() {
            match (word, word.strip_prefix("-k")) {
                ("-n", _) => all.numeric = true,
                ("-r", _) => all.reverse = true,
                ("-nr", _) => (all.numeric, all.reverse) = (true, true),
                (_, Some("")) => specs.extend(words.next().map(KeySpec::parse).transpose()?),
                (_, Some(spec)) => specs.push(KeySpec::parse(spec)?),
                // Hadoop ignores unknown options.
                _ => {}
            }
        }
        let by_fields = !specs.is_empty();
        for spec in &mut specs {
            if !(spec.reverse || spec.numeric) {
                (spec.numeric, spec.reverse) = (all.numeric, all.reverse);
            }
        }
        if specs.is_empty() && !options.trim().is_empty() {
            specs.push(all);
        }
        Ok(Self { separator: separator.to_owned(), specs, by_fields })
    }

    /// Returns the first `fields` fields of a key, as one part.
    #[must_use]
    pub fn first_fields(fields: usize, separator: &str) -> Self {
        let spec = KeySpec { end_field: fields, ..KeySpec::default() };
        let specs = if 1 <= fields { vec![spec] } else { Vec::new() };
        Self { separator: separator.to_owned(), by_fields: !specs.is_empty(), specs }
    }

    /// True if no part was named: then the whole key counts.
    pub(super) fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Returns the existing parts of this key, in the order of the options.
    pub(super) fn parts<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let lengths = self.field_lengths(key);
        self.specs.iter().filter_map(move |spec| Some(&key[self.range(spec, key, &lengths)?]))
    }

    /// Appends bytes with the same order as the keys. None of these byte strings is a prefix of another.
    pub(super) fn push_order(&self, key: &[u8], out: &mut Vec<u8>) {
        if self.specs.is_empty() {
            return push_text(key, out);
        }
        let lengths = self.field_lengths(key);
        for spec in &self.specs {
            let begin = out.len();
            match self.range(spec, key, &lengths) {
                // A missing part comes first.
                None => out.push(0),
                Some(range) if spec.numeric => {
                    out.push(1);
                    // Unlike `sort`, Hadoop parses no number after blanks.
                    let digits = &key[range];
                    push_number(
                        if digits.first().is_some_and(u8::is_ascii_whitespace) { &[] } else { digits },
                        out,
                    );
                }
                Some(range) => {
                    out.push(1);
                    push_text(&key[range], out);
                }
            }
            if spec.reverse {
                out[begin..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
    }

    /// Returns the lengths of the fields of a key. As in Hadoop, the search for a separator of several
    /// bytes continues one byte after its last start.
    fn field_lengths(&self, key: &[u8]) -> Vec<usize> {
        if !self.by_fields {
            return vec![0];
        }
        let (mut lengths, mut start) = (Vec::new(), 0);
        while let Some(length) = memchr::memmem::find(&key[start..], self.separator.as_bytes())
            && !self.separator.is_empty()
        {
            lengths.push(length);
            start += length + 1;
        }
        lengths.push(key.len() - start);
        lengths
    }

    fn range(&self, spec: &KeySpec, key: &[u8], lengths: &[usize]) -> Option<Range<usize>> {
        let before = |field: usize| -> usize {
            lengths.iter().take(field - 1).map(|length| length + self.separator.len()).sum()
        };
        let begin =
            (spec.start_field <= lengths.len()).then(|| before(spec.start_field) + spec.start_character)?;
        if key.len() < begin {
            return None;
        }
        let end = if spec.end_field == 0 || lengths.len() < spec.end_field {
            key.len()
        } else {
            let whole =
                if spec.end_character == 0 { lengths[spec.end_field - 1] } else { spec.end_character };
            (before(spec.end_field) + whole).min(key.len())
        };
        Some(begin - 1..end.max(begin - 1))
    }
}

/// Appends text so that its end sorts before any continuation.
fn push_text(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        out.push(*byte);
        if *byte == 0 {
            out.push(1);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

impl KeySpec {
    fn parse(text: &str) -> Result<Self, KeySpecError> {
        let wrong = || KeySpecError { word: format!("-k{text}") };
        let (begin, end) = match text.split_once(',') {
            Some((begin, end)) => (begin, Some(end)),
            None => (text, None),
        };
        let mut spec = Self::default();
        let mut read = |place: &str| -> Option<(usize, Option<usize>)> {
            let numbers = place.trim_end_matches(['n', 'r']);
            spec.numeric |= place[numbers.len()..].contains('n');
            spec.reverse |= place[numbers.len()..].contains('r');
            let (field, character) = match numbers.split_once('.') {
                Some((field, character)) => (field, Some(character.parse().ok()?)),
                None => (numbers, None),
            };
            Some((field.parse().ok()?, character))
        };
        let (field, character) = read(begin).ok_or_else(wrong)?;
        let end = end.map(|end| read(end).ok_or_else(wrong)).transpose()?;
        (spec.start_field, spec.start_character) = (field, character.unwrap_or(1));
        if let Some((field, character)) = end {
            (spec.end_field, spec.end_character) = (field, character.unwrap_or(0));
        }
        if spec.start_field == 0 || spec.start_character == 0 {
            return Err(wrong());
        }
        Ok(spec)
    }
}

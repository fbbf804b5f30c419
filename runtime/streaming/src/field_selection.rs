//! `FieldSelectionMapReduce` of Hadoop: a mapper and a reducer that select fields of lines, like `cut`,
//! by a list such as `6,5,1-3:0-`: fields of the key, a colon, fields of the value, all counted from 0.
//!
//! As in Hadoop, `N-`, for all fields from there on, is valid only for the value. A missing field is
//! empty, and empty fields at the end of a line do not count. Unlike in Hadoop, the separator is text,
//! not a pattern.

use super::FieldRule;
use serde::{Deserialize, Serialize};

/// Maximum number of fields that one range may name.
const FIELDS_MAX: usize = 100_000;

/// Fields that become the key, and fields that become the value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FieldSelection {
    separator: String,
    key: Vec<usize>,
    value: Vec<usize>,
    /// First of the remaining fields that are also added to the value.
    value_from: Option<usize>,
}

/// Invalid list of fields.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{list}` is no list of fields: it must be like 2,0:1,4-6,8- , with fields counted from 0")]
pub struct FieldListError {
    /// Text of the list.
    pub list: String,
}

/// Selected key and value of a line; `None` for a half that is not selected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

impl FieldSelection {
    /// Parses the selection of a list.
    ///
    /// # Errors
    /// The list is invalid.
    pub fn parse(list: &str, separator: &str) -> Result<Self, FieldListError> {
        let wrong = || FieldListError { list: list.to_owned() };
        // As in Hadoop, text after a second colon is ignored.
        let mut halves = list.split(':');
        let (key, _) = fields(halves.next().unwrap_or_default()).ok_or_else(wrong)?;
        let (value, value_from) = fields(halves.next().unwrap_or_default()).ok_or_else(wrong)?;
        Ok(Self { separator: separator.to_owned(), key, value, value_from })
    }

    /// Returns the pair of the map. Without a key the value takes its place.
    pub(super) fn of_map(&self, key: Option<&[u8]>, line: &[u8]) -> Selected {
        // Hadoop puts nothing between them.
        let whole = [key.unwrap_or_default(), line].concat();
        let mut selected = self.select(&whole);
        if selected.key.is_none() {
            selected.key = selected.value.take();
        }
        selected
    }

    /// Returns the pair of the reduce.
    pub(super) fn of_reduce(&self, key: &[u8], value: &[u8]) -> Selected {
        self.select(&[key, self.separator.as_bytes(), value].concat())
    }

    fn select(&self, line: &[u8]) -> Selected {
        let mut fields = split(line, self.separator.as_bytes());
        while 1 < fields.len() && fields.last().is_some_and(|field| field.is_empty()) {
            fields.pop();
        }
        let joined = |numbers: &[usize], from: Option<usize>| {
            if numbers.is_empty() && from.is_none() {
                return None;
            }
            let named = numbers.iter().map(|number| fields.get(*number).copied().unwrap_or_default());
            let rest: &[&[u8]] = from.and_then(|from| fields.get(from..)).unwrap_or_default();
            let all: Vec<&[u8]> = named.chain(rest.iter().copied()).collect();
            Some(all.join(self.separator.as_bytes()))
        };
        Selected { key: joined(&self.key, None), value: joined(&self.value, self.value_from) }
    }
}

fn split<'a>(line: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    let rule = FieldRule { separator: String::from_utf8_lossy(separator).into_owned(), key_fields: 1 };
    let (mut fields, mut rest) = (Vec::new(), line);
    loop {
        let (field, after) = rule.split(rest);
        fields.push(field);
        if field.len() == rest.len() {
            return fields;
        }
        rest = after;
    }
}

/// Returns fields by their numbers, and the first of the remaining fields if requested.
fn fields(list: &str) -> Option<(Vec<usize>, Option<usize>)> {
    let (mut numbers, mut from) = (Vec::new(), None);
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        match item.split_once('-') {
            None => numbers.push(item.parse().ok()?),
            Some((begin, end)) => {
                let begin: usize = if begin.is_empty() { 0 } else { begin.parse().ok()? };
                if end.is_empty() {
                    from = Some(begin);
                    continue;
                }
                let end: usize = end.parse().ok()?;
                if FIELDS_MAX < end {
                    return None;
                }
                numbers.extend(begin..=end);
            }
        }
    }
    Some((numbers, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, line: &str, key: Option<&str>, value: Option<&str>) {
        let selected = FieldSelection::parse(list, ",").unwrap().select(line.as_bytes());
        let expected = Selected {
            key: key.map(|key| key.as_bytes().to_vec()),
            value: value.map(|value| value.as_bytes().to_vec()),
        };
        assert_eq!(selected, expected, "{list} of {line}");
    }

    #[test]
    fn fields_are_selected_as_in_hadoop() {
        check("2,0:1", "a,b,c,d", Some("c,a"), Some("b"));
        check("6,5,1-3:0-", "0,1,2,3,4,5,6", Some("6,5,1,2,3"), Some("0,1,2,3,4,5,6"));
        check("0:2-", "a,b", Some("a"), Some(""));
        check("0,7:1", "a,b", Some("a,"), Some("b"));
        check("0-:", "a,b", None, None);
        check(":1-", "a,b,c,,", None, Some("b,c"));
        check("-1:2", "a,b,c", Some("a,b"), Some("c"));
        check("0:1:2", "a,b,c", Some("a"), Some("b"));
        for wrong in ["x", "1-x:", "0:a", "0-100001:"] {
            assert!(FieldSelection::parse(wrong, ",").is_err(), "{wrong}");
        }
    }

    #[test]
    fn value_stands_in_for_a_key_in_the_map_alone() {
        let selection = FieldSelection::parse(":1", ",").unwrap();
        let b = || Some(b"b".to_vec());
        assert_eq!(selection.of_map(None, b"a,b"), Selected { key: b(), value: None });
        assert_eq!(selection.of_reduce(b"a", b"b"), Selected { key: None, value: b() });
        // The key of an input and its value are concatenated without a separator.
        let first = FieldSelection::parse("0:", ",").unwrap();
        assert_eq!(first.of_map(Some(b"k"), b"v,w").key, Some(b"kv".to_vec()));
    }
}

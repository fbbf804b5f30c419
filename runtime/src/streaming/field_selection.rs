//! `FieldSelectionMapReduce` of Hadoop: a mapper and a reducer that take fields out of lines, as `cut` does, by a list such
//! as `6,5,1-3:0-`: fields of the key, a colon, fields of the value, all counted from 0.
//!
//! As in Hadoop's own: `N-`, for all fields from there on, counts in the value alone; a field that is not there is empty;
//! empty fields at the end of a line are no fields. Unlike there the separator is text, and no pattern.

use super::FieldRule;
use serde::{Deserialize, Serialize};

/// Fields that one range may name.
const FIELDS_MAX: usize = 100_000;

/// Which fields become the key, and which the value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FieldSelection {
    separator: String,
    key: Vec<usize>,
    value: Vec<usize>,
    /// All fields from here on go to the value, too.
    value_from: Option<usize>,
}

/// A list of fields that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{list}` is no list of fields: it must be like 2,0:1,4-6,8- , with fields counted from 0")]
pub struct FieldListError {
    /// What was read.
    pub list: String,
}

/// What a selection makes of a line; what it says nothing of is not there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

impl FieldSelection {
    /// The selection that a list names.
    ///
    /// # Errors
    /// A list that cannot be read.
    pub fn parse(list: &str, separator: &str) -> Result<Self, FieldListError> {
        let wrong = || FieldListError { list: list.to_owned() };
        // As in Hadoop, what stands behind a second colon says nothing.
        let mut halves = list.split(':');
        let (key, _) = fields(halves.next().unwrap_or_default()).ok_or_else(wrong)?;
        let (value, value_from) = fields(halves.next().unwrap_or_default()).ok_or_else(wrong)?;
        Ok(Self { separator: separator.to_owned(), key, value, value_from })
    }

    /// The pair of the map: without a key the value stands in its place.
    pub(super) fn of_map(&self, key: Option<&[u8]>, line: &[u8]) -> Selected {
        // Hadoop puts nothing between them.
        let whole = [key.unwrap_or_default(), line].concat();
        let mut selected = self.select(&whole);
        if selected.key.is_none() {
            selected.key = selected.value.take();
        }
        selected
    }

    /// The pair of the reduce.
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

/// Fields by their numbers, and from which on all.
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
        // Nothing stands between the key of an input and its value.
        let first = FieldSelection::parse("0:", ",").unwrap();
        assert_eq!(first.of_map(Some(b"k"), b"v,w").key, Some(b"kv".to_vec()));
    }
}

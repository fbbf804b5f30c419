//! A table of TOML whose keys are taken out one by one, so that every mistake is told with its line, its value and, if
//! a key is misspelt, the nearest one.
//!
//! Not here: which keys there are.

use super::{FileError, FilePlace};
use gristmill_scheduler::catalogue::nearest;
use std::cell::RefCell;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Shown of a value in an error, in characters.
const SHOWN_MAX: usize = 60;

/// The text of a file, for lines.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// Line and column of a byte, both from 1.
    pub fn place(self, at: usize) -> FilePlace {
        let before = &self.text[..self.text.floor_char_boundary(at)];
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
        FilePlace { line, column }
    }
}

/// One table; keys that were asked for are remembered.
pub(super) struct Table<'a> {
    source: Source<'a>,
    /// As errors call it: `[cluster]`.
    pub name: &'static str,
    table: &'a DeTable<'a>,
    at: usize,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Table<'a> {
    pub fn new(source: Source<'a>, name: &'static str, table: &'a DeTable<'a>, at: usize) -> Self {
        Self { source, name, table, at, known: RefCell::default() }
    }

    /// Where the value of a key begins, or the table if it is missing.
    pub fn place(&self, key: &str) -> FilePlace {
        self.source.place(self.table.get(key).map_or(self.at, |value| value.span().start))
    }

    fn take(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.borrow_mut().push(key);
        self.table.get(key)
    }

    /// Whether the key is there; does not take it.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// An error at the value of this key, or at the table if it is missing.
    pub fn refuse(&self, key: &'static str, wanted: impl Into<String>) -> FileError {
        let value = self.table.get(key);
        FileError::Value {
            file: self.source.name.to_owned(),
            place: self.place(key),
            table: self.name,
            key,
            value: value.map_or_else(|| "missing".to_owned(), |value| self.shown(value.span())),
            wanted: wanted.into(),
        }
    }

    fn shown(&self, span: Range<usize>) -> String {
        let text = self.source.text.get(span).unwrap_or_default();
        let mut shown: String =
            text.chars().take(SHOWN_MAX).map(|c| if c == '\n' { ' ' } else { c }).collect();
        if SHOWN_MAX < text.chars().count() {
            shown.push('…');
        }
        shown
    }

    /// Refuses keys that nobody asked for.
    pub fn done(&self) -> Result<(), FileError> {
        let known = self.known.borrow();
        let strange = self.table.keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        match strange {
            None => Ok(()),
            Some(key) => {
                let name = key.get_ref().to_string();
                Err(FileError::Key {
                    file: self.source.name.to_owned(),
                    place: self.source.place(key.span().start),
                    table: self.name,
                    nearest: nearest(&name, known.iter().copied()).map(str::to_owned),
                    key: name,
                    known: known.join(", ").into(),
                })
            }
        }
    }

    pub fn text(&self, key: &'static str) -> Result<Option<String>, FileError> {
        match self.take(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::String(text)) if !text.is_empty() => Ok(Some(text.to_string())),
            Some(_) => Err(self.refuse(key, "a text")),
        }
    }

    pub fn texts(&self, key: &'static str) -> Result<Vec<String>, FileError> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let wanted = || self.refuse(key, "a list of texts");
        let list = value.get_ref().as_array().ok_or_else(wanted)?;
        list.iter().map(|one| one.get_ref().as_str().map(str::to_owned).ok_or_else(wanted)).collect()
    }

    pub fn flag(&self, key: &'static str) -> Result<Option<bool>, FileError> {
        match self.take(key) {
            None => Ok(None),
            Some(value) => {
                value.get_ref().as_bool().map(Some).ok_or_else(|| self.refuse(key, "true or false"))
            }
        }
    }

    /// A number that `check` likes.
    pub fn number(
        &self,
        key: &'static str,
        wanted: &str,
        check: impl Fn(f64) -> bool,
    ) -> Result<Option<f64>, FileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = number(value.get_ref()).filter(|&number| check(number));
        number.map(Some).ok_or_else(|| self.refuse(key, wanted))
    }

    pub fn numbers(
        &self,
        key: &'static str,
        wanted: &str,
        check: impl Fn(f64) -> bool,
    ) -> Result<Option<Vec<f64>>, FileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let refused = || self.refuse(key, wanted);
        let list = value.get_ref().as_array().ok_or_else(refused)?;
        let numbers =
            list.iter().map(|one| number(one.get_ref()).filter(|&one| check(one)).ok_or_else(refused));
        numbers.collect::<Result<_, _>>().map(Some)
    }

    /// A whole number in this range.
    pub fn whole(&self, key: &'static str, range: Range<i64>) -> Result<Option<i64>, FileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = match value.get_ref() {
            DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number)).map(Some);
        let last = range.end - 1;
        number.ok_or_else(|| self.refuse(key, format!("a whole number from {} to {last}", range.start)))
    }

    /// Seconds of a text such as `200ms`.
    pub fn seconds(&self, key: &'static str) -> Result<Option<f64>, FileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        seconds(value.get_ref()).map(Some).ok_or_else(|| self.refuse(key, TIME_WANTED))
    }

    pub fn seconds_list(&self, key: &'static str) -> Result<Option<Vec<f64>>, FileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let refused =
            || self.refuse(key, "a list of times such as [\"0s\", \"1.5s\", \"200ms\"], each with its unit");
        let list = value.get_ref().as_array().ok_or_else(refused)?;
        list.iter().map(|one| seconds(one.get_ref()).ok_or_else(refused)).collect::<Result<_, _>>().map(Some)
    }

    /// Any simple value as one would type it on the command line; a list with commas between.
    pub fn typed(&self, key: &'static str) -> Result<Option<String>, FileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let refused = || self.refuse(key, "a number, a text, or a list of them");
        typed(value.get_ref()).ok_or_else(refused).map(Some)
    }

    pub fn table(&self, key: &'static str, name: &'static str) -> Result<Option<Table<'a>>, FileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let table = value.get_ref().as_table().ok_or_else(|| self.refuse(key, format!("a table {name}")))?;
        Ok(Some(Table::new(self.source, name, table, value.span().start)))
    }

    pub fn tables(&self, key: &'static str, name: &'static str) -> Result<Vec<Table<'a>>, FileError> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let refused = || self.refuse(key, format!("tables {name}"));
        let list = value.get_ref().as_array().ok_or_else(refused)?;
        list.iter()
            .map(|one| {
                let table = one.get_ref().as_table().ok_or_else(refused)?;
                Ok(Table::new(self.source, name, table, one.span().start))
            })
            .collect()
    }
}

const TIME_WANTED: &str = "a time with its unit, such as \"200ms\", \"1.5s\" or \"2min\"";

fn number(value: &DeValue<'_>) -> Option<f64> {
    let number = match value {
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix()).ok()? as f64,
        DeValue::Float(digits) => digits.as_str().parse().ok()?,
        _ => return None,
    };
    f64::is_finite(number).then_some(number)
}

fn typed(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(_) | DeValue::Float(_) => number(value).map(|number| number.to_string()),
        DeValue::Array(list) => {
            let items: Option<Vec<String>> = list.iter().map(|one| typed(one.get_ref())).collect();
            items.map(|items| items.join(","))
        }
        _ => None,
    }
}

fn seconds(value: &DeValue<'_>) -> Option<f64> {
    value.as_str().and_then(parse_seconds).filter(|seconds| (0.0..=1e9).contains(seconds))
}

/// Seconds of a text such as `200ms`, `1.5s`, `2min` or `1h`.
pub(crate) fn parse_seconds(text: &str) -> Option<f64> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim_start() {
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * factor)
}

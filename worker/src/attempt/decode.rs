//! What user code reads out of a record, with the error that names the record.

use super::{TaskError, TaskResult};
use crate::input::Record;
use serde::de::DeserializeOwned;

impl Record<'_> {
    /// The value that [`Output::json`](crate::output::Output::json) wrote as this line, or whatever else of JSON fits the
    /// type.
    ///
    /// # Errors
    /// A line that is no such value, as a [bad record](TaskError::bad_record).
    pub fn json<T: DeserializeOwned>(&self) -> TaskResult<T> {
        let wrong = |error: serde_json::Error| {
            TaskError::bad_record(format!("not a {} in JSON: {error}", std::any::type_name::<T>()))
        };
        serde_json::from_slice(self).map_err(wrong)
    }

    /// The record's text as a value of this type, without the white space around it: a number, a `char`.
    ///
    /// # Errors
    /// Text that is no such value, as a [bad record](TaskError::bad_record).
    pub fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(&self) -> TaskResult<T> {
        parse(&self.text())
    }
}

/// A field's text as a value of this type, without the white space around it.
///
/// # Errors
/// Text that is no such value, as a [bad record](TaskError::bad_record).
pub fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(field: &str) -> TaskResult<T> {
    let wrong = |error: T::Err| {
        let shown: String = field.chars().take(SHOWN_CHARS_MAX).collect();
        TaskError::bad_record(format!("`{shown}` is not a {}: {error}", std::any::type_name::<T>()))
    };
    field.trim().parse().map_err(wrong)
}

/// Characters of a wrong field that a message shows.
const SHOWN_CHARS_MAX: usize = 40;

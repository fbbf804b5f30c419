//! Decoding of records by user code, with errors that name the record.

use super::{TaskError, TaskResult};
use crate::input::Record;
use serde::de::DeserializeOwned;

impl Record<'_> {
    /// Decodes the value that [`Output::json`](crate::output::Output::json) wrote as this line, or any other JSON that
    /// fits the type.
    ///
    /// # Errors
    /// A line that is not such a value, as a [bad record](TaskError::bad_record).
    pub fn json<T: DeserializeOwned>(&self) -> TaskResult<T> {
        let wrong = |error: serde_json::Error| {
            TaskError::bad_record(format!("not a {} in JSON: {error}", std::any::type_name::<T>()))
        };
        serde_json::from_slice(self).map_err(wrong)
    }

    /// Parses the record's text without surrounding white space as a value of this type: a number, a `char`.
    ///
    /// # Errors
    /// Text that is not such a value, as a [bad record](TaskError::bad_record).
    pub fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(&self) -> TaskResult<T> {
        parse(&self.text())
    }
}

/// Parses a field's text without surrounding white space as a value of this type.
///
/// # Errors
/// Text that is not such a value, as a [bad record](TaskError::bad_record).
pub fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(field: &str) -> TaskResult<T> {
    let wrong = |error: T::Err| {
        let shown: String = field.chars().take(SHOWN_CHARS_MAX).collect();
        TaskError::bad_record(format!("`{shown}` is not a {}: {error}", std::any::type_name::<T>()))
    };
    field.trim().parse().map_err(wrong)
}

/// Maximum characters of an invalid field shown in a message.
const SHOWN_CHARS_MAX: usize = 40;

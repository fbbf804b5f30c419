//! Parses fields of the input of a worked case, which is a JSON object. Errors name the field.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses a field of an input. An optional one may be absent or null.
pub(super) fn field<T: DeserializeOwned>(input: &Value, name: &str) -> Result<T, String> {
    let value = input.get(name);
    T::deserialize(value.unwrap_or(&Value::Null)).map_err(|error| match value {
        None => format!("`{name}` is missing"),
        Some(_) => format!("`{name}`: {error}"),
    })
}

/// Returns a number of an input, if it is between two limits.
pub(super) fn within(name: &str, number: f64, [least, most]: [f64; 2]) -> Result<f64, String> {
    match (least..=most).contains(&number) {
        true => Ok(number),
        false => Err(format!("`{name}` is {number}, not a number from {least} to {most:e}")),
    }
}

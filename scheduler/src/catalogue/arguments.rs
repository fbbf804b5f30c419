//! Parameters of a catalogue name as text, and their errors.

use super::spelling::listed;
use std::str::FromStr;

/// Parameters of one call, taken one by one.
#[derive(Debug)]
pub struct Arguments<'a> {
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> Arguments<'a> {
    /// Parses `name=value,other=value`; empty text has no parameters.
    ///
    /// # Errors
    /// A piece without `=`, and a name given twice.
    pub fn read(text: &'a str) -> Result<Self, ArgumentError> {
        let mut given: Vec<(&str, &str)> = Vec::new();
        for piece in text.split(',').filter(|piece| !piece.is_empty()) {
            let Some((name, value)) = piece.split_once('=') else {
                return Err(ArgumentError::NoValue { piece: piece.to_owned() });
            };
            if given.iter().any(|&(other, _)| other == name) {
                return Err(ArgumentError::Twice { name: name.to_owned() });
            }
            given.push((name, value));
        }
        Ok(Self { given })
    }

    /// Takes the value of this parameter as text.
    pub fn text(&mut self, name: &str) -> Option<&'a str> {
        let place = self.given.iter().position(|&(other, _)| other == name)?;
        Some(self.given.remove(place).1)
    }

    /// Takes the value of this parameter, which must satisfy `fits`; `default` if it was not given.
    ///
    /// # Errors
    /// The value cannot be parsed, or does not fit; `wanted` describes valid values.
    pub fn value<V: FromStr + Copy>(
        &mut self,
        name: &'static str,
        default: V,
        wanted: &'static str,
        fits: impl Fn(V) -> bool,
    ) -> Result<V, ArgumentError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let value = text.parse().ok().filter(|&value| fits(value));
        value.ok_or_else(|| ArgumentError::Value { name, value: text.to_owned(), wanted: wanted.to_owned() })
    }

    /// Takes one of these words; the first if the parameter was not given. Returns its index.
    ///
    /// # Errors
    /// Another word.
    pub fn choice(&mut self, name: &'static str, words: &[&str]) -> Result<usize, ArgumentError> {
        let Some(text) = self.text(name) else { return Ok(0) };
        let place = words.iter().position(|&word| word == text);
        place.ok_or_else(|| ArgumentError::Value {
            name,
            value: text.to_owned(),
            wanted: format!("one of {}", words.join(", ")),
        })
    }

    /// Takes a flag: `yes` or `no`, no by default.
    ///
    /// # Errors
    /// Another word.
    pub fn flag(&mut self, name: &'static str) -> Result<bool, ArgumentError> {
        self.choice(name, &["no", "yes"]).map(|place| place == 1)
    }

    /// Returns the names of parameters that were not taken.
    #[must_use]
    pub fn rest(&self) -> Vec<&'a str> {
        self.given.iter().map(|&(name, _)| name).collect()
    }
}

/// Error of parameters.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum ArgumentError {
    /// A piece is not `name=value`.
    #[error("`{piece}` is not `parameter=value`")]
    NoValue {
        /// Given text.
        piece: String,
    },
    /// A parameter is given twice.
    #[error("parameter `{name}` is given twice")]
    Twice { name: String },
    /// The value of a parameter is invalid.
    #[error("parameter `{name}` is {wanted}, not `{value}`")]
    Value {
        name: &'static str,
        /// Given value.
        value: String,
        /// Description of valid values.
        wanted: String,
    },
    /// The combination of values is invalid.
    #[error("{reason}")]
    Refused {
        /// Reason as text.
        reason: String,
    },
    /// The parameter does not exist.
    #[error("{}", unknown(.name, .known))]
    Unknown {
        /// Given name.
        name: String,
        /// Existing parameters.
        known: Vec<&'static str>,
    },
}

fn unknown(name: &str, known: &[&'static str]) -> String {
    match known.is_empty() {
        true => format!("it takes no parameters, but was given `{name}`"),
        false => format!("it has no parameter `{name}`; {}", listed(name, known)),
    }
}

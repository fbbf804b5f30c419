//! The parameters of a name, as people write them, and what is wrong with them.

use super::error::list;
use std::fmt;
use std::str::FromStr;

/// The parameters of one call, taken out one by one.
#[derive(Debug)]
pub struct Arguments<'a> {
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> Arguments<'a> {
    /// Reads `name=value,other=value`; empty text is no parameter.
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

    /// The value of this parameter as text.
    pub fn text(&mut self, name: &str) -> Option<&'a str> {
        let place = self.given.iter().position(|&(other, _)| other == name)?;
        Some(self.given.remove(place).1)
    }

    /// The value of this parameter, which must satisfy `fits`; `default` if it was not given.
    ///
    /// # Errors
    /// The value cannot be read, or does not fit; `wanted` says in words what does.
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

    /// One of these words; the first if the parameter was not given. Answers its place among them.
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

    /// Whether a parameter is set: `yes` or `no`, no by default.
    ///
    /// # Errors
    /// Another word.
    pub fn flag(&mut self, name: &'static str) -> Result<bool, ArgumentError> {
        self.choice(name, &["no", "yes"]).map(|place| place == 1)
    }

    /// Names of parameters that nobody took.
    #[must_use]
    pub fn rest(&self) -> Vec<&'a str> {
        self.given.iter().map(|&(name, _)| name).collect()
    }
}

/// Parameters that cannot be taken.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum ArgumentError {
    /// A piece is not `name=value`.
    NoValue {
        /// As given.
        piece: String,
    },
    /// A parameter stands twice.
    Twice { name: String },
    /// A value that the parameter cannot have.
    Value {
        name: &'static str,
        /// As given.
        value: String,
        /// What it could be, in words.
        wanted: String,
    },
    /// What they say together cannot be.
    Refused {
        /// Why, in words.
        reason: String,
    },
    /// There is no such parameter.
    Unknown {
        /// As given.
        name: String,
        /// Those that there are.
        known: Vec<&'static str>,
    },
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentError::NoValue { piece } => write!(f, "`{piece}` is not `parameter=value`"),
            ArgumentError::Twice { name } => write!(f, "parameter `{name}` is given twice"),
            ArgumentError::Value { name, value, wanted } => {
                write!(f, "parameter `{name}` is {wanted}, not `{value}`")
            }
            ArgumentError::Refused { reason } => f.write_str(reason),
            ArgumentError::Unknown { name, known } if known.is_empty() => {
                write!(f, "it takes no parameters, but was given `{name}`")
            }
            ArgumentError::Unknown { name, known } => {
                write!(f, "it has no parameter `{name}`")?;
                list(f, "; ", name, known)
            }
        }
    }
}

impl std::error::Error for ArgumentError {}

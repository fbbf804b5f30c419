//! Names from untrusted parties that become part of file names. Without dots and slashes, they cannot leave a
//! directory.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum length of a plain name, bytes.
const PLAIN_NAME_BYTES_MAX: usize = 64;

/// Untrusted name that becomes part of file names: 1 to 64 of `A-Z a-z 0-9 _ -`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct PlainName(String);

impl PlainName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PlainName {
    type Err = NotPlain;

    fn from_str(text: &str) -> Result<Self, NotPlain> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let good = (1..=PLAIN_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain);
        if good {
            return Ok(Self(text.to_owned()));
        }
        Err(NotPlain { found: text.chars().take(PLAIN_NAME_BYTES_MAX + 1).collect() })
    }
}

impl<'de> Deserialize<'de> for PlainName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for PlainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Error of parsing a [`PlainName`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the name {found:?} is not 1 to {PLAIN_NAME_BYTES_MAX} of A-Z a-z 0-9 _ -")]
pub struct NotPlain {
    /// Start of the text.
    pub found: String,
}

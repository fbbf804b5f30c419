//! File names as bytes: every valid file name can be stored in JSON.

use data_encoding::{HEXUPPER, HEXUPPER_PERMISSIVE};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Name of a file: any bytes.
///
/// Serialises as a string in which `%`, control bytes and bytes that are not UTF-8 are written as `%` and
/// two hexadecimal digits. `Display` escapes bytes that could harm a terminal; that form cannot be parsed
/// back.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(Vec<u8>);

impl FilePath {
    /// Creates a name from its bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes of the name.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// True if the name ends with this suffix, ignoring case.
    pub(crate) fn has_suffix(&self, suffix: &str) -> bool {
        let at = self.0.len().checked_sub(suffix.len());
        at.is_some_and(|at| self.0[at..].eq_ignore_ascii_case(suffix.as_bytes()))
    }

    /// Returns the name as a path of this machine's file system.
    #[must_use]
    pub fn to_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Returns the name as text, bytes that are not UTF-8 replaced.
    #[must_use]
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// Returns the last `bytes` bytes; `None` if it has fewer.
    pub(super) fn end(&self, bytes: usize) -> Option<Self> {
        let at = self.0.len().checked_sub(bytes)?;
        Some(Self(self.0[at..].to_vec()))
    }

    fn escaped(&self) -> Cow<'_, str> {
        let is_plain = |byte: &u8| *byte != b'%' && !byte.is_ascii_control();
        if let Ok(text) = str::from_utf8(&self.0)
            && self.0.iter().all(is_plain)
        {
            return Cow::Borrowed(text);
        }
        let mut text = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character == '%' || character.is_ascii_control() {
                    push_escaped(&mut text, character as u8);
                } else {
                    text.push(character);
                }
            }
            for &byte in chunk.invalid() {
                push_escaped(&mut text, byte);
            }
        }
        Cow::Owned(text)
    }

    fn unescaped(text: &str) -> Option<Self> {
        if !text.contains('%') {
            return Some(Self::from(text));
        }
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((&first, tail)) = rest.split_first() {
            if first == b'%' {
                let (digits, after) = tail.split_at_checked(2)?;
                bytes.extend(HEXUPPER_PERMISSIVE.decode(digits).ok()?);
                rest = after;
            } else {
                bytes.push(first);
                rest = tail;
            }
        }
        Some(Self(bytes))
    }
}

fn push_escaped(text: &mut String, byte: u8) {
    text.push('%');
    text.push_str(&HEXUPPER.encode(&[byte]));
}

impl From<&Path> for FilePath {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl From<&str> for FilePath {
    fn from(path: &str) -> Self {
        Self(path.as_bytes().to_vec())
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in String::from_utf8_lossy(&self.0).chars() {
            // Marks that change the direction of text can make a name look like another.
            let turns = matches!(character, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
            if character.is_control() || turns {
                write!(f, "{}", character.escape_unicode())?;
            } else {
                write!(f, "{character}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilePath({:?})", self.escaped())
    }
}

impl Serialize for FilePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.escaped())
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::unescaped(&text).ok_or_else(|| {
            serde::de::Error::custom("a % in a file name is not followed by two hexadecimal digits")
        })
    }
}

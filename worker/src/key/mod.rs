//! Keys: by which pairs are grouped and sorted. The order of a key's bytes is the order of the key.
//!
//! So the engine never decodes a key to compare it. `FORMAT.md` has the encodings. A type has two. The whole
//! form is used where its end is known (a `String` is its bytes). The part form is used inside tuples,
//! `Option` and `Vec`, and is prefix-free: no encoding of a value is a prefix of another one.

pub(crate) mod hash;
mod impls;
#[cfg(test)]
mod tests;

pub use impls::{decode_escaped, encode_escaped};

use crate::narration::words_of;

/// Error of bytes that are not the encoding of a key of the expected type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{length} bytes at {place} are not {expected}")]
pub struct DecodeError {
    /// Expected type.
    pub expected: &'static str,
    /// Place of the error: in a whole key, or in a part of one.
    pub place: &'static str,
    /// Number of bytes.
    pub length: usize,
}

impl DecodeError {
    /// Creates an error inside a key.
    #[must_use]
    pub fn part(expected: &'static str, bytes: &[u8]) -> Self {
        Self { expected, place: "a part of a key", length: bytes.len() }
    }

    /// Creates an error of a whole key.
    #[must_use]
    pub fn whole(expected: &'static str, bytes: &[u8]) -> Self {
        Self { expected, place: "a whole key", length: bytes.len() }
    }
}

/// Returns the length of an encoded key's prefix that identifies its group (secondary sort).
pub type GroupPrefix = fn(&[u8]) -> usize;

/// Type by which pairs are grouped and sorted: integers, `bool`, `char`, floats (by `total_cmp`), `String`,
/// [`ByteString`], `()`, tuples of two to six, `Option`, `Vec` and [`Reverse`](std::cmp::Reverse) of keys.
///
/// For custom types use [`key_newtype!`](crate::key_newtype), or implement this trait with another key's
/// encodings. The laws: `a < b` exactly if the encoding of `a` is less than that of `b` byte by byte, for
/// both forms. Equal keys have equal encodings. Part encodings are prefix-free. Decoding returns the encoded
/// key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    note = "keys are whole numbers, `bool`, `char`, floats, `String`, `ByteString`, `()`, and tuples, `Option`, `Vec` and \
            `Reverse` of keys; for a struct with one field there is `key_newtype!`, for more take a tuple",
    note = "`usize` is none, because its size differs between machines: take `u64`"
)]
pub trait Key: Sized + 'static {
    /// Type in which a key is passed to and from user code: `&str` for `String`, `&[u8]` for [`ByteString`], the key
    /// itself for all others.
    type View<'a>;

    /// Appends the whole form.
    fn encode(view: Self::View<'_>, out: &mut Vec<u8>);

    /// Passes the whole form to `use_bytes`; `scratch` is used if the view is not already the encoding.
    #[inline]
    fn with_bytes<R>(view: Self::View<'_>, scratch: &mut Vec<u8>, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        scratch.clear();
        Self::encode(view, scratch);
        use_bytes(scratch)
    }

    /// Decodes a whole form.
    ///
    /// # Errors
    /// Bytes that are not exactly one key.
    fn decode(bytes: &[u8]) -> Result<Self::View<'_>, DecodeError>;

    /// Converts a view to an owned key.
    fn from_view(view: Self::View<'_>) -> Self;

    /// Appends the part form.
    fn encode_part(&self, out: &mut Vec<u8>);

    /// Takes one part form off the front of `bytes`.
    ///
    /// # Errors
    /// Bytes that do not start with one.
    fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError>;

    /// Takes one part form off the front of `bytes` without decoding it.
    ///
    /// # Errors
    /// Bytes that do not start with one.
    fn skip_part(bytes: &mut &[u8]) -> Result<(), DecodeError> {
        Self::decode_part(bytes).map(|_| ())
    }

    /// Formats a whole form for display in a job's story. By default its bytes.
    #[must_use]
    fn words(whole: &[u8]) -> String {
        words_of(whole)
    }

    /// Formats the key inside another one for display. By default the bytes of its part form.
    #[must_use]
    fn part_words(&self) -> String {
        let mut bytes = Vec::new();
        self.encode_part(&mut bytes);
        words_of(&bytes)
    }
}

/// Key with a first component, by which it can be grouped: the tuples.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no first component to group by",
    note = "`group_by_first` takes keys that are tuples: what is grouped by comes first, what values are ordered by behind it"
)]
pub trait CompositeKey: Key {
    /// Returns the length of the first component at the front of an encoded key.
    fn first_length(encoded: &[u8]) -> usize;
}

/// Arbitrary bytes, as key or value: text that need not be UTF-8, fixed records, encoded data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ByteString(pub Vec<u8>);

impl From<&[u8]> for ByteString {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<Vec<u8>> for ByteString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl AsRef<[u8]> for ByteString {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::ops::Deref for ByteString {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Makes a tuple struct with one field a key that sorts like its field.
///
/// ```
/// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
/// struct Year(u16);
/// gristmill_worker::key_newtype!(Year(u16));
/// ```
#[macro_export]
macro_rules! key_newtype {
    ($name:ident($inner:ty)) => {
        impl $crate::key::Key for $name {
            type View<'a> = $name;

            fn encode(view: $name, out: &mut Vec<u8>) {
                <$inner as $crate::key::Key>::encode_part(&view.0, out);
            }

            fn decode(mut bytes: &[u8]) -> Result<$name, $crate::key::DecodeError> {
                let whole = bytes;
                let key = <$name as $crate::key::Key>::decode_part(&mut bytes)?;
                if bytes.is_empty() {
                    Ok(key)
                } else {
                    Err($crate::key::DecodeError::whole(stringify!($name), whole))
                }
            }

            fn from_view(view: $name) -> $name {
                view
            }

            fn encode_part(&self, out: &mut Vec<u8>) {
                <$inner as $crate::key::Key>::encode_part(&self.0, out);
            }

            fn decode_part(bytes: &mut &[u8]) -> Result<$name, $crate::key::DecodeError> {
                <$inner as $crate::key::Key>::decode_part(bytes).map($name)
            }

            fn skip_part(bytes: &mut &[u8]) -> Result<(), $crate::key::DecodeError> {
                <$inner as $crate::key::Key>::skip_part(bytes)
            }

            fn words(whole: &[u8]) -> String {
                match <$name as $crate::key::Key>::decode(whole) {
                    Ok(key) => $crate::key::Key::part_words(&key),
                    Err(error) => error.to_string(),
                }
            }

            fn part_words(&self) -> String {
                $crate::key::Key::part_words(&self.0)
            }
        }
    };
}

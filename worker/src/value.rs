//! Values of the key-value pairs that mappers emit and reducers read: the trait [`Value`], and its encoding as bytes.
//!
//! Every type with serde's two traits is a value. [`ByteString`] is a value without any encoding: its bytes are sent
//! unchanged and returned without a copy.

use crate::codec::{self, CodecError};
use crate::key::ByteString;
use crate::narration::words_of;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Memory that the containers inside one value may claim when it is decoded, as a multiple of its encoding. An item of
/// 64 bytes in memory may have an encoding of one byte.
const DECODED_PER_ENCODED_MAX: usize = 64;

/// Memory that the containers inside one value may always claim, bytes.
const DECODED_BYTES_MIN: usize = 1 << 16;

/// Value of a pair. Implemented for every type with serde's two traits that owns its data and may be sent between
/// threads: derive `Serialize` and `Deserialize`; nothing else is required.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a value",
    note = "values own what they hold, travel between processes and threads, and derive `Serialize` and `Deserialize`"
)]
pub trait Value: Sized + Send + 'static {
    /// Type in which a value is passed to and from user code: the value itself (also a `String`), or `&[u8]` for
    /// [`ByteString`].
    type View<'a>;

    /// Appends the encoding of a value.
    ///
    /// # Errors
    /// A type whose `Serialize` fails.
    fn encode(view: Self::View<'_>, out: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Passes the encoding to `use_bytes`; `scratch` is used if the view is not already the encoding.
    ///
    /// # Errors
    /// A type whose `Serialize` fails.
    fn with_bytes<R>(
        view: Self::View<'_>,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, CodecError>;

    /// Appends the encoding of an owned value.
    ///
    /// # Errors
    /// A type whose `Serialize` fails.
    fn encode_owned(&self, out: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Decodes a value.
    ///
    /// # Errors
    /// Bytes that are not exactly one value.
    fn decode(bytes: &[u8]) -> Result<Self::View<'_>, CodecError>;

    /// Converts a view to an owned value.
    fn from_view(view: Self::View<'_>) -> Self;

    /// Returns the value in `slot`, if it is still there. May leave it there or take it.
    fn view_of(slot: &mut Option<Self>) -> Option<Self::View<'_>>;

    /// Formats an encoding for display in a job's story. By default its bytes.
    #[must_use]
    fn words(encoded: &[u8]) -> String {
        words_of(encoded)
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Value for T {
    type View<'a> = T;

    fn encode(view: T, out: &mut Vec<u8>) -> Result<(), CodecError> {
        codec::try_encode(&view, out)
    }

    fn with_bytes<R>(
        view: T,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, CodecError> {
        scratch.clear();
        codec::try_encode(&view, scratch)?;
        Ok(use_bytes(scratch))
    }

    fn encode_owned(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        codec::try_encode(self, out)
    }

    fn decode(bytes: &[u8]) -> Result<T, CodecError> {
        let limit = bytes.len().saturating_mul(DECODED_PER_ENCODED_MAX).max(DECODED_BYTES_MIN);
        codec::decode(bytes, limit)
    }

    fn from_view(view: T) -> T {
        view
    }

    fn view_of(slot: &mut Option<T>) -> Option<T> {
        slot.take()
    }

    fn words(encoded: &[u8]) -> String {
        // As JSON, which nearly all values support.
        let json = <T as Value>::decode(encoded).ok().and_then(|value| serde_json::to_vec(&value).ok());
        words_of(json.as_deref().unwrap_or(encoded))
    }
}

/// Raw bytes: nothing is added, nothing is copied when read. For this, `ByteString` must not implement serde's traits.
impl Value for ByteString {
    type View<'a> = &'a [u8];

    fn encode(view: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend_from_slice(view);
        Ok(())
    }

    #[inline]
    fn with_bytes<R>(
        view: &[u8],
        _: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, CodecError> {
        Ok(use_bytes(view))
    }

    fn encode_owned(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend_from_slice(&self.0);
        Ok(())
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<&[u8], CodecError> {
        Ok(bytes)
    }

    fn from_view(view: &[u8]) -> ByteString {
        ByteString(view.to_vec())
    }

    fn view_of(slot: &mut Option<ByteString>) -> Option<&[u8]> {
        slot.as_ref().map(|value| value.0.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_strings_are_their_own_encoding() {
        let mut out = b"before ".to_vec();
        ByteString::encode(b"raw\0", &mut out).unwrap();
        assert_eq!(out, b"before raw\0");
        assert_eq!(ByteString::decode(b"raw\0").unwrap(), b"raw\0");
    }

    #[test]
    fn serde_values_decode_to_themselves() {
        let value = (7u64, Some("seven".to_owned()));
        let mut scratch = Vec::new();
        let back = <(u64, Option<String>)>::with_bytes(value.clone(), &mut scratch, |bytes| {
            <(u64, Option<String>) as Value>::decode(bytes).unwrap()
        });
        assert_eq!(back.unwrap(), value);
    }
}

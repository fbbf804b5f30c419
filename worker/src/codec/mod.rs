//! Encoding of structures as bytes: bincode with fixed settings, and limits on every decode.
//!
//! Values of user types, frames and request bodies are encoded here, the latter two by [`decode_message`]. No other
//! file uses bincode, so that it can be replaced.
//!
//! Types on the wire must not be recursive and must not have lists of zero-sized items: neither costs bytes, so a limit
//! on bytes does not stop them.

mod bounded;

use bincode::config::{Configuration, Limit, standard};
use bounded::Bounded;
use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed};
use std::cell::Cell;

/// Error of bytes that do not decode, or of a structure that does not encode.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The structure's own `Serialize` failed, for instance for a list of unknown length.
    #[error("could not encode a {type_name}")]
    Encode {
        /// Name of the Rust type.
        type_name: &'static str,
        /// Error of the encoder.
        #[source]
        source: bincode::error::EncodeError,
    },
    /// The bytes are not an encoding of the type, or claim more memory than allowed.
    #[error("could not decode {length} bytes into a {type_name}")]
    Decode {
        /// Name of the Rust type.
        type_name: &'static str,
        /// Number of bytes.
        length: usize,
        /// Error of the decoder.
        #[source]
        source: bincode::error::DecodeError,
    },
    /// The type was decoded before the bytes ended.
    #[error("{left} of {length} bytes are left after a {type_name}")]
    Trailing {
        /// Name of the Rust type.
        type_name: &'static str,
        /// Number of bytes.
        length: usize,
        /// Number of remaining bytes.
        left: usize,
    },
    /// More bytes than any limit allows.
    #[error("{length} bytes for a {type_name} are over the limit of {limit}")]
    TooLong {
        /// Name of the Rust type.
        type_name: &'static str,
        /// Number of bytes.
        length: usize,
        /// Allowed bytes of memory.
        limit: usize,
    },
}

/// Minimum limit of the decoder: limits are rounded up to a power of four from here, because the decoder needs them at
/// compile time.
const LIMIT_MIN: usize = 1 << 16;

/// Appends the encoding of `value` to `out`. For the project's own frames, whose types always encode.
///
/// # Panics
/// If the type's `Serialize` fails; use `try_encode` for types of users.
pub fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    try_encode(value, out).expect("our own frames hold only types that always encode");
}

/// Appends the encoding of `value` to `out`. After an error `out` may have grown by a part of it.
///
/// # Errors
/// A type whose `Serialize` fails.
pub(crate) fn try_encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), CodecError> {
    match bincode::serde::encode_into_std_write(value, out, standard()) {
        Ok(_) => Ok(()),
        Err(source) => Err(CodecError::Encode { type_name: std::any::type_name::<T>(), source }),
    }
}

/// Decodes all of `bytes`, received from another process: lists inside may take `memory_max` bytes in total.
///
/// A list has up to twice the places that it needs, as it grows by doubling, and strings have their received length. The
/// name of a piece of input may be a copy of its path.
/// The total is at most `2 * bytes.len() + 2 * memory_max` plus less than 64 KiB for places without items.
///
/// # Errors
/// Bytes that are not exactly one encoding of the type, exceed the limit or take more memory.
pub fn decode_message<T: DeserializeOwned>(bytes: &[u8], memory_max: usize) -> Result<T, CodecError> {
    let type_name = std::any::type_name::<T>();
    let length = bytes.len();
    if memory_max < length {
        return Err(CodecError::TooLong { type_name, length, limit: memory_max });
    }
    let left = Cell::new(memory_max);
    let (value, used) = bincode::serde::seed_decode_from_slice(Bounded::<T>::new(&left), bytes, standard())
        .map_err(|source| CodecError::Decode { type_name, length, source })?;
    if used < length {
        return Err(CodecError::Trailing { type_name, length, left: length - used });
    }
    Ok(value)
}

/// Decodes JSON received from another process: lists inside may take `memory_max` bytes in total.
///
/// # Errors
/// Text that is not JSON of the type, or that takes more memory.
pub fn decode_json<T: DeserializeOwned>(text: &[u8], memory_max: usize) -> Result<T, serde_json::Error> {
    let left = Cell::new(memory_max);
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Bounded::<T>::new(&left).deserialize(&mut deserializer)?;
    deserializer.end().map(|()| value)
}

/// Decodes all of `bytes`. `limit` applies to the memory claimed by one string inside, and to the total
/// bytes. It is rounded up to the next of 64 KiB, 256 KiB, 1 MiB and so on to 4 GiB. Places in lists are not
/// counted.
///
/// # Errors
/// Bytes that are not exactly one encoding of the type, or claim more than the limit.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], limit: usize) -> Result<T, CodecError> {
    if limit < bytes.len() {
        return Err(CodecError::TooLong {
            type_name: std::any::type_name::<T>(),
            length: bytes.len(),
            limit,
        });
    }
    match limit.max(LIMIT_MIN).ilog2().div_ceil(2) {
        ..=8 => decode_within::<T, { 1 << 16 }>(bytes),
        9 => decode_within::<T, { 1 << 18 }>(bytes),
        10 => decode_within::<T, { 1 << 20 }>(bytes),
        11 => decode_within::<T, { 1 << 22 }>(bytes),
        12 => decode_within::<T, { 1 << 24 }>(bytes),
        13 => decode_within::<T, { 1 << 26 }>(bytes),
        14 => decode_within::<T, { 1 << 28 }>(bytes),
        15 => decode_within::<T, { 1 << 30 }>(bytes),
        _ => decode_within::<T, { 1 << 32 }>(bytes),
    }
}

fn decode_within<T: DeserializeOwned, const LIMIT: usize>(bytes: &[u8]) -> Result<T, CodecError> {
    let config: Configuration<_, _, Limit<LIMIT>> = standard().with_limit::<LIMIT>();
    let type_name = std::any::type_name::<T>();
    let (value, used) = bincode::serde::decode_from_slice(bytes, config)
        .map_err(|source| CodecError::Decode { type_name, length: bytes.len(), source })?;
    if used < bytes.len() {
        return Err(CodecError::Trailing { type_name, length: bytes.len(), left: bytes.len() - used });
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Sample = (u64, Option<i32>, String, Vec<(u8, f64)>, BTreeMap<String, bool>);

    /// Checks that a value that was decoded from any bytes is one that can be encoded, and decoded again.
    fn check_what_decodes<T>(decoded: Result<T, CodecError>) -> Result<(), TestCaseError>
    where
        T: Serialize + DeserializeOwned,
    {
        let Ok(value) = decoded else { return Ok(()) };
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        encode(&value, &mut bytes);
        // Compared as bytes: a NaN is not equal to itself.
        encode(&decode::<T>(&bytes, 1 << 20).unwrap(), &mut again);
        prop_assert_eq!(bytes, again);
        Ok(())
    }

    proptest! {
        #[test]
        fn codec_gives_back_what_it_took(value: Sample) {
            let mut bytes = Vec::new();
            encode(&value, &mut bytes);
            prop_assert_eq!(decode_message::<Sample>(&bytes, 1 << 20).unwrap(), value.clone());
            prop_assert_eq!(decode::<Sample>(&bytes, 1 << 20).unwrap(), value);
        }

        #[test]
        fn codec_survives_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            check_what_decodes(decode::<Sample>(&bytes, 1 << 20))?;
            check_what_decodes(decode::<(String, Vec<u64>)>(&bytes, 1 << 20))?;
            check_what_decodes(decode_message::<Sample>(&bytes, 1 << 20))?;
        }
    }

    #[test]
    fn codec_refuses_bytes_after_the_value_and_bytes_that_are_missing() {
        let mut bytes = Vec::new();
        encode(&(7u32, "seven"), &mut bytes);
        let cut = decode::<(u32, String)>(&bytes[..bytes.len() - 1], 1 << 20);
        assert!(matches!(cut, Err(CodecError::Decode { .. })), "{cut:?}");
        bytes.push(0);
        let long = decode::<(u32, String)>(&bytes, 1 << 20);
        assert!(matches!(long, Err(CodecError::Trailing { left: 1, .. })), "{long:?}");
    }

    #[test]
    fn codec_refuses_a_list_that_claims_more_than_the_limit_before_making_room_for_it() {
        let mut claim = Vec::new();
        encode(&(1u64 << 40), &mut claim);
        assert!(decode::<Vec<u64>>(&claim, 1 << 20).is_err());
        assert!(decode::<String>(&claim, 1 << 20).is_err());
    }

    #[test]
    fn codec_refuses_a_message_whose_lists_take_more_memory_than_allowed() {
        type Wide = Vec<Option<[u64; 7]>>;
        let mut nothing = Vec::new();
        encode(&vec![None::<[u64; 7]>; 1000], &mut nothing);
        assert_eq!(nothing.len(), 1003, "a byte for each");
        assert!(decode_message::<Wide>(&nothing, 63_999).is_err());
        assert_eq!(decode_message::<Wide>(&nothing, 64_000).unwrap().len(), 1000);
        let mut deep = Vec::new();
        encode(&BTreeMap::from([(1u8, vec![(Some(vec![1u64; 100]), "a")])]), &mut deep);
        type Deep = BTreeMap<u8, Vec<(Option<Vec<u64>>, String)>>;
        // One entry, one item of two times 24 bytes, and 100 numbers.
        let whole = 1 + 24 + 48 + 800;
        assert!(decode_message::<Deep>(&deep, whole - 1).is_err());
        assert_eq!(decode_message::<Deep>(&deep, whole).unwrap()[&1][0].1, "a");
    }

    #[test]
    fn codec_makes_no_room_for_a_string_that_has_not_come() {
        let mut claim = Vec::new();
        encode(&(1u64 << 60), &mut claim);
        assert!(decode_message::<String>(&claim, 1 << 20).is_err());
        assert!(decode_message::<Vec<String>>(&claim, 1 << 20).is_err());
    }

    #[test]
    fn codec_names_a_type_that_refuses_to_encode() {
        struct Endless;
        impl Serialize for Endless {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::ser::SerializeSeq::end(serializer.serialize_seq(None)?)
            }
        }
        let error = try_encode(&Endless, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("Endless"), "{error}");
    }
}

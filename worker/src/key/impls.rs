//! Encodings of the standard key types. `FORMAT.md` is their specification.

use super::{ByteString, CompositeKey, DecodeError, Key};
use crate::narration::words_of;
use std::cmp::Reverse;

/// Byte after a zero byte inside a text or byte string in part form. The end is a zero byte followed by another one, so
/// that a prefix sorts before its continuations.
const ESCAPE: u8 = 0xFF;
/// Marks in `Option` and `Vec`: no further element, and one more.
const NONE: u8 = 0;
const SOME: u8 = 1;

/// Functions of a key whose whole form is its part form and whose view is itself.
macro_rules! whole_is_part {
    ($expected:expr) => {
        type View<'a> = Self;

        fn encode(view: Self, out: &mut Vec<u8>) {
            view.encode_part(out);
        }

        fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
            let mut rest = bytes;
            let key = Self::decode_part(&mut rest)?;
            if rest.is_empty() { Ok(key) } else { Err(DecodeError::whole($expected, bytes)) }
        }

        fn from_view(view: Self) -> Self {
            view
        }

        fn words(whole: &[u8]) -> String {
            match Self::decode(whole) {
                Ok(key) => key.part_words(),
                Err(_) => words_of(whole),
            }
        }
    };
}

/// Display functions of a key that implements `Display`.
macro_rules! printed {
    () => {
        fn part_words(&self) -> String {
            words_of(format!("{self:?}").as_bytes())
        }
    };
}

/// Takes `N` bytes off the front.
fn take_front<const N: usize>(bytes: &mut &[u8], expected: &'static str) -> Result<[u8; N], DecodeError> {
    let Some((front, rest)) = bytes.split_first_chunk::<N>() else {
        return Err(DecodeError::part(expected, bytes));
    };
    *bytes = rest;
    Ok(*front)
}

impl Key for () {
    whole_is_part!("()");
    printed!();

    fn encode_part(&self, _: &mut Vec<u8>) {}

    fn decode_part(_: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(())
    }
}

impl Key for bool {
    whole_is_part!("a bool");
    printed!();

    fn encode_part(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let before = *bytes;
        match take_front::<1>(bytes, "a bool")? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(DecodeError::part("a bool", before)),
        }
    }
}

macro_rules! integer_keys {
    ($($type:ident as $unsigned:ident),*) => {$(
        impl Key for $type {
            whole_is_part!(stringify!($type));
            printed!();

            #[inline]
            fn encode_part(&self, out: &mut Vec<u8>) {
                // Signed numbers are shifted so that the minimum becomes zero.
                let shifted = (*self as $unsigned) ^ ($type::MIN as $unsigned);
                out.extend_from_slice(&shifted.to_be_bytes());
            }

            #[inline]
            fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                let shifted = $unsigned::from_be_bytes(take_front(bytes, stringify!($type))?);
                Ok((shifted ^ ($type::MIN as $unsigned)) as $type)
            }
        }
    )*};
}
integer_keys!(
    u8 as u8,
    u16 as u16,
    u32 as u32,
    u64 as u64,
    u128 as u128,
    i8 as u8,
    i16 as u16,
    i32 as u32,
    i64 as u64,
    i128 as u128
);

macro_rules! float_keys {
    ($($type:ident as $bits:ident),*) => {$(
        /// In the order of `total_cmp`: negative NaN first, -0.0 before 0.0, positive NaN last.
        impl Key for $type {
            whole_is_part!(stringify!($type));
            printed!();

            fn encode_part(&self, out: &mut Vec<u8>) {
                let bits = self.to_bits();
                let sign = 1 << ($bits::BITS - 1);
                let ordered = if bits & sign == 0 { bits | sign } else { !bits };
                out.extend_from_slice(&ordered.to_be_bytes());
            }

            fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                let ordered = $bits::from_be_bytes(take_front(bytes, stringify!($type))?);
                let sign = 1 << ($bits::BITS - 1);
                Ok($type::from_bits(if ordered & sign == 0 { !ordered } else { ordered ^ sign }))
            }
        }
    )*};
}
float_keys!(f32 as u32, f64 as u64);

impl Key for char {
    whole_is_part!("a char");
    printed!();

    fn encode_part(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode_part(out);
    }

    fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let before = *bytes;
        char::from_u32(u32::decode_part(bytes)?).ok_or(DecodeError::part("a char", before))
    }
}

/// Appends text or bytes in part form: self-delimiting, and in the order of the bytes themselves.
pub fn encode_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = memchr::memchr(0, rest) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(ESCAPE);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// Takes text or bytes in part form off the front and passes each range without escapes to `keep`.
///
/// # Errors
/// Bytes that are not in part form.
pub fn decode_escaped(bytes: &mut &[u8], mut keep: impl FnMut(&[u8])) -> Result<(), DecodeError> {
    let wrong = DecodeError::part("a text or byte string", bytes);
    loop {
        let zero = memchr::memchr(0, bytes).ok_or(wrong)?;
        let mark = *bytes.get(zero + 1).ok_or(wrong)?;
        let (stretch, rest) = (&bytes[..zero], &bytes[zero + 2..]);
        keep(stretch);
        *bytes = rest;
        match mark {
            0 => return Ok(()),
            ESCAPE => keep(&[0]),
            _ => return Err(wrong),
        }
    }
}

impl Key for ByteString {
    type View<'a> = &'a [u8];

    fn encode(view: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(view);
    }

    #[inline]
    fn with_bytes<R>(view: &[u8], _: &mut Vec<u8>, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        use_bytes(view)
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<&[u8], DecodeError> {
        Ok(bytes)
    }

    fn from_view(view: &[u8]) -> Self {
        Self(view.to_vec())
    }

    fn encode_part(&self, out: &mut Vec<u8>) {
        encode_escaped(&self.0, out);
    }

    fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut key = Vec::new();
        decode_escaped(bytes, |stretch| key.extend_from_slice(stretch))?;
        Ok(Self(key))
    }

    fn skip_part(bytes: &mut &[u8]) -> Result<(), DecodeError> {
        decode_escaped(bytes, |_| {})
    }

    fn part_words(&self) -> String {
        words_of(&self.0)
    }
}

impl Key for String {
    type View<'a> = &'a str;

    fn encode(view: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(view.as_bytes());
    }

    #[inline]
    fn with_bytes<R>(view: &str, _: &mut Vec<u8>, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        use_bytes(view.as_bytes())
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<&str, DecodeError> {
        std::str::from_utf8(bytes).map_err(|_| DecodeError::whole("UTF-8 text", bytes))
    }

    fn from_view(view: &str) -> Self {
        view.to_owned()
    }

    fn encode_part(&self, out: &mut Vec<u8>) {
        encode_escaped(self.as_bytes(), out);
    }

    fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let before = *bytes;
        let ByteString(text) = ByteString::decode_part(bytes)?;
        String::from_utf8(text).map_err(|_| DecodeError::part("UTF-8 text", before))
    }

    fn skip_part(bytes: &mut &[u8]) -> Result<(), DecodeError> {
        decode_escaped(bytes, |_| {})
    }

    fn part_words(&self) -> String {
        words_of(self.as_bytes())
    }
}

impl<T: Key> Key for Option<T> {
    whole_is_part!("an Option");

    fn part_words(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), Key::part_words)
    }

    fn encode_part(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(NONE),
            Some(key) => {
                out.push(SOME);
                key.encode_part(out);
            }
        }
    }

    fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let before = *bytes;
        match take_front::<1>(bytes, "an Option")? {
            [NONE] => Ok(None),
            [SOME] => T::decode_part(bytes).map(Some),
            _ => Err(DecodeError::part("an Option", before)),
        }
    }
}

impl<T: Key> Key for Vec<T> {
    whole_is_part!("a Vec");

    fn part_words(&self) -> String {
        format!("[{}]", self.iter().map(Key::part_words).collect::<Vec<_>>().join(", "))
    }

    fn encode_part(&self, out: &mut Vec<u8>) {
        for item in self {
            out.push(SOME);
            item.encode_part(out);
        }
        out.push(NONE);
    }

    fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut items = Vec::new();
        loop {
            let before = *bytes;
            match take_front::<1>(bytes, "a Vec")? {
                [NONE] => return Ok(items),
                [SOME] => items.push(T::decode_part(bytes)?),
                _ => return Err(DecodeError::part("a Vec", before)),
            }
        }
    }
}

/// All bits of the part form are inverted: because part forms are prefix-free, that inverts the order. Decoding copies
/// the rest of the key, so a `Vec` of these takes quadratic time.
impl<T: Key> Key for Reverse<T> {
    whole_is_part!("a Reverse");

    fn part_words(&self) -> String {
        self.0.part_words()
    }

    fn encode_part(&self, out: &mut Vec<u8>) {
        let from = out.len();
        self.0.encode_part(out);
        for byte in &mut out[from..] {
            *byte = !*byte;
        }
    }

    fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let turned: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        let mut rest = turned.as_slice();
        let key = T::decode_part(&mut rest)?;
        *bytes = &bytes[turned.len() - rest.len()..];
        Ok(Reverse(key))
    }
}

macro_rules! tuple_keys {
    ($($first:ident $(, $other:ident)*;)*) => {$(
        impl<$first: Key, $($other: Key),*> Key for ($first, $($other),*) {
            whole_is_part!("a tuple");

            #[allow(non_snake_case, reason = "components are named like their types")]
            fn part_words(&self) -> String {
                let ($first, $($other),*) = self;
                format!("({})", [$first.part_words(), $($other.part_words()),*].join(", "))
            }

            #[allow(non_snake_case, reason = "components are named like their types")]
            fn encode_part(&self, out: &mut Vec<u8>) {
                let ($first, $($other),*) = self;
                $first.encode_part(out);
                $($other.encode_part(out);)*
            }

            fn decode_part(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
                Ok(($first::decode_part(bytes)?, $($other::decode_part(bytes)?),*))
            }

            fn skip_part(bytes: &mut &[u8]) -> Result<(), DecodeError> {
                $first::skip_part(bytes)?;
                $($other::skip_part(bytes)?;)*
                Ok(())
            }
        }

        impl<$first: Key, $($other: Key),*> CompositeKey for ($first, $($other),*) {
            fn first_length(encoded: &[u8]) -> usize {
                let mut rest = encoded;
                // An invalid key is reported when it is decoded; until then it is its own group.
                match $first::skip_part(&mut rest) {
                    Ok(()) => encoded.len() - rest.len(),
                    Err(_) => encoded.len(),
                }
            }
        }
    )*};
}
tuple_keys! {
    A, B;
    A, B, C;
    A, B, C, D;
    A, B, C, D, E;
    A, B, C, D, E, F;
}

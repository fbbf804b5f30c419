//! Typed bytes, Hadoop's binary format of keys and values: the end of a value, and its form as text.
//!
//! A value is a code and its content: 0 bytes, 1 byte, 2 boolean, 3 int, 4 long, 5 float, 6 double, 7
//! text, 8 vector (as many values as its length), 9 list (values up to the code 255), 10 map. Codes 50 to
//! 200 are bytes defined by the application. Numbers and lengths are big-endian. This module does not
//! convert values: pairs are sent as the received bytes, and are partitioned and sorted by them, as in
//! Hadoop.
//!
//! Not here: pairs and their formats ([`forms`](super::forms)).

use super::aggregate::java_double;

/// Maximum depth of nested values.
const DEPTH_MAX: u32 = 64;

/// Code that ends a list.
const MARKER: u8 = 255;

pub(super) const BYTES: u8 = 0;
pub(super) const LONG: u8 = 4;
pub(super) const TEXT: u8 = 7;

/// Reason why there is no complete value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Unfinished {
    /// More bytes are needed.
    #[error("it ends in the middle of a value: {needed} bytes were needed")]
    Short {
        /// Minimum number of bytes from the start.
        needed: usize,
    },
    /// Unknown code of a type.
    #[error("{code} at byte {at} of it is no code of a type")]
    Code { code: u8, at: usize },
    /// Negative length.
    #[error("the length at byte {at} of it is below 0")]
    Length { at: usize },
    #[error("values lie in one another more than {DEPTH_MAX} deep")]
    Deep,
}

/// Returns the end of the value that starts at `at`.
pub(super) fn value_end(bytes: &[u8], at: usize) -> Result<usize, Unfinished> {
    end(bytes, at, 0)
}

fn end(bytes: &[u8], at: usize, depth: u32) -> Result<usize, Unfinished> {
    if DEPTH_MAX < depth {
        return Err(Unfinished::Deep);
    }
    let code = *bytes.get(at).ok_or(Unfinished::Short { needed: at + 1 })?;
    let reached =
        |end: usize| if end <= bytes.len() { Ok(end) } else { Err(Unfinished::Short { needed: end }) };
    match code {
        BYTES | TEXT | 50..=200 => reached(at + 5 + length(bytes, at + 1)?),
        1 | 2 => reached(at + 2),
        3 | 5 => reached(at + 5),
        LONG | 6 => reached(at + 9),
        8 => (0..length(bytes, at + 1)?).try_fold(at + 5, |at, _| end(bytes, at, depth + 1)),
        9 => {
            let mut at = at + 1;
            while *bytes.get(at).ok_or(Unfinished::Short { needed: at + 1 })? != MARKER {
                at = end(bytes, at, depth + 1)?;
            }
            Ok(at + 1)
        }
        10 => (0..length(bytes, at + 1)?).try_fold(at + 5, |at, _| {
            let value = end(bytes, at, depth + 1)?;
            end(bytes, value, depth + 1)
        }),
        code => Err(Unfinished::Code { code, at }),
    }
}

/// Returns the length at `at`.
pub(super) fn length(bytes: &[u8], at: usize) -> Result<usize, Unfinished> {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk());
    let length = i32::from_be_bytes(*four.ok_or(Unfinished::Short { needed: at + 4 })?);
    usize::try_from(length).map_err(|_| Unfinished::Length { at })
}

/// Appends a value to a text in Java's format: `3`, `2.0`, `true`, `word`, `[1, 2]`, `{a=1}`, bytes as
/// hexadecimal digits. Entries of a map keep their order; Java's are sorted.
pub(super) fn push_text(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Unfinished> {
    value_end(bytes, 0).map(|_| push_value(bytes, out)).map(drop)
}

/// Appends the first of these values, whose end [`value_end`] has found. Returns the rest.
fn push_value<'a>(bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some((code, rest)) = bytes.split_first() else { return bytes };
    let plain = |text: String, length: usize, out: &mut Vec<u8>| {
        out.extend_from_slice(text.as_bytes());
        &rest[length..]
    };
    match code {
        1 => plain(rest[0].cast_signed().to_string(), 1, out),
        2 => plain((rest[0] != 0).to_string(), 1, out),
        3 => plain(i32::from_be_bytes(fixed(rest)).to_string(), 4, out),
        4 => plain(i64::from_be_bytes(fixed(rest)).to_string(), 8, out),
        5 => plain(java_float(f32::from_be_bytes(fixed(rest))), 4, out),
        6 => plain(java_double(f64::from_be_bytes(fixed(rest))), 8, out),
        &TEXT => {
            let (text, rest) = counted(rest);
            out.extend_from_slice(text);
            rest
        }
        8 => {
            let count = u32::from_be_bytes(fixed(rest));
            push_joined(*b"[]", &rest[4..], out, |number, _| number < count, push_value)
        }
        9 => {
            let rest = push_joined(*b"[]", rest, out, |_, rest| rest[0] != MARKER, push_value);
            &rest[1..]
        }
        10 => {
            let count = u32::from_be_bytes(fixed(rest));
            push_joined(
                *b"{}",
                &rest[4..],
                out,
                |number, _| number < count,
                |rest, out| {
                    let rest = push_value(rest, out);
                    out.push(b'=');
                    push_value(rest, out)
                },
            )
        }
        _ => {
            let (bytes, rest) = counted(rest);
            bytes.iter().for_each(|byte| out.extend_from_slice(format!("{byte:02x}").as_bytes()));
            rest
        }
    }
}

fn push_joined<'a>(
    [open, close]: [u8; 2],
    mut rest: &'a [u8],
    out: &mut Vec<u8>,
    goes_on: impl Fn(u32, &[u8]) -> bool,
    push: impl Fn(&'a [u8], &mut Vec<u8>) -> &'a [u8],
) -> &'a [u8] {
    out.push(open);
    let mut number = 0;
    while goes_on(number, rest) {
        if 0 < number {
            out.extend_from_slice(b", ");
        }
        rest = push(rest, out);
        number += 1;
    }
    out.push(close);
    rest
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("the end of the value was found before")
}

fn counted(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes[4..].split_at(u32::from_be_bytes(fixed(bytes)) as usize)
}

/// Formats a number as Java does: with the digits that distinguish it from other floats, not from other
/// doubles.
fn java_float(number: f32) -> String {
    java_double(number.to_string().parse().unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        push_text(bytes, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_look_as_java_writes_them() {
        assert_eq!(text(b"\x00\0\0\0\x02\x01\xff"), "01ff");
        assert_eq!(text(b"\x01\xff"), "-1");
        assert_eq!(text(b"\x02\x01"), "true");
        assert_eq!(text(b"\x03\xff\xff\xff\xfe"), "-2");
        assert_eq!(text(b"\x04\0\0\0\x01\0\0\0\0"), "4294967296");
        assert_eq!(text(&[&[5][..], &0.1_f32.to_be_bytes()].concat()), "0.1");
        assert_eq!(text(&[&[6][..], &1.5e10_f64.to_be_bytes()].concat()), "1.5E10");
        assert_eq!(text(b"\x07\0\0\0\x03abc"), "abc");
        assert_eq!(text(b"\x08\0\0\0\x02\x01\x01\x09\x02\0\xff"), "[1, [false]]");
        assert_eq!(text(b"\x09\xff"), "[]");
        assert_eq!(text(b"\x0a\0\0\0\x02\x07\0\0\0\x01a\x01\x01\x01\x02\x01\x03"), "{a=1, 2=3}");
        assert_eq!(text(b"\x90\0\0\0\x01\x0a"), "0a");
    }

    #[test]
    fn what_is_no_value_is_told_apart_from_what_is_none_yet() {
        let check = |bytes: &[u8], expected| assert_eq!(value_end(bytes, 0), expected, "{bytes:?}");
        check(b"", Err(Unfinished::Short { needed: 1 }));
        check(b"\x07\0\0\0\x05abc", Err(Unfinished::Short { needed: 10 }));
        check(b"\x08\0\0\0\x01", Err(Unfinished::Short { needed: 6 }));
        check(b"\x09\x01\x01", Err(Unfinished::Short { needed: 4 }));
        check(b"\x0b", Err(Unfinished::Code { code: 11, at: 0 }));
        check(b"\x08\0\0\0\x01\xff", Err(Unfinished::Code { code: 255, at: 5 }));
        check(b"\x00\xff\xff\xff\xff", Err(Unfinished::Length { at: 1 }));
        check(&[9; 100], Err(Unfinished::Deep));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(prop_oneof![0u8..12, any::<u8>()], 0..40)) {
            if let Ok(end) = value_end(&bytes, 0) {
                prop_assert!(0 < end && end <= bytes.len());
                // The end does not depend on the following bytes, and no prefix of the value is a value.
                prop_assert_eq!(value_end(&bytes[..end], 0), Ok(end));
                let short = value_end(&bytes[..end - 1], 0);
                prop_assert!(matches!(short, Err(Unfinished::Short { .. })), "{:?}", short);
                push_text(&bytes, &mut Vec::new()).unwrap();
            }
        }
    }
}

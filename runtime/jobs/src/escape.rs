//! Encoding of byte strings as a part of a longer key: self-delimiting, and in the order of the bytes themselves.
//!
//! A zero byte becomes `00 FF`, and `00 00` ends the string. A prefix of another string sorts before it, because the
//! end is less than any bytes that follow in the other.

/// Appends `bytes` with its end.
pub(super) fn push_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = memchr::memchr(0, rest) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(0xFF);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// Decodes bytes written by [`push_escaped`], and appends the result to `out`.
pub(super) fn push_unescaped(escaped: &[u8], out: &mut Vec<u8>) {
    let mut rest = escaped.strip_suffix(&[0, 0]).unwrap_or(escaped);
    while let Some(zero) = memchr::memchr(0, rest) {
        out.extend_from_slice(&rest[..=zero]);
        rest = rest.get(zero + 2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        push_escaped(bytes, &mut out);
        out
    }

    /// Strings in which bytes 0 and 255 are frequent.
    fn strings() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(255), any::<u8>()], 0..6)
    }

    proptest! {
        #[test]
        fn escaping_keeps_order_whatever_follows(
            (first, second) in (strings(), strings()),
            (after_first, after_second) in (strings(), strings()),
        ) {
            let joined = |bytes: &[u8], after: &[u8]| [&escaped(bytes)[..], after].concat();
            prop_assert_eq!(
                joined(&first, &after_first).cmp(&joined(&second, &after_second)),
                (&first, &after_first).cmp(&(&second, &after_second))
            );
        }

        #[test]
        fn unescaping_gives_back_the_bytes(bytes in strings()) {
            let mut back = Vec::new();
            push_unescaped(&escaped(&bytes), &mut back);
            prop_assert_eq!(back, bytes);
        }
    }
}

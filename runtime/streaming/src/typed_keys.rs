//! Keys of functions of another language: typed bytes of Hadoop, and byte strings that have the order of the values.
//!
//! Kinds come one after another: booleans, integers, floats, bytes, texts, tuples. Texts have the order of their code points,
//! tuples that of their parts. Other values, which are pickled, come last, by their bytes.
//! The form is that of FoundationDB's tuples: within a tuple a zero byte ends texts, and one of their own is followed by 255.

/// Codes of typed bytes.
mod code {
    pub const BYTES: u8 = 0;
    pub const BOOL: u8 = 2;
    pub const INT: u8 = 3;
    pub const LONG: u8 = 4;
    pub const DOUBLE: u8 = 6;
    pub const TEXT: u8 = 7;
    pub const TUPLE: u8 = 8;
    pub const PICKLED: u8 = 100;
}

/// Codes in the order of their kinds. The place of a code is the first byte of an ordered value; 0 ends a tuple.
const KINDS: [u8; 8] =
    [u8::MAX, code::BOOL, code::LONG, code::DOUBLE, code::BYTES, code::TEXT, code::TUPLE, code::PICKLED];

/// Maximum number of tuples within each other in a key.
const DEPTH_MAX: u32 = 100;

const SIGN: u64 = 1 << 63;

/// Appends the ordered form of a key. `None` if the key is no value of these kinds.
pub(super) fn push_ordered(key: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = key;
    order(&mut rest, 0, out)?;
    rest.is_empty().then_some(())
}

/// Appends the typed bytes of a key in the ordered form. `None` if it is none.
pub(super) fn push_typed(ordered: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = ordered;
    restore(&mut rest, 0, out)?;
    rest.is_empty().then_some(())
}

/// Returns the integer that is the first part of a tuple in the ordered form.
pub(super) fn first_integer(ordered: &[u8]) -> Option<i64> {
    let mut rest = ordered.strip_prefix(&[kind(code::TUPLE)?, kind(code::LONG)?])?;
    Some((u64::from_be_bytes(array(&mut rest)?) ^ SIGN).cast_signed())
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*array)
}

fn counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let count = u32::from_be_bytes(array(rest)?);
    let (content, after) = rest.split_at_checked(count as usize)?;
    *rest = after;
    Some(content)
}

fn order(rest: &mut &[u8], depth: u32, out: &mut Vec<u8>) -> Option<()> {
    let [code] = array(rest)?;
    out.push(kind(if code == code::INT { code::LONG } else { code })?);
    let integer = |integer: i64| (integer.cast_unsigned() ^ SIGN).to_be_bytes();
    match code {
        code::BOOL => out.extend(array::<1>(rest)?),
        code::INT => out.extend(integer(i32::from_be_bytes(array(rest)?).into())),
        code::LONG => out.extend(integer(i64::from_be_bytes(array(rest)?))),
        code::DOUBLE => {
            let bits = u64::from_be_bytes(array(rest)?);
            out.extend((if bits & SIGN == 0 { bits ^ SIGN } else { !bits }).to_be_bytes());
        }
        code::TUPLE if depth < DEPTH_MAX => {
            for _ in 0..u32::from_be_bytes(array(rest)?) {
                order(rest, depth + 1, out)?;
            }
            out.push(0);
        }
        code::BYTES | code::TEXT | code::PICKLED => push_content(counted(rest)?, depth, out),
        _ => return None,
    }
    Some(())
}

/// Returns the first byte of ordered values of this code.
fn kind(code: u8) -> Option<u8> {
    KINDS[1..].iter().position(|known| *known == code).map(|place| place as u8 + 1)
}

/// Appends content that ends with the key, or within a tuple with a zero byte.
fn push_content(content: &[u8], depth: u32, out: &mut Vec<u8>) {
    if depth == 0 {
        out.extend_from_slice(content);
        return;
    }
    let mut from = 0;
    for zero in memchr::memchr_iter(0, content) {
        out.extend_from_slice(&content[from..=zero]);
        out.push(0xff);
        from = zero + 1;
    }
    out.extend_from_slice(&content[from..]);
    out.push(0);
}

fn restore(rest: &mut &[u8], depth: u32, out: &mut Vec<u8>) -> Option<()> {
    let [kind] = array(rest)?;
    let code = *KINDS.get(usize::from(kind))?;
    if code == code::LONG {
        let integer = (u64::from_be_bytes(array(rest)?) ^ SIGN).cast_signed();
        match i32::try_from(integer) {
            Ok(short) => {
                out.push(code::INT);
                out.extend(short.to_be_bytes());
            }
            Err(_) => {
                out.push(code::LONG);
                out.extend(integer.to_be_bytes());
            }
        }
        return Some(());
    }
    out.push(code);
    match code {
        code::BOOL => out.extend(array::<1>(rest)?),
        code::DOUBLE => {
            let bits = u64::from_be_bytes(array(rest)?);
            out.extend((if bits & SIGN == 0 { !bits } else { bits ^ SIGN }).to_be_bytes());
        }
        code::TUPLE if depth < DEPTH_MAX => restore_counted(out, |out| {
            let mut parts = 0;
            while *rest.first()? != 0 {
                restore(rest, depth + 1, out)?;
                parts += 1;
            }
            *rest = &rest[1..];
            Some(parts)
        })?,
        code::BYTES | code::TEXT | code::PICKLED => restore_counted(out, |out| {
            let begin = out.len();
            restore_content(rest, depth, out)?;
            u32::try_from(out.len() - begin).ok()
        })?,
        _ => return None,
    }
    Some(())
}

/// Appends a count, and what `content` appends, which returns that count.
fn restore_counted(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>) -> Option<u32>) -> Option<()> {
    let begin = out.len();
    out.extend([0; 4]);
    let count = content(out)?;
    out[begin..begin + 4].copy_from_slice(&count.to_be_bytes());
    Some(())
}

fn restore_content(rest: &mut &[u8], depth: u32, out: &mut Vec<u8>) -> Option<()> {
    if depth == 0 {
        out.extend_from_slice(rest);
        *rest = &[];
        return Some(());
    }
    loop {
        let zero = memchr::memchr(0, rest)?;
        out.extend_from_slice(&rest[..zero]);
        *rest = &rest[zero + 1..];
        match rest.strip_prefix(&[0xff]) {
            Some(after) => {
                out.push(0);
                *rest = after;
            }
            None => return Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Keys in the order that is promised.
    #[derive(Clone, PartialEq, PartialOrd, Debug)]
    enum Key {
        Bool(bool),
        Integer(i64),
        Float(f64),
        Bytes(Vec<u8>),
        Text(String),
        Tuple(Vec<Key>),
        Pickled(Vec<u8>),
    }

    fn typed(key: &Key) -> Vec<u8> {
        let counted =
            |code: u8, content: &[u8]| [&[code][..], &(content.len() as u32).to_be_bytes(), content].concat();
        match key {
            Key::Bool(truth) => vec![code::BOOL, u8::from(*truth)],
            Key::Integer(integer) => match i32::try_from(*integer) {
                Ok(short) => [&[code::INT][..], &short.to_be_bytes()].concat(),
                Err(_) => [&[code::LONG][..], &integer.to_be_bytes()].concat(),
            },
            Key::Float(float) => [&[code::DOUBLE][..], &float.to_be_bytes()].concat(),
            Key::Bytes(bytes) => counted(code::BYTES, bytes),
            Key::Text(text) => counted(code::TEXT, text.as_bytes()),
            Key::Pickled(bytes) => counted(code::PICKLED, bytes),
            Key::Tuple(parts) => {
                let count = (parts.len() as u32).to_be_bytes();
                [&[code::TUPLE][..], &count, &parts.iter().flat_map(typed).collect::<Vec<_>>()].concat()
            }
        }
    }

    fn ordered(key: &Key) -> Vec<u8> {
        let mut out = Vec::new();
        push_ordered(&typed(key), &mut out).unwrap();
        out
    }

    fn keys() -> impl Strategy<Value = Key> {
        let bytes =
            || proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(0xff), any::<u8>()], 0..5);
        let leaf = prop_oneof![
            any::<bool>().prop_map(Key::Bool),
            prop_oneof![-3..3_i64, any::<i64>(), Just(1 << 31), Just(-1 - (1 << 31))].prop_map(Key::Integer),
            // Python orders -0.0 and 0.0 as equal, and NaN not at all.
            any::<f64>().prop_filter("ordered", |one| !one.is_nan() && *one != 0.0).prop_map(Key::Float),
            bytes().prop_map(Key::Bytes),
            "[\u{0}ab\u{e9}\u{ffff}\u{1f600}]{0,4}".prop_map(Key::Text),
            bytes().prop_map(Key::Pickled),
        ];
        leaf.prop_recursive(3, 12, 4, |key| proptest::collection::vec(key, 0..4).prop_map(Key::Tuple))
    }

    proptest! {
        #[test]
        fn ordered_keys_have_the_order_of_the_values_and_come_back(one in keys(), other in keys()) {
            let (left, right) = (ordered(&one), ordered(&other));
            prop_assert_eq!(left.cmp(&right), one.partial_cmp(&other).unwrap());
            let mut back = Vec::new();
            push_typed(&left, &mut back).unwrap();
            prop_assert_eq!(back, typed(&one));
        }

        #[test]
        fn any_bytes_are_a_key_or_none(bytes in proptest::collection::vec(prop_oneof![0..9_u8, any::<u8>()], 0..40)) {
            let (mut out, mut back) = (Vec::new(), Vec::new());
            let _ = push_typed(&bytes, &mut out);
            out.clear();
            if push_ordered(&bytes, &mut out).is_some() {
                push_typed(&out, &mut back).unwrap();
                // Only a small integer in the long form has two forms, and Python writes none.
                prop_assert!(back == bytes || bytes.contains(&code::LONG));
            }
        }
    }

    #[test]
    fn first_part_of_a_tuple_is_found_and_deep_keys_are_refused() {
        let placed = Key::Tuple(vec![Key::Integer(3), Key::Text("key".to_owned())]);
        assert_eq!(first_integer(&ordered(&placed)), Some(3));
        assert_eq!(first_integer(&ordered(&Key::Integer(3))), None);
        let nested = |depth: u32| (0..depth).fold(Key::Bool(true), |key, _| Key::Tuple(vec![key]));
        let mut out = Vec::new();
        assert_eq!(push_ordered(&typed(&nested(DEPTH_MAX)), &mut out), Some(()));
        assert_eq!(push_ordered(&typed(&nested(DEPTH_MAX + 1)), &mut out), None);
    }
}

//! Tests of the laws of keys, on random pairs that often share a prefix.

use super::*;
use proptest::prelude::*;
use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;

fn part<K: Key>(key: &K) -> Vec<u8> {
    let mut out = vec![0xAB];
    key.encode_part(&mut out);
    out.remove(0);
    out
}

/// Checks all laws for two keys with the order of `compare`.
fn laws_by<K: Key + Clone + Debug>(a: &K, b: &K, compare: impl Fn(&K, &K) -> Ordering) {
    let (bytes_a, bytes_b) = (part(a), part(b));
    assert_eq!(bytes_a.cmp(&bytes_b), compare(a, b), "part order of {a:?} and {b:?}");
    for (key, bytes, other) in [(a, &bytes_a, &bytes_b), (b, &bytes_b, &bytes_a)] {
        assert!(bytes == other || bytes.is_empty() || !other.starts_with(bytes), "{a:?} {b:?}: prefix");
        let mut followed = bytes.clone();
        followed.extend_from_slice(b"\x00\xFFrest");
        let mut rest = followed.as_slice();
        let back = K::decode_part(&mut rest).unwrap();
        assert_eq!(compare(&back, key), Ordering::Equal);
        assert_eq!(rest, b"\x00\xFFrest");
        let mut rest = followed.as_slice();
        K::skip_part(&mut rest).unwrap();
        assert_eq!(rest, b"\x00\xFFrest");
    }
}

fn laws<K: Key + Clone + Debug + Ord>(a: &K, b: &K) {
    laws_by(a, b, K::cmp);
}

/// Checks types whose view is themselves: whole form as part form.
fn whole<K: for<'a> Key<View<'a> = K> + Clone + Debug + PartialEq>(key: &K) {
    let mut out = Vec::new();
    K::encode(key.clone(), &mut out);
    assert_eq!(&K::decode(&out).unwrap(), key);
    assert_eq!(K::with_bytes(key.clone(), &mut vec![1, 2, 3], <[u8]>::to_vec), out);
    out.push(1);
    assert!(K::decode(&out).is_err(), "{key:?} with a byte too many");
}

fn text() -> impl Strategy<Value = String> {
    "[\u{0}\u{1}a\u{ff}\u{10ffff}]{0,4}"
}

fn bytes() -> impl Strategy<Value = ByteString> {
    proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255), any::<u8>()], 0..5)
        .prop_map(ByteString)
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Name(String);
crate::key_newtype!(Name(String));

proptest! {
    #[test]
    fn integers_sort_like_their_bytes(a: (u8, u16, u32, u64, u128), b: (u8, u16, u32, u64, u128)) {
        laws(&a.0, &b.0); laws(&a.1, &b.1); laws(&a.2, &b.2); laws(&a.3, &b.3); laws(&a.4, &b.4);
        whole(&a.0); whole(&a.3); whole(&a.4); whole(&a);
    }

    #[test]
    fn signed_integers_sort_like_their_bytes(a: (i8, i16, i32, i64, i128), b: (i8, i16, i32, i64, i128)) {
        laws(&a.0, &b.0); laws(&a.1, &b.1); laws(&a.2, &b.2); laws(&a.3, &b.3); laws(&a.4, &b.4);
        whole(&a.0); whole(&a.3); whole(&a.4); whole(&a);
    }

    #[test]
    fn floats_sort_in_total_order(a: (u32, u64), b: (u32, u64)) {
        laws_by(&f32::from_bits(a.0), &f32::from_bits(b.0), f32::total_cmp);
        laws_by(&f64::from_bits(a.1), &f64::from_bits(b.1), f64::total_cmp);
    }

    #[test]
    fn texts_and_bytes_sort_like_their_bytes(a in text(), b in text(), c in bytes(), d in bytes()) {
        laws(&a, &b);
        laws(&c, &d);
        laws(&Name(a.clone()), &Name(b));
        whole(&Name(a.clone()));
        let mut out = Vec::new();
        String::encode(&a, &mut out);
        prop_assert_eq!(&out, a.as_bytes());
        prop_assert_eq!(String::decode(&out), Ok(a.as_str()));
        prop_assert_eq!(ByteString::decode(&c), Ok(&*c));
    }

    #[test]
    fn containers_sort_like_their_bytes(
        a in (proptest::option::of(text()), proptest::collection::vec(bytes(), 0..3), any::<bool>(), any::<char>()),
        b in (proptest::option::of(text()), proptest::collection::vec(bytes(), 0..3), any::<bool>(), any::<char>()),
    ) {
        laws(&a.0, &b.0); laws(&a.1, &b.1); laws(&a.2, &b.2); laws(&a.3, &b.3);
        laws(&a, &b);
        whole(&a);
    }

    #[test]
    fn reversed_keys_sort_backwards(a in (text(), any::<i8>()), b in (text(), any::<i8>())) {
        let reversed = |key: (String, i8)| (Reverse(key.0), key.1);
        laws(&Reverse(a.clone()), &Reverse(b.clone()));
        laws(&Reverse(Reverse(a.clone())), &Reverse(Reverse(b.clone())));
        laws(&reversed(a.clone()), &reversed(b.clone()));
        laws(&vec![Reverse(a.0.clone())], &vec![Reverse(b.0.clone())]);
        whole(&reversed(a));
    }

    #[test]
    fn first_component_ends_where_the_second_begins(a in text(), b in text(), c: u32) {
        let mut out = Vec::new();
        <(String, String, u32)>::encode((a.clone(), b, c), &mut out);
        let length = <(String, String, u32)>::first_length(&out);
        prop_assert_eq!(&out[..length], part(&a));
    }

    #[test]
    fn decoders_survive_any_bytes(junk in proptest::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..24)) {
        type Deep = (Option<Vec<(String, Reverse<ByteString>)>>, bool, char, f64);
        let _ = Deep::decode(&junk);
        let _ = Deep::first_length(&junk);
        let _ = <Reverse<Vec<Option<u16>>>>::decode(&junk);
    }
}

#[test]
fn unit_is_the_empty_key() {
    assert_eq!(part(&()), b"");
    whole(&((), 7u8));
    assert_eq!(<((), u8)>::first_length(&[7]), 0);
    laws(&vec![(), ()], &vec![()]);
}

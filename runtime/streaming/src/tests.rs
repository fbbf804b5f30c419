//! Partitions and order compared with Hadoop's algorithms, reimplemented here.

use super::keys::hash_bytes;
use super::*;
use proptest::prelude::*;

#[test]
fn partitions_are_hadoops() {
    // Computed by Java: new HashPartitioner().getPartition(new Text(key), …, n).
    let hash = PartRule::Hash;
    assert_eq!(hash_bytes(1, b""), 1);
    assert_eq!(hash_bytes(1, b"a"), 128);
    assert_eq!(hash_bytes(1, "é".as_bytes()), 31 * (31 - 61) - 87);
    assert_eq!(hash.part(b"a", 3), 128 % 3);
    assert_eq!(hash.part(b"", 5), 1);
}

#[test]
fn worker_that_can_start_no_process_is_to_blame_and_not_the_command() {
    let kind = |error: rustix::io::Errno| program::cannot_run("x", "/".as_ref(), &error.into()).kind;
    use gristmill_worker::api::FailureKind::{Config, Worker};
    use rustix::io::Errno;
    assert_eq!(
        [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NOENT].map(kind),
        [Worker, Worker, Worker, Config]
    );
}

fn fields(options: &str) -> PartRule {
    PartRule::Fields(KeySpecs::parse(options, ".").unwrap())
}

#[test]
fn fields_of_keys_choose_the_partition() {
    let both = fields("-k1,2");
    assert_eq!(both.part(b"11.12.1.2", 12), both.part(b"11.12.9.9", 12));
    assert_eq!(both.part(b"", 12), 0);
    let second = fields("-k2,2");
    assert_eq!(second.part(b"x.7", 100), u32::from(b'7') % 100);
    assert_eq!(second.part(b"no field", 100), 0, "nothing is hashed");
    assert_eq!(PartRule::Fields(KeySpecs::first_fields(1, ".")).part(b"7.x", 100), u32::from(b'7') % 100);
    // Without a part it is `String.hashCode`.
    assert_eq!(fields("").part("é".as_bytes(), 1000), 0xe9);
}

fn ordered(options: &str, keys: &[&str]) -> Vec<String> {
    let specs = KeySpecs::parse(options, ".").unwrap();
    let mut keys: Vec<(Vec<u8>, &str)> = keys
        .iter()
        .map(|key| {
            let mut bytes = Vec::new();
            specs.push_order(key.as_bytes(), &mut bytes);
            (bytes, *key)
        })
        .collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    keys.into_iter().map(|(_, key)| key.to_owned()).collect()
}

#[test]
fn comparators_sort_as_hadoops() {
    // The example of Hadoop's documentation.
    let keys = ["11.12.1.2", "11.14.2.3", "11.11.4.1", "11.12.1.1", "11.14.2.2"];
    let sorted = ["11.14.2.3", "11.14.2.2", "11.12.1.2", "11.12.1.1", "11.11.4.1"];
    assert_eq!(ordered("-k2,2nr -k1,1 -k4,4nr", &keys), sorted);
    assert_eq!(ordered("-n", &["10", "9", "-1", "0.5", "0.25"]), ["-1", "0.25", "0.5", "9", "10"]);
    assert_eq!(ordered("-nr", &["10", "9", "-1"]), ["10", "9", "-1"]);
    assert_eq!(ordered("-k1.2,1.2", &["a3", "b1", "c2"]), ["b1", "c2", "a3"]);
    assert_eq!(ordered("-k2", &["b", "a.x", "c.a"]), ["b", "c.a", "a.x"], "a missing part comes first");
    assert_eq!(ordered("-k2r", &["b", "a.x", "c.y"]), ["c.y", "a.x", "b"], "or last");
    assert_eq!(ordered("", &["b", "a", "aa"]), ["a", "aa", "b"]);
    assert_eq!(ordered("-r", &["b", "a", "aa"]), ["b", "aa", "a"]);
}

#[test]
fn parts_that_are_none_are_refused() {
    for wrong in ["-kx", "-k0", "-k1.0", "-k1,x", "-k1.x", "-k1q"] {
        assert!(KeySpecs::parse(wrong, "\t").is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn order_of_texts_is_that_of_their_bytes_whatever_they_hold(
        a in proptest::collection::vec(0u8..3, 0..8), b in proptest::collection::vec(0u8..3, 0..8),
    ) {
        for (options, reversed) in [("", false), ("-k1", false), ("-r", true)] {
            let specs = KeySpecs::parse(options, "\t").unwrap();
            let bytes = |key: &[u8]| {
                let mut bytes = Vec::new();
                specs.push_order(key, &mut bytes);
                bytes
            };
            let expected = if reversed { b.cmp(&a) } else { a.cmp(&b) };
            // An empty key has no part: it comes first, or last in reverse.
            prop_assert_eq!(bytes(&a).cmp(&bytes(&b)), expected, "{}", options);
        }
    }

    #[test]
    fn pairs_come_back_as_they_were(
        key in proptest::collection::vec(any::<u8>(), 0..20), value in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        for order in [keys::KeyOrder::Bytes, keys::KeyOrder::Fields(KeySpecs::parse("-k2n", "\t").unwrap())] {
            let coding = KeyCoding { partition: PartRule::Hash, order };
            let mut scratch = keys::PairScratch::default();
            coding.encode((&key, &value), 7, &mut scratch).unwrap();
            prop_assert_eq!(coding.decode(&scratch.key, &scratch.value).unwrap(), (&key[..], &value[..]));
            let part = KeyPartitioner(std::sync::Arc::new(coding)).partition(&scratch.key, 7);
            prop_assert_eq!(part, PartRule::Hash.part(&key, 7));
        }
    }
}

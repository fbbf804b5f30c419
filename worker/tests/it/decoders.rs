//! Decoding of untrusted bytes: arbitrary bytes, and valid messages with some bytes changed, are decoded
//! or refused. There are no panics, and memory is limited to the bytes of the message and the caller's
//! limit.
//!
//! Messages are drawn for the types themselves, so that every kind of frame is included. A run prints its
//! seed; `DECODERS_SEED=N` repeats it. `GRISTMILL_SLOW_TESTS=1` runs a hundred times as long.

use crate::counting::peak_of;
use crate::dice::Dice;
use gristmill_worker::agent::files::RangeRequest;
use gristmill_worker::codec;
use gristmill_worker::protocol::{FRAME_BYTES_MAX, FrameReader, MasterFrame, WorkerFrame, push_frame};
use gristmill_worker::shuffle::{FetchHead, FetchRequest};
use gristmill_worker::value::Value;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Bytes that decoding may allocate in addition to the message: capacity for a list, and text of an error.
const AHEAD_BYTES_MAX: usize = 64 << 10;

/// Number of messages that are drawn for each type, each of which is changed [`CHANGES`] times.
const MESSAGES: usize = 400;
const CHANGES: usize = 25;

/// Maximum bytes of an arbitrary message.
const ARBITRARY_BYTES_MAX: usize = 4096;

/// Special bytes: first bytes of encodings of long numbers, ends of ranges, and bytes that are not UTF-8.
const TELLING: [u8; 12] = [0, 1, 2, 0x7f, 0x80, 0xc3, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff];

fn dice() -> Dice {
    let given =
        std::env::var("DECODERS_SEED").ok().map(|seed| seed.parse().expect("DECODERS_SEED is a number"));
    let seed: u64 = given.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    eprintln!("DECODERS_SEED={seed}");
    Dice::new(ChaCha8Rng::seed_from_u64(seed))
}

fn messages() -> usize {
    if std::env::var_os("GRISTMILL_SLOW_TESTS").is_some() { 100 * MESSAGES } else { MESSAGES }
}

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(value, &mut bytes);
    bytes
}

/// Changes some of the bytes, at one to four positions.
fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut ChaCha8Rng) {
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=bytes.len());
        let end = (at + random.random_range(0..16)).min(bytes.len());
        match random.random_range(0..7) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            2 if at < bytes.len() => bytes[at] = TELLING[random.random_range(0..TELLING.len())],
            3 => drop(bytes.drain(at..end)),
            4 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            // A long number where a short one was: a length, an index, a kind.
            5 => {
                let claim = random.next_u64() >> random.random_range(0..64);
                drop(bytes.splice(at..(at + 1).min(bytes.len()), encoded(&claim)));
            }
            _ => bytes.splice(at.., other[at.min(other.len())..].iter().copied()).for_each(drop),
        }
    }
}

/// Decodes and, if that succeeds, encodes and decodes again. The limit is the tightest possible: the
/// number of received bytes.
fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> bool {
    let allowed = bytes.len();
    let (decoded, peak) = peak_of(|| codec::decode_message::<T>(bytes, allowed));
    // A list grows by doubling; text and bytes have the received length, but the name of a piece may copy its path.
    let most = 2 * bytes.len() + 2 * allowed + AHEAD_BYTES_MAX;
    assert!(peak <= most, "{} bytes took {peak}, over {most}: {bytes:?}", bytes.len());
    let generous = codec::decode_message::<T>(bytes, 4 * FRAME_BYTES_MAX);
    // Changed bytes can be another encoding of the same value. Its own encoding decodes to itself.
    if let Ok(value) = &generous {
        let again = encoded(value);
        let back = codec::decode_message::<T>(&again, 4 * FRAME_BYTES_MAX).expect("it was just encoded");
        assert_eq!(encoded(&back), again);
    }
    assert!(decoded.is_err() || generous.is_ok());
    generous.is_ok()
}

fn check<T: Serialize + DeserializeOwned>() {
    let mut dice = dice();
    let (mut taken, mut refused) = (0, 0);
    let mut other = encoded(&dice.draw::<T>());
    for _ in 0..messages() {
        let valid = encoded(&dice.draw::<T>());
        assert!(decode::<T>(&valid), "a message that was just encoded: {valid:?}");
        for _ in 0..CHANGES {
            let mut bytes = valid.clone();
            change(&mut bytes, &other, &mut dice.random);
            if decode::<T>(&bytes) { taken += 1 } else { refused += 1 }
        }
        let mut arbitrary = vec![0; dice.random.random_range(0..ARBITRARY_BYTES_MAX)];
        dice.random.fill_bytes(&mut arbitrary);
        decode::<T>(&arbitrary);
        other = valid;
    }
    // Chance leaves out a rare variant now and then.
    for _ in 0..100 * MESSAGES {
        if dice.left().is_empty() {
            break;
        }
        assert!(decode::<T>(&encoded(&dice.draw::<T>())));
    }
    assert_eq!(dice.left(), [], "never drawn");
    // Otherwise the changes would be too small or too large to be useful.
    assert!(0 < taken && 0 < refused, "{taken} changed messages were taken, {refused} refused");
}

#[test]
fn frames_of_workers_decode_or_are_refused_within_memory() {
    check::<WorkerFrame>();
}

#[test]
fn frames_of_masters_decode_or_are_refused_within_memory() {
    check::<MasterFrame>();
}

#[test]
fn fetch_requests_decode_or_are_refused_within_memory() {
    check::<FetchRequest>();
}

#[test]
fn heads_of_segments_decode_or_are_refused_within_memory() {
    check::<FetchHead>();
}

#[test]
fn requests_for_ranges_of_files_decode_or_are_refused_within_memory() {
    check::<RangeRequest>();
}

#[test]
fn streams_of_frames_end_or_are_refused() {
    let mut dice = dice();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for _ in 0..messages() {
        let mut bytes = Vec::new();
        for _ in 0..3 {
            push_frame(&dice.draw::<WorkerFrame>(), &mut bytes).unwrap();
        }
        let other = bytes.clone();
        change(&mut bytes, &other, &mut dice.random);
        let mut reader = FrameReader::new(&bytes[..], ARBITRARY_BYTES_MAX);
        let frames = runtime.block_on(async {
            let mut frames = 0;
            while let Ok(Some(_)) = reader.next::<WorkerFrame>().await {
                frames += 1;
            }
            frames
        });
        assert!(frames <= bytes.len() / 5, "{frames} frames out of {} bytes", bytes.len());
    }
}

/// Values of user code are not frames: they are in segments with a checksum. Capacity for a list in them is
/// reserved up to 1 MiB, once for each level of lists.
#[test]
fn values_decode_or_are_refused_within_memory() {
    type Listed = Vec<(u8, Option<String>, BTreeMap<u16, Vec<f64>>)>;
    const LEVELS: usize = 2;
    let item = size_of::<(u8, Option<String>, BTreeMap<u16, Vec<f64>>)>();
    let mut dice = dice();
    for _ in 0..messages() {
        let mut valid = Vec::new();
        dice.draw::<Listed>().encode_owned(&mut valid).unwrap();
        for _ in 0..CHANGES {
            let mut bytes = valid.clone();
            change(&mut bytes, &valid, &mut dice.random);
            let (_, peak) = peak_of(|| <Listed as Value>::decode(&bytes).is_ok());
            let most = 4 * item * bytes.len() + LEVELS * (1 << 20) + AHEAD_BYTES_MAX;
            assert!(peak <= most, "{} bytes took {peak}, over {most}: {bytes:?}", bytes.len());
        }
    }
}

#[test]
fn claim_of_a_long_list_alone_takes_no_memory() {
    // All lists that a frame can hold, with a length that exceeds its bytes.
    let claims = [
        [&encoded(&9u32)[..], &encoded(&(1u64 << 40))].concat(),
        [&encoded(&1u32)[..], &encoded(&(1u64 << 60))].concat(),
    ];
    for claim in claims {
        let (refused, peak) = peak_of(|| codec::decode_message::<WorkerFrame>(&claim, 4 * FRAME_BYTES_MAX));
        assert!(refused.is_err());
        assert!(peak <= AHEAD_BYTES_MAX, "{peak} bytes for a claim of {} bytes", claim.len());
    }
}

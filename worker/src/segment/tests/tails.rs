//! Tests of the ends of segments: with every key they have all its pairs, and no damage goes unnoticed.

use super::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Place and form of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Memory,
    File,
    Compressed,
}

const FORMS: [Form; 3] = [Form::Memory, Form::File, Form::Compressed];

type Read = Vec<(Bytes, Bytes)>;

fn below(draws: &mut ChaCha8Rng, end: usize) -> usize {
    (draws.next_u64() % end as u64) as usize
}

fn bytes(draws: &mut ChaCha8Rng, length: usize) -> Vec<u8> {
    // Two letters, so that keys often have a common start and values can be compressed.
    (0..length).map(|_| b'a' + (draws.next_u64() % 2) as u8).collect()
}

/// Pairs of few different keys, in key order, of which many fill several blocks, and some values fill one of their own.
fn sorted_pairs(draws: &mut ChaCha8Rng) -> Vec<Pair> {
    let lengths = [0, 1, 2, 7, 8, 9, 200, 6000];
    let keys: Vec<Vec<u8>> = (0..1 + below(draws, 12))
        .map(|_| {
            let length = lengths[below(draws, lengths.len())];
            bytes(draws, length)
        })
        .collect();
    let count = below(draws, 120);
    let mut pairs: Vec<Pair> = (0..count)
        .map(|_| {
            let length = match below(draws, 80) {
                0 => COMPRESS_BYTES_MAX + 17,
                1..20 => below(draws, 30_000),
                _ => below(draws, 3_000),
            };
            (0, keys[below(draws, keys.len())].clone(), vec![draws.next_u64() as u8; length])
        })
        .collect();
    pairs.sort_by(|a, b| a.1.cmp(&b.1));
    pairs
}

/// Keys at which to cut: those of some pairs, their neighbours, and others.
fn cut_keys(draws: &mut ChaCha8Rng, pairs: &[Pair]) -> Vec<Vec<u8>> {
    let mut cuts = vec![Vec::new(), b"a".to_vec(), b"zz".to_vec(), bytes(draws, 5)];
    for _ in 0..if pairs.is_empty() { 0 } else { 3 } {
        let key = &pairs[below(draws, pairs.len())].1;
        cuts.push(key.clone());
        cuts.push([key, &b"\0"[..]].concat());
        cuts.push(key[..key.len() / 2].to_vec());
    }
    cuts
}

fn segment_of(pairs: &[Pair], form: Form) -> (SegmentData, Place) {
    let compression = if form == Form::Compressed { SpillCompression::Lz4 } else { SpillCompression::None };
    let place = place(1, SegmentOrder::Key, compression);
    let writer = match form {
        Form::Memory => SegmentsWriter::in_memory(place.setting.clone(), &Budget::new(1 << 30), 0),
        Form::File | Form::Compressed => SegmentsWriter::on_disk(place.setting.clone()),
    };
    (write(writer.unwrap(), pairs).segment(0).unwrap(), place)
}

/// Returns the bytes of an end as a receiver has them.
fn sent(tail: &SegmentTail) -> Vec<u8> {
    let bytes = match tail {
        SegmentTail::Whole(data) => bytes_of(data),
        SegmentTail::Cut { head, rest } => [&head[..], &bytes_of(rest)].concat(),
    };
    assert_eq!(bytes.len() as u64, tail.len());
    bytes
}

fn in_file(bytes: &[u8], place: &Place) -> SegmentData {
    let mut file = place.setting.spill.create("received").unwrap();
    file.write(b"before").unwrap();
    file.write(bytes).unwrap();
    let file = std::sync::Arc::new(file.finish().unwrap());
    SegmentData::File { file, offset: 6, length: bytes.len() as u64 }
}

fn read_from(data: SegmentData, from: &[u8]) -> Result<Read, SegmentError> {
    if data.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = SegmentReader::open_from(data, from)?;
    let mut pairs = Vec::new();
    while reader.advance()? {
        pairs.push((Bytes::copy_from_slice(reader.key()), Bytes::copy_from_slice(reader.value())));
    }
    Ok(pairs)
}

fn expected(pairs: &[Pair], from: &[u8]) -> Read {
    let of_end = pairs.iter().filter(|(_, key, _)| from <= key.as_slice());
    of_end.map(|(_, key, value)| (key.clone().into(), value.clone().into())).collect()
}

/// Offsets of the headers of a segment's blocks.
fn block_offsets(bytes: &[u8]) -> Vec<usize> {
    let mut at = HEADER_BYTES;
    let mut offsets = Vec::new();
    while at < bytes.len() {
        offsets.push(at);
        at += BLOCK_HEADER_BYTES + u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    }
    offsets
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_end_has_all_pairs_from_its_key_on_and_so_has_an_end_of_it(seed: u64) {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let pairs = sorted_pairs(&mut draws);
        for form in FORMS {
            let (data, place) = segment_of(&pairs, form);
            for from in cut_keys(&mut draws, &pairs) {
                let expect = expected(&pairs, &from);
                prop_assert!(read_from(data.clone(), &from).unwrap() == expect, "{form:?}, here");
                let end = tail(&data, &from).unwrap();
                prop_assert!(end.len() <= data.len() as u64);
                let bytes = sent(&end);
                for received in [SegmentData::Memory(bytes.clone().into()), in_file(&bytes, &place)] {
                    verify(&received, &id(0)).unwrap();
                    let all = read_all(received.clone()).unwrap();
                    prop_assert!(all.ends_with(&expect), "{form:?}, sent");
                    prop_assert!(read_from(received.clone(), &from).unwrap() == expect, "{form:?}, sent and skipped");
                    let later = cut_keys(&mut draws, &pairs).into_iter().filter(|later| from <= *later);
                    for later in later.take(3) {
                        let again = sent(&tail(&received, &later).unwrap());
                        let found = read_from(SegmentData::Memory(again.into()), &later).unwrap();
                        prop_assert!(found == expected(&pairs, &later), "{form:?}, an end of an end");
                    }
                }
            }
        }
    }

    #[test]
    fn damage_of_a_segment_never_changes_the_pairs_of_an_end(seed: u64) {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let mut pairs = sorted_pairs(&mut draws);
        pairs.retain(|(_, _, value)| value.len() < BLOCK_BYTES);
        for form in FORMS {
            let (data, place) = segment_of(&pairs, form);
            let good = bytes_of(&data);
            // Headers and first keys are what a search reads.
            let mut places: Vec<usize> = (0..good.len().min(HEADER_BYTES)).collect();
            for block in block_offsets(&good) {
                places.extend((0..6).map(|_| block + below(&mut draws, BLOCK_HEADER_BYTES + 6)));
                places.push(block + below(&mut draws, good.len() - block));
            }
            for at in places.into_iter().filter(|at| *at < good.len()) {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << below(&mut draws, 8);
                let damaged = match form {
                    Form::Memory => SegmentData::Memory(bytes.into()),
                    Form::File | Form::Compressed => in_file(&bytes, &place),
                };
                let cuts = cut_keys(&mut draws, &pairs);
                let from = &cuts[below(&mut draws, cuts.len())];
                let right = |found: Result<Read, SegmentError>| found.is_err() || found.unwrap() == expected(&pairs, from);
                prop_assert!(right(read_from(damaged.clone(), from)), "{form:?}, byte {at}, here");
                let found = tail(&damaged, from)
                    .and_then(|end| read_from(SegmentData::Memory(sent(&end).into()), from));
                prop_assert!(right(found), "{form:?}, byte {at}, sent");
            }
        }
    }
}

/// Pairs of this many blocks with a key each, which is the number of the block.
fn numbered_blocks(blocks: u32) -> Vec<Pair> {
    (0..blocks).map(|number| (0, number.to_be_bytes().to_vec(), vec![7; BLOCK_BYTES])).collect()
}

#[test]
fn an_end_starts_with_the_block_before_the_first_that_starts_with_its_key() {
    for form in FORMS {
        let (data, _place) = segment_of(&numbered_blocks(64), form);
        let good = bytes_of(&data);
        let offsets = block_offsets(&good);
        for first in [0_u32, 1, 2, 3, 31, 62, 63, 64, 100] {
            let end = tail(&data, &first.to_be_bytes()).unwrap();
            let block = first.min(64).saturating_sub(1) as usize;
            assert_eq!(matches!(end, SegmentTail::Cut { .. }), 0 < block);
            assert!(sent(&end)[HEADER_BYTES..] == good[offsets[block]..], "{form:?} from {first}");
        }
    }
}

#[test]
fn search_for_an_end_reads_few_blocks() {
    let (data, _place) = segment_of(&numbered_blocks(64), Form::Memory);
    let good = bytes_of(&data);
    let from = 40_u32.to_be_bytes();
    let found_damaged = block_offsets(&good).into_iter().filter(|block| {
        let mut bytes = good.clone();
        bytes[block + 100] ^= 1;
        tail(&SegmentData::Memory(bytes.into()), &from).is_err()
    });
    assert_eq!(found_damaged.count(), 7, "one at each step of a binary search, and the second block");
}

#[test]
fn flipping_any_bit_of_a_header_of_an_end_is_detected() {
    let (data, _place) = segment_of(&numbered_blocks(3), Form::Compressed);
    let good = sent(&tail(&data, &[0, 0, 0, 2]).unwrap());
    verify(&SegmentData::Memory(good.clone().into()), &id(0)).unwrap();
    for bit in 0..8 * HEADER_BYTES {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(verify(&SegmentData::Memory(bytes.into()), &id(0)).is_err(), "bit {bit}");
    }
}

#[test]
fn segments_in_the_order_of_hashes_have_no_ends() {
    let place = place(1, SegmentOrder::Hash, SpillCompression::None);
    let pairs = numbered_blocks(5);
    let output = write(SegmentsWriter::on_disk(place.setting).unwrap(), &pairs);
    let end = tail(&output.segment(0).unwrap(), &[0, 0, 0, 4]).unwrap();
    assert!(matches!(&end, SegmentTail::Whole(data) if data.len() as u64 == output.bytes()));
    assert_eq!(read_from(output.segment(0).unwrap(), &[0, 0, 0, 4]).unwrap().len(), 5);
}

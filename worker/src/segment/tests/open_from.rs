//! Tests of reading segments from a key on: it returns all pairs from this key on, and never others, also of damaged
//! segments.

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

/// Keys to read from: those of some pairs, their neighbours, and others.
fn start_keys(draws: &mut ChaCha8Rng, pairs: &[Pair]) -> Vec<Vec<u8>> {
    let mut starts = vec![Vec::new(), b"a".to_vec(), b"zz".to_vec(), bytes(draws, 5)];
    for _ in 0..if pairs.is_empty() { 0 } else { 3 } {
        let key = &pairs[below(draws, pairs.len())].1;
        starts.push(key.clone());
        starts.push([key, &b"\0"[..]].concat());
        starts.push(key[..key.len() / 2].to_vec());
    }
    starts
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

fn in_file(bytes: &[u8], place: &Place) -> SegmentData {
    let mut file = place.setting.spill.create("copy").unwrap();
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
    let later = pairs.iter().filter(|(_, key, _)| from <= key.as_slice());
    later.map(|(_, key, value)| (key.clone().into(), value.clone().into())).collect()
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
    fn reading_from_a_key_returns_all_pairs_from_it_on(seed: u64) {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let pairs = sorted_pairs(&mut draws);
        for form in FORMS {
            let (data, _place) = segment_of(&pairs, form);
            for from in start_keys(&mut draws, &pairs) {
                prop_assert!(read_from(data.clone(), &from).unwrap() == expected(&pairs, &from), "{form:?}");
            }
        }
    }

    #[test]
    fn damage_is_an_error_or_changes_no_pair_from_the_key_on(seed: u64) {
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
                let starts = start_keys(&mut draws, &pairs);
                let from = &starts[below(&mut draws, starts.len())];
                let found = read_from(damaged, from);
                prop_assert!(found.is_err() || found.unwrap() == expected(&pairs, from), "{form:?}, byte {at}");
            }
        }
    }
}

/// Pairs of one block each, with the key of a pair for each of these numbers.
fn one_block_each(numbers: impl Iterator<Item = u32>) -> Vec<Pair> {
    numbers.map(|number| (0, number.to_be_bytes().to_vec(), vec![7; BLOCK_BYTES])).collect()
}

#[test]
fn reading_starts_at_the_first_pair_of_a_key_that_spans_blocks() {
    for blocks_of_key in [1, 2, 3, 7] {
        let pairs = one_block_each((0..21).map(|number| number / blocks_of_key * 2));
        for form in FORMS {
            let (data, _place) = segment_of(&pairs, form);
            for from in (0..45_u32).map(u32::to_be_bytes) {
                assert!(
                    read_from(data.clone(), &from).unwrap() == expected(&pairs, &from),
                    "{form:?}, {blocks_of_key} blocks of a key, from {from:?}"
                );
            }
        }
    }
}

#[test]
fn search_for_a_key_reads_few_blocks() {
    let (data, _place) = segment_of(&one_block_each(0..64), Form::Memory);
    let good = bytes_of(&data);
    let from = 40_u32.to_be_bytes();
    let found_damaged = block_offsets(&good).into_iter().filter(|block| {
        let mut bytes = good.clone();
        bytes[block + 100] ^= 1;
        SegmentReader::open_from(SegmentData::Memory(bytes.into()), &from).is_err()
    });
    assert_eq!(found_damaged.count(), 6, "one at each step of a binary search");
}

#[test]
fn segments_in_the_order_of_hashes_are_read_from_their_start() {
    let place = place(1, SegmentOrder::Hash, SpillCompression::None);
    let output = write(SegmentsWriter::on_disk(place.setting).unwrap(), &one_block_each(0..5));
    assert_eq!(read_from(output.segment(0).unwrap(), &[0, 0, 0, 4]).unwrap().len(), 5);
}

//! Tests of the invariants of segments, for their readers and writers.

mod open_from;

use super::*;
use crate::budget::Budget;
use proptest::prelude::*;

type Pair = (u32, Vec<u8>, Vec<u8>);

struct Place {
    dir: tempfile::TempDir,
    setting: WriteSetting,
}

fn place(partitions: u32, order: SegmentOrder, compression: SpillCompression) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let spill = SpillDirs::new(vec![dir.path().to_owned()]);
    let setting = WriteSetting { job: JobId(7), map: 3, epoch: 1, partitions, order, spill, compression };
    Place { dir, setting }
}

fn id(partition: u32) -> SegmentId {
    SegmentId { job: JobId(7), map: 3, epoch: 1, partition }
}

fn write(mut writer: SegmentsWriter, pairs: &[Pair]) -> MapOutput {
    for (partition, key, value) in pairs {
        writer.pair(*partition, key, value).unwrap();
    }
    writer.finish().unwrap()
}

fn read_all(data: SegmentData) -> Result<Vec<(Bytes, Bytes)>, SegmentError> {
    if data.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = SegmentReader::open(data)?;
    let mut pairs = Vec::new();
    while reader.advance()? {
        pairs.push((Bytes::copy_from_slice(reader.key()), Bytes::copy_from_slice(reader.value())));
    }
    Ok(pairs)
}

fn bytes_of(data: &SegmentData) -> Vec<u8> {
    match data {
        SegmentData::Memory(bytes) => bytes.to_vec(),
        SegmentData::File { file, offset, length } => {
            let mut bytes = vec![0; *length as usize];
            file.read_at(*offset, &mut bytes).unwrap();
            bytes
        }
        SegmentData::InFile(_) => panic!("these tests have no input files"),
    }
}

/// Pairs in partition order, some of which are larger than a block.
fn pairs(partitions: u32) -> impl Strategy<Value = Vec<Pair>> {
    let bytes = |long: usize| {
        prop_oneof![
            12 => proptest::collection::vec(any::<u8>(), 0..40),
            2 => (any::<u8>(), 0..300usize).prop_map(|(byte, length)| vec![byte; length]),
            1 => (any::<u8>(), 0..long).prop_map(|(byte, length)| vec![byte; length]),
        ]
    };
    let pair = (0..partitions, bytes(1000), bytes(3 * BLOCK_BYTES));
    proptest::collection::vec(pair, 0..60).prop_map(|mut pairs| {
        pairs.sort_by_key(|(partition, ..)| *partition);
        pairs
    })
}

fn check(output: &MapOutput, pairs: &[Pair], partitions: u32) {
    let mut end = 0;
    for partition in 0..partitions {
        let expected: Vec<_> = pairs
            .iter()
            .filter(|pair| pair.0 == partition)
            .map(|pair| (pair.1.clone().into(), pair.2.clone().into()))
            .collect();
        let (offset, length) = output.index.segment(partition).unwrap();
        assert_eq!(length == 0, expected.is_empty());
        if 0 < length {
            assert_eq!(offset, end, "segments leave no gaps");
            end += length;
        }
        let data = output.segment(partition).unwrap();
        assert_eq!(data.len() as u64, length);
        verify(&data, &id(partition)).unwrap();
        assert_eq!(read_all(data).unwrap(), expected);
    }
    assert!(output.segment(partitions).is_none());
    assert_eq!(output.records(), pairs.len() as u64);
    assert_eq!(output.bytes(), end);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn segments_give_back_their_pairs_wherever_they_lie(
        pairs in pairs(4), budget in prop_oneof![Just(0usize), 0..200_000usize, Just(1 << 30)],
        hint in prop_oneof![Just(0usize), 0..300_000usize], lz4: bool,
    ) {
        let compression = if lz4 { SpillCompression::Lz4 } else { SpillCompression::None };
        let place = place(4, SegmentOrder::Key, compression);
        let budget = Budget::new(budget);
        let output = write(SegmentsWriter::in_memory(place.setting.clone(), &budget, hint).unwrap(), &pairs);
        check(&output, &pairs, 4);
        if output.is_on_disk() {
            prop_assert_eq!(budget.used_bytes(), 0);
        } else {
            prop_assert!(output.bytes() as usize <= budget.used_bytes());
        }
        let file = write(SegmentsWriter::on_disk(place.setting.clone()).unwrap(), &pairs);
        prop_assert!(file.is_on_disk());
        check(&file, &pairs, 4);
        drop((output, file));
        prop_assert_eq!(budget.used_bytes(), 0);
        prop_assert_eq!(std::fs::read_dir(place.dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn reader_survives_any_bytes_behind_a_valid_header(junk in proptest::collection::vec(any::<u8>(), 0..200)) {
        let header = SegmentHeader {
            id: id(0), order: SegmentOrder::Key, records: 3, block_max: u32::MAX,
            length: (HEADER_BYTES + junk.len()) as u64,
        };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend_from_slice(&junk);
        prop_assert!(read_all(SegmentData::Memory(bytes.into())).is_err());
    }
}

fn small_segment(compression: SpillCompression) -> Vec<u8> {
    let place = place(1, SegmentOrder::Key, compression);
    let pairs: Vec<Pair> = (0..12u8).map(|n| (0, vec![n], vec![b'v'; 20])).collect();
    let output = write(SegmentsWriter::on_disk(place.setting.clone()).unwrap(), &pairs);
    bytes_of(&output.segment(0).unwrap())
}

#[test]
fn flipping_any_bit_of_a_segment_is_detected_by_verify_and_by_the_reader() {
    for compression in [SpillCompression::None, SpillCompression::Lz4] {
        let good = small_segment(compression);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                let data = SegmentData::Memory(bytes.into());
                assert!(verify(&data, &id(0)).is_err(), "byte {at} bit {bit}");
                assert!(read_all(data).is_err(), "byte {at} bit {bit}");
            }
        }
    }
}

#[test]
fn a_segment_that_is_cut_short_or_too_long_is_detected() {
    let good = small_segment(SpillCompression::None);
    for length in 1..good.len() {
        let data = SegmentData::Memory(good[..length].to_vec().into());
        assert!(verify(&data, &id(0)).is_err(), "{length} bytes");
    }
    let mut long = good;
    long.push(0);
    let error = verify(&SegmentData::Memory(long.into()), &id(0)).unwrap_err();
    assert!(matches!(error, SegmentError::Length { .. }), "{error}");
}

#[test]
fn blocks_that_are_swapped_or_repeated_are_detected() {
    let place = place(1, SegmentOrder::Key, SpillCompression::None);
    // Three blocks of the same length.
    let pairs: Vec<Pair> = (0..3u8).map(|n| (0, vec![n], vec![n; BLOCK_BYTES])).collect();
    let output = write(SegmentsWriter::in_memory(place.setting, &Budget::new(1 << 30), 0).unwrap(), &pairs);
    let good = bytes_of(&output.segment(0).unwrap());
    let block = (good.len() - HEADER_BYTES) / 3;
    let at = |n: usize| HEADER_BYTES + n * block..HEADER_BYTES + (n + 1) * block;
    for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2)] {
        let mut bytes = good.clone();
        bytes[at(to)].copy_from_slice(&good[at(from)]);
        assert!(verify(&SegmentData::Memory(bytes.into()), &id(0)).is_err(), "block {from} in place of {to}");
    }
}

#[test]
fn verify_names_both_when_a_segment_is_another_one() {
    let data = SegmentData::Memory(small_segment(SpillCompression::None).into());
    for other in [
        SegmentId { job: JobId(8), ..id(0) },
        SegmentId { map: 4, ..id(0) },
        SegmentId { epoch: 0, ..id(0) },
        id(1),
    ] {
        let error = verify(&data, &other).unwrap_err();
        assert!(
            matches!(error, SegmentError::Identity { expected, found } if expected == other && found == id(0))
        );
    }
    verify(&data, &id(0)).unwrap();
}

#[test]
fn an_output_without_pairs_has_no_bytes_and_every_partition() {
    let place = place(3, SegmentOrder::Hash, SpillCompression::Lz4);
    let output = write(SegmentsWriter::in_memory(place.setting, &Budget::new(0), 0).unwrap(), &[]);
    assert_eq!((output.bytes(), output.is_on_disk()), (0, false));
    assert!((0..3).all(|partition| output.segment(partition).unwrap().is_empty()));
    verify(&output.segment(1).unwrap(), &id(1)).unwrap();
}

#[test]
fn compressed_blocks_are_smaller_and_keep_their_order_mark() {
    let plain = small_segment(SpillCompression::None);
    let small = small_segment(SpillCompression::Lz4);
    assert!(small.len() < plain.len(), "{} and {}", small.len(), plain.len());
}

#[test]
fn reader_tells_a_spill_file_that_lost_bytes_from_a_damaged_one() {
    let place = place(1, SegmentOrder::Key, SpillCompression::None);
    let pairs: Vec<Pair> = (0..3u8).map(|n| (0, vec![n], vec![n; BLOCK_BYTES])).collect();
    let output = write(SegmentsWriter::on_disk(place.setting).unwrap(), &pairs);
    let SegmentData::File { file, .. } = output.segment(0).unwrap() else { panic!("on disk") };
    std::fs::OpenOptions::new().write(true).open(file.path()).unwrap().set_len(100).unwrap();
    let error = read_all(output.segment(0).unwrap()).unwrap_err();
    assert!(matches!(error, SegmentError::Read { .. }), "{error}");
}

#[test]
fn block_that_unpacks_to_more_than_is_ever_packed_is_damaged_wherever_it_lies() {
    let lie = |raw: usize| {
        let payload = lz4_flex::block::compress(&vec![0; raw]);
        assert!(payload.len() < raw / 200, "it is a bomb");
        let header = SegmentHeader {
            id: id(0),
            order: SegmentOrder::Key,
            records: 1,
            block_max: raw as u32,
            length: (HEADER_BYTES + BLOCK_HEADER_BYTES + payload.len()) as u64,
        };
        let (stored, raw) = (payload.len() as u32, raw as u32);
        let checksum = block_checksum(header.seed(), stored, raw, &payload);
        let block = [stored, raw, checksum].map(u32::to_le_bytes).concat();
        [&header.to_bytes()[..], &block, &payload].concat()
    };
    let directory = tempfile::tempdir().unwrap();
    let spill = SpillDirs::new(vec![directory.path().to_owned()]);
    for (raw, may_be) in [(COMPRESS_BYTES_MAX, true), (COMPRESS_BYTES_MAX + 1, false), (64 << 20, false)] {
        let bytes = lie(raw);
        let mut file = spill.create("lie").unwrap();
        file.write(&bytes).unwrap();
        let file = std::sync::Arc::new(file.finish().unwrap());
        let on_disk = SegmentData::File { file, offset: 0, length: bytes.len() as u64 };
        for data in [SegmentData::Memory(bytes.into()), on_disk] {
            assert_eq!(verify(&data, &id(0)).is_ok(), may_be, "{raw} bytes");
            let damaged = matches!(read_all(data), Err(SegmentError::Block { .. }));
            assert_eq!(damaged, !may_be, "{raw} bytes");
        }
    }
}

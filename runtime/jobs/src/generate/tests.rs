//! Tests of the generators' guarantees: the same bytes always, of the requested size, with the requested frequencies.

use super::*;
use std::collections::BTreeMap;

fn arguments(kind: Kind, output: &Path, size: u64) -> GenerateArgs {
    GenerateArgs {
        kind,
        output: output.to_owned(),
        size,
        seed: 7,
        words: 1000,
        exponent: 1.0,
        overwrite: false,
    }
}

/// Bytes of all files requested by the arguments, in the order of writing.
fn generated(kind: Kind, size: u64, threads: usize) -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let report = run_with_threads(&arguments(kind, directory.path(), size), threads).unwrap();
    let read = |file: &GeneratedFile| {
        let bytes = std::fs::read(&file.path).unwrap();
        assert_eq!(bytes.len() as u64, file.bytes);
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count() as u64, file.lines);
        assert_eq!(bytes.last(), Some(&b'\n'));
        bytes
    };
    report.files.iter().map(read).collect()
}

#[test]
fn files_are_the_same_for_any_number_of_threads() {
    for kind in [Kind::Text, Kind::Records, Kind::Tables] {
        let once = generated(kind, 3_500_000, 1);
        for threads in [2, 3, 7] {
            assert!(generated(kind, 3_500_000, threads) == once, "{kind:?} with {threads} threads");
        }
    }
}

#[test]
fn files_are_the_same_as_ever() {
    // A change of these requires a new version of ALGORITHM.
    let checksum =
        |kind| generated(kind, 3_000_000, 2).iter().map(|bytes| crc32c::crc32c(bytes)).collect::<Vec<u32>>();
    assert_eq!(checksum(Kind::Text), [0x2fa992a4]);
    assert_eq!(checksum(Kind::Records), [0xede63dc3]);
    assert_eq!(checksum(Kind::Tables), [0x8d79c529, 0xc7df03a9]);
}

#[test]
fn another_seed_gives_other_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = arguments(Kind::Text, &directory.path().join("first"), 1000);
    run(&first).unwrap();
    first.seed = 8;
    first.output = directory.path().join("second");
    run(&first).unwrap();
    let read = |name| std::fs::read(directory.path().join(name)).unwrap();
    assert_ne!(read("first"), read("second"));
}

#[test]
fn text_has_exactly_the_size_asked_for_and_only_words_of_the_vocabulary() {
    let words = text::DrawnWords::new(1000, 1.0);
    let vocabulary: std::collections::BTreeSet<&[u8]> = (0..1000).map(|rank| words.word(rank)).collect();
    assert_eq!(vocabulary.len(), 1000);
    for size in [1, 2, 3, 79, 80, 81, 1000, text::CHUNK_BYTES, text::CHUNK_BYTES + 1, 2_500_000] {
        let [file] = generated(Kind::Text, size, 2).try_into().unwrap();
        assert_eq!(file.len() as u64, size);
        for line in file.split(|byte| *byte == b'\n') {
            assert!(line.len() < text::LINE_MAX, "a line of {} bytes", line.len());
            for word in line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
                assert!(vocabulary.contains(word), "{:?}", String::from_utf8_lossy(word));
            }
        }
    }
}

#[test]
fn text_of_no_bytes_is_an_empty_file() {
    let directory = tempfile::tempdir().unwrap();
    let report = run(&arguments(Kind::Text, &directory.path().join("empty"), 0)).unwrap();
    assert_eq!(report.files[0].bytes, 0);
}

#[test]
fn zipf_columns_hold_exactly_the_weight_of_each_rank() {
    for (ranks, exponent) in [(1, 1.0), (2, 1.0), (1000, 1.0), (1000, 0.0), (777, 1.3), (100, 10.0)] {
        let zipf = zipf::Zipf::new(ranks, exponent);
        for (rank, mass) in zipf.masses().into_iter().enumerate() {
            let weight = (4_294_967_296.0 / (rank as f64 + 1.0).powf(exponent)).round().max(1.0) as u128;
            assert_eq!(mass, weight * u128::from(ranks), "rank {rank} of {ranks}, exponent {exponent}");
        }
    }
}

#[test]
fn zipf_draws_follow_the_law() {
    let zipf = zipf::Zipf::new(100, 1.0);
    let mut draws = chunks::Draws::new(7, chunks::ChunkStream::Text, 0);
    let mut counts = [0_u32; 100];
    for _ in 0..200_000 {
        counts[zipf.draw(&mut draws) as usize] += 1;
    }
    // The harmonic number of 100 is 5.187: the first rank is expected 38,556 times.
    assert!((37_800..39_300).contains(&counts[0]), "{}", counts[0]);
    assert!((18_700..19_900).contains(&counts[1]), "{}", counts[1]);
}

#[test]
fn records_are_100_printable_bytes_with_their_number() {
    let [file] = generated(Kind::Records, 1_234_567, 2).try_into().unwrap();
    assert_eq!(file.len(), 1_234_500);
    for (number, record) in file.chunks(100).enumerate() {
        assert_eq!(record[99], b'\n');
        assert!(record[..99].iter().all(|byte| (b' '..=b'~').contains(byte)));
        assert_eq!(&record[11..31], format!("{number:020}").as_bytes());
    }
}

#[test]
fn tables_have_skewed_users_and_rows_without_a_partner() {
    let [users, visits] = generated(Kind::Tables, 2_000_000, 2).try_into().unwrap();
    let total = (users.len() + visits.len()) as f64;
    assert!((1_800_000.0..2_200_000.0).contains(&total), "{total}");
    let column = |table: &[u8], index: usize| -> Vec<String> {
        let text = String::from_utf8(table.to_vec()).unwrap();
        text.lines().skip(1).map(|row| row.split(',').nth(index).unwrap().to_owned()).collect()
    };
    let known: std::collections::BTreeSet<String> = column(&users, 0).into_iter().collect();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for user in column(&visits, 1) {
        *counts.entry(user).or_default() += 1;
    }
    assert_eq!(known.len(), 2000);
    assert!(counts.keys().any(|user| !known.contains(user)));
    assert!(known.iter().any(|user| !counts.contains_key(user)));
    let most = counts.values().max().unwrap();
    let all: u32 = counts.values().sum();
    assert!(*most * 20 > all, "the most frequent user has {most} of {all} visits");
}

#[test]
fn an_existing_file_is_replaced_only_on_demand() {
    let directory = tempfile::tempdir().unwrap();
    let mut arguments = arguments(Kind::Records, &directory.path().join("file"), 1000);
    run(&arguments).unwrap();
    assert!(matches!(run(&arguments), Err(GenerateError::Exists { .. })));
    arguments.overwrite = true;
    run(&arguments).unwrap();
}

#[test]
fn sizes_and_exponents_that_make_no_sense_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let small = arguments(Kind::Records, &directory.path().join("file"), 99);
    assert!(matches!(run(&small), Err(GenerateError::Size { size: 99, size_min: 100 })));
    for exponent in [-1.0, 11.0, f64::NAN, f64::INFINITY] {
        let mut steep = arguments(Kind::Text, &directory.path().join("file"), 99);
        steep.exponent = exponent;
        assert!(matches!(run(&steep), Err(GenerateError::Exponent { .. })), "{exponent}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

//! Parsers of external data, with generated seeds and mutations of them: none panics, and each is consistent
//! with itself.
//!
//! The functions are those that `fuzz/` calls under libFuzzer. `GRISTMILL_FUZZ_SEEDS=DIRECTORY` writes the seeds
//! there; `GRISTMILL_SLOW_TESTS=1` runs a hundred times as long.

#[path = "../../../worker/tests/it/dice.rs"]
mod dice;
#[path = "../../../fuzz/entries.rs"]
mod entries;

use crate::support::Sandbox;
use crate::support::data::Random;
use dice::Dice;
use entries::{ENTRIES, Entry};
use gristmill_runtime::api::{PolicyChange, Submission, WorkerEnded};
use gristmill_scheduler::ids::JobId;
use gristmill_worker::agent::files::RangeRequest;
use gristmill_worker::codec;
use gristmill_worker::protocol::{MasterFrame, WorkerFrame};
use gristmill_worker::segment::{SegmentOrder, SegmentsWriter, SpillCompression, SpillDirs, WriteSetting};
use gristmill_worker::shuffle::{FetchHead, FetchRequest};
use gristmill_worker::value::Value;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Number of seeds drawn for a type.
const DRAWN: usize = 24;

/// Number of mutations of all seeds of one parser.
const CHANGES: usize = 2000;

/// Maximum number of bytes of an input without a seed.
const ARBITRARY_BYTES_MAX: usize = 2000;

/// Returns a spill file with some segments, as a worker writes it.
fn segments(sandbox: &Sandbox, compression: SpillCompression) -> Vec<u8> {
    let directory = sandbox.path("spills");
    fs::create_dir_all(&directory).unwrap();
    let setting = WriteSetting {
        job: JobId(1),
        map: 0,
        epoch: 0,
        partitions: 1,
        order: SegmentOrder::Key,
        spill: SpillDirs::new(vec![directory.clone()]),
        compression,
    };
    let mut writer = SegmentsWriter::on_disk(setting).unwrap();
    for number in 0..200_u32 {
        writer.pair(0, &number.to_be_bytes(), b"a value that repeats itself").unwrap();
    }
    let output = writer.finish().unwrap();
    let file = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(file).unwrap();
    drop(output);
    bytes
}

/// Draws values of a type, so that no kind of frame is forgotten.
fn drawn<T: DeserializeOwned>() -> Vec<T> {
    let mut dice = Dice::new(ChaCha8Rng::seed_from_u64(1618));
    (0..DRAWN).map(|_| dice.draw()).collect()
}

fn messages<T: Serialize + DeserializeOwned>() -> Vec<Vec<u8>> {
    let encoded = |value: T| {
        let mut bytes = Vec::new();
        codec::encode(&value, &mut bytes);
        bytes
    };
    drawn().into_iter().map(encoded).collect()
}

fn bodies<T: Serialize + DeserializeOwned>() -> Vec<Vec<u8>> {
    drawn().into_iter().map(|value: T| serde_json::to_vec(&value).unwrap()).collect()
}

fn values<T: Value + DeserializeOwned>() -> Vec<Vec<u8>> {
    let encoded = |value: T| {
        let mut bytes = Vec::new();
        value.encode_owned(&mut bytes).unwrap();
        bytes
    };
    drawn().into_iter().map(encoded).collect()
}

/// Returns seeds of one parser, made by the product's own code.
fn seeds(name: &str, sandbox: &Sandbox) -> Vec<Vec<u8>> {
    match name {
        "worker_frame" => messages::<WorkerFrame>(),
        "master_frame" => messages::<MasterFrame>(),
        "fetch_request" => messages::<FetchRequest>(),
        "fetch_head" => messages::<FetchHead>(),
        "range_request" => messages::<RangeRequest>(),
        "submission" => bodies::<Submission>(),
        "worker_ended" => bodies::<WorkerEnded>(),
        "policy_change" => bodies::<PolicyChange>(),
        "value" => values::<Vec<(u8, Option<String>, BTreeMap<u16, Vec<f64>>)>>(),
        "segment" => {
            vec![segments(sandbox, SpillCompression::None), segments(sandbox, SpillCompression::Lz4)]
        }
        "journal" => {
            let (input, journal) = (sandbox.write("text", "b a\na\n"), sandbox.text("journal"));
            let out = sandbox.text("out");
            sandbox.run_well(["run", "wordcount", &input, "--output", &out, "--journal", &journal]);
            vec![fs::read(journal).unwrap()]
        }
        "workload_file" => {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/workloads");
            let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
            files
                .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
                .map(|path| fs::read(path).unwrap())
                .collect()
        }
        "join_line" => {
            vec![b"gm1:127.0.0.1:7070#admin@1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_vec()]
        }
        _ => panic!("{name} has no seeds"),
    }
}

/// Mutates some of the bytes, at one to four positions.
fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(16)).min(bytes.len());
        match random.below(5) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => bytes[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'{', b'9']),
            3 => drop(bytes.drain(at..end)),
            _ => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
        }
    }
}

fn check((name, read): &Entry, sandbox: &Sandbox, random: &mut Random) {
    let seeds = seeds(name, sandbox);
    if let Some(directory) = std::env::var_os("GRISTMILL_FUZZ_SEEDS").map(PathBuf::from) {
        fs::create_dir_all(directory.join(name)).unwrap();
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(directory.join(name).join(number.to_string()), seed).unwrap();
        }
    }
    let changes = CHANGES * if std::env::var_os("GRISTMILL_SLOW_TESTS").is_some() { 100 } else { 1 };
    for seed in &seeds {
        read(seed);
        for _ in 0..changes.div_ceil(seeds.len()) {
            let mut bytes = seed.clone();
            change(&mut bytes, random);
            read(&bytes);
        }
    }
    for _ in 0..changes {
        let count = random.below(ARBITRARY_BYTES_MAX);
        read(&random.bytes(count));
    }
}

#[test]
fn readers_of_what_others_write_take_anything_without_a_panic() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(1617);
    for entry in ENTRIES {
        check(entry, &sandbox, &mut random);
    }
}

#[test]
fn every_reader_has_a_target() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/targets");
    let mut targets: Vec<String> = crate::support::oracle::names(&directory);
    let mut expected: Vec<String> = ENTRIES.iter().map(|(name, _)| format!("{name}.rs")).collect();
    targets.sort();
    expected.sort();
    assert_eq!(targets, expected);
}

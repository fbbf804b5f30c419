//! Writing, reading and verifying one segment of pairs of 100 bytes in key order, in bytes/s.
//!
//! Checks that a pass over the data costs little compared with the sort and the merge: CRC-32C runs at 20 GB/s on
//! blocks, so a verified segment in memory should be read at several GB/s; LZ4 compresses sorted records at about 3
//! GB/s and decompresses them at about 2. Bytes are those of keys and values, before LZ4; verifying does not
//! decompress. Spill files stay in the page cache, so disks are not measured. Collectors are not included.

use crate::data::{RECORD_BYTES, RECORD_KEY_BYTES, SHRINK, records};
use criterion::{BatchSize, Criterion, Throughput};
use gristmill::scheduler::ids::JobId;
use gristmill::worker::budget::Budget;
use gristmill::worker::segment::{
    MapOutput, SegmentData, SegmentId, SegmentOrder, SegmentReader, SegmentsWriter, SpillCompression,
    SpillDirs, WriteSetting, verify,
};
use std::cell::LazyCell;
use tempfile::TempDir;

/// Number of pairs of the segment.
const PAIRS: u64 = 80_000 / SHRINK;
/// Bytes of their keys and values.
const BYTES: u64 = PAIRS * RECORD_BYTES;
const ID: SegmentId = SegmentId { job: JobId(1), map: 0, epoch: 0, partition: 0 };

/// Place of a segment.
#[derive(Clone, Copy)]
enum Storage {
    Memory,
    Spilled(SpillCompression),
}

const KINDS: [(&str, Storage); 3] = [
    ("in memory", Storage::Memory),
    ("spilled", Storage::Spilled(SpillCompression::None)),
    ("spilled with LZ4", Storage::Spilled(SpillCompression::Lz4)),
];

/// Pairs and a place to write them to.
struct SortedPairs {
    /// Deleted when dropped.
    _directory: TempDir,
    /// One for all files, because it keeps their names unique.
    spill: SpillDirs,
    budget: Budget,
    /// Sorted records, one after another.
    records: Vec<u8>,
}

impl SortedPairs {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("the directory for temporary files can be written");
        let mut all: Vec<Vec<u8>> =
            records(PAIRS).chunks(RECORD_BYTES as usize).map(<[u8]>::to_vec).collect();
        all.sort();
        let spill = SpillDirs::new(vec![directory.path().to_owned()]);
        Self { _directory: directory, spill, budget: Budget::new(1 << 30), records: all.concat() }
    }

    fn write(&self, kind: Storage) -> MapOutput {
        let compression = match kind {
            Storage::Memory => SpillCompression::None,
            Storage::Spilled(compression) => compression,
        };
        let setting = WriteSetting {
            job: ID.job,
            map: ID.map,
            epoch: ID.epoch,
            partitions: 1,
            order: SegmentOrder::Key,
            spill: self.spill.clone(),
            compression,
        };
        let mut writer = match kind {
            // With room for the lengths of pairs and for headers.
            Storage::Memory => SegmentsWriter::in_memory(setting, &self.budget, (BYTES + BYTES / 8) as usize),
            Storage::Spilled(_) => SegmentsWriter::on_disk(setting),
        }
        .expect("a spill file can be created");
        for record in self.records.chunks(RECORD_BYTES as usize) {
            let (key, value) = record.split_at(RECORD_KEY_BYTES);
            writer.pair(0, key, value).expect("a spill file can be written");
        }
        writer.finish().expect("a spill file can be written")
    }

    fn segment(&self, kind: Storage) -> SegmentData {
        self.write(kind).segment(0).expect("there is one partition")
    }
}

/// Runs all benchmarks of this file.
pub fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("segment");
    group.throughput(Throughput::Bytes(BYTES));
    let source = LazyCell::new(SortedPairs::new);
    for (place, kind) in KINDS {
        group.bench_function(format!("write {place}"), |bencher| {
            // The result is dropped after the clock has stopped, one at a time.
            bencher.iter_batched(|| (), |()| source.write(kind), BatchSize::PerIteration);
        });
        let segment = LazyCell::new(|| source.segment(kind));
        group.bench_function(format!("read {place}"), |bencher| {
            assert_eq!(read(segment.clone()), BYTES, "pairs were lost");
            bencher.iter(|| read(segment.clone()));
        });
        group.bench_function(format!("verify {place}"), |bencher| {
            bencher.iter(|| verify(&segment, &ID).expect("the segment was just written"));
        });
    }
    group.finish();
}

/// Reads all pairs. Returns their bytes.
fn read(segment: SegmentData) -> u64 {
    let mut reader = SegmentReader::open(segment).expect("the segment was just written");
    let mut bytes = 0;
    while reader.advance().expect("the segment was just written") {
        bytes += (reader.key().len() + reader.value().len()) as u64;
    }
    bytes
}

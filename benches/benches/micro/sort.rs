//! One map task of `sort` over records of 100 bytes, from the file to segments in memory, in bytes/s.
//!
//! Total order with two partitions, as with two workers. Measures the map side of the sort row: 10 million records take
//! 1.3 s of user time in the trial with both sides, so this half may take 60 ns a record, or 1.6 GB/s. The reduce side
//! is measured by `merge`; the sample for the cut is not included.

use crate::data::{RECORD_BYTES, RECORD_KEY_BYTES, SHRINK, records};
use crate::task::TaskRunner;
use crate::{measure, slow_group};
use criterion::{Criterion, Throughput};
use gristmill::jobs::Sort;
use gristmill::jobs::sort::ByteRange;
use gristmill::prelude::*;
use gristmill::worker::record::RecordFormat;
use std::cell::LazyCell;
use std::sync::Arc;

/// Number of records of the split.
const RECORDS: u64 = 200_000 / SHRINK;
/// Number of partitions of the job.
const PARTITIONS: u32 = 2;
/// First key of the second partition: in the middle of the printable bytes.
const CUT: &[u8] = b"P";

/// Returns the job of the sort row of the whole-job benchmarks: by the first 10 bytes.
pub fn sort_records(fixed: bool) -> JobPlan {
    Sort {
        inputs: vec!["input".to_owned()],
        record_length: fixed.then_some(RECORD_BYTES as u32),
        key_bytes: Some(ByteRange { start: 0, end: Some(RECORD_KEY_BYTES as u32) }),
        field: None,
        delimiter: None,
        numeric: false,
        reverse: false,
        unique: false,
        stable: false,
    }
    .plan()
    .expect("the range holds bytes")
}

/// Records of fixed length.
pub const FIXED: RecordFormat = RecordFormat::Fixed { length: RECORD_BYTES as u32 };

/// Runs all benchmarks of this file.
pub fn benches(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "sort");
    group.throughput(Throughput::Bytes(RECORDS * RECORD_BYTES));
    for (name, fixed, format) in
        [("records of 100 bytes", true, FIXED), ("lines of 100 bytes", false, RecordFormat::Lines)]
    {
        let plan = sort_records(fixed);
        let prepared = LazyCell::new(|| {
            let mut tasks = TaskRunner::new(PARTITIONS);
            tasks.settings.cuts = Arc::new(vec![CUT.to_vec()]);
            let split = tasks.split("records", &records(RECORDS, 0), format);
            let partitions = tasks.map(&plan, 0, &split);
            let large = |partition| {
                3 * partitions.segment(partition).map_or(0, |data| data.len()) > partitions.bytes() as usize
            };
            assert!((0..PARTITIONS).all(large), "the cut does not halve the keys");
            (tasks, split)
        });
        group.bench_function(name, |bencher| {
            let (tasks, split) = &*prepared;
            measure(bencher, || tasks.map(&plan, 0, split));
            assert_eq!(tasks.spills(), 0, "a split is larger than a collector");
        });
    }
    group.finish();
}

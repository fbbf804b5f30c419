//! One reduce task over 16 segments in memory, with its output discarded.
//!
//! `sorted records`, in bytes/s, measures the loser tree of the sort row: together with `sort` it must stay within 130
//! ns of user time a record, including writing; a naive tree merges 11-15 million records a second.
//!
//! `sorted pairs` and `combined pairs`, in pairs/s, measure the same count of words without and with a combiner: by a
//! merge in key order, and by a table in hash order with one sort at the end. The table was chosen because whole jobs
//! on Zipf's words took 0.99-1.14 times the limit with it and 1.3-2.95 times without. Keys that hardly repeat are its
//! worst case, especially when the table has to spill.

use crate::collector::count_words;
use crate::data::{self, Frequency, Length, RECORD_BYTES, SHRINK};
use crate::sort::{FIXED, sort_records};
use crate::task::TaskRunner;
use crate::{measure, slow_group};
use criterion::{Criterion, Throughput};
use gristmill::prelude::*;
use gristmill::worker::input::Split;
use gristmill::worker::record::RecordFormat;
use gristmill::worker::segment::MapOutput;
use std::cell::LazyCell;

/// Number of merged segments.
const SEGMENTS: u64 = 16;
/// Number of records of each segment.
const RECORDS: u64 = 12_800 / SHRINK;
/// Number of words of each map.
const WORDS: u64 = 64_000 / SHRINK;

/// Memory of a reduce in bytes, enough that no table spills.
const MERGE_BYTES: usize = 256 << 20;
/// Memory in bytes with which a table of many keys spills several times.
const MERGE_BYTES_TIGHT: usize = (16 << 20) / SHRINK as usize;

/// Maps whose output is all in partition 0.
struct MergeInput {
    tasks: TaskRunner,
    outputs: Vec<MapOutput>,
}

impl MergeInput {
    fn run(plan: &JobPlan, merge_bytes: usize, split: impl Fn(&TaskRunner, u64) -> Split) -> Self {
        let mut tasks = TaskRunner::new(1);
        tasks.settings.merge_bytes = merge_bytes;
        let map = |index| tasks.map(plan, index as u32, &split(&tasks, index));
        let outputs = (0..SEGMENTS).map(map).collect();
        Self { tasks, outputs }
    }

    fn reduce(&self, plan: &JobPlan) -> u64 {
        let segment = |output: &MapOutput| output.segment(0).expect("there is one partition");
        self.tasks.reduce(plan, self.outputs.iter().map(segment).collect()).records
    }
}

/// Runs all benchmarks of this file.
pub fn benches(criterion: &mut Criterion) {
    records(criterion);
    words(criterion);
}

fn records(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "merge");
    group.throughput(Throughput::Bytes(SEGMENTS * RECORDS * RECORD_BYTES));
    let plan = sort_records(true);
    let maps = LazyCell::new(|| {
        MergeInput::run(&plan, MERGE_BYTES, |tasks, index| {
            tasks.split(&format!("records-{index}"), &data::records(RECORDS, index), FIXED)
        })
    });
    group.bench_function("sorted records", |bencher| {
        assert_eq!(maps.reduce(&plan), SEGMENTS * RECORDS, "records were lost");
        measure(bencher, || maps.reduce(&plan));
    });
    group.finish();
}

fn words(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "merge");
    // Pairs before any combining, so that all kinds have the same unit.
    group.throughput(Throughput::Elements(SEGMENTS * WORDS));
    for (name, combine, frequency, merge_bytes) in [
        ("sorted pairs of few keys", false, Frequency::Books, MERGE_BYTES),
        ("sorted pairs of many keys", false, Frequency::Rare, MERGE_BYTES),
        ("combined pairs of few keys", true, Frequency::Books, MERGE_BYTES),
        ("combined pairs of many keys", true, Frequency::Rare, MERGE_BYTES),
        ("combined pairs of many keys, spilling", true, Frequency::Rare, MERGE_BYTES_TIGHT),
    ] {
        let plan = count_words(combine);
        let maps = LazyCell::new(|| {
            MergeInput::run(&plan, merge_bytes, |tasks, index| {
                let text = data::text(WORDS, frequency, Length::Short, index);
                tasks.split(&format!("text-{index}"), &text, RecordFormat::Lines)
            })
        });
        group.bench_function(name, |bencher| {
            measure(bencher, || maps.reduce(&plan));
            assert_eq!(
                0 < maps.tasks.spills(),
                merge_bytes == MERGE_BYTES_TIGHT,
                "{} spills",
                maps.tasks.spills()
            );
        });
    }
    group.finish();
}

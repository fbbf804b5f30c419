//! One map task over words, from the file to segments in memory, in pairs/s (100 Melem/s are 10 ns a pair).
//!
//! `combine` measures the combining collector: 8.6 ns a word in large splits of books, including the tokeniser, which
//! `tokenise/words` measures separately. Here it is more, since a small split writes a large part of its words as
//! segments. `sort` measures the sorting collector with the same words. Long keys have the same prefix, so the prefix
//! that sorts compare first is useless: the expensive case.

use crate::data::{self, Frequency, Length, SHRINK};
use crate::task::TaskRunner;
use crate::{measure, slow_group};
use criterion::{Criterion, Throughput};
use gristmill::prelude::*;
use gristmill::worker::record::RecordFormat;
use std::cell::LazyCell;

/// Pairs that each map emits.
const PAIRS: u64 = 500_000 / SHRINK;
/// Partitions of the job.
const PARTITIONS: u32 = 4;

/// Emits each word with a 1.
pub struct EachWord;

impl Mapper for EachWord {
    type Key = ByteString;
    type Value = u64;

    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, u64>) -> TaskResult {
        text::for_each_word(record.bytes(), |word| out.emit(word, 1));
        Ok(())
    }

    fn block(&mut self, block: Block<'_>, out: &mut Emitter<ByteString, u64>) -> TaskResult {
        text::for_each_word(block.bytes(), |word| out.emit(word, 1));
        Ok(())
    }
}

/// Counts words, with or without a combiner.
pub fn count_words(combine: bool) -> JobPlan {
    let plan = JobPlan::map(Input::lines(["input"]), || EachWord);
    let plan = if combine { plan.combine(Sum::<u64>::default) } else { plan };
    plan.reduce(WriteTotal::<ByteString, Sum<u64>>::default)
}

/// Runs all benchmarks of this file.
pub fn benches(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "collector");
    group.throughput(Throughput::Elements(PAIRS));
    for combine in [true, false] {
        let plan = count_words(combine);
        for (name, frequency, length) in [
            ("short keys", Frequency::Books, Length::Short),
            ("long keys", Frequency::Books, Length::Long),
            ("many distinct keys", Frequency::Rare, Length::Short),
            ("many distinct long keys", Frequency::Rare, Length::Long),
        ] {
            let prepared = LazyCell::new(|| {
                let tasks = TaskRunner::new(PARTITIONS);
                let split =
                    tasks.split("text", &data::text(PAIRS, frequency, length, 0), RecordFormat::Lines);
                (tasks, split)
            });
            let kind = if combine { "combine" } else { "sort" };
            group.bench_function(format!("{kind} {name}"), |bencher| {
                let (tasks, split) = &*prepared;
                measure(bencher, || tasks.map(&plan, 0, split));
                assert_eq!(tasks.spills(), 0, "a split is larger than a collector");
            });
        }
    }
    group.finish();
}

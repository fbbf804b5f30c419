//! Tests of single tasks: limits, failures, counters, cancellation.

use super::super::*;
use super::jobs::Numbers;
use super::runner::{Bench, JOB, Means, Memory, MemorySplit, prints, run_job};
use crate::api::{
    Combiner, Counter, Input, JobPlan, MapOnly, Mapper, Partitioner, Reducer, Sum, TaskContext, WriteTotal,
};
use crate::attempt::TaskResult;
use crate::collect::Emitter;
use crate::input::record::{Record, RecordFormat};
use crate::input::{Compression, FilePath, FileStamp, LocalFiles, Piece, Place};
use crate::key::ByteString;
use crate::merge::Values;
use crate::segment::{SegmentError, SegmentOrder, SegmentsWriter, SpillCompression, SpillDirs, WriteSetting};
use gristmill_scheduler::ids::TaskId;
use std::sync::atomic::Ordering::Relaxed;

fn input() -> Input {
    Input::lines(["memory"])
}

fn split(text: impl Into<String>) -> MemorySplit {
    MemorySplit { input: 0, blocks: vec![text.into()] }
}

fn sums() -> JobPlan {
    JobPlan::map(input(), || Numbers).combine(Sum::<u64>::new).reduce(WriteTotal::<String, Sum<u64>>::default)
}

/// Emits each line under a common key, or under itself.
struct Lines {
    by_line: bool,
}
impl Mapper for Lines {
    type Key = ByteString;
    type Value = ByteString;
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        out.emit(if self.by_line { &record } else { b"k" }, &record);
        Ok(())
    }
}

/// Which values a reducer reads of each group.
#[derive(Clone, Copy)]
enum Reads {
    Nothing,
    Two,
    All,
}

struct Reader {
    reads: Reads,
    groups: Option<Counter>,
}
impl Reader {
    fn new(reads: Reads) -> Self {
        Self { reads, groups: None }
    }
}
impl Reducer for Reader {
    type Key = ByteString;
    type Value = ByteString;
    fn setup(&mut self, task: &TaskContext, out: &mut Output) -> TaskResult {
        self.groups = Some(task.counter("groups"));
        out.line(b"begin");
        Ok(())
    }
    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, ByteString>,
        out: &mut Output,
    ) -> TaskResult {
        self.groups.as_ref().unwrap().add(1);
        let mut count = 0u64;
        match self.reads {
            Reads::Nothing => {}
            Reads::Two => count += u64::from(values.next()?.is_some()) + u64::from(values.next()?.is_some()),
            Reads::All => {
                while values.next()?.is_some() {
                    count += 1;
                }
                assert!(values.next()?.is_none());
                assert_eq!(values.key()?, key);
            }
        }
        out.pair(key, count);
        Ok(())
    }
    fn finish(&mut self, out: &mut Output) -> TaskResult {
        out.line(b"end");
        Ok(())
    }
}

fn lines(by_line: bool, reads: Reads) -> JobPlan {
    JobPlan::map(input(), move || Lines { by_line }).reduce(move || Reader::new(reads))
}

#[test]
fn values_that_are_not_read_are_skipped() {
    for means in [Means::PLENTY, Means::NOTHING] {
        for (reads, a, b) in [(Reads::Nothing, 0, 0), (Reads::Two, 2, 1), (Reads::All, 3, 1)] {
            let splits = [split("a\nb\na\n"), split("a\n")];
            let parts = run_job(&lines(true, reads), &splits, 1, means);
            assert_eq!(parts, [format!("begin\na\t{a}\nb\t{b}\nend\n")]);
        }
    }
}

#[test]
fn a_group_of_a_million_values_streams_through_small_memory() {
    const SPLITS: usize = 8;
    const LINES: usize = 125_000;
    let splits = vec![split("0123456789\n".repeat(LINES)); SPLITS];
    let means =
        Means { collector_bytes: 256 << 10, merge_bytes: 1 << 20, budget_bytes: 1 << 20, ..Means::PLENTY };
    let bench = Bench::new(means, 1);
    let plan = lines(false, Reads::All);
    let outputs = bench.maps(&plan, &splits).unwrap();
    let segments = outputs.iter().map(|done| done.output.segment(0).unwrap()).collect();
    let (part, done) = bench.reduce(&plan, 0, segments).unwrap();
    assert_eq!(part, format!("begin\nk\t{}\nend\n", SPLITS * LINES));
    assert_eq!(done.stats.counters, [("groups".to_owned(), 1)]);
    assert!(bench.budget.peak_bytes() <= 1 << 20, "{}", bench.budget.peak_bytes());
    assert!(SPLITS as u64 * 8 < bench.progress.spills.load(Relaxed));
    assert_eq!(bench.progress.records_in.load(Relaxed), (SPLITS * LINES) as u64);
}

#[test]
fn a_table_that_is_too_small_for_keys_in_hash_order_is_still_quick() {
    // Quadratic probing of these would take minutes.
    let text: String = (0..300_000).map(|n| format!("{n} 1\n")).collect();
    let bench = Bench::new(Means { merge_bytes: 1 << 20, ..Means::PLENTY }, 1);
    let outputs = bench.maps(&sums(), &[split(text.clone()), split(text)]).unwrap();
    let segments = outputs.iter().map(|done| done.output.segment(0).unwrap()).collect();
    let (part, done) = bench.reduce(&sums(), 0, segments).unwrap();
    assert_eq!(done.records, 300_000);
    assert_eq!(bench.progress.records_in.load(Relaxed), 600_000, "pairs are counted once");
    assert!(part.starts_with("0\t2\n1\t2\n10\t2\n"));
}

#[test]
fn partition_with_more_keys_than_its_table_holds_spills_each_key_about_once() {
    const KEYS: u64 = 300_000;
    const MAPS: usize = 4;
    let text: String = (0..KEYS).map(|n| format!("{n:06} 1\n")).collect();
    for partitions in [1, 3] {
        let bench = Bench::new(Means { merge_bytes: 2 << 20, ..Means::PLENTY }, partitions);
        let outputs = bench.maps(&sums(), &vec![split(text.clone()); MAPS]).unwrap();
        let mut lines = Vec::new();
        for partition in 0..partitions {
            let segments = outputs.iter().map(|done| done.output.segment(partition).unwrap()).collect();
            let (part, _) = bench.reduce(&sums(), partition, segments).unwrap();
            lines.extend(part.lines().map(str::to_owned));
        }
        lines.sort_unstable();
        assert_eq!(lines, (0..KEYS).map(|n| format!("{n:06}\t{MAPS}")).collect::<Vec<_>>());
        // Both lengths, key and value; the last run of each partition stays in memory.
        let each_once = KEYS * (2 + 6 + 1);
        let spilled = bench.progress.spilled_bytes.load(Relaxed);
        assert!((each_once / 2..each_once * 11 / 10).contains(&spilled), "{spilled} of {each_once}");
    }
}

#[test]
fn an_empty_job_writes_empty_parts() {
    assert_eq!(run_job(&sums(), &[], 3, Means::PLENTY), ["", "", ""]);
    assert_eq!(run_job(&sums(), &[split("")], 2, Means::NOTHING), ["", ""]);
}

struct Seven;
impl Partitioner for Seven {
    type Key = String;
    fn partition(&self, _: &str, _: u32) -> u32 {
        7
    }
}

#[test]
fn a_partitioner_out_of_range_fails_the_task_and_names_both_numbers() {
    let plain = JobPlan::map(input(), || Numbers).partition(Seven);
    let plain = plain.reduce(WriteTotal::<String, Sum<u64>>::default);
    let combining = JobPlan::map(input(), || Numbers).partition(Seven).combine(Sum::<u64>::new);
    let combining = combining.reduce(WriteTotal::<String, Sum<u64>>::default);
    for plan in [plain, combining] {
        let failure = Bench::new(Means::PLENTY, 4).map(&plan, 0, &split("a 1\n")).unwrap_err();
        assert_eq!(failure.class(), Fault::User);
        assert_eq!(failure.to_string(), "partitioner returned 7 for 4 partitions");
    }
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    struct Grouped;
    impl Mapper for Grouped {
        type Key = (u8, u8);
        type Value = u64;
        fn map(&mut self, _: Record<'_>, _: &mut Emitter<(u8, u8), u64>) -> TaskResult {
            Ok(())
        }
    }
    struct Ignore;
    impl Reducer for Ignore {
        type Key = (u8, u8);
        type Value = u64;
        fn reduce(&mut self, _: (u8, u8), _: &mut Values<'_, (u8, u8), u64>, _: &mut Output) -> TaskResult {
            Ok(())
        }
    }
    let plan = JobPlan::map(input(), || Grouped).group_by_first().combine(Sum::<u64>::new).reduce(|| Ignore);
    assert!(plan.validate().unwrap_err().to_string().contains("group_by_first"));
    let plan = JobPlan::map(input(), || Numbers).partition(Seven).total_order();
    let plan = plan.reduce(WriteTotal::<String, Sum<u64>>::default);
    assert!(plan.validate().unwrap_err().to_string().contains("total_order"));
    let plan =
        JobPlan::map(Input::fixed(["data"], 0), || Numbers).reduce(WriteTotal::<String, Sum<u64>>::default);
    assert!(
        plan.validate().unwrap_err().to_string().contains("must be at least 1"),
        "records without an end"
    );
    sums().validate().unwrap();
}

#[test]
fn a_spill_directory_that_is_gone_is_the_workers_fault_and_names_the_directory() {
    for plan in [sums(), lines(true, Reads::All)] {
        let mut bench = Bench::new(Means::NOTHING, 1);
        bench.settings.spill = SpillDirs::new(vec!["/dev/null/spill".into()]);
        let text: String = (0..200).map(|n| format!("{n} 1\n")).collect();
        let failure = bench.map(&plan, 0, &split(text)).unwrap_err();
        assert_eq!(failure.class(), Fault::Worker);
        assert!(failure.to_string().contains("/dev/null/spill"), "{failure}");
    }
}

#[test]
fn a_cancelled_attempt_stops() {
    let bench = Bench::new(Means::PLENTY, 1);
    let output = bench.map(&sums(), 0, &split("a 1\n")).unwrap().output;
    bench.progress.cancel();
    let failure = bench.map(&sums(), 0, &split("a 1\n")).unwrap_err();
    assert_eq!(failure.class(), Fault::Cancelled);
    let failure = bench.reduce(&sums(), 0, vec![output.segment(0).unwrap()]).unwrap_err();
    assert_eq!(failure.class(), Fault::Cancelled);
}

#[test]
fn an_error_of_a_mapper_fails_the_task_with_its_message() {
    let failure = Bench::new(Means::PLENTY, 1).map(&sums(), 0, &split("a 1\nnone\n")).unwrap_err();
    assert_eq!((failure.class(), failure.to_string().as_str()), (Fault::User, "no blank"));
}

#[test]
fn segments_of_another_order_partition_or_job_are_refused() {
    let bench = Bench::new(Means::PLENTY, 2);
    let (hash, key) = (sums(), lines(true, Reads::All));
    let text: String = (0..20).map(|n| format!("{n} 1\n")).collect();
    let maps = bench.maps(&hash, &[split(text.clone()), split(text.clone())]).unwrap();
    let segment = |map: usize, partition| maps[map].output.segment(partition).unwrap();
    let corrupt = |failure: TaskFailure| {
        assert_eq!(failure.class(), Fault::Corrupt);
        match failure {
            TaskFailure::Corrupt { map, source } => (map, source),
            other => panic!("{other}"),
        }
    };
    let twice = bench.reduce(&hash, 0, vec![segment(1, 0), segment(1, 0)]).unwrap_err();
    assert!(matches!(corrupt(twice), (Some(1), SegmentError::Twice { map: 1 })));
    let other = bench.reduce(&hash, 1, vec![segment(1, 0)]).unwrap_err();
    assert!(matches!(corrupt(other), (Some(1), SegmentError::Identity { .. })));
    let unsorted = bench.reduce(&key, 0, vec![segment(0, 0)]).unwrap_err();
    assert!(matches!(corrupt(unsorted), (Some(0), SegmentError::Order { .. })));
    // A combining reducer does not need an order.
    let sorted = JobPlan::map(input(), || Numbers).reduce(WriteTotal::<String, Sum<u64>>::default);
    let sorted = bench.map(&sorted, 0, &split(text)).unwrap().output;
    let (part, _) = bench.reduce(&hash, 0, vec![sorted.segment(0).unwrap()]).unwrap();
    assert_eq!(part, bench.reduce(&hash, 0, vec![segment(0, 0)]).unwrap().0);
}

#[test]
fn reduce_has_no_room_for_a_longer_block_than_its_slot_collects() {
    let bench = Bench::new(Means { merge_bytes: 4 << 20, ..Means::PLENTY }, 1);
    let plan = lines(true, Reads::All);
    let segment = |bytes: usize| {
        let (job, partitions, order) = (JOB, 1, SegmentOrder::Key);
        let (spill, compression) = (bench.settings.spill.clone(), SpillCompression::None);
        let setting = WriteSetting { job, map: 0, epoch: 0, partitions, order, spill, compression };
        let mut writer = SegmentsWriter::on_disk(setting).unwrap();
        writer.pair(0, &vec![b'k'; bytes], b"").unwrap();
        writer.finish().unwrap().segment(0).unwrap()
    };
    assert!(bench.reduce(&plan, 0, vec![segment(2 << 20)]).is_ok(), "as much as a map may emit there");
    let failure = bench.reduce(&plan, 0, vec![segment(3 << 20)]).unwrap_err();
    assert!(matches!(failure, TaskFailure::TooLarge(_)), "{failure}");
}

#[test]
fn damage_that_a_reducer_swallows_still_fails_the_task() {
    struct Swallow;
    impl Reducer for Swallow {
        type Key = ByteString;
        type Value = ByteString;
        fn reduce(
            &mut self,
            _: &[u8],
            values: &mut Values<'_, ByteString, ByteString>,
            _: &mut Output,
        ) -> TaskResult {
            values.iter().for_each(drop);
            Ok(())
        }
    }
    let bench = Bench::new(Means::PLENTY, 1);
    let plan = JobPlan::map(input(), || Lines { by_line: false }).reduce(|| Swallow);
    let output = bench.map(&plan, 0, &split("0123456789\n".repeat(20_000))).unwrap().output;
    let SegmentData::Memory(bytes) = output.segment(0).unwrap() else { panic!("in memory") };
    let mut damaged = bytes.to_vec();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let failure = bench.reduce(&plan, 0, vec![SegmentData::Memory(damaged.into())]).unwrap_err();
    assert!(matches!(failure, TaskFailure::Corrupt { map: Some(0), .. }), "{failure}");
}

#[test]
fn a_sample_is_bounded_and_the_same_every_time() {
    let sample = |keys_max| {
        let mut sample = KeySample::new(keys_max);
        for key in 0..10_000u32 {
            sample.add(&key.to_be_bytes());
        }
        assert_eq!(sample.len(), keys_max);
        cut_points(sample, 10, &sums())
    };
    let cuts = sample(1000);
    assert_eq!(cuts, sample(1000));
    assert_eq!(cuts.len(), 9);
    for (index, cut) in cuts.iter().enumerate() {
        let key = u32::from_be_bytes(*cut.first_chunk().unwrap()) as usize;
        assert!(key.abs_diff((index + 1) * 1000) < 500, "{key} begins partition {}", index + 1);
    }
    assert!(KeySample::default().is_empty());
    assert!(cut_points(KeySample::default(), 4, &sums()).is_empty());
}

#[test]
fn cuts_ascend_even_if_most_keys_are_equal() {
    let mut sample = KeySample::new(1000);
    for key in [&b"a"[..], b"m", b"m", b"m", b"m", b"m", b"m", b"m", b"z"] {
        sample.add(key);
    }
    assert_eq!(cut_points(sample, 5, &sums()), [b"m", b"z"]);
}

/// Builds a split of a real file.
fn file_split(dir: &tempfile::TempDir, text: &str) -> Split {
    let path = dir.path().join("input.txt");
    std::fs::write(&path, text).unwrap();
    let name = FilePath::from(path.as_path());
    let stamp = FileStamp::from_metadata(&std::fs::metadata(&path).unwrap());
    let piece = Piece {
        path: name.clone(),
        name,
        place: Place::Submitter,
        offset: 0,
        length: stamp.size,
        stamp,
        compression: Compression::None,
        table: None,
    };
    Split { input: 0, format: RecordFormat::Lines, pieces: vec![piece] }
}

#[test]
fn a_map_reads_its_split_and_says_how_much() {
    let bench = Bench::new(Means::PLENTY, 1);
    let split = file_split(&bench.dir, "a 1\nb 2\na 3");
    let (plan, context) = (sums(), bench.context(TaskId::map(JOB, 0).attempt(0)));
    let done = run_map(&plan, context, &split, &LocalFiles).unwrap();
    assert_eq!((done.stats.local_bytes, done.output.records()), (11, 2));
    let (part, _) = bench.reduce(&plan, 0, vec![done.output.segment(0).unwrap()]).unwrap();
    assert_eq!(part, "a\t4\nb\t2\n");
}

#[test]
fn a_map_only_task_writes_its_part_in_input_order() {
    struct Even(Option<Counter>);
    impl MapOnly for Even {
        fn setup(&mut self, task: &TaskContext) -> TaskResult {
            self.0 = Some(task.counter("kept"));
            Ok(())
        }
        fn map(&mut self, record: Record<'_>, out: &mut Output) -> TaskResult {
            if record.len().is_multiple_of(2) {
                self.0.as_ref().unwrap().add(1);
                out.line(&record);
            }
            Ok(())
        }
    }
    let bench = Bench::new(Means::PLENTY, 0);
    let split = file_split(&bench.dir, "even\nodd\n\nagain!\n");
    let part = Memory::default();
    let output = Output::new("part", Box::new(part.clone()));
    let plan = JobPlan::map_only(input(), || Even(None));
    let context = bench.context(TaskId::map(JOB, 0).attempt(0));
    let done = run_map_only(&plan, &context, &split, &LocalFiles, output).unwrap();
    assert_eq!(&*part.0.lock().unwrap(), b"even\n\nagain!\n");
    assert_eq!((done.records, done.bytes), (3, 13));
    assert_eq!(done.stats, TaskStats { counters: vec![("kept".into(), 3)], local_bytes: 17 });
    let progress = &bench.progress;
    assert_eq!((progress.records_in.load(Relaxed), progress.records_out.load(Relaxed)), (4, 3));
    let failure = bench.map(&plan, 0, &MemorySplit { input: 0, blocks: Vec::new() }).unwrap_err();
    assert_eq!(failure.class(), Fault::Config);
}

/// `word number` lines of a block, as sums of `f64` in the order of an unordered table such as `HashMap`.
struct Shares {
    backwards: bool,
}
impl Mapper for Shares {
    type Key = String;
    type Value = f64;
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<String, f64>) -> TaskResult {
        let text = record.text();
        let mut numbers: Vec<&str> = text.split(' ').collect();
        if self.backwards {
            numbers.reverse();
        }
        for number in numbers {
            out.emit("total", number.parse()?);
        }
        Ok(())
    }
}

struct Added;
impl Combiner for Added {
    type Value = f64;
    fn combine(&mut self, total: &mut f64, value: f64) {
        *total += value;
    }
}

#[test]
fn map_whose_combiner_rounds_agrees_with_itself_in_any_order_and_within_any_memory() {
    let plan = |backwards| {
        let plan = JobPlan::map(input(), move || Shares { backwards }).combine(|| Added);
        plan.reduce(|| WriteTotal::<String, _>::new(Added))
    };
    let splits = [split("0.1 0.2 0.3 1e16 0.7\n1.5 -1e16 0.9\n")];
    let total = |backwards| run_job(&plan(backwards), &splits, 1, Means::PLENTY);
    assert_ne!(total(true), total(false), "these numbers are rounded by their order");
    let first = prints(&plan(false), &splits, 1, Means::PLENTY);
    for (backwards, means) in [(true, Means::PLENTY), (false, Means::NOTHING), (true, Means::NOTHING)] {
        assert_eq!(prints(&plan(backwards), &splits, 1, means), first, "backwards {backwards}, {means:?}");
    }
    let other = [split("0.1 0.2\n")];
    assert_eq!(prints(&plan(false), &other, 1, Means::PLENTY), first, "values do not count, keys do");
    let words = |text: &str| prints(&sums(), &[split(text)], 3, Means::PLENTY);
    assert_ne!(words("a 1\nb 2\n"), words("a 1\nc 2\n"));
}

//! Tests of reduces that are divided while they run: the pieces have the output of the whole.

use super::super::*;
use super::runner::{Bench, JOB, Means, MemorySplit};
use crate::api::{Combiner, Input, Mapper, Reducer, TaskContext};
use crate::attempt::{Division, TaskResult};
use crate::collect::Emitter;
use crate::input::Record;
use crate::key::ByteString;
use crate::merge::Values;
use crate::segment::KeyBounds;
use gristmill_scheduler::ids::TaskId;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

const PARTITIONS: u32 = 2;

/// `word number length` lines: the first two as key, and a value of this length.
struct Pairs;
impl Mapper for Pairs {
    type Key = (String, u32);
    type Value = ByteString;
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<(String, u32), ByteString>) -> TaskResult {
        let text = record.text();
        let mut fields = text.split(' ');
        let (word, number, length) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        out.emit((word.to_owned(), number.parse()?), &vec![b'v'; length.parse()?]);
        Ok(())
    }
}

struct Longest;
impl Combiner for Longest {
    type Value = ByteString;
    fn combine(&mut self, longest: &mut ByteString, value: ByteString) {
        *longest = std::mem::take(longest).max(value);
    }
}

/// Orders divisions of the running reduce at groups.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<Scene>>);

#[derive(Default)]
struct Scene {
    progress: Arc<Progress>,
    /// Number of groups before each order, the next one last, and true if it is at once.
    orders: Vec<(u64, bool)>,
}

impl Script {
    fn starts_group(&self) {
        let mut scene = self.0.lock().unwrap();
        let Some((groups, at_once)) = scene.orders.last_mut() else { return };
        if 0 < *groups {
            *groups -= 1;
            return;
        }
        let at_once = *at_once;
        scene.orders.pop();
        scene.progress.order_division(at_once);
    }
}

/// Writes the pairs of each group in one line, and leaves some values to the engine.
struct WriteGroups {
    script: Script,
    independent: bool,
    partition: u32,
}
impl Reducer for WriteGroups {
    type Key = (String, u32);
    type Value = ByteString;
    fn setup(&mut self, task: &TaskContext, _: &mut Output) -> TaskResult {
        self.partition = task.task().index;
        Ok(())
    }
    fn reduce(
        &mut self,
        key: (String, u32),
        values: &mut Values<'_, (String, u32), ByteString>,
        out: &mut Output,
    ) -> TaskResult {
        self.script.starts_group();
        out.field(format_args!("{}: {}.{}", self.partition, key.0, key.1));
        while let Some(length) = values.next()?.map(<[u8]>::len) {
            out.field(format_args!(" {}.{length}", values.key()?.1));
            if length % 11 == 0 {
                break;
            }
        }
        out.line(b"");
        Ok(())
    }
    fn groups_are_independent(&self) -> bool {
        self.independent
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Grouped,
    Combining,
    /// Plain, with a reducer that depends on earlier groups.
    Dependent,
}

fn plan(kind: Kind, script: &Script) -> JobPlan {
    let plan = JobPlan::map(Input::lines(["memory"]), || Pairs);
    let plan = match kind {
        Kind::Plain | Kind::Dependent => plan,
        Kind::Grouped => plan.group_by_first(),
        Kind::Combining => plan.combine(|| Longest),
    };
    let (script, independent) = (script.clone(), kind != Kind::Dependent);
    plan.reduce(move || WriteGroups { script: script.clone(), independent, partition: 0 })
}

/// Result of a reduce that may be divided.
struct Run {
    part: String,
    divisions: Vec<Option<Division>>,
    bytes_in: u64,
    records_in: u64,
    divisible_bytes: u64,
}

/// A partition of a job, with the data of its maps.
struct Partition<'a> {
    plan: &'a JobPlan,
    script: &'a Script,
    means: Means,
    number: u32,
    segments: &'a [SegmentData],
}

impl Partition<'_> {
    /// Reduces the keys within these bounds, as this attempt, with these orders to divide.
    fn run(&self, index: u32, bounds: KeyBounds, orders: Vec<(u64, bool)>) -> Run {
        let divisions = Arc::new(Mutex::new(Vec::new()));
        let reported = divisions.clone();
        let report = move |division| reported.lock().unwrap().push(division);
        let progress = Arc::new(Progress::default().reporting_divisions(Some(Box::new(report))));
        *self.script.0.lock().unwrap() = Scene { progress: progress.clone(), orders };
        let bench = Bench { progress: progress.clone(), ..Bench::new(self.means, PARTITIONS) };
        let part = ReducePart { partition: self.number, bounds, may_divide: true };
        let attempt = TaskId::reduce(JOB, index).attempt(0);
        let (part, _) = bench.reduce_part(self.plan, attempt, self.segments.to_vec(), part).unwrap();
        *self.script.0.lock().unwrap() = Scene::default();
        let divisions = std::mem::take(&mut *divisions.lock().unwrap());
        let [bytes_in, records_in, divisible_bytes] =
            [&progress.bytes_in, &progress.records_in, &progress.divisible_bytes]
                .map(|number| number.load(Relaxed));
        Run { part, divisions, bytes_in, records_in, divisible_bytes }
    }

    fn run_whole(&self, orders: Vec<(u64, bool)>) -> Run {
        self.run(self.number, KeyBounds::default(), orders)
    }

    /// Reduces the keys within these bounds, and the pieces that it gives up, which are divided in the same way. Returns
    /// the output in key order, the number of pairs read, and that of the pieces.
    fn run_in_pieces(
        &self,
        draws: &mut ChaCha8Rng,
        bounds: KeyBounds,
        pieces_max: u32,
    ) -> (String, u64, u32) {
        let orders =
            (0..pieces_max.min(3)).map(|_| (draws.next_u64() % 40, draws.next_u64().is_multiple_of(4)));
        let run = self.run(PARTITIONS + pieces_max, bounds.clone(), orders.collect());
        let (mut part, mut records, mut pieces, mut until) = (run.part, run.records_in, 1, bounds.until);
        let mut given = Vec::new();
        for division in run.divisions.into_iter().flatten() {
            let Division::Key { key, .. } = division else { panic!("{division:?} is that of a map") };
            given.push(KeyBounds { from: key.clone(), until: until.replace(key) });
        }
        for bounds in given.into_iter().rev() {
            let (text, more_records, more) =
                self.run_in_pieces(draws, bounds, pieces_max.saturating_sub(pieces));
            part += &text;
            (records, pieces) = (records + more_records, pieces + more);
        }
        (part, records, pieces)
    }
}

/// Runs the maps of a job and calls `check` for the larger one of its partitions.
fn with_partition(kind: Kind, means: Means, splits: &[MemorySplit], check: impl FnOnce(&Partition<'_>)) {
    let script = Script::default();
    let plan = plan(kind, &script);
    let bench = Bench::new(means, PARTITIONS);
    let maps = bench.maps(&plan, splits).unwrap();
    let segments = |partition| maps.iter().map(move |done| done.output.segment(partition).unwrap());
    let bytes = |partition: &u32| segments(*partition).map(|data| data.len()).sum::<usize>();
    let number = (0..PARTITIONS).max_by_key(bytes).unwrap();
    let segments: Vec<SegmentData> = segments(number).collect();
    check(&Partition { plan: &plan, script: &script, means, number, segments: &segments });
}

/// Lines with words out of this many, and values of about this length.
fn splits(draws: &mut ChaCha8Rng, words: u64, lines: u64, length: u64, maps: usize) -> Vec<MemorySplit> {
    let mut line = |_| {
        let (word, number) = (draws.next_u64() % words, draws.next_u64() % 20);
        let length = draws.next_u64() % (2 * length);
        format!("word{word:05} {number} {length}\n")
    };
    let text = |_| (0..lines / maps as u64).map(&mut line).collect::<String>();
    (0..maps).map(text).map(|text| MemorySplit { input: 0, blocks: vec![text] }).collect()
}

const TIGHT: Means = Means { collector_bytes: 200_000, merge_bytes: 1 << 20, ..Means::NOTHING };

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_of_a_reduce_have_the_output_of_the_whole(
        seed: u64,
        kind in prop_oneof![2 => Just(Kind::Plain), 2 => Just(Kind::Grouped), 1 => Just(Kind::Combining)],
        means in prop_oneof![Just(Means::PLENTY), Just(TIGHT)],
        words in prop_oneof![Just(3_u64), Just(60), Just(100_000)],
        maps in 1_usize..5,
    ) {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        with_partition(kind, means, &splits(&mut draws, words, 3000, 1000, maps), |partition| {
            let whole = partition.run_whole(Vec::new());
            let (part, records, pieces) = partition.run_in_pieces(&mut draws, KeyBounds::default(), 8);
            assert!(part == whole.part, "{pieces} pieces");
            assert_eq!(records, whole.records_in);
        });
    }

    #[test]
    fn a_reduce_within_bounds_has_the_groups_within_them(
        seed: u64,
        kind in prop_oneof![Just(Kind::Plain), Just(Kind::Grouped)],
        means in prop_oneof![Just(Means::PLENTY), Just(TIGHT)],
    ) {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        with_partition(kind, means, &splits(&mut draws, 50, 1500, 500, 4), |partition| {
            let whole = partition.run_whole(Vec::new()).part;
            let cut = |word: u64| format!("word{word:05}");
            let mut words = [draws.next_u64() % 60, draws.next_u64() % 60];
            words.sort_unstable();
            let [from, until] = words.map(cut);
            let bounds = KeyBounds { from: from.clone().into(), until: Some(until.clone().into()) };
            let run = partition.run(7, bounds, Vec::new());
            let word = |line: &str| line[3..][..9].to_owned();
            let within = whole.lines().filter(|line| (from.clone()..until.clone()).contains(&word(line)));
            assert_eq!(run.part.lines().collect::<Vec<_>>(), within.collect::<Vec<_>>());
        });
    }
}

#[test]
fn reduces_of_every_means_are_really_divided() {
    let mut draws = ChaCha8Rng::seed_from_u64(3);
    for kind in [Kind::Plain, Kind::Grouped] {
        for means in [Means::PLENTY, TIGHT] {
            with_partition(kind, means, &splits(&mut draws, 1000, 4000, 1000, 4), |partition| {
                let (.., pieces) = partition.run_in_pieces(&mut draws, KeyBounds::default(), 8);
                assert!(4 <= pieces, "{kind:?}: {pieces} pieces");
            });
        }
    }
}

/// True if neither number is more than 1.5 times the other.
fn are_close(a: u64, b: u64) -> bool {
    2 * a <= 3 * b && 2 * b <= 3 * a
}

#[test]
fn a_reduce_keeps_about_half_of_what_is_left_to_read() {
    let mut draws = ChaCha8Rng::seed_from_u64(5);
    for maps in [1, 3, 300] {
        for (means, groups) in [(Means::PLENTY, 0), (TIGHT, 0), (Means::PLENTY, 1000)] {
            let splits = splits(&mut draws, 100_000, 9000, 1000, maps);
            with_partition(Kind::Plain, means, &splits, |partition| {
                let whole = partition.run_whole(Vec::new());
                let parts = format!("of {} bytes: {} divisible", whole.bytes_in, whole.divisible_bytes);
                assert!(whole.divisible_bytes.abs_diff(whole.bytes_in) * 20 < whole.bytes_in, "{parts}");
                let kept = partition.run_whole(vec![(groups, false)]);
                let [Some(Division::Key { key, kept: kept_bytes, given: given_bytes })] = &kept.divisions[..]
                else {
                    panic!("{:?}", kept.divisions)
                };
                let bounds = KeyBounds { from: key.clone(), until: None };
                let given = partition.run(5, bounds, Vec::new());
                assert_eq!(kept.bytes_in + given.bytes_in, whole.bytes_in);
                let read_before = whole.bytes_in * groups / 4500;
                let parts = format!(
                    "{maps} maps, {groups} groups: {} and {} bytes, estimated {kept_bytes} and {given_bytes}",
                    kept.bytes_in - read_before.min(kept.bytes_in),
                    given.bytes_in
                );
                assert!(are_close(kept.bytes_in - read_before, given.bytes_in), "{parts}");
                assert!(are_close(*given_bytes, given.bytes_in), "{parts}");
                assert!(are_close(*kept_bytes, kept.bytes_in - read_before), "{parts}");
                assert!(are_close(kept.divisible_bytes, kept.bytes_in), "{parts}");
                assert!(are_close(given.divisible_bytes, given.bytes_in), "{parts}");
            });
        }
    }
}

#[test]
fn a_reduce_that_makes_way_keeps_little_more_than_its_next_group() {
    let mut draws = ChaCha8Rng::seed_from_u64(5);
    with_partition(Kind::Plain, Means::PLENTY, &splits(&mut draws, 100_000, 9000, 1000, 1), |partition| {
        let kept = partition.run_whole(vec![(0, true)]);
        assert!(matches!(kept.divisions[..], [Some(Division::Key { .. })]), "{:?}", kept.divisions);
        assert!(kept.bytes_in < 200_000, "{} bytes", kept.bytes_in);
    });
}

#[test]
fn reduces_that_cannot_be_divided_say_so() {
    let mut draws = ChaCha8Rng::seed_from_u64(7);
    let many = splits(&mut draws, 1000, 4000, 1000, 2);
    let little = splits(&mut draws, 1000, 200, 400, 2);
    let huge = (0..3000).map(|number| format!("huge {number} 1000\n"));
    let others = (0..20).map(|number| format!("before{number} 1 1\nlater{number} 1 1\n"));
    let one_group = vec![MemorySplit { input: 0, blocks: vec![huge.chain(others).collect()] }];
    for (kind, splits) in [
        (Kind::Combining, &many),
        (Kind::Dependent, &many),
        (Kind::Plain, &little),
        (Kind::Grouped, &one_group),
    ] {
        with_partition(kind, Means::PLENTY, splits, |partition| {
            let whole = partition.run_whole(Vec::new());
            for groups in [0, 3, 9, 12] {
                let run = partition.run_whole(vec![(groups, false)]);
                assert_eq!(run.divisions, [None], "{kind:?}");
                assert!(run.part == whole.part);
            }
            let run = whole;
            let divides = matches!(kind, Kind::Plain | Kind::Grouped);
            assert_eq!(0 < run.divisible_bytes, divides, "{kind:?}");
        });
    }
}

#[test]
fn a_reduce_whose_output_must_be_whole_is_not_divided() {
    let mut draws = ChaCha8Rng::seed_from_u64(7);
    with_partition(Kind::Plain, Means::PLENTY, &splits(&mut draws, 1000, 4000, 1000, 2), |partition| {
        let divisions = Arc::new(Mutex::new(Vec::new()));
        let reported = divisions.clone();
        let report = move |division| reported.lock().unwrap().push(division);
        let progress = Arc::new(Progress::default().reporting_divisions(Some(Box::new(report))));
        progress.order_division(false);
        let bench = Bench { progress: progress.clone(), ..Bench::new(Means::PLENTY, PARTITIONS) };
        bench.reduce(partition.plan, partition.number, partition.segments.to_vec()).unwrap();
        assert_eq!(*divisions.lock().unwrap(), [None]);
        assert_eq!(progress.divisible_bytes.load(Relaxed), 0);
    });
}

#[test]
fn a_reduce_without_a_receiver_of_divisions_ignores_orders() {
    let mut draws = ChaCha8Rng::seed_from_u64(7);
    with_partition(Kind::Plain, Means::PLENTY, &splits(&mut draws, 1000, 4000, 1000, 2), |partition| {
        let whole = partition.run_whole(Vec::new());
        let progress = Arc::new(Progress::default());
        progress.order_division(false);
        let bench = Bench { progress, ..Bench::new(Means::PLENTY, PARTITIONS) };
        let part = ReducePart { may_divide: true, ..ReducePart::whole(partition.number) };
        let attempt = TaskId::reduce(JOB, 9).attempt(0);
        let (part, _) =
            bench.reduce_part(partition.plan, attempt, partition.segments.to_vec(), part).unwrap();
        assert!(part == whole.part);
    });
}

//! Tests of reduces that are suspended and resumed at random boundaries: their results do not differ.

use super::super::*;
use super::runner::{Bench, Means, MemorySplit};
use crate::api::{Combiner, Counter, Input, JobPlan, Mapper, Reducer, TaskContext};
use crate::attempt::TaskResult;
use crate::collect::Emitter;
use crate::input::Record;
use crate::merge::Values;
use crate::segment::SpillCompression;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Reports of an attempt, in this order.
#[derive(Debug, PartialEq, Eq)]
enum ParkingEvent {
    Suspended,
    Refuses,
    Ended,
}

/// Worker that always finds another thread for a slot.
struct SendsEvents(Sender<ParkingEvent>);

impl Parking for SendsEvents {
    fn leave(&self, _: u32) -> bool {
        self.0.send(ParkingEvent::Suspended).is_ok()
    }
    fn refuses(&self) {
        let _ = self.0.send(ParkingEvent::Refuses);
    }
}

/// Orders the running attempt to stop, after this many calls of user code since the last time.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<Scene>>);

#[derive(Default)]
struct Scene {
    progress: Option<Arc<Progress>>,
    calls_left: u64,
    draws: Option<ChaCha8Rng>,
    calls_max: u64,
}

impl Script {
    fn play(&self, progress: &Arc<Progress>, seed: u64, calls_max: u64) {
        let mut scene = self.0.lock().unwrap();
        scene.progress = Some(progress.clone());
        scene.calls_max = calls_max;
        let draws = scene.draws.get_or_insert_with(|| ChaCha8Rng::seed_from_u64(seed));
        let left = draws.next_u64() % calls_max;
        scene.calls_left = left;
        if left == 0 {
            progress.suspend();
        }
    }

    fn end(&self) {
        self.0.lock().unwrap().progress = None;
    }

    fn called(&self) {
        let mut scene = self.0.lock().unwrap();
        let Some(progress) = scene.progress.clone() else { return };
        if 0 < scene.calls_left {
            scene.calls_left -= 1;
            return;
        }
        let most = scene.calls_max;
        if let Some(draws) = &mut scene.draws {
            scene.calls_left = draws.next_u64() % most;
        }
        progress.suspend();
    }
}

/// `word number` lines: the pair as key, the number as value.
struct Pairs;
impl Mapper for Pairs {
    type Key = (String, u32);
    type Value = u64;
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<(String, u32), u64>) -> TaskResult {
        let text = record.text();
        let (word, number) = text.split_once(' ').unwrap();
        let number: u32 = number.parse()?;
        out.emit((word.to_owned(), number / 4), u64::from(number));
        Ok(())
    }
}

struct Add(Script);
impl Combiner for Add {
    type Value = u64;
    fn combine(&mut self, total: &mut u64, value: u64) {
        self.0.called();
        *total += value;
    }
}

/// Numbers the groups over all of them, and writes and counts what it reads.
struct Number {
    script: Script,
    number: u64,
    groups: Counter,
    long: Counter,
}
impl Number {
    fn new(script: &Script) -> Self {
        let (groups, long) = (Counter::default(), Counter::default());
        Self { script: script.clone(), number: 0, groups, long }
    }
}
impl Reducer for Number {
    type Key = (String, u32);
    type Value = u64;
    fn setup(&mut self, task: &TaskContext, out: &mut Output) -> TaskResult {
        self.groups = task.counter("groups");
        self.long = task.counter("long keys");
        self.groups.add(1);
        out.line(b"begin");
        Ok(())
    }
    fn reduce(
        &mut self,
        key: (String, u32),
        values: &mut Values<'_, (String, u32), u64>,
        out: &mut Output,
    ) -> TaskResult {
        self.script.called();
        self.number += 1;
        self.groups.add(1);
        if 15 < key.0.len() {
            self.long.add(1);
        }
        out.field(format_args!("{} {}.{}", self.number, key.0, key.1));
        // Some values are left to the engine.
        while let Some(value) = values.next()? {
            out.field(format_args!(" {value}"));
            if value % 7 == 0 {
                break;
            }
        }
        out.line(b"");
        Ok(())
    }
    fn finish(&mut self, out: &mut Output) -> TaskResult {
        out.line(format!("{} groups", self.number).as_bytes());
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Combining,
    Grouped,
}

fn plan(kind: Kind, script: &Script) -> JobPlan {
    let (script, same) = (script.clone(), script.clone());
    let plan = JobPlan::map(Input::lines(["memory"]), || Pairs);
    let plan = match kind {
        Kind::Plain => plan,
        Kind::Combining => plan.combine(move || Add(script.clone())),
        Kind::Grouped => plan.group_by_first(),
    };
    plan.reduce(move || Number::new(&same))
}

/// Runs a reduce whose script stops it, and resumes it after each stop. Returns its part, its sums, and how often it was
/// suspended.
fn run_in_steps(
    plan: &JobPlan,
    script: &Script,
    (means, partition): (Means, u32),
    segments: Vec<SegmentData>,
    (seed, calls_max): (u64, u64),
) -> (String, PartDone, Arc<Progress>) {
    // A suspended attempt needs memory.
    let bench = Bench::new(Means { budget_bytes: 1 << 30, ..means }, 3);
    let (words, events) = channel();
    let progress = Arc::new(Progress::new(1.0, Some(Box::new(SendsEvents(words.clone())))));
    progress.start(0);
    script.play(&progress, seed, calls_max);
    let bench = Bench { progress: progress.clone(), ..bench };
    let (part, done) = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let end = bench.reduce(plan, partition, segments);
            let _ = words.send(ParkingEvent::Ended);
            end
        });
        resume_always(&events, &progress);
        run.join().unwrap().unwrap()
    });
    script.end();
    assert_eq!((done.bytes, done.crc32c), (part.len() as u64, crc32c::crc32c(part.as_bytes())));
    (part, done, progress)
}

/// Resumes a reduce after every stop.
fn resume_always(events: &Receiver<ParkingEvent>, progress: &Progress) {
    loop {
        match events.recv().unwrap() {
            ParkingEvent::Ended => return,
            ParkingEvent::Suspended => assert!(progress.resume(0)),
            // It continues in its slot.
            ParkingEvent::Refuses => {}
        }
    }
}

/// Runs every partition without stops and in steps, and compares. Returns how often reduces were suspended.
fn compare(kind: Kind, splits: &[MemorySplit], means: Means, seed: (u64, u64)) -> u32 {
    const PARTITIONS: u32 = 3;
    let script = Script::default();
    let plan = plan(kind, &script);
    let bench = Bench::new(means, PARTITIONS);
    let maps = bench.maps(&plan, splits).unwrap();
    let mut suspended = 0;
    for partition in 0..PARTITIONS {
        let segments: Vec<SegmentData> =
            maps.iter().map(|done| done.output.segment(partition).unwrap()).collect();
        let alone = Bench::new(means, PARTITIONS);
        let (expected, expected_done) = alone.reduce(&plan, partition, segments.clone()).unwrap();
        let (part, done, progress) = run_in_steps(&plan, &script, (means, partition), segments, seed);
        assert_eq!(part, expected, "{kind:?} {seed:?}");
        assert_eq!(done, expected_done, "{kind:?} {seed:?}: sums and counters");
        let numbers =
            |progress: &Progress| (progress.records_in.load(Relaxed), progress.records_out.load(Relaxed));
        assert_eq!(numbers(&progress), numbers(&alone.progress), "{kind:?} {seed:?}");
        suspended += progress.suspensions.load(Relaxed);
    }
    suspended
}

fn splits() -> impl Strategy<Value = Vec<MemorySplit>> {
    let word = prop_oneof![4 => "[a-c]{0,2}", 2 => "(long){3,6}[xy]{0,2}", 1 => "[a-z]{1,3}"];
    let line = (word, 0..60u32).prop_map(|(word, number)| format!("{word} {number}\n"));
    let block = proptest::collection::vec(line, 0..60).prop_map(|lines| lines.concat());
    proptest::collection::vec(block, 0..5).prop_map(|blocks| {
        blocks.into_iter().map(|block| MemorySplit { input: 0, blocks: vec![block] }).collect()
    })
}

fn means() -> impl Strategy<Value = Means> {
    let bytes = || prop_oneof![Just(1usize), 1..3_000usize, Just(1 << 20)];
    (bytes(), bytes(), 2..4usize, bytes()).prop_map(
        |(collector_bytes, merge_bytes, fan_in_max, budget_bytes)| Means {
            collector_bytes,
            merge_bytes,
            fan_in_max,
            budget_bytes,
            compression: SpillCompression::None,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_reduce_that_is_suspended_leaves_what_an_undisturbed_one_leaves(
        splits in splits(),
        means in means(),
        kind in prop_oneof![Just(Kind::Plain), Just(Kind::Combining), Just(Kind::Grouped)],
        seed: u64,
        calls_max in 2..40u64,
    ) {
        compare(kind, &splits, means, (seed, calls_max));
    }
}

/// Lines of this many different words, twice.
fn many_words(count: u32) -> Vec<MemorySplit> {
    let text: String = (0..count).map(|n| format!("word{n} {n}\n")).collect();
    vec![MemorySplit { input: 0, blocks: vec![text] }; 2]
}

#[test]
fn reduces_of_every_kind_are_really_suspended() {
    for kind in [Kind::Plain, Kind::Combining, Kind::Grouped] {
        for means in [Means::PLENTY, Means::NOTHING] {
            let suspended = compare(kind, &many_words(300), means, (7, 8));
            assert!(20 < suspended, "{kind:?}: {suspended} times suspended");
        }
    }
}

#[test]
fn a_suspended_reduce_goes_on_in_the_slot_that_it_is_given() {
    let script = Script::default();
    let plan = plan(Kind::Plain, &script);
    let bench = Bench::new(Means::PLENTY, 1);
    let maps = bench.maps(&plan, &many_words(10)).unwrap();
    let segments: Vec<SegmentData> = maps.iter().map(|done| done.output.segment(0).unwrap()).collect();
    let (words, events) = channel();
    let progress = Arc::new(Progress::new(1.0, Some(Box::new(SendsEvents(words)))));
    progress.start(0);
    assert!(progress.suspend());
    let bench = Bench { progress: progress.clone(), ..bench };
    std::thread::scope(|scope| {
        let run = scope.spawn(|| bench.reduce(&plan, 0, segments));
        assert_eq!(events.recv(), Ok(ParkingEvent::Suspended));
        assert_eq!(progress.slot(), None, "a suspended attempt holds no slot");
        assert!(progress.resume(3));
        assert_eq!(run.join().unwrap().unwrap().1.records, 12);
    });
    assert_eq!(progress.slot(), Some(3), "it went on in the slot that it was given");
    assert_eq!(progress.suspensions.load(Relaxed), 1);
    assert!(0 < progress.suspended_ns.load(Relaxed));
}

#[test]
fn a_suspended_reduce_that_is_cancelled_ends_without_a_slot() {
    let script = Script::default();
    let plan = plan(Kind::Combining, &script);
    let bench = Bench::new(Means::PLENTY, 1);
    let maps = bench.maps(&plan, &many_words(10)).unwrap();
    let segments: Vec<SegmentData> = maps.iter().map(|done| done.output.segment(0).unwrap()).collect();
    let (words, events) = channel();
    let progress = Arc::new(Progress::new(1.0, Some(Box::new(SendsEvents(words)))));
    progress.start(0);
    progress.suspend();
    let bench = Bench { progress: progress.clone(), ..bench };
    std::thread::scope(|scope| {
        let run = scope.spawn(|| bench.reduce(&plan, 0, segments));
        assert_eq!(events.recv(), Ok(ParkingEvent::Suspended));
        progress.cancel();
        assert_eq!(run.join().unwrap().unwrap_err().class(), Fault::Cancelled);
    });
    assert_eq!(progress.slot(), None);
    assert!(!progress.resume(1), "there is nobody who would take the slot");
}

#[test]
fn a_reduce_with_a_table_for_which_there_is_no_room_keeps_its_slot() {
    let script = Script::default();
    let plan = plan(Kind::Combining, &script);
    let means = Means { budget_bytes: 1 << 20, ..Means::PLENTY };
    let bench = Bench::new(means, 1);
    let maps = bench.maps(&plan, &many_words(10)).unwrap();
    let segments: Vec<SegmentData> = maps.iter().map(|done| done.output.segment(0).unwrap()).collect();
    let (words, events) = channel();
    let progress = Arc::new(Progress::new(1.0, Some(Box::new(SendsEvents(words)))));
    progress.start(0);
    progress.suspend();
    let bench = Bench { progress: progress.clone(), ..bench };
    let all = bench.budget.try_reserve((1 << 20) - bench.budget.used_bytes()).unwrap();
    bench.reduce(&plan, 0, segments).unwrap();
    drop(all);
    assert_eq!(events.try_recv(), Ok(ParkingEvent::Refuses), "whoever asked is told");
    assert!(events.try_recv().is_err(), "it was not suspended");
    assert_eq!((progress.slot(), progress.suspensions.load(Relaxed)), (Some(0), 0));
}

/// Reducer that checks for a stop within one group as between two groups.
struct Passes;
impl Reducer for Passes {
    type Key = (String, u32);
    type Value = u64;
    fn reduce(
        &mut self,
        _: (String, u32),
        _: &mut Values<'_, (String, u32), u64>,
        out: &mut Output,
    ) -> TaskResult {
        STARTED.get_or_init(Instant::now);
        while GO_ON.get().is_none() && !out.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        out.line(b"passed");
        Ok(())
    }
}
static STARTED: OnceLock<Instant> = OnceLock::new();
static GO_ON: OnceLock<()> = OnceLock::new();

#[test]
fn a_reduce_within_a_long_group_stops_where_it_asks_whether_it_is_wanted() {
    let plan = JobPlan::map(Input::lines(["memory"]), || Pairs).reduce(|| Passes);
    let bench = Bench::new(Means::PLENTY, 1);
    let maps = bench.maps(&plan, &many_words(1)).unwrap();
    let segments: Vec<SegmentData> = maps.iter().map(|done| done.output.segment(0).unwrap()).collect();
    let (words, events) = channel();
    let progress = Arc::new(Progress::new(1.0, Some(Box::new(SendsEvents(words)))));
    progress.start(0);
    let bench = Bench { progress: progress.clone(), ..bench };
    std::thread::scope(|scope| {
        let run = scope.spawn(|| bench.reduce(&plan, 0, segments));
        while STARTED.get().is_none() {
            std::thread::yield_now();
        }
        let asked = Instant::now();
        assert!(progress.suspend());
        assert_eq!(events.recv(), Ok(ParkingEvent::Suspended));
        println!("suspended within a group after {:?}", asked.elapsed());
        GO_ON.get_or_init(|| ());
        assert!(progress.resume(0));
        assert_eq!(run.join().unwrap().unwrap().0, "passed\n");
    });
}

#[test]
fn a_paced_wait_ends_as_soon_as_the_attempt_is_cancelled_or_asked_to_stop() {
    // At this speed a millisecond of work costs a quarter of an hour.
    let start = |parking: Option<Box<dyn Parking>>| {
        let progress = Arc::new(Progress::new(1e-6, parking));
        progress.start(0);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(6) {
            std::hint::spin_loop();
        }
        progress
    };
    let progress = start(None);
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| progress.check());
        progress.cancel();
        assert!(matches!(wait.join().unwrap(), Err(TaskFailure::Cancelled)));
    });
    let (words, _heard) = channel();
    let progress = start(Some(Box::new(SendsEvents(words))));
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| progress.check());
        assert!(progress.suspend());
        wait.join().unwrap().unwrap();
    });
}

#[test]
fn a_slot_of_half_the_speed_takes_twice_as_long_and_says_how_much_it_waited() {
    let progress = Progress::new(0.5, None);
    progress.start(0);
    let begun = Instant::now();
    // Other tests may have the processors; waiting for one is not work.
    let computed = || Duration::from_nanos(crate::machine::thread_cpu_ns());
    let mut worked = Duration::ZERO;
    while worked < Duration::from_millis(40) {
        let slice = computed();
        while computed() - slice < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        worked += computed() - slice;
        progress.check().unwrap();
    }
    progress.settle();
    let (took, paced) = (begun.elapsed(), Duration::from_nanos(progress.paced_ns.load(Relaxed)));
    assert!(
        worked <= paced && paced <= took - worked,
        "{worked:?} worked, {paced:?} waited, {took:?} in all"
    );
    let before = progress.paced_ns.load(Relaxed);
    progress.check().unwrap();
    progress.settle();
    assert_eq!(progress.paced_ns.load(Relaxed), before, "what follows is not paced");
}

#[test]
fn suspending_and_going_on_take_this_long() {
    let script = Script::default();
    let plan = plan(Kind::Plain, &script);
    let bench = Bench::new(Means::PLENTY, 1);
    let maps = bench.maps(&plan, &many_words(20_000)).unwrap();
    let segments: Vec<SegmentData> = maps.iter().map(|done| done.output.segment(0).unwrap()).collect();
    let (words, events) = channel();
    let progress = Arc::new(Progress::new(1.0, Some(Box::new(SendsEvents(words.clone())))));
    progress.start(0);
    let bench = Bench { progress: progress.clone(), ..bench };
    let mut rounds = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bench.reduce(&plan, 0, segments).unwrap();
            let _ = words.send(ParkingEvent::Ended);
        });
        progress.suspend();
        // Each round: resume, reduce one group, stop.
        while events.recv() == Ok(ParkingEvent::Suspended) && rounds.len() < 500 {
            let asked = Instant::now();
            assert!(progress.resume(0));
            progress.suspend();
            rounds.push(asked);
        }
        progress.do_not_suspend();
        let _ = progress.resume(0);
    });
    let mut took: Vec<Duration> = rounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    took.sort_unstable();
    let (middle, last) = (took[took.len() / 2], took[took.len() - 1]);
    println!("{} times to go on, reduce a group and stop: {middle:?} each, at most {last:?}", took.len());
}

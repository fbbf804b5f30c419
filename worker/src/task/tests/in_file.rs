//! Tests of map outputs whose pairs stay in the input file.

use super::super::*;
use super::runner::{Bench, JOB, Means};
use crate::api::{Input, Mapper, Reducer};
use crate::attempt::{Division, TaskResult};
use crate::budget::{Budget, KeptInFiles};
use crate::collect::Emitter;
use crate::input::list::LocalListing;
use crate::input::plan::{SplitRules, plan_splits};
use crate::input::{LocalFiles, Record};
use crate::key::ByteString;
use crate::merge::Values;
use crate::segment::{InFileBytes, KeyBounds, MapOutput, SegmentReader};
use gristmill_scheduler::ids::TaskId;
use std::sync::Mutex;

/// Emits each line as a key without a value.
struct Lines;

impl Mapper for Lines {
    type Key = ByteString;
    type Value = ByteString;
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        out.emit(record.bytes(), b"");
        Ok(())
    }
}

struct WriteKeys;

impl Reducer for WriteKeys {
    type Key = ByteString;
    type Value = ByteString;
    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, ByteString>,
        out: &mut Output,
    ) -> TaskResult {
        while values.next()?.is_some() {
            out.line(key);
        }
        Ok(())
    }
    fn groups_are_independent(&self) -> bool {
        true
    }
}

/// Builds a file large enough to be mapped, of lines of many lengths, some equal, and mostly long enough to stay in it.
fn lines() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut state = 17_u64;
    while bytes.len() < 600_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = [0, 8, 9, 127, 128, 3000, 4000, 4094][(state >> 40) as usize % 8];
        let line = format!("{:x}", state >> 52).repeat(4094);
        bytes.extend_from_slice(&line.as_bytes()[..length]);
        bytes.push(b'\n');
    }
    bytes
}

pub(super) struct Setup {
    pub(super) bench: Bench,
    pub(super) plan: JobPlan,
    splits: Vec<Split>,
    pub(super) path: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

pub(super) fn setup(kept_bytes: usize, partitions: u32) -> Setup {
    setup_of(&lines(), Means::PLENTY, kept_bytes, partitions)
}

fn setup_of(lines: &[u8], means: Means, kept_bytes: usize, partitions: u32) -> Setup {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lines");
    std::fs::write(&path, lines).unwrap();
    let input = Input::lines([path.to_str().unwrap()]);
    let splits = plan_splits(
        std::slice::from_ref(&input),
        &LocalListing,
        SplitRules { split_bytes: 200_000, pieces_max: 10, ..SplitRules::default() },
    );
    let plan = JobPlan::map(input, || Lines).reduce(|| WriteKeys);
    let mut bench = Bench::new(means, partitions);
    let short_bytes_max = 1 << 30;
    bench.settings.kept_in_files = KeptInFiles { budget: Budget::new(kept_bytes), short_bytes_max };
    Setup { bench, plan, splits: splits.unwrap(), path, _dir: dir }
}

impl Setup {
    pub(super) fn maps(&self) -> Vec<MapOutput> {
        let map = |(index, split)| {
            let context = self.bench.context(TaskId::map(JOB, index as u32).attempt(0));
            run_map(&self.plan, context, split, &LocalFiles).unwrap().output
        };
        self.splits.iter().enumerate().map(map).collect()
    }

    pub(super) fn parts(&self, outputs: &[MapOutput]) -> Result<Vec<String>, TaskFailure> {
        let part = |partition| {
            let segments = outputs.iter().map(|output| output.segment(partition).unwrap()).collect();
            Ok(self.bench.reduce(&self.plan, partition, segments)?.0)
        };
        (0..self.bench.settings.partitions).map(part).collect()
    }
}

fn all_bytes(data: SegmentData) -> Vec<u8> {
    match data {
        SegmentData::Memory(bytes) => bytes.to_vec(),
        SegmentData::File { .. } => panic!("there is plenty of memory"),
        SegmentData::InFile(segment) => {
            let (mut made, mut bytes) = (InFileBytes::new(segment), Vec::new());
            while made.next(&mut bytes).unwrap() {}
            bytes
        }
    }
}

#[test]
fn pairs_left_in_their_file_read_and_travel_like_copied_ones() {
    let (left, copied) = (setup(1 << 30, 3), setup(0, 3));
    let (in_file, in_memory) = (left.maps(), copied.maps());
    assert!(1 < in_file.len());
    for (a, b) in in_file.iter().zip(&in_memory) {
        assert_eq!((a.bytes(), a.records()), (b.bytes(), b.records()));
        for partition in 0..3 {
            let (a, b) = (a.segment(partition).unwrap(), b.segment(partition).unwrap());
            if b.is_empty() {
                assert!(a.is_empty());
                continue;
            }
            assert!(matches!((&a, &b), (SegmentData::InFile(_), SegmentData::Memory(_))));
            assert_eq!(a.len(), b.len());
            assert_eq!(
                SegmentReader::open(a.clone()).unwrap().header(),
                SegmentReader::open(b.clone()).unwrap().header()
            );
            assert!(all_bytes(a) == all_bytes(b), "partition {partition}");
        }
    }
    assert_eq!(left.parts(&in_file).unwrap(), copied.parts(&in_memory).unwrap());
    drop((in_file, in_memory));
    assert_eq!(
        (left.bench.budget.used_bytes(), left.bench.settings.kept_in_files.budget.used_bytes()),
        (0, 0)
    );
}

#[test]
fn pairs_are_copied_where_the_file_may_not_be_relied_on() {
    let setup = setup(250_000, 1);
    let in_file = |output: &MapOutput| matches!(output.segment(0), Some(SegmentData::InFile(_)));
    let outputs = setup.maps();
    assert_eq!(outputs.iter().map(in_file).collect::<Vec<_>>(), [true, false, false, false]);
    let sorted = {
        let text = String::from_utf8(lines()).unwrap();
        let mut all: Vec<&str> = text.lines().collect();
        all.sort_unstable();
        all.join("\n") + "\n"
    };
    assert!(setup.parts(&outputs).unwrap()[0] == sorted);
}

#[test]
fn short_pairs_are_copied_where_many_lie_in_files_already_and_there_is_memory_for_them() {
    let lines: String = (0..6000_u64).map(|number| format!("{:099}\n", number * 7919 % 6000)).collect();
    // Memory for the entries of all pairs, but not for the pairs of any map.
    let little = Means { budget_bytes: 150_000, ..Means::PLENTY };
    let gibibyte = 1 << 30;
    let run = |means, already: usize, short_bytes_max: usize| {
        let mut setup = setup_of(lines.as_bytes(), means, 2 * gibibyte, 1);
        setup.bench.settings.kept_in_files.short_bytes_max = short_bytes_max;
        let relied_on = setup.bench.settings.kept_in_files.budget.try_reserve(already).unwrap();
        let maps = setup.maps();
        let in_file =
            maps.iter().filter(|map| matches!(map.segment(0), Some(SegmentData::InFile(_)))).count();
        drop(relied_on);
        (maps.len(), in_file, setup.parts(&maps).unwrap())
    };
    let (count, none_copied, expected) = run(Means::PLENTY, 0, gibibyte);
    assert!(count == 3 && none_copied == 3);
    assert_eq!(run(Means::PLENTY, gibibyte, gibibyte), (3, 0, expected.clone()));
    assert_eq!(run(Means::PLENTY, gibibyte - 300_000, gibibyte), (3, 1, expected.clone()));
    assert_eq!(run(Means::PLENTY, 0, 0), (3, 0, expected.clone()));
    assert_eq!(run(little, 0, 0), (3, 3, expected));
}

#[test]
fn a_file_that_changed_since_the_map_read_it_is_the_inputs_fault() {
    let setup = setup(1 << 30, 1);
    let outputs = setup.maps();
    let mut changed = lines();
    changed.rotate_left(1);
    std::fs::write(&setup.path, changed).unwrap();
    let failure = setup.parts(&outputs).unwrap_err();
    let TaskFailure::Corrupt { source, .. } = &failure else { panic!("{failure}") };
    assert!(matches!(source, crate::segment::SegmentError::Changed { .. }), "{source}");
    assert_eq!(failure.class(), Fault::Input);
}

fn keys_from(data: &SegmentData, from: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = SegmentReader::open_from(data.clone(), from).unwrap();
    let mut keys = Vec::new();
    while reader.advance().unwrap() {
        keys.push(reader.key().to_vec());
    }
    keys
}

#[test]
fn pairs_in_their_file_are_read_from_a_key_on() {
    let setup = setup(1 << 30, 1);
    let segments = setup.maps().into_iter().map(|output| output.segment(0).unwrap());
    for data in segments.filter(|data| !data.is_empty()) {
        assert!(matches!(data, SegmentData::InFile(_)));
        let all = keys_from(&data, b"");
        let of_pairs = all.iter().step_by(5).flat_map(|key| [key.clone(), [&key[..], b"\0"].concat()]);
        for from in of_pairs.chain([b"".to_vec(), b"8".to_vec(), b"g".to_vec()]) {
            let expected: Vec<Vec<u8>> = all.iter().filter(|key| from <= **key).cloned().collect();
            assert!(keys_from(&data, &from) == expected);
        }
    }
}

#[test]
fn sort_of_pairs_in_their_file_is_divided_about_evenly() {
    let setup = setup(1 << 30, 1);
    let outputs = setup.maps();
    let whole = setup.parts(&outputs).unwrap().remove(0);
    let divisions = Arc::new(Mutex::new(Vec::new()));
    let reported = divisions.clone();
    let report = move |division| reported.lock().unwrap().push(division);
    let progress = Arc::new(Progress::default().reporting_divisions(Some(Box::new(report))));
    progress.order_division(false);
    let bench = Bench { progress, ..Bench::new(Means::PLENTY, 1) };
    let segments = || outputs.iter().map(|output| output.segment(0).unwrap()).collect();
    let part = ReducePart { may_divide: true, ..ReducePart::whole(0) };
    let attempt = TaskId::reduce(JOB, 0).attempt(0);
    let (kept, _) = bench.reduce_part(&setup.plan, attempt, segments(), part).unwrap();
    let Some(Division::Key { key, .. }) = divisions.lock().unwrap().remove(0) else {
        panic!("it was divided")
    };
    let part = ReducePart { bounds: KeyBounds { from: key, until: None }, ..ReducePart::whole(0) };
    let (given, _) = setup.bench.reduce_part(&setup.plan, attempt, segments(), part).unwrap();
    assert!(kept.len() * 2 <= given.len() * 3 && given.len() * 2 <= kept.len() * 3, "{}", kept.len());
    assert!(kept + &given == whole);
}

#[test]
fn a_file_that_changed_is_found_by_a_reduce_that_stops_before_its_end() {
    let setup = setup(1 << 30, 1);
    let segments: Vec<SegmentData> = setup.maps().iter().map(|output| output.segment(0).unwrap()).collect();
    std::fs::write(&setup.path, "other lines\n".repeat(60_000)).unwrap();
    let bounds = KeyBounds { from: b"1".to_vec(), until: Some(b"11".to_vec()) };
    let part = ReducePart { bounds, ..ReducePart::whole(0) };
    let attempt = TaskId::reduce(JOB, 0).attempt(0);
    let failure = setup.bench.reduce_part(&setup.plan, attempt, segments, part).unwrap_err();
    assert_eq!(failure.class(), Fault::Input);
}

//! Attempts in the slots of a simulated process: started, suspended, killed and permitted to publish.
//!
//! The rules are those of the agent (`worker/src/agent/control`, `worker/src/agent/work.rs`) and of the threads that
//! run attempts (`worker/src/agent/slots`). A request to an attempt that is past its stage changes nothing, the first
//! response to a commit counts, and a killed attempt reports how it ended.

use super::process::{Effect, Process};
use super::scenario::JobPlan;
use super::world::SPLIT_BYTES;
use gristmill_scheduler::ids::{AttemptId, TaskKind};
use gristmill_scheduler::units::Span;
use gristmill_worker::budget::Budget;
use gristmill_worker::commit::part_name;
use gristmill_worker::input::FileStamp;
use gristmill_worker::output::PartFormat;
use gristmill_worker::protocol::{AttemptReport, FailureClass, Part, Slots, WorkerFrame};
use gristmill_worker::segment::{
    Fingerprint, SegmentOrder, SegmentsWriter, SpillCompression, SpillDirs, WriteSetting,
};
use gristmill_worker::shuffle::store::SegmentStore;
use rand::RngExt as _;
use std::ops::Range;
use std::sync::Arc;

/// Number of groups of keys in each partition. A reduce can be suspended between two.
pub(super) const GROUPS: usize = 4;

/// Memory for one simulated map output, bytes; the output is far smaller.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Maps, with their attempts, of the segments of a partition.
pub(super) type Segments = Vec<(u32, u32)>;

/// Group of a part: its number, which is its key, and the segments from which it was made.
pub(super) type Group = (usize, Segments);

/// Stage of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Waits for a slot.
    Waiting,
    Working,
    /// Waits for its permit.
    Built,
    Publishing,
    Parked,
    /// Suspended, and waits for a slot to continue.
    GoesOn,
}

impl Stage {
    pub fn has_slot(self) -> bool {
        matches!(self, Stage::Working | Stage::Built | Stage::Publishing)
    }
}

/// End of an attempt that a fault has set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Fail(FailureClass),
    Crash,
    Hang,
}

/// One attempt on a process.
pub(super) struct Try {
    pub stage: Stage,
    input: Segments,
    /// Groups that a reduce makes.
    pub keys: Range<usize>,
    pub groups: Vec<Group>,
    /// Bytes of the split that a map reads.
    bytes: u64,
    fate: Option<Fate>,
    pub asked: bool,
    pub killed: bool,
    /// First response to its commit.
    pub answer: Option<bool>,
    /// Counts the changes of its stage.
    turn: u32,
    took_ns: u64,
}

impl Process {
    pub fn launch(&mut self, attempt: AttemptId, input: Segments, keys: Range<usize>) {
        if !self.jobs.contains_key(&attempt.task.job) {
            return self.fail(attempt, FailureClass::Worker);
        }
        let (stage, groups, fate) = (Stage::Waiting, Vec::new(), None);
        let (asked, killed, answer, turn, took_ns) = (false, false, None, 0, 0);
        let one = Try { stage, input, keys, groups, bytes: 0, fate, asked, killed, answer, turn, took_ns };
        self.tries.insert(attempt, one);
        self.lines[self.pool(attempt.task.kind)].push_back(attempt);
    }

    pub fn launch_map(&mut self, attempt: AttemptId, bytes: u64) {
        self.launch(attempt, Vec::new(), 0..1);
        if let Some(one) = self.tries.get_mut(&attempt) {
            one.bytes = bytes;
        }
    }

    /// Lets a reduce give up its last groups, or refuse to.
    fn divide_reduce(&mut self, attempt: AttemptId) {
        let Some(one) = self.tries.get_mut(&attempt).filter(|one| one.stage == Stage::Working) else {
            return;
        };
        let cuts = one.keys.start + one.groups.len() + 1..one.keys.end;
        if cuts.is_empty() || self.rng.random_range(0..4) == 0 {
            return self.send(&WorkerFrame::NotDivided { attempt });
        }
        let cut = self.rng.random_range(cuts);
        one.keys.end = cut;
        self.effects.push(Effect::Fires("division of a reduce"));
        self.send(&WorkerFrame::ReduceDivided { attempt, key: vec![cut as u8], left: [1, 1] });
    }

    /// Lets a task give up the end of its input, or refuse to.
    pub fn divide(&mut self, attempt: AttemptId, at_once: bool) {
        if attempt.task.kind == TaskKind::Reduce {
            return self.divide_reduce(attempt);
        }
        let Some(one) = self.tries.get_mut(&attempt).filter(|one| one.stage == Stage::Working) else {
            return;
        };
        if one.bytes < 2 || self.rng.random_range(0..4) == 0 {
            return self.send(&WorkerFrame::NotDivided { attempt });
        }
        let kept = self.rng.random_range(1..one.bytes);
        one.bytes = kept;
        self.effects.push(Effect::Fires(if at_once { "making way" } else { "division" }));
        self.send(&WorkerFrame::Divided { attempt, kept });
    }

    /// Removes an attempt from its queue. Returns true if it was queued at this stage.
    pub fn withdraw(&mut self, attempt: AttemptId, stage: Stage) -> bool {
        let there = self.tries.get(&attempt).is_some_and(|one| one.stage == stage);
        let line = &mut self.lines
            [usize::from(matches!(self.slots, Slots::Pools { .. }) && attempt.task.kind == TaskKind::Reduce)];
        match line.iter().position(|other| *other == attempt).filter(|_| there) {
            Some(place) => line.remove(place).is_some(),
            None => false,
        }
    }

    fn slots_of(&self, pool: usize) -> usize {
        match (self.slots, pool) {
            (Slots::Unified(slots), _) => slots as usize,
            (Slots::Pools { map, .. }, 0) => map as usize,
            (Slots::Pools { reduce, .. }, _) => reduce as usize,
        }
    }

    /// Fills free slots with waiting attempts.
    pub fn begin_waiting(&mut self) {
        for pool in 0..self.lines.len() {
            let taken = |process: &Self| {
                let of_pool =
                    process.tries.iter().filter(|(attempt, _)| process.pool(attempt.task.kind) == pool);
                of_pool.filter(|(_, one)| one.stage.has_slot()).count()
            };
            while taken(self) < self.slots_of(pool)
                && let Some(attempt) = self.lines[pool].pop_front()
            {
                self.start_attempt(attempt);
            }
        }
    }

    fn start_attempt(&mut self, attempt: AttemptId) {
        let Some(one) = self.tries.get_mut(&attempt) else { return };
        if one.stage == Stage::Waiting {
            one.fate = self.fates.pop_front();
        }
        one.stage = Stage::Working;
        self.work(attempt);
    }

    /// Starts the next step of an attempt: a whole map, or a group of a reduce.
    fn work(&mut self, attempt: AttemptId) {
        let Some(job) = self.jobs.get(&attempt.task.job) else {
            // The job is over, and the attempt ordered to stop.
            return self.next_step(attempt, Span::milliseconds(1));
        };
        let mean = match attempt.task.kind {
            // A map has a fixed part, and one for its input.
            TaskKind::Map => self.tries.get(&attempt).map_or(job.map_ns, |one| {
                (job.map_ns / 10).max(job.map_ns.saturating_mul(one.bytes) / SPLIT_BYTES)
            }),
            TaskKind::Reduce => job.group_ns,
        };
        let took = self.rng.random_range(mean / 2..mean * 3 / 2) * self.slowness;
        if let Some(one) = self.tries.get_mut(&attempt) {
            one.took_ns += took;
        }
        self.next_step(attempt, Span(took));
    }

    pub fn next_step(&mut self, attempt: AttemptId, after: Span) {
        if let Some(one) = self.tries.get_mut(&attempt) {
            one.turn += 1;
            self.effects.push(Effect::Step { attempt, turn: one.turn, after });
        }
    }

    pub fn ends_badly(&mut self, attempt: AttemptId, class: FailureClass) {
        if self.tries.remove(&attempt).is_some() {
            self.effects.push(Effect::Remove { attempt });
            self.fail(attempt, class);
        }
    }

    /// Ends a step.
    pub fn step(&mut self, attempt: AttemptId, turn: u32) {
        let Some(one) = self.tries.get(&attempt).filter(|one| one.turn == turn) else { return };
        match one.stage {
            Stage::Working => self.worked(attempt),
            Stage::Publishing => self.published(attempt),
            _ => {}
        }
    }

    fn worked(&mut self, attempt: AttemptId) {
        let Some(one) = self.tries.get_mut(&attempt) else { return };
        if one.killed {
            return self.ends_badly(attempt, FailureClass::Cancelled);
        }
        match one.fate.take() {
            Some(Fate::Fail(class)) => {
                self.effects.push(Effect::Fires("fail"));
                return self.ends_badly(attempt, class);
            }
            Some(Fate::Crash) => return self.effects.push(Effect::Crash { attempt }),
            Some(Fate::Hang) => {
                self.fail(attempt, FailureClass::Hang);
                return self.effects.push(Effect::Stuck);
            }
            None => {}
        }
        let map_only = self.jobs.get(&attempt.task.job).is_some_and(|job| job.reduces == 0);
        match attempt.task.kind {
            TaskKind::Map if !map_only => self.mapped(attempt),
            TaskKind::Map => {
                one.groups.push((0, vec![(attempt.task.index, attempt.epoch)]));
                self.built(attempt);
            }
            TaskKind::Reduce => {
                one.groups.push((one.keys.start + one.groups.len(), one.input.clone()));
                if one.groups.len() == one.keys.len() {
                    return self.built(attempt);
                }
                if !one.asked {
                    return self.work(attempt);
                }
                one.asked = false;
                if self.full {
                    self.effects.push(Effect::Fires("fill"));
                    self.send(&WorkerFrame::NotSuspended { attempt });
                    return self.work(attempt);
                }
                one.stage = Stage::Parked;
                self.send(&WorkerFrame::Suspended { attempt });
            }
        }
    }

    fn mapped(&mut self, attempt: AttemptId) {
        let Some(one) = self.tries.remove(&attempt) else { return };
        let (job, map) = (attempt.task.job, attempt.task.index);
        let Some(known) = self.jobs.get(&job) else {
            return self.fail(attempt, FailureClass::Cancelled);
        };
        let pairs = (0..known.reduces).filter(|partition| JobPlan::has_pair(map, *partition)).count();
        let fingerprint = Fingerprint {
            pairs: u64::from(map) << 32 | u64::from(if known.whimsical { attempt.epoch } else { 0 }),
            ..Fingerprint::default()
        };
        if 0 < pairs {
            put_output(&self.store, attempt, known.reduces);
            self.outputs.insert(attempt);
        }
        let counters = vec![("pairs".to_owned(), u64::from(map) + 1)];
        let report = AttemptReport {
            ended_ns: one.took_ns,
            bytes_in: one.bytes,
            bytes_out: 10 * pairs as u64,
            counters,
            ..Default::default()
        };
        self.send(&WorkerFrame::MapFinished { attempt, fingerprint, report });
    }

    fn built(&mut self, attempt: AttemptId) {
        let Some(one) = self.tries.get_mut(&attempt) else { return };
        one.stage = Stage::Built;
        self.effects.push(Effect::Write { attempt, groups: one.groups.clone() });
        self.send(&WorkerFrame::CommitRequest { attempt });
        self.heed_answer(attempt);
    }

    /// Handles the master's response to a commit. The first one counts.
    pub fn commit_answered(&mut self, attempt: AttemptId, granted: bool) {
        let Some(one) = self.tries.get_mut(&attempt) else { return };
        one.answer.get_or_insert(granted);
        self.heed_answer(attempt);
    }

    pub fn heed_answer(&mut self, attempt: AttemptId) {
        let Some(one) = self.tries.get_mut(&attempt).filter(|one| one.stage == Stage::Built) else { return };
        match one.answer {
            None => {}
            Some(false) => self.ends_badly(attempt, FailureClass::Cancelled),
            Some(true) => {
                one.stage = Stage::Publishing;
                let pause = Span::milliseconds(self.rng.random_range(1..200) * self.slowness);
                self.next_step(attempt, pause);
                if self.stop_in_commit.is_some() {
                    self.effects.push(Effect::StopsInCommit);
                }
            }
        }
    }

    fn published(&mut self, attempt: AttemptId) {
        let Some(one) = self.tries.remove(&attempt) else { return };
        let reduce = attempt.task.kind == TaskKind::Reduce;
        if reduce {
            drop(self.store.unhome(attempt.task.job, attempt.task.index));
        }
        let plan = self.jobs.get(&attempt.task.job);
        let parts = plan.map_or(1, |plan| if reduce { plan.reduces } else { plan.maps });
        let records = one.groups.len() as u64;
        let name = part_name(attempt.task.index, parts, PartFormat::default());
        let part = Part { name, bytes: 10 * records, records, crc32c: attempt.epoch, named: Vec::new() };
        let stamp = FileStamp { size: part.bytes, modified_ns: 1, inode: u64::from(attempt.epoch) };
        let counters = match reduce {
            true => vec![("groups".to_owned(), records)],
            false => vec![("pairs".to_owned(), u64::from(attempt.task.index) + 1)],
        };
        let report = AttemptReport { ended_ns: one.took_ns, counters, ..Default::default() };
        self.send(&WorkerFrame::PartFinished { attempt, part, stamp, report });
    }
}

/// Stores the output of a map attempt, with real segments.
fn put_output(store: &SegmentStore, attempt: AttemptId, partitions: u32) {
    let setting = WriteSetting {
        job: attempt.task.job,
        map: attempt.task.index,
        epoch: attempt.epoch,
        partitions,
        order: SegmentOrder::Key,
        spill: SpillDirs::new(vec![std::env::temp_dir()]),
        compression: SpillCompression::None,
    };
    let budget = Budget::new(OUTPUT_BYTES_MAX);
    let mut writer = SegmentsWriter::in_memory(setting, &budget, 100).expect("it has room");
    for partition in (0..partitions).filter(|partition| JobPlan::has_pair(attempt.task.index, *partition)) {
        writer.pair(partition, b"key", b"value").expect("it has room");
    }
    drop(store.put_output(attempt, Arc::new(writer.finish().expect("it has room"))));
}

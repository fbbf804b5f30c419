//! Critical path of a job: the chain of tasks, transfers and waits that ends with its last task and makes up its flow
//! time.
//!
//! It is a pure function of the job's trace, which is read backwards. The last reduce started when the last transfer to
//! its worker was complete; that transferred the output of a map; and that map started when its slot was free, or when
//! its previous attempt had failed, whichever was later. Segments for several reduces of a worker are transferred
//! together, so the transfer may have been for another reduce there. If no task of the job held a slot before, the
//! chain ends at its arrival.
//!
//! The chain of a failed job ends with the attempt that failed last; that of a cancelled job ends with the attempt that
//! had run for longest then. The analysis does not show which change would speed the job up, or the cause of a failure.

use crate::api::{
    AttemptEnd, AttemptFailure, AttemptRecord, FailureCode, FetchRecord, JobState, JobTrace, PathStep,
};
use gristmill_scheduler::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use gristmill_worker::protocol::FailureClass;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of steps listed; earlier ones are merged into one step.
const STEPS_MAX: usize = 40;

/// Time by which an attempt may start before the recorded end of the previous one, nanoseconds.
const OVERLAP_NS: u64 = 200_000;

/// Steps in the order of time, without gaps from arrival to end; empty if the job has not ended, or if its trace is
/// incomplete.
#[must_use]
pub fn critical_path(trace: &JobTrace) -> Vec<PathStep> {
    let status = &trace.status;
    let (0, Some(ended_ns)) = (trace.omitted, status.ended_ns) else { return Vec::new() };
    let mut walk = PathWalk { arrived_ns: status.arrived_ns, at_ns: ended_ns, steps: Vec::new() };
    let index = TraceIndex::new(trace);
    match status.state {
        JobState::Succeeded => {
            let kind = if status.reduces.total == 0 { TaskKind::Map } else { TaskKind::Reduce };
            let Some(last) = index.last_success(kind, u64::MAX) else { return Vec::new() };
            walk.back_to(ended(last), "the output is published");
            walk.follow(&index, last);
        }
        JobState::Failed => match decisive(trace, ended_ns) {
            Some(failed) => {
                walk.back_to(ended(failed), CLEARED);
                walk.follow(&index, failed);
            }
            None => walk.stopped(&index),
        },
        JobState::Cancelled => walk.stopped(&index),
        JobState::Waiting | JobState::Running | JobState::Publishing => return Vec::new(),
    }
    // Other tasks may have run before the first one of the chain, such as its first map on another worker.
    let started = trace.attempts.iter().filter(|record| !record.end.is_returned());
    if let Some(first) = started.filter_map(|record| record.started_ns).min() {
        walk.back_to(first, "the next task of it waits for a slot");
    }
    walk.back_to(status.arrived_ns, "no task of it is launched yet");
    walk.into_steps()
}

/// Description of the time after a job has ended without success.
const CLEARED: &str = "what it has written is removed";

/// The attempt that caused the job's failure; `None` if there was another cause.
fn decisive(trace: &JobTrace, ended_ns: u64) -> Option<&AttemptRecord> {
    use FailureCode::{ClientLost, Internal, Limit, MasterLost, NoWorkers};
    let elsewhere = trace.status.failure.as_ref().is_some_and(|failure| {
        matches!(failure.code, NoWorkers | ClientLost | MasterLost | Limit | Internal)
    });
    let failed = trace.attempts.iter().filter(|record| came_to_nothing(record));
    let in_time = failed.filter(|record| ended(record) <= ended_ns.saturating_add(OVERLAP_NS));
    in_time.max_by_key(|record| (ended(record), record.attempt)).filter(|_| !elsewhere)
}

/// Indexes of a trace for the look-ups.
struct TraceIndex<'a> {
    trace: &'a JobTrace,
    /// Ended attempts that held slots of each worker, by their end.
    by_worker: BTreeMap<WorkerId, Vec<&'a AttemptRecord>>,
    /// Ended attempts of each task.
    tries: BTreeMap<TaskId, Vec<&'a AttemptRecord>>,
    by_attempt: BTreeMap<AttemptId, &'a AttemptRecord>,
    /// Transfers to each worker, by their end.
    transfers: BTreeMap<WorkerId, Vec<&'a FetchRecord>>,
}

impl<'a> TraceIndex<'a> {
    fn new(trace: &'a JobTrace) -> Self {
        let (mut by_worker, mut tries) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        let mut transfers = BTreeMap::<_, Vec<_>>::new();
        for record in trace.attempts.iter().filter(|record| record.ended_ns.is_some()) {
            if !record.end.is_returned() {
                by_worker.entry(record.worker).or_default().push(record);
                tries.entry(record.attempt.task).or_default().push(record);
            }
        }
        for fetch in &trace.fetches {
            transfers.entry(fetch.to).or_default().push(fetch);
        }
        by_worker.values_mut().for_each(|there| there.sort_by_key(|record| (ended(record), record.attempt)));
        transfers.values_mut().for_each(|there| there.sort_by_key(|fetch| fetch.ended_ns));
        let by_attempt = trace.attempts.iter().map(|record| (record.attempt, record)).collect();
        Self { trace, by_worker, tries, by_attempt, transfers }
    }

    /// The last successful attempt of this kind until then.
    fn last_success(&self, kind: TaskKind, until_ns: u64) -> Option<&'a AttemptRecord> {
        let well = self.trace.attempts.iter().filter(|record| record.end == AttemptEnd::Succeeded);
        let of_kind = well.filter(|record| record.attempt.task.kind == kind && ended(record) <= until_ns);
        of_kind.max_by_key(|record| (ended(record), record.attempt))
    }

    /// The attempt of the same task that this one replaced. If that one had succeeded, its output is gone: then the
    /// attempt lost with its worker, if there was one.
    fn try_before(&self, record: &AttemptRecord) -> Option<&'a AttemptRecord> {
        let launched = record.launched_ns.saturating_add(OVERLAP_NS);
        let tried = self.tries.get(&record.attempt.task)?.iter().copied();
        let earlier = tried.filter(|before| before.attempt.epoch < record.attempt.epoch);
        let in_time = earlier.filter(|before| ended(before) <= launched);
        let last = in_time.max_by_key(|before| (ended(before), before.attempt))?;
        if last.end != AttemptEnd::Succeeded {
            return Some(last);
        }
        let there = self.by_worker.get(&last.worker).map(Vec::as_slice).unwrap_or_default();
        let since = there[..there.partition_point(|other| ended(other) <= launched)].iter().rev().copied();
        let mut lost = since.take_while(|other| ended(last) <= ended(other));
        lost.find(|other| other.end == AttemptEnd::Lost).or(Some(last))
    }

    /// The previous attempt in a slot of its worker.
    fn slot_before(&self, record: &AttemptRecord) -> Option<&'a AttemptRecord> {
        let there = self.by_worker.get(&record.worker)?;
        let begun = began(record);
        let until = there.partition_point(|before| ended(before) <= begun.saturating_add(OVERLAP_NS));
        // An attempt whose end was recorded a moment too late has still started before.
        there[..until].iter().rev().copied().find(|before| began(before) < begun)
    }

    /// The last transfer to its worker before it, and the map whose output was transferred.
    fn transfer_before(&self, record: &AttemptRecord) -> Option<(&'a FetchRecord, &'a AttemptRecord)> {
        let here = self.transfers.get(&record.worker)?;
        let last = here[..here.partition_point(|fetch| fetch.ended_ns <= began(record))].last()?;
        let map = self.by_attempt.get(&last.map).filter(|map| map.ended_ns.is_some())?;
        Some((last, map))
    }
}

/// A walk back in time.
struct PathWalk {
    arrived_ns: u64,
    at_ns: u64,
    /// The last step first.
    steps: Vec<PathStep>,
}

impl PathWalk {
    /// Moves back to that time; the time between is described by `what`.
    fn back_to(&mut self, ns: u64, what: impl Into<String>) {
        if ns.max(self.arrived_ns) < self.at_ns {
            self.step(ns, what.into());
        }
    }

    /// Moves back to that time, unless it is already reached, over a step that belongs to the chain even if it took no
    /// measurable time.
    fn step(&mut self, ns: u64, what: String) {
        let ns = ns.max(self.arrived_ns).min(self.at_ns);
        let since = |ns: u64| ns - self.arrived_ns;
        self.steps.push(PathStep { from_ns: since(ns), until_ns: since(self.at_ns), what });
        self.at_ns = ns;
    }

    /// Walks back over an attempt and its chain of predecessors.
    fn follow(&mut self, index: &TraceIndex<'_>, last: &AttemptRecord) {
        let mut record = last;
        // Each attempt once at most, so that contradictory times cannot cause a cycle.
        for _ in 0..index.trace.attempts.len() {
            self.step(began(record), format!("{} on {}{}", name(record), record.worker, how(record)));
            match self.before(index, record) {
                Some(before) => record = before,
                None => return,
            }
        }
    }

    /// Moves from the start of an attempt to the end of its predecessor.
    fn before<'a>(&mut self, index: &TraceIndex<'a>, record: &AttemptRecord) -> Option<&'a AttemptRecord> {
        let tried = index.try_before(record);
        if record.attempt.task.kind == TaskKind::Map {
            let held = index.slot_before(record);
            let before = [held, tried].into_iter().flatten().max_by_key(|before| ended(before))?;
            self.back_to(ended(before).min(began(record)), waits_after(record, before));
            return Some(before);
        }
        let carried = index.transfer_before(record);
        if let Some(tried) = tried
            && carried.is_none_or(|(fetch, _)| fetch.ended_ns <= ended(tried))
        {
            self.back_to(ended(tried).min(began(record)), waits_after(record, tried));
            return Some(tried);
        }
        let Some((fetch, map)) = carried else {
            let last = |until_ns| index.last_success(TaskKind::Map, until_ns);
            let map = last(began(record)).or_else(|| last(u64::MAX))?;
            self.back_to(ended(map), "segments are brought together");
            return Some(map);
        };
        self.back_to(fetch.ended_ns, waits(record));
        let comes = match fetch.bytes {
            0 => format!("what {} made is taken over on {}", name(map), record.worker),
            _ => format!("what {} made comes from {} to {}", name(map), fetch.from, record.worker),
        };
        self.back_to(ended(map), comes);
        Some(map)
    }

    /// Walks back from the end of a job that was stopped.
    fn stopped(&mut self, index: &TraceIndex<'_>) {
        let attempts = &index.trace.attempts;
        let well = attempts.iter().filter(|one| one.end == AttemptEnd::Succeeded);
        let done: BTreeSet<TaskId> = well.map(|one| one.attempt.task).collect();
        let ran = |one: &&AttemptRecord| {
            let cut_short = one.end == AttemptEnd::Running || was_told_to_stop(one);
            cut_short && began(one) <= self.at_ns && !done.contains(&one.attempt.task)
        };
        let running: Vec<&AttemptRecord> = attempts.iter().filter(ran).collect();
        if let Some(first) = running.iter().copied().min_by_key(|one| (began(one), one.attempt)) {
            let others = match running.len() - 1 {
                0 => String::new(),
                1 => ", as did 1 other".to_owned(),
                more => format!(", as did {more} others"),
            };
            self.back_to(first.ended_ns.unwrap_or(self.at_ns), CLEARED);
            self.back_to(
                began(first),
                format!("{} on {}: ran when the job was stopped{others}", name(first), first.worker),
            );
            if let Some(before) = self.before(index, first) {
                self.follow(index, before);
            }
            return;
        }
        let begun = attempts.iter().filter(|one| !one.end.is_returned() && one.ended_ns.is_some());
        let over = begun.filter(|one| ended(one) <= self.at_ns);
        let Some(last) = over.max_by_key(|one| (ended(one), one.attempt)) else { return };
        let carried =
            index.trace.fetches.iter().map(|fetch| fetch.ended_ns).filter(|at| *at <= self.at_ns).max();
        self.back_to(carried.unwrap_or(0).max(ended(last)), "nothing of it runs");
        self.back_to(ended(last), "segments are brought together");
        self.follow(index, last);
    }

    fn into_steps(mut self) -> Vec<PathStep> {
        self.steps.reverse();
        let over = self.steps.len().saturating_sub(STEPS_MAX);
        if 0 < over {
            let until_ns = self.steps[over].until_ns;
            let what = format!("{} earlier steps, one after another", over + 1);
            self.steps.splice(..=over, [PathStep { from_ns: 0, until_ns, what }]);
        }
        self.steps
    }
}

fn began(record: &AttemptRecord) -> u64 {
    record.started_ns.unwrap_or(record.launched_ns)
}

/// Its end; for a running attempt, its start.
fn ended(record: &AttemptRecord) -> u64 {
    record.ended_ns.unwrap_or_else(|| began(record))
}

fn waits(record: &AttemptRecord) -> String {
    format!("{} waits for a slot on {}", name(record), record.worker)
}

/// Description of the time between the end of an attempt and the start of its successor.
fn waits_after(record: &AttemptRecord, before: &AttemptRecord) -> String {
    if before.attempt.task == record.attempt.task && before.end == AttemptEnd::Succeeded {
        return format!("what {} made is lost", name(before));
    }
    waits(record)
}

/// True if its work was lost or failed, and not because it was cancelled or came back.
fn came_to_nothing(record: &AttemptRecord) -> bool {
    use AttemptFailure::{Known, Returned};
    match &record.end {
        AttemptEnd::Lost => true,
        AttemptEnd::Failed(Returned | Known(FailureClass::Cancelled), _)
        | AttemptEnd::Running
        | AttemptEnd::Succeeded => false,
        AttemptEnd::Failed(..) => true,
    }
}

fn was_told_to_stop(record: &AttemptRecord) -> bool {
    matches!(record.end, AttemptEnd::Failed(AttemptFailure::Known(FailureClass::Cancelled), _))
}

/// Its outcome, to follow its name; empty if it succeeded.
fn how(record: &AttemptRecord) -> String {
    use AttemptFailure::Returned;
    match &record.end {
        AttemptEnd::Running | AttemptEnd::Succeeded => String::new(),
        AttemptEnd::Lost => ": lost with its worker".to_owned(),
        AttemptEnd::Failed(..) if was_told_to_stop(record) => ": told to stop".to_owned(),
        AttemptEnd::Failed(Returned, _) => ": returned".to_owned(),
        end => end.shown().map_or_else(String::new, |(class, _)| format!(": failed ({class})")),
    }
}

/// Name of a task, with the number of its attempt if there were several.
fn name(record: &AttemptRecord) -> String {
    let task = record.attempt.task;
    match record.attempt.epoch {
        0 => format!("{}-{}", task.kind, task.index),
        earlier => format!("{}-{}, try {}", task.kind, task.index, earlier + 1),
    }
}

#[cfg(test)]
mod tests;

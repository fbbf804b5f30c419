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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const MS: u64 = 1_000_000;

    /// Kind and index, worker, and times of launch, start and end, milliseconds.
    type RanTuple = (&'static str, u32, u32, [u64; 3]);

    /// Map, source and destination worker, bytes, and time of the end, milliseconds.
    type FetchTuple = (u32, u32, u32, u64, u64);

    fn attempt(&(kind, index, worker, [launched, began, ended]): &RanTuple) -> Value {
        tried((kind, index, 0), worker, [launched, began, ended], &json!("succeeded"))
    }

    /// An attempt with its number, counted from 0, and its outcome.
    fn tried(
        (kind, index, epoch): (&str, u32, u32),
        worker: u32,
        [launched, began, ended]: [u64; 3],
        end: &Value,
    ) -> Value {
        let ended = (*end != "running").then_some(ended * MS);
        json!({"attempt": {"task": {"job": 1, "kind": kind, "index": index}, "epoch": epoch}, "worker": worker,
            "launched_ns": launched * MS, "started_ns": began * MS, "ended_ns": ended, "end": end, "reason": "",
            "report": null})
    }

    fn fetch((map, epoch): (u32, u32), from: u32, to: u32, bytes: u64, ended: u64) -> Value {
        json!({"map": {"task": {"job": 1, "kind": "Map", "index": map}, "epoch": epoch}, "from": from, "to": to,
            "partitions": 1, "bytes": bytes, "started_ns": 0, "ended_ns": ended * MS})
    }

    fn failed(class: &str) -> Value {
        json!({"failed": [class, "words"]})
    }

    /// Trace of a job that arrived at 100 ms and ended in this state; if it failed, with this code.
    fn trace(
        (state, code): (&str, Option<&str>),
        ended: u64,
        reduces: u32,
        attempts: &[Value],
        fetches: &[Value],
    ) -> JobTrace {
        let tasks = |total| json!({"total": total, "running": 0, "done": total});
        let failure = code.map(|code| json!({"code": code, "message": "", "detail": null}));
        let status = json!({"schema": 1, "job": 1, "name": "x", "parameters": "", "state": state, "maps": tasks(1),
            "reduces": tasks(reduces), "segments_total": 0, "input_bytes": 0, "input_bytes_read": 0, "now_ns": 0,
            "arrived_ns": 100 * MS, "started_ns": null, "maps_done_ns": null, "shuffle_done_ns": null,
            "ended_ns": ended * MS, "totals": crate::api::JobTotals::default(),
            "attempts": crate::api::AttemptCounts::default(), "counters": {}, "parts": [], "incidents": [],
            "incidents_omitted": 0, "failure": failure, "remarks": [], "workers": 1, "slots": 1, "output": "/out"});
        let trace = json!({"status": status, "attempts": attempts, "fetches": fetches, "omitted": 0});
        serde_json::from_value(trace).unwrap()
    }

    /// The steps: start, end and description, milliseconds after the arrival.
    fn path_steps(trace: &JobTrace) -> Vec<String> {
        let told = critical_path(trace);
        assert!(told.windows(2).all(|pair| pair[0].until_ns == pair[1].from_ns), "gaps: {told:?}");
        told.iter()
            .map(|step| format!("{}..{} {}", step.from_ns / MS, step.until_ns / MS, step.what))
            .collect()
    }

    /// The steps of a successful job.
    fn steps(ended: u64, reduces: u32, ran: &[RanTuple], fetches: &[FetchTuple]) -> Vec<String> {
        let attempts: Vec<Value> = ran.iter().map(attempt).collect();
        let fetches =
            fetches.iter().map(|&(map, from, to, bytes, ended)| fetch((map, 0), from, to, bytes, ended));
        let fetches: Vec<Value> = fetches.collect();
        path_steps(&trace(("succeeded", None), ended, reduces, &attempts, &fetches))
    }

    #[test]
    fn path_goes_back_over_the_last_reduce_its_last_transfer_and_the_maps_of_one_slot() {
        let ran = [
            ("Map", 0, 1, [110, 110, 200]),
            ("Map", 1, 2, [110, 110, 150]),
            ("Map", 2, 1, [200, 205, 300]),
            ("Reduce", 0, 2, [340, 340, 400]),
            ("Reduce", 1, 1, [310, 310, 330]),
        ];
        let fetches = [(0, 1, 2, 5, 230), (2, 1, 2, 5, 320), (1, 2, 1, 5, 160)];
        let expected = [
            "0..10 no task of it is launched yet",
            "10..100 map-0 on worker-1",
            "100..105 map-2 waits for a slot on worker-1",
            "105..200 map-2 on worker-1",
            "200..220 what map-2 made comes from worker-1 to worker-2",
            "220..240 reduce-0 waits for a slot on worker-2",
            "240..300 reduce-0 on worker-2",
            "300..310 the output is published",
        ];
        assert_eq!(steps(410, 2, &ran, &fetches), expected);
    }

    #[test]
    fn job_whose_first_map_ran_elsewhere_waited_for_a_slot_after_it() {
        let ran = [("Map", 0, 1, [110, 110, 130]), ("Map", 1, 2, [190, 190, 300])];
        let expected = [
            "0..10 no task of it is launched yet",
            "10..90 the next task of it waits for a slot",
            "90..200 map-1 on worker-2",
        ];
        assert_eq!(steps(300, 0, &ran, &[]), expected);
    }

    #[test]
    fn path_of_a_job_without_reduces_ends_with_its_last_map_and_a_long_one_is_told_from_its_end() {
        let ran = [("Map", 0, 1, [100, 100, 200]), ("Map", 1, 2, [100, 100, 150])];
        assert_eq!(steps(200, 0, &ran, &[]), ["0..100 map-0 on worker-1"]);
        let one = |index: u32| {
            let at = 100 + 10 * u64::from(index);
            ("Map", index, 1, [at, at, at + 10])
        };
        let many: Vec<RanTuple> = (0..100).map(one).collect();
        let told = steps(1100, 0, &many, &[]);
        assert_eq!(told.len(), STEPS_MAX);
        assert_eq!(
            (&*told[0], &*told[39]),
            ("0..610 61 earlier steps, one after another", "990..1000 map-99 on worker-1")
        );
    }

    #[test]
    fn path_of_a_failed_job_ends_with_the_attempt_that_failed_last_and_goes_back_over_its_tries() {
        let attempts = [
            tried(("Map", 0, 0), 1, [100, 110, 150], &json!("succeeded")),
            tried(("Map", 1, 0), 2, [100, 105, 120], &failed("user")),
            tried(("Map", 1, 1), 1, [150, 150, 160], &failed("user")),
            tried(("Map", 1, 2), 2, [160, 170, 180], &failed("user")),
            // It was cancelled when the job had failed.
            tried(("Map", 2, 0), 3, [120, 121, 190], &failed("cancelled")),
        ];
        let expected = [
            "0..5 no task of it is launched yet",
            "5..10 the next task of it waits for a slot",
            "10..50 map-0 on worker-1",
            "50..60 map-1, try 2 on worker-1: failed (user)",
            "60..70 map-1, try 3 waits for a slot on worker-2",
            "70..80 map-1, try 3 on worker-2: failed (user)",
            "80..85 what it has written is removed",
        ];
        assert_eq!(path_steps(&trace(("failed", Some("user_code")), 185, 1, &attempts, &[])), expected);
    }

    #[test]
    fn path_of_a_failed_job_goes_over_what_was_lost_with_a_worker_and_made_again() {
        let attempts = [
            tried(("Map", 0, 0), 1, [100, 100, 200], &json!("succeeded")),
            tried(("Reduce", 0, 0), 1, [210, 210, 250], &json!("lost")),
            tried(("Map", 0, 1), 2, [250, 260, 340], &json!("succeeded")),
            tried(("Reduce", 0, 1), 2, [350, 350, 400], &failed("output")),
        ];
        let fetches = [fetch((0, 0), 1, 1, 0, 210), fetch((0, 1), 2, 2, 0, 350)];
        let expected = [
            "0..100 map-0 on worker-1",
            "100..110 what map-0 made is taken over on worker-1",
            "110..150 reduce-0 on worker-1: lost with its worker",
            "150..160 map-0, try 2 waits for a slot on worker-2",
            "160..240 map-0, try 2 on worker-2",
            "240..250 what map-0, try 2 made is taken over on worker-2",
            "250..300 reduce-0, try 2 on worker-2: failed (output)",
        ];
        assert_eq!(path_steps(&trace(("failed", Some("output")), 400, 1, &attempts, &fetches)), expected);
        // If no attempt ran on the lost worker, only the loss of its output is reported.
        let alone = [attempts[0].clone(), attempts[2].clone()];
        let expected = [
            "0..100 map-0 on worker-1",
            "100..160 what map-0 made is lost",
            "160..240 map-0, try 2 on worker-2",
        ];
        assert_eq!(path_steps(&trace(("succeeded", None), 340, 0, &alone, &[])), expected);
    }

    #[test]
    fn path_of_a_job_that_lost_its_client_ends_with_what_ran_though_something_failed_before() {
        let attempts = [
            tried(("Map", 0, 0), 1, [100, 100, 110], &failed("worker")),
            tried(("Map", 0, 1), 2, [110, 110, 0], &json!("running")),
        ];
        let expected = [
            "0..10 map-0 on worker-1: failed (worker)",
            "10..100 map-0, try 2 on worker-2: ran when the job was stopped",
        ];
        assert_eq!(path_steps(&trace(("failed", Some("client_lost")), 200, 1, &attempts, &[])), expected);
    }

    #[test]
    fn path_of_a_cancelled_job_ends_with_what_had_run_longest_then() {
        let attempts = [
            tried(("Map", 0, 0), 1, [100, 100, 130], &json!("succeeded")),
            // The slower of two attempts of a map, which was cancelled when the other had ended.
            tried(("Map", 0, 1), 2, [110, 110, 131], &failed("cancelled")),
            tried(("Map", 1, 0), 1, [130, 140, 210], &failed("cancelled")),
            tried(("Map", 2, 0), 2, [150, 150, 0], &json!("running")),
        ];
        let expected = [
            "0..30 map-0 on worker-1",
            "30..40 map-1 waits for a slot on worker-1",
            "40..100 map-1 on worker-1: ran when the job was stopped, as did 1 other",
        ];
        assert_eq!(path_steps(&trace(("cancelled", None), 200, 1, &attempts, &[])), expected);
        // The master of a detached job reports its end when its output is removed.
        let stopped = tried(("Map", 0, 0), 1, [100, 100, 180], &failed("cancelled"));
        let expected = [
            "0..80 map-0 on worker-1: ran when the job was stopped",
            "80..100 what it has written is removed",
        ];
        assert_eq!(path_steps(&trace(("cancelled", None), 200, 1, &[stopped], &[])), expected);
    }

    #[test]
    fn path_of_a_job_that_was_cancelled_while_nothing_of_it_ran_ends_with_that() {
        let cancelled = ("cancelled", None);
        let expected = ["0..100 no task of it is launched yet"];
        assert_eq!(path_steps(&trace(cancelled, 200, 1, &[], &[])), expected);
        let map = tried(("Map", 0, 0), 1, [100, 100, 150], &json!("succeeded"));
        let returned = tried(("Map", 1, 0), 1, [140, 140, 190], &failed("returned"));
        let expected =
            ["0..50 map-0 on worker-1", "50..80 segments are brought together", "80..100 nothing of it runs"];
        let fetches = [fetch((0, 0), 1, 2, 5, 180)];
        assert_eq!(path_steps(&trace(cancelled, 200, 1, &[map, returned], &fetches)), expected);
    }

    #[test]
    fn path_names_an_attempt_whose_clock_told_no_time_between_its_moments() {
        let attempts = [
            tried(("Map", 0, 0), 1, [200, 200, 200], &json!("succeeded")),
            tried(("Reduce", 0, 0), 1, [207, 207, 212], &json!("succeeded")),
        ];
        let expected = [
            "0..100 no task of it is launched yet",
            "100..100 map-0 on worker-1",
            "100..107 segments are brought together",
            "107..112 reduce-0 on worker-1",
            "112..115 the output is published",
        ];
        assert_eq!(path_steps(&trace(("succeeded", None), 215, 1, &attempts, &[])), expected);
    }

    #[test]
    fn path_is_told_of_no_job_that_has_not_ended_and_of_no_trace_that_is_not_whole() {
        let map = [tried(("Map", 0, 0), 1, [100, 100, 150], &json!("succeeded"))];
        for state in ["waiting", "running", "publishing"] {
            assert_eq!(critical_path(&trace((state, None), 200, 0, &map, &[])), [], "{state}");
        }
        let cut = JobTrace { omitted: 1, ..trace(("cancelled", None), 200, 0, &map, &[]) };
        assert_eq!(critical_path(&cut), []);
    }

    proptest! {
        #[test]
        fn path_has_no_gaps_from_arrival_to_end_whatever_the_times_say(
            ran in prop::collection::vec((0..2_usize, 0..3_u32, 0..3_u32, 1..3_u32, 90..220_u64, 90..220_u64, 90..220_u64, 0..6_usize), 0..12),
            carried in prop::collection::vec((0..4_u32, 0..3_u32, 1..3_u32, 1..3_u32, 90..220_u64), 0..6),
            (state, code) in prop::sample::select(vec![
                ("succeeded", None), ("cancelled", None), ("failed", None), ("failed", Some("user_code")), ("failed", Some("limit")),
            ]),
            ended in 100..210_u64,
        ) {
            let ends = ["running", "succeeded", "lost", "user", "cancelled", "returned"];
            let end = |at: usize| if at < 3 { json!(ends[at]) } else { failed(ends[at]) };
            let attempts: Vec<Value> = ran
                .iter()
                .map(|&(kind, index, epoch, worker, launched, began, ended, at)| {
                    tried((["Map", "Reduce"][kind], index, epoch), worker, [launched, began, ended], &end(at))
                })
                .collect();
            let fetches: Vec<Value> =
                carried.iter().map(|&(map, epoch, from, to, at)| fetch((map, epoch), from, to, 5, at)).collect();
            let path = critical_path(&trace((state, code), ended, 1, &attempts, &fetches));
            prop_assert!(path.windows(2).all(|pair| pair[0].until_ns == pair[1].from_ns), "{:?}", path);
            prop_assert!(path.iter().all(|step| step.from_ns <= step.until_ns), "{:?}", path);
            prop_assert!(path.len() <= STEPS_MAX);
            if let (Some(first), Some(last)) = (path.first(), path.last()) {
                prop_assert_eq!((first.from_ns, last.until_ns), (0, (ended - 100) * MS));
            } else {
                prop_assert!(state == "succeeded" || ended == 100);
            }
        }
    }
}

//! What is kept of a run: jobs with their phases, who held which slot when, what travelled, as plain numbers.
//!
//! Times are seconds from the first arrival by the master's clock. Not here: how it was run, and sums over runs.

use super::workload::{DrawnJob, Workload};
use gristmill_runtime::api::{AttemptEnd, AttemptRecord, ExactWork, JobState, JobTrace, MasterStatus};
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::metrics::JobTimes;
use gristmill_worker::protocol::SlotCounts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of a run's `results.json`.
pub const SCHEMA: u32 = 1;

/// A policy with a placement.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Contender {
    /// For legends and tables; no two alike.
    pub name: String,
    /// Policy as text.
    pub policy: String,
    /// Placement as text.
    pub placement: String,
}

/// One run of the workload under one policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Who decided.
    pub contender: Contender,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Which run of all, from 0.
    pub place: u32,
    /// Cores that all workers share; `None` if they are not all of this machine.
    #[serde(default)]
    pub cores: Option<u32>,
    /// Share of those cores' time that others than the slots used while jobs ran: other programs, and the master and
    /// workers themselves.
    #[serde(default)]
    pub others_busy: Option<f64>,
    /// Workers that were there when the first job arrived.
    pub workers: Vec<WorkerRecord>,
    /// In the order of arrival.
    pub jobs: Vec<JobRun>,
    /// Slots held by attempts that ran, in the order of launching within each job.
    pub spans: Vec<SlotSpan>,
    /// Transfers over HTTP.
    pub transfers: Vec<Transfer>,
    /// Records that the master left out of its traces because there were too many.
    pub omitted: u64,
    /// What a simulation of the same arrivals and task times says, job by job; empty if there is none.
    #[serde(default)]
    pub predicted: Vec<Predicted>,
    /// Why there is no such simulation.
    #[serde(default)]
    pub unpredicted: Option<String>,
}

/// A worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Its number.
    pub worker: u32,
    /// Slots, of both kinds together if they are shared.
    pub slots: u32,
    /// Slots for maps; all, if they are shared.
    pub map_slots: u32,
    /// Slots for reduces; all, if they are shared.
    pub reduce_slots: u32,
    /// How fast its slots are made to be.
    pub speed: f64,
    /// What its shuffle is held to in each direction, bytes in a second.
    pub nic_bytes_per_second: Option<u64>,
}

/// A job of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobRun {
    /// Its place in the order of arrival.
    pub index: usize,
    /// Its kind.
    pub label: String,
    /// Its number at the master.
    pub job: u32,
    /// When it was to arrive.
    pub planned: f64,
    /// When it arrived.
    pub arrived: f64,
    /// When its first task was launched.
    pub started: f64,
    /// When its last map ended.
    pub maps_done: f64,
    /// When the last segment was in.
    pub shuffle_done: f64,
    /// When it ended.
    pub ended: f64,
    /// When it should have ended.
    pub goal: Option<f64>,
    /// Whether that looked feasible, as the master said.
    pub outlook: Option<String>,
    /// Slot-seconds of maps and reduces of attempts that succeeded, as held.
    pub slot_seconds: [f64; 2],
    /// The same on slots that are not slower than the machine.
    pub work_seconds: [f64; 2],
    /// CPU seconds of all attempts.
    pub cpu_seconds: f64,
    /// Seconds in which attempts were made to wait because their slots are slow.
    pub paced_seconds: f64,
    /// Seconds for which attempts were suspended.
    pub suspended_seconds: f64,
    /// Times that attempts were suspended.
    pub suspensions: u32,
    /// Attempts that did not succeed, and maps that ran again.
    pub wasted_attempts: u32,
    /// Bytes that came from other workers.
    pub shuffle_bytes: u64,
    /// Names, lengths and checksums of all parts in one number.
    pub output_digest: u32,
    /// Bytes of all parts.
    pub output_bytes: u64,
    /// How large it looked: seconds since its arrival, maps done, whole work of the three stations.
    pub estimates: Vec<(f64, u32, [f64; 3])>,
}

impl JobRun {
    /// What its metrics of time are made of.
    fn times(&self) -> JobTimes {
        let (arrival, start, completion, deadline) = (self.arrived, self.started, self.ended, self.goal);
        JobTimes { arrival, start, completion, deadline }
    }

    /// End minus arrival.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.times().flow()
    }

    /// First launch minus arrival.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        self.times().waiting()
    }

    /// End minus first launch.
    #[must_use]
    pub fn execution(&self) -> f64 {
        self.times().execution()
    }

    /// Seconds of waiting, of maps, of the shuffle after them, of reduces after that: together the flow time.
    #[must_use]
    pub fn phases(&self) -> [f64; 4] {
        phases(self.arrived, self.started, self.maps_done, self.shuffle_done, self.ended)
    }

    /// Seconds past the goal; 0 if it was met.
    #[must_use]
    pub fn tardiness(&self) -> Option<f64> {
        self.times().tardiness()
    }
}

/// Splits a flow time at instants that need not be in order: a reduce may begin before the last map.
#[must_use]
pub fn phases(arrived: f64, started: f64, maps_done: f64, shuffle_done: f64, ended: f64) -> [f64; 4] {
    let started = started.clamp(arrived, ended);
    let maps_done = maps_done.clamp(started, ended);
    let shuffle_done = shuffle_done.clamp(maps_done, ended);
    [started - arrived, maps_done - started, shuffle_done - maps_done, ended - shuffle_done]
}

/// An attempt in a slot.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SlotSpan {
    /// Index of the job in the run.
    pub job: u32,
    /// Whether it is a map.
    pub map: bool,
    /// Worker.
    pub worker: u32,
    /// From.
    pub from: f64,
    /// To.
    pub to: f64,
    /// Share of that time, without pacing and suspension, in which it used a processor.
    pub busy: f64,
    /// Share of that time in which it was paced.
    pub paced: f64,
}

/// Bytes on their way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// Index of the job in the run.
    pub job: u32,
    /// From which worker.
    pub from_worker: u32,
    /// To which.
    pub to_worker: u32,
    /// How many.
    pub bytes: u64,
    /// From.
    pub from: f64,
    /// To.
    pub to: f64,
}

/// What a simulation says of a job, seconds from the first arrival.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Predicted {
    /// Index of the job in the run.
    pub index: usize,
    /// Its phases as [`JobRun::phases`].
    pub phases: [f64; 4],
}

impl Predicted {
    /// Their sum.
    #[must_use]
    pub fn flow(&self) -> f64 {
        self.phases.iter().sum()
    }
}

/// A job alone on the cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Alone {
    /// What makes it the same job: name, arguments, parts.
    pub key: String,
    /// End minus arrival, seconds.
    pub flow: f64,
    /// Its work on slots of speed 1.
    pub exact: ExactWork,
}

/// What a run is made of.
pub(super) struct Gathering<'a> {
    pub contender: &'a Contender,
    pub repetition: u32,
    pub place: u32,
    pub cores: Option<u32>,
    /// Seconds that all cores were busy while jobs ran, and the seconds that they had.
    pub busy: Option<(f64, f64)>,
    pub workload: &'a Workload,
    pub drawn: &'a [DrawnJob],
    pub master: &'a MasterStatus,
    /// One for each drawn job.
    pub traces: &'a [JobTrace],
}

fn seconds(ns: u64, base: u64) -> f64 {
    (ns as f64 - base as f64) / 1e9
}

impl Gathering<'_> {
    /// The record of the run.
    pub fn record(&self) -> RunRecord {
        let base = self.traces.iter().map(|trace| trace.status.arrived_ns).min().unwrap_or(0);
        let mut record = RunRecord {
            schema: SCHEMA,
            contender: self.contender.clone(),
            repetition: self.repetition,
            place: self.place,
            cores: self.cores,
            others_busy: None,
            workers: self.workers(),
            jobs: Vec::new(),
            spans: Vec::new(),
            transfers: Vec::new(),
            omitted: self.traces.iter().map(|trace| trace.omitted).sum(),
            predicted: Vec::new(),
            unpredicted: None,
        };
        for (drawn, trace) in self.drawn.iter().zip(self.traces) {
            record.jobs.push(self.job(drawn, trace, base));
            let job = drawn.index as u32;
            record.spans.extend(trace.attempts.iter().flat_map(|attempt| spans(job, attempt, base)));
            let over_http = trace.fetches.iter().filter(|fetch| 0 < fetch.bytes);
            record.transfers.extend(over_http.map(|fetch| Transfer {
                job,
                from_worker: fetch.from.0,
                to_worker: fetch.to.0,
                bytes: fetch.bytes,
                from: seconds(fetch.started_ns, base),
                to: seconds(fetch.ended_ns, base),
            }));
        }
        let slots: f64 = record.jobs.iter().map(|job| job.cpu_seconds).sum();
        record.others_busy = self.busy.map(|(busy, all)| ((busy - slots) / all).clamp(0.0, 1.0));
        record
    }

    fn workers(&self) -> Vec<WorkerRecord> {
        let workers = self.master.workers.iter();
        workers
            .map(|worker| {
                let (map_slots, reduce_slots) = match worker.slot_counts {
                    SlotCounts::Unified(slots) => (slots, slots),
                    SlotCounts::Pools { map, reduce } => (map, reduce),
                };
                WorkerRecord {
                    worker: worker.worker.0,
                    slots: worker.slots,
                    map_slots,
                    reduce_slots,
                    speed: worker.speed,
                    nic_bytes_per_second: worker.nic_bytes_per_second,
                }
            })
            .collect()
    }

    fn job(&self, drawn: &DrawnJob, trace: &JobTrace, base: u64) -> JobRun {
        let status = &trace.status;
        let at = |ns: Option<u64>| seconds(ns.unwrap_or(status.now_ns), base);
        let ended = at(status.ended_ns);
        let mut slot_seconds = [0.0; 2];
        let mut work_seconds = [0.0; 2];
        let (mut cpu, mut paced, mut suspended, mut suspensions) = (0, 0, 0, 0);
        for (attempt, report) in trace.attempts.iter().filter_map(|one| Some((one, one.report.as_ref()?))) {
            cpu += report.cpu_ns;
            paced += report.paced_ns;
            suspended += report.suspended_ns;
            suspensions += report.suspensions;
            if is_useful(attempt) {
                let station = usize::from(attempt.attempt.task.kind == TaskKind::Reduce);
                slot_seconds[station] += held(attempt).unwrap_or(0.0);
                work_seconds[station] += worked(attempt).unwrap_or(0.0);
            }
        }
        let counts = &status.attempts;
        JobRun {
            index: drawn.index,
            label: self.workload.kinds[drawn.kind].label.clone(),
            job: status.job.0,
            planned: drawn.arrival - self.drawn.first().map_or(0.0, |first| first.arrival),
            arrived: seconds(status.arrived_ns, base),
            started: at(status.started_ns.or(status.ended_ns)),
            maps_done: at(status.maps_done_ns.or(status.ended_ns)),
            shuffle_done: at(status.shuffle_done_ns.or(status.ended_ns)),
            ended,
            goal: status.deadline_ns.map(|goal| seconds(goal, base)),
            outlook: status.deadline_outlook.as_ref().map(|outlook| outlook.words.clone()),
            slot_seconds,
            work_seconds,
            cpu_seconds: cpu as f64 / 1e9,
            paced_seconds: paced as f64 / 1e9,
            suspended_seconds: suspended as f64 / 1e9,
            suspensions,
            wasted_attempts: counts.failed_user + counts.failed_other + counts.lost + counts.maps_rerun,
            shuffle_bytes: status.totals.shuffle_bytes,
            output_digest: digest(trace),
            output_bytes: status.totals.bytes_out,
            estimates: trace
                .estimates
                .iter()
                .map(|one| (seconds(one.at_ns, status.arrived_ns), one.maps_done, one.whole))
                .collect(),
        }
    }
}

/// Names, lengths and checksums of the parts in one number.
fn digest(trace: &JobTrace) -> u32 {
    trace.status.parts.iter().fold(0, |digest, part| {
        let digest = crc32c::crc32c_append(digest, part.name.as_bytes());
        let digest = crc32c::crc32c_append(digest, &part.bytes.to_le_bytes());
        crc32c::crc32c_append(digest, &part.crc32c.to_le_bytes())
    })
}

/// Seconds for which an attempt held a slot: without those for which it was suspended.
fn held(attempt: &AttemptRecord) -> Option<f64> {
    let span = attempt.ended_ns?.saturating_sub(attempt.started_ns?);
    let suspended = attempt.report.as_ref().map_or(0, |report| report.suspended_ns);
    Some(span.saturating_sub(suspended) as f64 / 1e9)
}

/// The same on a slot that is not slower than the machine.
fn worked(attempt: &AttemptRecord) -> Option<f64> {
    let paced = attempt.report.as_ref().map_or(0, |report| report.paced_ns);
    held(attempt).map(|held| (held - paced as f64 / 1e9).max(0.0))
}

/// Whether what an attempt did counts in the end: it succeeded, or another went on where it stood.
fn is_useful(attempt: &AttemptRecord) -> bool {
    matches!(attempt.end, AttemptEnd::Succeeded | AttemptEnd::HandedOver)
}

/// The times for which an attempt held a slot: one, or several if it was suspended.
fn spans(job: u32, attempt: &AttemptRecord, base: u64) -> Vec<SlotSpan> {
    let (Some(from), Some(to)) = (attempt.started_ns, attempt.ended_ns) else { return Vec::new() };
    let report = attempt.report.as_ref();
    let length = to.saturating_sub(from) as f64;
    let share = |part: u64, of: f64| if 0.0 < of { (part as f64 / of).min(1.0) } else { 0.0 };
    let (paced, suspended, cpu) =
        report.map_or((0, 0, 0), |report| (report.paced_ns, report.suspended_ns, report.cpu_ns));
    let held = length - suspended as f64;
    let piece = |from: u64, to: u64| SlotSpan {
        job,
        map: attempt.attempt.task.kind == TaskKind::Map,
        worker: attempt.worker.0,
        from: seconds(from, base),
        to: seconds(to, base),
        busy: share(cpu, held - paced as f64),
        paced: share(paced, held),
    };
    let mut pieces = Vec::with_capacity(1 + attempt.suspensions.len());
    let mut since = from;
    for &(left, back) in &attempt.suspensions {
        let left = left.clamp(since, to.max(since));
        pieces.push((since, left));
        since = back.clamp(left, to.max(left));
    }
    pieces.push((since, to.max(since)));
    // An attempt that was handed over ends suspended, and has no last piece.
    let last = pieces.len() - 1;
    let pieces =
        pieces.into_iter().enumerate().filter(|&(place, (from, to))| place == 0 || place < last || from < to);
    pieces.map(|(_, (from, to))| piece(from, to)).collect()
}

/// The work of a job task by task, from the attempts that succeeded last.
pub(super) fn exact(trace: &JobTrace) -> ExactWork {
    let mut tasks: [BTreeMap<u32, f64>; 2] = Default::default();
    for attempt in trace.attempts.iter().filter(|attempt| attempt.end == AttemptEnd::Succeeded) {
        let task = attempt.attempt.task;
        tasks[usize::from(task.kind == TaskKind::Reduce)].insert(task.index, worked(attempt).unwrap_or(0.0));
    }
    let [maps, reduces] = tasks.map(|tasks| tasks.into_values().collect());
    ExactWork {
        map_seconds: maps,
        shuffle_bytes: trace.status.totals.map_bytes_out as f64,
        reduce_seconds: reduces,
    }
}

/// Whether the job succeeded; else why not, in words.
pub(super) fn failure(trace: &JobTrace) -> Option<String> {
    let status = &trace.status;
    match (&status.failure, status.state) {
        (_, JobState::Succeeded) => None,
        (Some(failure), _) => Some(failure.message.clone()),
        (None, _) => Some("it was cancelled".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::{JobId, TaskId, WorkerId};
    use gristmill_worker::protocol::AttemptReport;
    use proptest::prelude::*;

    fn attempt(suspensions: &[(u64, u64)], end: AttemptEnd) -> AttemptRecord {
        let suspended_ns = suspensions.iter().map(|(from, to)| to - from).sum();
        AttemptRecord {
            attempt: TaskId::reduce(JobId(1), 0).attempt(0),
            worker: WorkerId(1),
            launched_ns: 0,
            started_ns: Some(2_000_000_000),
            ended_ns: Some(10_000_000_000),
            end,
            reason: String::new(),
            report: Some(AttemptReport { cpu_ns: 1_000_000_000, suspended_ns, ..AttemptReport::default() }),
            suspensions: suspensions.to_vec(),
            suspended: false,
        }
    }

    #[test]
    fn suspended_attempt_holds_its_slot_before_and_after_only() {
        let second = 1_000_000_000;
        let one = attempt(&[(4 * second, 6 * second)], AttemptEnd::Succeeded);
        let found: Vec<(f64, f64)> = spans(0, &one, second).iter().map(|span| (span.from, span.to)).collect();
        assert_eq!(found, [(1.0, 3.0), (5.0, 9.0)]);
        assert_eq!(held(&one), Some(6.0));
        let handed_over = attempt(&[(4 * second, 10 * second)], AttemptEnd::HandedOver);
        assert_eq!(spans(0, &handed_over, second).len(), 1);
        assert!(is_useful(&handed_over) && !is_useful(&attempt(&[], AttemptEnd::Lost)));
        assert_eq!(held(&handed_over), Some(2.0));
    }

    #[test]
    fn phases_of_instants_in_order_are_their_differences() {
        assert_eq!(phases(1.0, 2.0, 4.0, 7.0, 11.0), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(
            phases(0.0, 0.0, 5.0, 3.0, 6.0),
            [0.0, 5.0, 0.0, 1.0],
            "the last segment came before the last map"
        );
    }

    proptest! {
        #[test]
        fn phases_add_up_to_the_flow_time(times in prop::collection::vec(0.0..100.0_f64, 5)) {
            let ended = times[0].max(times[4]);
            let found = phases(times[0], times[1], times[2], times[3], ended);
            prop_assert!(found.iter().all(|&phase| 0.0 <= phase));
            prop_assert!((found.iter().sum::<f64>() - (ended - times[0])).abs() < 1e-9);
        }
    }
}

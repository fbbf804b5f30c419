//! Builds the record of a run from the master's data.

use super::record::{
    Contender, JobRun, OutputDigest, RunRecord, SCHEMA, SimulatedRun, SlotSpan, SlotUsage, Transfer,
    WorkerRecord,
};
use super::workload::{DrawnJob, Workload};
use gristmill_runtime::api::{AttemptEnd, AttemptRecord, ExactWork, JobState, JobTrace, MasterStatus};
use gristmill_scheduler::ids::TaskKind;
use gristmill_worker::protocol::Slots;
use std::collections::BTreeMap;

/// Input of a run record.
pub(super) struct Gathering<'a> {
    pub contender: &'a Contender,
    pub repetition: u32,
    pub place: u32,
    pub cores: Option<u32>,
    /// Seconds that all cores were busy while jobs ran, without the slots of runs at the same time, and the seconds
    /// available.
    pub busy: Option<(f64, f64)>,
    pub workload: &'a Workload,
    pub drawn: &'a [DrawnJob],
    pub master: &'a MasterStatus,
    /// Traces, one for each drawn job.
    pub traces: &'a [JobTrace],
}

fn seconds(ns: u64, base: u64) -> f64 {
    (ns as f64 - base as f64) / 1e9
}

impl Gathering<'_> {
    /// Returns the record of the run.
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
            replayed: SimulatedRun::default(),
            predicted: SimulatedRun::default(),
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
        let slots: f64 = record.jobs.iter().map(|job| job.usage.cpu_seconds).sum();
        record.others_busy = self.busy.map(|(busy, all)| ((busy - slots) / all).clamp(0.0, 1.0));
        record
    }

    fn workers(&self) -> Vec<WorkerRecord> {
        let workers = self.master.workers.iter();
        workers
            .map(|worker| {
                let (map_slots, reduce_slots) = match worker.slot_counts {
                    Slots::Unified(slots) => (slots, slots),
                    Slots::Pools { map, reduce } => (map, reduce),
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
        let kind = &self.workload.kinds[drawn.kind];
        JobRun {
            index: drawn.index,
            label: kind.label.clone(),
            job: status.job.0,
            planned: drawn.arrival - self.drawn.first().map_or(0.0, |first| first.arrival),
            arrived: seconds(status.arrived_ns, base),
            started: at(status.started_ns.or(status.ended_ns)),
            maps_done: at(status.maps_done_ns.or(status.ended_ns)),
            shuffle_done: at(status.shuffle_done_ns.or(status.ended_ns)),
            ended,
            deadline: status.deadline_ns.map(|deadline| seconds(deadline, base)),
            outlook: status.deadline_outlook.as_ref().map(|outlook| outlook.words.clone()),
            usage: usage(trace),
            shuffle_bytes: status.totals.shuffle_bytes,
            known_shuffle_bytes: kind
                .exact
                .as_ref()
                .filter(|_| kind.plays_exact)
                .map(|exact| exact.shuffle_bytes),
            output: OutputDigest { digest: digest(trace), bytes: status.totals.bytes_out },
            estimates: trace
                .estimates
                .iter()
                .map(|one| (seconds(one.at_ns, status.arrived_ns), one.maps_done, one.whole))
                .collect(),
        }
    }
}

/// Returns the processor seconds of a run's attempts.
pub(super) fn cpu_seconds(traces: &[JobTrace]) -> f64 {
    traces.iter().map(|trace| usage(trace).cpu_seconds).sum()
}

fn usage(trace: &JobTrace) -> SlotUsage {
    let mut usage = SlotUsage::default();
    let (mut cpu, mut paced, mut suspended) = (0, 0, 0);
    for (attempt, report) in trace.attempts.iter().filter_map(|one| Some((one, one.report.as_ref()?))) {
        cpu += report.cpu_ns;
        paced += report.paced_ns;
        suspended += report.suspended_ns;
        usage.suspensions += report.suspensions;
        if attempt.end == AttemptEnd::Succeeded {
            let station = usize::from(attempt.attempt.task.kind == TaskKind::Reduce);
            usage.slot_seconds[station] += held(attempt).unwrap_or(0.0);
            usage.work_seconds[station] += worked(attempt).unwrap_or(0.0);
        }
    }
    [usage.cpu_seconds, usage.paced_seconds, usage.suspended_seconds] =
        [cpu, paced, suspended].map(|ns| ns as f64 / 1e9);
    let counts = &trace.status.attempts;
    usage.wasted_attempts = counts.failed_user + counts.failed_other + counts.lost + counts.maps_rerun;
    usage
}

/// Returns one number for the names, lengths and checksums of the parts.
fn digest(trace: &JobTrace) -> u32 {
    trace.status.parts.iter().fold(0, |digest, part| {
        let digest = crc32c::crc32c_append(digest, part.name.as_bytes());
        let digest = crc32c::crc32c_append(digest, &part.bytes.to_le_bytes());
        crc32c::crc32c_append(digest, &part.crc32c.to_le_bytes())
    })
}

/// Returns the seconds for which an attempt held a slot, without those for which it was suspended.
fn held(attempt: &AttemptRecord) -> Option<f64> {
    let span = attempt.ended_ns?.saturating_sub(attempt.started_ns?);
    let suspended = attempt.report.as_ref().map_or(0, |report| report.suspended_ns);
    Some(span.saturating_sub(suspended) as f64 / 1e9)
}

/// Returns the same on a slot that is not slower than the machine.
fn worked(attempt: &AttemptRecord) -> Option<f64> {
    let paced = attempt.report.as_ref().map_or(0, |report| report.paced_ns);
    held(attempt).map(|held| (held - paced as f64 / 1e9).max(0.0))
}

/// Returns the intervals in which an attempt held a slot: one, or several if it was suspended.
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
    // An attempt that ends while it is suspended has no last interval.
    let last = pieces.len() - 1;
    let pieces =
        pieces.into_iter().enumerate().filter(|&(place, (from, to))| place == 0 || place < last || from < to);
    pieces.map(|(_, (from, to))| piece(from, to)).collect()
}

/// Returns the work of a job task by task, from the attempts that succeeded last.
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

/// Returns a description of the failure; `None` if the job succeeded.
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
    }
}

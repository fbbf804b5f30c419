//! Records of the attempts of one job: the trace, and the last successful report of each map.
//!
//! Sums over maps are updated incrementally, so that a status costs the same however many maps a job has.
//!
//! Invariant: `sums` counts each map with a report once.

use super::as_json;
use super::fleet::shift;
use super::sums::{Nearness, Sums};
use crate::api::{
    AttemptCounts, AttemptEnd, AttemptFailure, AttemptRecord, FeedAttempt, FeedEnd, FetchRecord,
};
use gristmill_scheduler::command::LaunchReason;
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::protocol::{AttemptReport, FailureClass};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of suspensions kept of one attempt.
const SUSPENSIONS_MAX: usize = 256;

/// Maximum number of attempts and transfers kept for the trace of one job.
pub(super) const TRACE_RECORDS_MAX: usize = 200_000;

/// Maximum number of bytes of failure messages kept for the trace of one job. Later messages are dropped.
const FAILURE_TEXTS_BYTES_MAX: usize = 4 << 20;

/// One attempt. A map's last successful report is stored with the map instead.
#[derive(serde::Serialize, serde::Deserialize)]
struct AttemptEntry {
    attempt: AttemptId,
    worker: WorkerId,
    launched_ns: u64,
    /// 0 if it is unknown.
    started_ns: u64,
    /// 0 while it runs.
    ended_ns: u64,
    #[serde(with = "as_json")]
    end: AttemptEnd,
    reason: WhyLaunched,
    report: Option<Box<AttemptReport>>,
}

/// Reason for its launch: as given by the core, or as text read from a file.
enum WhyLaunched {
    Reason(LaunchReason),
    Words(Box<str>),
}

impl fmt::Display for WhyLaunched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyLaunched::Reason(reason) => reason.fmt(f),
            WhyLaunched::Words(words) => f.write_str(words),
        }
    }
}

impl serde::Serialize for WhyLaunched {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for WhyLaunched {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(WhyLaunched::Words(String::deserialize(deserializer)?.into()))
    }
}

/// One map.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct MapEntry {
    /// Report of its last successful attempt.
    report: Option<Box<AttemptReport>>,
    /// Place of that attempt in the trace, counted from 1; 0 if it was dropped.
    record: u32,
    /// True if it is done, as far as is known.
    pub(super) succeeded: bool,
    nearness: Option<Nearness>,
}

/// Attempts and transfers of one job.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct TaskRecords {
    records: Vec<AttemptEntry>,
    /// Places of the running attempts in `records`.
    running: BTreeMap<AttemptId, u32>,
    /// Intervals in which attempts were suspended, by their place in `records`; without an end while they are.
    suspensions: BTreeMap<u32, Vec<(u64, Option<u64>)>>,
    pub(super) maps: Vec<MapEntry>,
    pub(super) maps_succeeded: u32,
    pub(super) fetches: Vec<FetchRecord>,
    pub(super) omitted: u64,
    /// Bytes of failure messages.
    texts_bytes: usize,
    pub(super) sums: Sums,
    /// Number of attempts by outcome.
    pub(super) counts: AttemptCounts,
}

impl TaskRecords {
    pub(super) fn new(maps: u32) -> Self {
        let maps = (0..maps).map(|_| MapEntry::default()).collect();
        Self { maps, ..Self::default() }
    }

    pub(super) fn launched(&mut self, attempt: AttemptId, worker: WorkerId, now: Time, reason: LaunchReason) {
        if TRACE_RECORDS_MAX <= self.records.len() {
            self.omitted += 1;
            return;
        }
        self.running.insert(attempt, self.records.len() as u32);
        self.records.push(AttemptEntry {
            attempt,
            worker,
            launched_ns: now.0,
            started_ns: 0,
            ended_ns: 0,
            end: AttemptEnd::Running,
            reason: WhyLaunched::Reason(reason),
            report: None,
        });
    }

    pub(super) fn fetched(&mut self, record: FetchRecord) {
        if self.fetches.len() < TRACE_RECORDS_MAX {
            self.fetches.push(record);
        } else {
            self.omitted += 1;
        }
    }

    /// Enters the end of an attempt. Returns its place in the trace counted from 1, or 0.
    fn ended(
        &mut self,
        attempt: AttemptId,
        now: Time,
        end: AttemptEnd,
        report: Option<&AttemptReport>,
        offset_ns: i64,
    ) -> u32 {
        let Some(at) = self.running.remove(&attempt) else { return 0 };
        let record = &mut self.records[at as usize];
        record.ended_ns = now.0;
        if let Some(report) = report.filter(|report| 0 < report.ended_ns) {
            // A worker's clock measures durations well. The start is as uncertain as the pings were long, and must be
            // within the interval that the master saw. The whole attempt is moved, so that its duration is kept.
            let longest_ns = now.0.saturating_sub(record.launched_ns);
            let took_ns = report.ended_ns.saturating_sub(report.started_ns).min(longest_ns);
            let latest_ns = now.0.saturating_sub(took_ns).max(record.launched_ns);
            record.started_ns = shift(report.started_ns, offset_ns).clamp(record.launched_ns, latest_ns);
            record.ended_ns = record.started_ns + took_ns;
        }
        record.end = end;
        let ended_ns = record.ended_ns;
        self.close_suspension(at, ended_ns);
        at + 1
    }

    /// Enters that an attempt was suspended.
    pub(super) fn suspended(&mut self, attempt: AttemptId, now: Time) {
        let Some(&at) = self.running.get(&attempt) else { return };
        let spans = self.suspensions.entry(at).or_default();
        let open = spans.last().is_some_and(|last| last.1.is_none());
        if open {
            return;
        }
        if spans.len() < SUSPENSIONS_MAX {
            spans.push((now.0, None));
        } else {
            self.omitted += 1;
        }
    }

    /// Enters that an attempt was resumed.
    pub(super) fn resumed(&mut self, attempt: AttemptId, now: Time) {
        if let Some(&at) = self.running.get(&attempt) {
            self.close_suspension(at, now.0);
        }
    }

    fn close_suspension(&mut self, at: u32, until_ns: u64) {
        let open = self.suspensions.get_mut(&at).and_then(|spans| spans.last_mut());
        if let Some((from, until)) = open
            && until.is_none()
        {
            *until = Some(until_ns.max(*from));
        }
    }

    /// Enters that an attempt was lost with its worker.
    pub(super) fn lost(&mut self, attempt: AttemptId, now: Time) {
        self.ended(attempt, now, AttemptEnd::Lost, None, 0);
    }

    /// Enters that an attempt came back before it had started.
    pub(super) fn returned(&mut self, attempt: AttemptId, now: Time) {
        self.ended(attempt, now, AttemptEnd::returned(), None, 0);
    }

    /// Enters that an attempt failed.
    pub(super) fn failed(
        &mut self,
        attempt: AttemptId,
        now: Time,
        (class, message): (FailureClass, &str),
        mut report: AttemptReport,
        offset_ns: i64,
    ) {
        self.sums.tidy(&mut report);
        let bytes = self.texts_bytes.saturating_add(message.len());
        let kept = if bytes <= FAILURE_TEXTS_BYTES_MAX {
            self.texts_bytes = bytes;
            message
        } else {
            "left out: too many words were kept before"
        };
        let end = AttemptEnd::Failed(AttemptFailure::Known(class), kept.to_owned());
        let at = self.ended(attempt, now, end, Some(&report), offset_ns);
        self.keep(at, Some(Box::new(report)));
    }

    fn keep(&mut self, record: u32, report: Option<Box<AttemptReport>>) {
        if let Some(at) = record.checked_sub(1)
            && let Some(record) = self.records.get_mut(at as usize)
        {
            record.report = report;
        }
    }

    /// Enters that a reduce attempt succeeded.
    pub(super) fn reduced(
        &mut self,
        attempt: AttemptId,
        now: Time,
        mut report: AttemptReport,
        offset_ns: i64,
    ) {
        self.sums.tidy(&mut report);
        let at = self.ended(attempt, now, AttemptEnd::Succeeded, Some(&report), offset_ns);
        let sum = &mut self.sums.totals.reduce_records_in;
        *sum = sum.saturating_add(report.records_in);
        self.sums.add(&report);
        self.keep(at, Some(Box::new(report)));
    }

    /// Enters that a map attempt succeeded. A map that runs again must not count twice: its last report replaces the
    /// previous one. `counts` is true if its job is live.
    pub(super) fn mapped(
        &mut self,
        attempt: AttemptId,
        now: Time,
        mut report: AttemptReport,
        offset_ns: i64,
        (counts, same_host): (bool, bool),
    ) {
        self.sums.tidy(&mut report);
        let at = self.ended(attempt, now, AttemptEnd::Succeeded, Some(&report), offset_ns);
        let report = Box::new(report);
        let Some(entry) = self.maps.get_mut(attempt.task.index as usize).filter(|_| counts) else {
            return self.keep(at, Some(report));
        };
        self.maps_succeeded += u32::from(!std::mem::replace(&mut entry.succeeded, true));
        // A task without input has no distance.
        let nearness = (0 < report.bytes_in).then_some(match (0 < report.local_bytes, same_host) {
            (true, _) => Nearness::Local,
            (false, true) => Nearness::SameHost,
            (false, false) => Nearness::Remote,
        });
        let (before, at_before) = (entry.report.take(), std::mem::replace(&mut entry.record, at));
        let near_before = std::mem::replace(&mut entry.nearness, nearness);
        if let Some(before) = before {
            self.sums.count_map(&before, near_before, false);
            self.keep(at_before, Some(before));
        }
        self.sums.count_map(&report, nearness, true);
        if let Some(entry) = self.maps.get_mut(attempt.task.index as usize) {
            entry.report = Some(report);
        }
    }

    /// Enters that a map runs again. Returns true if it was done before.
    pub(super) fn undone(&mut self, map: u32) -> bool {
        let entry = self.maps.get_mut(map as usize);
        let was = entry.is_some_and(|entry| std::mem::replace(&mut entry.succeeded, false));
        self.maps_succeeded -= u32::from(was);
        was
    }

    /// Attempts in the order of launch.
    pub(super) fn attempts(&self, now: Time) -> Vec<AttemptRecord> {
        self.records.iter().zip(1..).map(|(record, at)| self.attempt(record, at, now)).collect()
    }

    /// Attempts of one task in the order of launch.
    pub(super) fn attempts_of(&self, task: TaskId, now: Time) -> Vec<AttemptRecord> {
        let of_task = self.records.iter().zip(1..).filter(|(record, _)| record.attempt.task == task);
        of_task.map(|(record, at)| self.attempt(record, at, now)).collect()
    }

    fn attempt(&self, record: &AttemptEntry, at: u32, now: Time) -> AttemptRecord {
        let spans = self.suspensions.get(&(at - 1)).map(Vec::as_slice).unwrap_or_default();
        let known = |ns: u64| (0 < ns).then_some(ns);
        let task = record.attempt.task;
        let of_map = self.maps.get(task.index as usize).filter(|_| task.kind == TaskKind::Map);
        let of_map = of_map.filter(|map| map.record == at).and_then(|map| map.report.as_deref());
        AttemptRecord {
            attempt: record.attempt,
            worker: record.worker,
            launched_ns: record.launched_ns,
            started_ns: known(record.started_ns),
            ended_ns: known(record.ended_ns),
            end: record.end.clone(),
            reason: record.reason.to_string(),
            report: record.report.as_deref().or(of_map).cloned(),
            suspended: spans.last().is_some_and(|(_, until)| until.is_none()),
            suspensions: spans.iter().map(|(from, until)| (*from, until.unwrap_or(now.0))).collect(),
        }
    }

    /// Short form of the attempt at this place.
    pub(super) fn feed_attempt(&self, job: JobId, at: usize) -> Option<FeedAttempt> {
        let record = self.records.get(at)?;
        let spans = self.suspensions.get(&(at as u32)).map(Vec::as_slice).unwrap_or_default();
        let suspended = spans.last().is_some_and(|(_, until)| until.is_none());
        let end = match &record.end {
            AttemptEnd::Running if suspended => FeedEnd::Suspended,
            AttemptEnd::Running => FeedEnd::Running,
            AttemptEnd::Succeeded => FeedEnd::Succeeded,
            AttemptEnd::Failed(AttemptFailure::Returned, _) => FeedEnd::Returned,
            AttemptEnd::Failed(..) => FeedEnd::Failed,
            AttemptEnd::Lost => FeedEnd::Lost,
        };
        let AttemptId { task, epoch } = record.attempt;
        let (launched, started, ended) = (record.launched_ns, record.started_ns, record.ended_ns);
        let kind = task.kind as u8;
        Some(FeedAttempt(job.0, kind, task.index, epoch, record.worker.0, launched, started, ended, end))
    }

    /// Number of maps, attempts and transfers kept.
    pub(super) fn len(&self) -> usize {
        self.records.len() + self.fetches.len() + self.maps.len()
    }

    /// Drops the trace of this job; only sums are kept.
    pub(super) fn forget_trace(&mut self) {
        self.omitted += (self.records.len() + self.fetches.len()) as u64;
        (self.records, self.fetches, self.maps) = (Vec::new(), Vec::new(), Vec::new());
        self.running = BTreeMap::new();
        self.suspensions = BTreeMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::JobId;
    use gristmill_scheduler::job::Locality;
    use gristmill_scheduler::plan::Reason;
    use gristmill_worker::protocol::MemoryUse;
    use proptest::prelude::*;

    const REASON: LaunchReason = LaunchReason { grant: Reason::Oldest, locality: Locality::NoPreference };

    fn report(number: u64) -> AttemptReport {
        AttemptReport {
            started_ns: number,
            ended_ns: number + 1,
            records_in: number,
            bytes_in: number % 3,
            records_out: 2 * number,
            bytes_out: 3 * number,
            spills: number % 2,
            spilled_bytes: 5 * number,
            local_bytes: number % 2,
            counters: vec![(format!("counter {}", number % 2), number)],
            cpu_ns: 7 * number,
            memory: MemoryUse { peak_bytes: number, budget_bytes: number, kept_peak_bytes: number },
            ..AttemptReport::default()
        }
    }

    proptest! {
        #[test]
        fn sums_count_the_last_good_report_of_each_map_and_nothing_else(
            ends in prop::collection::vec((0..5_u32, 1..1000_u64, any::<bool>()), 0..30),
        ) {
            let mut records = TaskRecords::new(5);
            let mut last = BTreeMap::new();
            for (epoch, &(map, number, good)) in (0..).zip(&ends) {
                let attempt = TaskId::map(JobId(1), map).attempt(epoch);
                records.launched(attempt, WorkerId(1), Time(0), REASON);
                prop_assert_eq!(records.undone(map), good_before(&ends, epoch as usize, map));
                if good {
                    records.mapped(attempt, Time(5000), report(number), 0, (true, false));
                    last.insert(map, number);
                } else {
                    records.failed(attempt, Time(5000), (FailureClass::User, "words"), report(number), 0);
                }
            }
            let all = || last.values().copied();
            prop_assert_eq!(records.sums.totals.map_records_in, all().sum::<u64>());
            prop_assert_eq!(records.sums.totals.map_bytes_out, all().map(|n| 3 * n).sum::<u64>());
            prop_assert_eq!(records.sums.totals.cpu_ns, all().map(|n| 7 * n).sum::<u64>());
            prop_assert_eq!(records.sums.counters.values().sum::<u64>(), all().sum::<u64>());
            let near = records.sums.totals.splits_local + records.sums.totals.splits_remote;
            prop_assert_eq!(near as usize, all().filter(|n| 0 < n % 3).count());
            let traced = records.attempts(Time(9000));
            prop_assert_eq!(traced.len(), ends.len());
            for (record, &(_, number, _)) in traced.iter().zip(&ends) {
                prop_assert_eq!(record.report.as_ref().map(|report| report.records_in), Some(number));
            }
        }
    }

    proptest! {
        #[test]
        fn attempt_keeps_its_length_and_lies_within_what_the_master_saw_however_wrong_its_clock(
            launched in 1..1000_u64,
            spans in prop::array::uniform3(0..1000_u64),
            offset in -5000..5000_i64,
        ) {
            let [before, took, after] = spans;
            let now = launched + before + took + after;
            let attempt = TaskId::reduce(JobId(1), 0).attempt(0);
            let mut records = TaskRecords::new(0);
            records.launched(attempt, WorkerId(1), Time(launched), REASON);
            // Readings of the worker's clock, whose offset is taken as zero.
            let clock = |ns: u64| (ns + 5000).saturating_add_signed(offset);
            let (started_ns, ended_ns) = (clock(launched + before), clock(launched + before + took));
            records.reduced(attempt, Time(now), AttemptReport { started_ns, ended_ns, ..report(1) }, 5000);
            let traced = &records.attempts(Time(now))[0];
            let (started, ended) = (traced.started_ns.unwrap(), traced.ended_ns.unwrap());
            prop_assert!(launched <= started && ended <= now, "{started}..{ended} in {launched}..{now}");
            prop_assert_eq!(ended - started, took);
            if offset == 0 {
                prop_assert_eq!(started, launched + before);
            }
        }
    }

    #[test]
    fn suspensions_are_spans_that_end_with_a_resumption_or_with_the_attempt() {
        let mut records = TaskRecords::new(0);
        let attempt = TaskId::reduce(JobId(1), 0).attempt(0);
        records.launched(attempt, WorkerId(1), Time(10), REASON);
        records.suspended(attempt, Time(20));
        records.suspended(attempt, Time(25));
        records.resumed(attempt, Time(30));
        records.resumed(attempt, Time(35));
        records.suspended(attempt, Time(40));
        assert_eq!(records.attempts(Time(45))[0].suspensions, [(20, 30), (40, 45)]);
        assert!(records.attempts(Time(45))[0].suspended);
        records.reduced(attempt, Time(50), AttemptReport { suspensions: 2, ..report(60) }, 0);
        assert_eq!(records.attempts(Time(90))[0].suspensions, [(20, 30), (40, 50)]);
        assert!(!records.attempts(Time(90))[0].suspended);
        assert_eq!(records.sums.totals.suspensions, 2);
    }

    #[test]
    fn words_about_failed_attempts_stay_bounded_however_many_there_are() {
        let mut records = TaskRecords::new(1);
        for epoch in 0..2000 {
            let attempt = TaskId::map(JobId(1), 0).attempt(epoch);
            records.launched(attempt, WorkerId(1), Time(0), REASON);
            records.failed(attempt, Time(1), (FailureClass::Worker, &"x".repeat(4000)), report(0), 0);
        }
        let words = |record: AttemptRecord| match record.end {
            AttemptEnd::Failed(_, message) => message,
            _ => String::new(),
        };
        let all: Vec<String> = records.attempts(Time(1)).into_iter().map(words).collect();
        let whole = all.iter().filter(|words| words.len() == 4000).count();
        assert_eq!(whole, FAILURE_TEXTS_BYTES_MAX / 4000);
        assert!(all.iter().all(|words| !words.is_empty()));
    }

    /// True if the attempt of this map before the given one succeeded.
    fn good_before(ends: &[(u32, u64, bool)], at: usize, map: u32) -> bool {
        ends[..at].iter().rev().find(|end| end.0 == map).is_some_and(|end| end.2)
    }
}

//! One job as its submitter and its followers see it: progress, incidents, user output and outcome.

use super::super::translate;
use super::as_json;
use super::bad_records::JobBadRecords;
use super::estimates::Estimates;
use super::forecast::TimeLeft;
use super::job_parts::{CutReduce, Failures, Followers, Incidents, JobInput, JobKeys, JobOutput, Milestones};
use super::logs::Logs;
use super::phases::PhaseTimes;
use super::record::{MapEntry, TaskRecords};
use super::sums::COUNTERS_MAX;
use crate::api::{
    BuiltPart, DeadlineOutlook, FailureCode, JobFailure, JobState, JobStatus, SCHEMA, Submission, TaskCounts,
};
use crate::api::{JobTrace, WorkLeft};
use crate::output_dir::join_parts;
use crate::wall_time::rfc3339;
use gristmill_scheduler::command::Outcome;
use gristmill_scheduler::core::BackupTotals;
use gristmill_scheduler::ids::{JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::input::Place;
use gristmill_worker::protocol::{AddedMap, Part};
use gristmill_worker::sanitize;
use gristmill_worker::segment::KeyBounds;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use tokio::sync::watch;

/// Facts of a status that the job's entry does not hold.
#[derive(Clone, Copy, Default)]
pub(super) struct StatusContext {
    /// Attempts that hold a slot, by kind.
    pub(super) running: [u32; 2],
    /// Number of live workers and of their slots.
    pub(super) workers: u32,
    pub(super) slots: u32,
    /// True to list the parts. They may be many, and are needed only after the job has ended.
    pub(super) parts: bool,
    /// True to list also where parts were built, for the process that publishes them.
    pub(super) built: bool,
    /// The core's counts of speculative attempts while the job is live.
    pub(super) backups: Option<BackupTotals>,
    /// The estimator's remaining work while the job is live.
    pub(super) work: Option<WorkLeft>,
    /// Forecast of the time left while the job is live.
    pub(super) time_left: Option<TimeLeft>,
}

/// One job, as far as the core does not keep it.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct JobEntry {
    /// Submission. Splits, side inputs and cuts are dropped when the job ends, because they are not needed then.
    #[serde(with = "as_json")]
    pub(super) submission: Submission,
    pub(super) maps: u32,
    pub(super) input: JobInput,
    pub(super) keys: JobKeys,
    /// `Succeeded` after the end of the last task. Clients see [`JobEntry::shown_state`] instead.
    pub(super) state: JobState,
    /// True if the job has ended and the end is not yet written down, so that it must not be reported.
    #[serde(skip)]
    pub(super) end_is_kept_back: bool,
    pub(super) times: Milestones,
    pub(super) phases: PhaseTimes,
    pub(super) records: TaskRecords,
    pub(super) output: JobOutput,
    pub(super) incidents: Incidents,
    pub(super) failures: Failures,
    pub(super) logs: Logs,
    pub(super) followers: Followers,
    /// Estimates of the job's size over time.
    pub(super) estimates: Estimates,
    /// Forecast for its deadline, made when the job arrived.
    pub(super) outlook: Option<DeadlineOutlook>,
    /// Records that its maps have skipped.
    pub(super) bad_records: JobBadRecords,
    /// Routes between workers, from and to, on which data of the job was damaged.
    damaging_routes: BTreeSet<(WorkerId, WorkerId)>,
    /// Number of workers and of their slots when the job ended.
    pub(super) fleet_at_end: Option<(u32, u32)>,
    /// True if not all slots were available to the job: another job was live at the same time, workers joined after it
    /// had started in earnest, or workers have separate slots for each kind of task.
    pub(super) shared: bool,
    /// True if it ended under an earlier master, whose files hold more details.
    #[serde(skip)]
    pub(super) ended_before: bool,
}

impl JobEntry {
    /// Trace of the job, with its status.
    pub(super) fn trace(&self, now: Time, status: JobStatus) -> JobTrace {
        let records = &self.records;
        let (attempts, fetches, omitted) = (records.attempts(now), records.fetches.clone(), records.omitted);
        JobTrace {
            status,
            attempts,
            fetches,
            estimates: self.estimates.records(),
            omitted,
            combines: self.submission.combines,
            cuttable_bytes: Some(self.input.cuttable_bytes),
            had_all_slots: !self.shared,
            path: Vec::new(),
        }
    }

    pub(super) fn new(
        submission: Submission,
        keys: JobKeys,
        cuts: Vec<Vec<u8>>,
        arrived: Time,
        changed: watch::Sender<bool>,
    ) -> Self {
        let maps = submission.splits.len() as u32;
        Self {
            maps,
            input: JobInput::from_submission(&submission, cuts),
            keys,
            state: JobState::Waiting,
            end_is_kept_back: false,
            times: Milestones::from_arrival(arrived),
            phases: PhaseTimes::from_arrival(arrived),
            records: TaskRecords::new(maps),
            output: JobOutput::default(),
            incidents: Incidents::default(),
            failures: Failures::default(),
            logs: Logs::default(),
            followers: Followers {
                changed,
                notified: Cell::new(false),
                client: submission.attached,
                away: None,
            },
            estimates: Estimates::default(),
            outlook: None,
            bad_records: JobBadRecords::default(),
            damaging_routes: BTreeSet::new(),
            fleet_at_end: None,
            shared: false,
            ended_before: false,
            submission,
        }
    }

    /// Makes the end of a map's split, after its first `kept` bytes, the split of a new map.
    pub(super) fn divide(&mut self, map: u32, kept: u64) {
        let splits = &mut self.submission.splits;
        let Some((front, rest)) = splits.get(map as usize).and_then(|split| split.divide(kept)) else {
            return tracing::error!(map, kept, "a split that was to be divided cannot be");
        };
        let place = self.input.place(map, self.maps);
        splits[map as usize] = front;
        splits.push(rest);
        self.input.added.push(AddedMap { start: place.start.saturating_add(kept), ..place });
        self.maps += 1;
        self.records.maps.push(MapEntry::default());
        self.touch();
    }

    /// Makes the keys of a reduce from `key` on those of the new reduce `rest`.
    pub(super) fn divide_reduce(&mut self, divided: u32, key: &[u8], rest: u32) {
        let mut front = self.input.reduce(divided);
        let bounds = KeyBounds { from: key.to_vec(), until: front.bounds.until.replace(key.to_vec()) };
        let partition = front.partition;
        self.input.cut.insert(divided, front);
        self.input.cut.insert(rest, CutReduce { partition, divided: Some(divided), bounds });
        self.touch();
    }

    /// Number of reduces, with those that divisions added.
    pub(super) fn reduces(&self) -> u32 {
        self.submission.reduces + self.input.reduces_added()
    }

    /// Returns the parts that are built, with the places of their files. Those of a divided reduce are one part.
    fn built_parts(&self) -> Vec<(Part, BuiltPart)> {
        let mut all: Vec<_> =
            self.output.parts.iter().map(|(task, part)| (self.input.reduce(*task), part)).collect();
        all.sort_by(|(one, _), (two, _)| {
            (one.partition, &one.bounds.from).cmp(&(two.partition, &two.bounds.from))
        });
        let parts = all.chunk_by(|(one, _), (two, _)| one.partition == two.partition);
        parts
            .filter_map(|pieces| join_parts(pieces.iter().map(|(_, part)| (*part).clone()).collect()))
            .collect()
    }

    pub(super) fn end(&mut self, now: Time, outcome: Outcome) {
        self.times.end(now);
        let failure = translate::job_failure(outcome);
        let of_map =
            failure.as_ref().and_then(|(_, task)| self.submission.splits.get(task.as_ref()?.index as usize));
        let mut pieces = of_map.into_iter().chain(&self.submission.side).flat_map(|split| &split.pieces);
        let stored = pieces.any(|piece| piece.place == Place::Store);
        self.submission.splits = Vec::new();
        self.submission.side = Vec::new();
        self.submission.exact = None;
        self.output.permits = BTreeMap::new();
        self.input.cuts = Vec::new();
        self.input.named = Vec::new();
        self.state = match outcome {
            Outcome::Succeeded => JobState::Succeeded,
            Outcome::Failed { .. } => JobState::Failed,
            Outcome::Cancelled => JobState::Cancelled,
        };
        if let Some((mut failure, task)) = failure
            && self.failures.of_job.is_none()
        {
            if let Some((class, words)) = task.and_then(|task| self.failures.last_by_task.get(&task)).cloned()
            {
                translate::refine(&mut failure, class, stored);
                failure.detail = Some(words);
            }
            self.failures.of_job = Some(failure);
        }
        self.failures.last_by_task = BTreeMap::new();
        self.touch();
    }

    /// Submission without the task inputs, which may be long.
    pub(super) fn submission_without_inputs(&mut self) -> Box<Submission> {
        let submission = &mut self.submission;
        let inputs = (take(&mut submission.splits), take(&mut submission.side), submission.exact.take());
        let short = Box::new(submission.clone());
        (submission.splits, submission.side, submission.exact) = inputs;
        short
    }

    /// True if all tasks are done and the output is still to be closed by the client, or by the master in its place.
    pub(super) fn output_is_open(&self) -> bool {
        let done = self.state == JobState::Succeeded && !self.end_is_kept_back;
        self.submission.attached && done && !*self.output.closed.borrow()
    }

    /// True if its client is not lost and has not closed the output.
    pub(super) fn is_attended(&self) -> bool {
        self.followers.client && !*self.output.closed.borrow()
    }

    /// State reported to clients. A job succeeds only when its output is published.
    pub(super) fn shown_state(&self) -> JobState {
        if self.end_is_kept_back {
            // The process that closes an output starts when it receives this state.
            let closing = !self.submission.attached && self.state == JobState::Succeeded;
            return if closing { JobState::Publishing } else { JobState::Running };
        }
        if self.output_is_open() || self.output.closing == Some(Outcome::Succeeded) {
            return JobState::Publishing;
        }
        self.state
    }

    /// Notes that the job succeeded but its output could not be kept.
    pub(super) fn output_lost(&mut self, code: FailureCode, message: &str, detail: &str) {
        self.state = JobState::Failed;
        let message = message.to_owned();
        self.failures.of_job = Some(JobFailure { code, message, detail: Some(sanitize::message(detail)) });
        self.touch();
    }

    /// Marks the job as changed. Followers read once for all changes since their last read.
    pub(super) fn touch(&mut self) {
        if !self.followers.notified.replace(true) || self.state.ended() {
            self.followers.changed.send_replace(self.state.ended());
        }
    }

    pub(super) fn incident(&mut self, now: Time, text: &str) {
        self.incidents.add(now.since(self.times.arrived), text);
    }

    /// Notes that transfers from one worker to another arrived damaged and were repeated. The source holds an intact
    /// copy.
    pub(super) fn arrived_damaged(&mut self, now: Time, (holder, home): (WorkerId, WorkerId), times: u32) {
        if times == 0 {
            return;
        }
        let sum = &mut self.records.sums.totals.transfers_damaged;
        *sum = sum.saturating_add(u64::from(times));
        if self.damaging_routes.insert((holder, home)) {
            let text = format!(
                "what {home} fetched from {holder} came damaged, where it is whole, and was sent again: the network \
                 between the two, or the memory of {home}, changes data"
            );
            self.incident(now, &text);
        }
    }

    /// Reports once that not all counters are kept.
    pub(super) fn report_left_out_counters(&mut self, now: Time) {
        if self.records.sums.leaves_out_counters() {
            let text =
                format!("it counts by more than {COUNTERS_MAX} names: what further ones count is left out");
            self.incident(now, &text);
        }
    }

    /// Status of the job. The cost does not depend on the number of tasks, except for the parts.
    pub(super) fn status(&self, now: Time, id: JobId, context: StatusContext) -> JobStatus {
        self.followers.notified.set(false);
        let submission = &self.submission;
        let records = &self.records;
        let [submitted_at, started_at, ended_at] = self.times.wall_ms.map(|ms| ms.map(rfc3339));
        let (workers, slots) = self.fleet_at_end.unwrap_or((context.workers, context.slots));
        let parts = if context.parts || context.built { self.built_parts() } else { Vec::new() };
        JobStatus {
            schema: SCHEMA,
            job: id,
            name: submission.name.clone(),
            owner: submission.owner.as_ref().map(|owner| owner.token.clone()),
            parameters: submission.parameters.clone(),
            state: self.shown_state(),
            maps: TaskCounts {
                total: self.maps,
                running: context.running[TaskKind::Map as usize],
                done: records.maps_succeeded,
            },
            reduces: TaskCounts {
                total: self.reduces(),
                running: context.running[TaskKind::Reduce as usize],
                done: self.output.reduces_done,
            },
            segments_total: u64::from(self.maps) * u64::from(submission.reduces),
            input_bytes: self.input.bytes,
            input_bytes_read: records.sums.totals.map_bytes_in.saturating_add(self.input.bytes_in_flight),
            arrived_ns: self.times.arrived.0,
            started_ns: self.times.started.map(|at| at.0),
            maps_done_ns: self.times.maps_done.map(|at| at.0),
            shuffle_done_ns: self.times.shuffle_done.map(|at| at.0),
            ended_ns: self.times.ended.filter(|_| !self.end_is_kept_back).map(|at| at.0),
            now_ns: now.0,
            submitted_at,
            started_at,
            ended_at: ended_at.filter(|_| !self.end_is_kept_back),
            totals: records.sums.totals.clone(),
            attempts: context.backups.map_or(records.counts, |totals| records.counts.with_backups(totals)),
            counters: records.sums.counters.clone(),
            parts: parts.iter().filter(|_| context.parts).map(|(part, _)| part.clone()).collect(),
            built: parts.iter().filter(|_| context.built).map(|(_, built)| built.clone()).collect(),
            bad_records: match context.parts {
                true => self.bad_records.named(|map| self.input.place(map, self.maps)),
                false => Vec::new(),
            },
            incidents: self.incidents.latest.iter().cloned().collect(),
            incidents_omitted: self.incidents.omitted,
            failure: self.failures.of_job.clone().filter(|_| !self.end_is_kept_back),
            remarks: submission.remarks.clone(),
            workers,
            slots,
            output: submission.output.clone(),
            weight: submission.weight,
            pool: submission.pool.clone(),
            priority: submission.priority,
            deadline_ns: submission.deadline_ns.map(|span| self.times.arrived.0.saturating_add(span)),
            deadline_outlook: self.outlook.clone(),
            work: context.work,
            time_left_ns: context.time_left.map(|left| left.expected.0),
            time_left_interval_ns: context.time_left.and_then(|left| Some(left.interval?.map(|end| end.0))),
            flow_parts: self.phases.until(self.times.ended.filter(|_| !self.end_is_kept_back).unwrap_or(now)),
        }
    }
}

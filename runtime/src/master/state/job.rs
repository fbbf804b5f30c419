//! One job as its submitter and its followers see it: progress, incidents, user output, how it ended.

use super::super::translate;
use super::as_json;
use super::bad_records::JobBadRecords;
use super::estimates::Estimates;
use super::handed_over::HandedOver;
use super::job_parts::{Failures, Followers, Incidents, JobInput, JobKeys, JobOutput, Milestones};
use super::logs::Logs;
use super::record::TaskRecords;
use super::sums::COUNTERS_MAX;
use crate::api::{
    DeadlineOutlook, FailureCode, JobFailure, JobState, JobStatus, SCHEMA, Submission, TaskCounts,
};
use crate::api::{JobTrace, WorkLeft};
use crate::wall_time::rfc3339;
use gristmill_scheduler::command::Outcome;
use gristmill_scheduler::core::BackupTotals;
use gristmill_scheduler::ids::{JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::clean;
use gristmill_worker::input::Place;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use tokio::sync::watch;

/// What a status says beside the job's own numbers.
#[derive(Clone, Copy, Default)]
pub(super) struct StatusContext {
    /// Attempts that hold a slot, by kind.
    pub(super) running: [u32; 2],
    /// Live workers and their slots.
    pub(super) workers: u32,
    pub(super) slots: u32,
    /// Parts are listed; they may be many, and while the job runs nobody needs them.
    pub(super) parts: bool,
    /// With where they were built, for whoever publishes them.
    pub(super) built: bool,
    /// What the core counts of backups while the job is live.
    pub(super) backups: Option<BackupTotals>,
    /// What the estimator says while the job is live.
    pub(super) work: Option<WorkLeft>,
}

/// One job, as far as the core does not keep it.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct JobEntry {
    /// Without splits, side inputs and cuts once the job has ended: nobody needs them then.
    #[serde(with = "as_json")]
    pub(super) submission: Submission,
    pub(super) maps: u32,
    pub(super) input: JobInput,
    pub(super) keys: JobKeys,
    /// `Succeeded` from the end of the last task on; others see [`JobEntry::shown_state`].
    pub(super) state: JobState,
    /// It has ended, and nobody is told so until that is written down.
    #[serde(skip)]
    pub(super) end_is_kept_back: bool,
    pub(super) times: Milestones,
    pub(super) records: TaskRecords,
    pub(super) output: JobOutput,
    pub(super) incidents: Incidents,
    pub(super) failures: Failures,
    pub(super) logs: Logs,
    pub(super) followers: Followers,
    /// How large it looked over time.
    pub(super) estimates: Estimates,
    /// Whether its deadline looked feasible when it came.
    pub(super) outlook: Option<DeadlineOutlook>,
    /// Where its reduces stood that were handed over.
    pub(super) handed_over: HandedOver,
    /// Records that its maps have left out.
    pub(super) bad_records: JobBadRecords,
    /// Ways between workers, from and to, on which something of it was damaged.
    damaging_ways: BTreeSet<(WorkerId, WorkerId)>,
    /// Workers and their slots when it ended.
    pub(super) fleet_at_end: Option<(u32, u32)>,
    /// Another job was there while it was, workers came after it had begun in earnest, or some have slots for one kind of
    /// task only: not all slots were there for it.
    pub(super) shared: bool,
    /// It ended under an earlier master: what is kept in files says more of it.
    #[serde(skip)]
    pub(super) ended_before: bool,
}

impl JobEntry {
    /// Everything that happened to it, with its status.
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
            input: JobInput::of(&submission, cuts),
            keys,
            state: JobState::Waiting,
            end_is_kept_back: false,
            times: Milestones::from_arrival(arrived),
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
            handed_over: HandedOver::default(),
            bad_records: JobBadRecords::default(),
            damaging_ways: BTreeSet::new(),
            fleet_at_end: None,
            shared: false,
            ended_before: false,
            submission,
        }
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
        self.handed_over = HandedOver::default();
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

    /// Its submission without what tasks read, which may be long.
    pub(super) fn submission_without_inputs(&mut self) -> Box<Submission> {
        let submission = &mut self.submission;
        let inputs = (take(&mut submission.splits), take(&mut submission.side), submission.exact.take());
        let short = Box::new(submission.clone());
        (submission.splits, submission.side, submission.exact) = inputs;
        short
    }

    /// All tasks are done, and the output is not there yet: its client, or the master in its place, closes it.
    pub(super) fn output_is_open(&self) -> bool {
        let done = self.state == JobState::Succeeded && !self.end_is_kept_back;
        self.submission.attached && done && !*self.output.closed.borrow()
    }

    /// The state that everybody is told: success is one when the output is there.
    pub(super) fn shown_state(&self) -> JobState {
        if self.end_is_kept_back {
            // Whoever closes an output begins when it is told of this state.
            let closing = !self.submission.attached && self.state == JobState::Succeeded;
            return if closing { JobState::Publishing } else { JobState::Running };
        }
        if self.output_is_open() || self.output.closing == Some(Outcome::Succeeded) {
            return JobState::Publishing;
        }
        self.state
    }

    /// The job succeeded, but there is no output of it after all.
    pub(super) fn output_lost(&mut self, code: FailureCode, message: &str, detail: &str) {
        self.state = JobState::Failed;
        let message = message.to_owned();
        self.failures.of_job = Some(JobFailure { code, message, detail: Some(clean::message(detail)) });
        self.touch();
    }

    /// Something changed. Followers look once for all that changed since their last look.
    pub(super) fn touch(&mut self) {
        if !self.followers.notified.replace(true) || self.state.ended() {
            self.followers.changed.send_replace(self.state.ended());
        }
    }

    pub(super) fn incident(&mut self, now: Time, text: &str) {
        self.incidents.add(now.since(self.times.arrived), text);
    }

    /// Transfers from one worker to another came damaged, though the copy there is whole, and were repeated.
    pub(super) fn came_damaged(&mut self, now: Time, (holder, home): (WorkerId, WorkerId), times: u32) {
        if times == 0 {
            return;
        }
        let sum = &mut self.records.sums.totals.transfers_damaged;
        *sum = sum.saturating_add(u64::from(times));
        if self.damaging_ways.insert((holder, home)) {
            let text = format!(
                "what {home} fetched from {holder} came damaged, where it is whole, and was sent again: the network \
                 between the two, or the memory of {home}, changes data"
            );
            self.incident(now, &text);
        }
    }

    /// Says once that not all counters are kept.
    pub(super) fn report_left_out_counters(&mut self, now: Time) {
        if self.records.sums.begins_to_leave_out_counters() {
            let text =
                format!("it counts by more than {COUNTERS_MAX} names: what further ones count is left out");
            self.incident(now, &text);
        }
    }

    /// How the job stands. Costs the same however many tasks it has, but for the parts.
    pub(super) fn status(&self, now: Time, id: JobId, context: StatusContext) -> JobStatus {
        self.followers.notified.set(false);
        let submission = &self.submission;
        let records = &self.records;
        let [submitted_at, started_at, ended_at] = self.times.wall_ms.map(|ms| ms.map(rfc3339));
        let (workers, slots) = self.fleet_at_end.unwrap_or((context.workers, context.slots));
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
                total: submission.reduces,
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
            sums: records.sums.measures.values_of_sums(),
            maxima: records.sums.measures.maxima.clone(),
            parts: self
                .output
                .parts
                .values()
                .filter(|_| context.parts)
                .map(|(part, _)| part.clone())
                .collect(),
            built: self.output.parts.values().filter(|_| context.built).map(|(_, built)| *built).collect(),
            bad_records: if context.parts { self.bad_records.named() } else { Vec::new() },
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
        }
    }
}

//! One job as its submitter and its followers see it: progress, incidents, user output, how it ended.
//!
//! Not here: attempts and sums over maps (`record`), and what the core decides about the job.

use super::super::translate;
use super::estimates::Estimates;
use super::handed_over::HandedOver;
use super::logs::Logs;
use super::record::{COUNTERS_MAX, Records};
use crate::api::{
    AttemptCounts, BuiltPart, FailureCode, INCIDENTS_MAX, JobFailure, JobState, JobStatus, Outlook, SCHEMA,
    Submission, TaskCounts,
};
use crate::output_dir::OutputDirectory;
use gristmill_scheduler::command::Outcome;
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::clean;
use gristmill_worker::http::Secret;
use gristmill_worker::input::{Place, Split};
use gristmill_worker::protocol::{FailureClass, Part};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::sync::watch;

/// Tasks of one job of which it is kept what went wrong last.
const LAST_FAILURES_MAX: usize = 1000;

/// What a status says beside the job's own numbers.
#[derive(Clone, Copy, Default)]
pub(super) struct Around {
    /// Attempts that hold a slot, by kind.
    pub(super) running: [u32; 2],
    /// Live workers and their slots.
    pub(super) workers: u32,
    pub(super) slots: u32,
    /// Parts are listed; they may be many, and while the job runs nobody needs them.
    pub(super) parts: bool,
    /// With where they were built, for whoever publishes them.
    pub(super) built: bool,
}

/// One job beside the core's books.
pub(super) struct Job {
    /// Without splits, side inputs and cuts once the job has ended: nobody needs them then.
    pub(super) submission: Submission,
    pub(super) maps: u32,
    pub(super) input_bytes: u64,
    /// What running maps have read so far.
    pub(super) bytes_in_flight: u64,
    /// The workers on which input of it is named.
    pub(super) named: Vec<WorkerId>,
    pub(super) key: Secret,
    pub(super) cuts: Vec<Vec<u8>>,
    /// `Succeeded` from the end of the last task on; others are told [`Job::shown_state`].
    pub(super) state: JobState,
    pub(super) arrived: Time,
    pub(super) started: Option<Time>,
    pub(super) maps_done: Option<Time>,
    pub(super) shuffle_done: Option<Time>,
    pub(super) ended: Option<Time>,
    pub(super) records: Records,
    pub(super) reduces_done: u32,
    pub(super) attempts: AttemptCounts,
    /// What the permits to send in parts are made of.
    pub(super) permit_key: Secret,
    /// Attempts that may hand in their tasks' parts and have not yet.
    pub(super) permits: BTreeMap<TaskId, AttemptId>,
    pub(super) parts: BTreeMap<u32, (Part, BuiltPart)>,
    pub(super) incidents: VecDeque<String>,
    pub(super) incidents_omitted: u64,
    /// The last thing that went wrong with each task, in words, with its class unless a worker was lost.
    last_failure: BTreeMap<TaskId, (Option<FailureClass>, String)>,
    /// Workers that died for lack of memory while they ran nothing but this job.
    pub(super) memory_deaths: u32,
    pub(super) failure: Option<JobFailure>,
    pub(super) logs: Logs,
    /// Whether the job has ended; sent at a change that nobody was told of yet.
    pub(super) changed: watch::Sender<bool>,
    /// Followers were told of a change and have not looked since: they need not be told again.
    pub(super) told: Cell<bool>,
    /// The client that submitted the job follows it and closes its output.
    pub(super) followed: bool,
    /// The claim on the output of a detached job, which is the master's.
    pub(super) output: Option<OutputDirectory>,
    /// Attempts that could not write their part, by task.
    pub(super) output_failures: BTreeMap<TaskId, u32>,
    /// The output is closed, as its client has said, or the master has done.
    pub(super) output_closed: watch::Sender<bool>,
    /// How the job ends once its output is closed.
    pub(super) closing: Option<Outcome>,
    /// How large it looked over time.
    pub(super) estimates: Estimates,
    /// Whether its deadline looked feasible when it came.
    pub(super) outlook: Option<Outlook>,
    /// Where its reduces stood that were handed over.
    pub(super) handed_over: HandedOver,
}

impl Job {
    pub(super) fn new(
        submission: Submission,
        key: Secret,
        permit_key: Secret,
        cuts: Vec<Vec<u8>>,
        arrived: Time,
        changed: watch::Sender<bool>,
    ) -> Self {
        let followed = submission.attached;
        let maps = submission.splits.len() as u32;
        let input_bytes = submission.splits.iter().map(Split::bytes).sum();
        Self {
            maps,
            input_bytes,
            bytes_in_flight: 0,
            named: named_workers(&submission),
            submission,
            key,
            cuts,
            state: JobState::Waiting,
            arrived,
            started: None,
            maps_done: None,
            shuffle_done: None,
            ended: None,
            records: Records::new(maps),
            reduces_done: 0,
            attempts: AttemptCounts::default(),
            permit_key,
            permits: BTreeMap::new(),
            parts: BTreeMap::new(),
            incidents: VecDeque::new(),
            incidents_omitted: 0,
            last_failure: BTreeMap::new(),
            memory_deaths: 0,
            failure: None,
            logs: Logs::default(),
            changed,
            told: Cell::new(false),
            followed,
            output: None,
            output_failures: BTreeMap::new(),
            output_closed: watch::Sender::new(false),
            closing: None,
            estimates: Estimates::default(),
            outlook: None,
            handed_over: HandedOver::default(),
        }
    }

    pub(super) fn end(&mut self, now: Time, outcome: Outcome) {
        self.ended = Some(now);
        self.submission.splits = Vec::new();
        self.submission.side = Vec::new();
        self.submission.exact = None;
        self.handed_over = HandedOver::default();
        self.permits = BTreeMap::new();
        self.cuts = Vec::new();
        self.named = Vec::new();
        self.state = match outcome {
            Outcome::Succeeded => JobState::Succeeded,
            Outcome::Failed { .. } => JobState::Failed,
            Outcome::Cancelled => JobState::Cancelled,
        };
        if let Some((mut failure, task)) = translate::job_failure(outcome)
            && self.failure.is_none()
        {
            if let Some((class, words)) = task.and_then(|task| self.last_failure.get(&task)).cloned() {
                translate::refine(&mut failure, class);
                failure.detail = Some(words);
            }
            self.failure = Some(failure);
        }
        self.last_failure = BTreeMap::new();
        self.touch();
    }

    /// All tasks are done, and the output is not there yet: its client, or the master in its place, closes it.
    pub(super) fn output_is_open(&self) -> bool {
        self.submission.attached && self.state == JobState::Succeeded && !*self.output_closed.borrow()
    }

    /// The state that everybody is told: success is one when the output is there.
    pub(super) fn shown_state(&self) -> JobState {
        if self.output_is_open() || self.closing == Some(Outcome::Succeeded) {
            return JobState::Publishing;
        }
        self.state
    }

    /// The job succeeded, but there is no output of it after all.
    pub(super) fn output_lost(&mut self, code: FailureCode, message: &str, detail: &str) {
        self.state = JobState::Failed;
        let message = message.to_owned();
        self.failure = Some(JobFailure { code, message, detail: Some(clean::message(detail)) });
        self.touch();
    }

    /// Something changed. Followers look once for all that changed since their last look.
    pub(super) fn touch(&mut self) {
        if !self.told.replace(true) || self.state.ended() {
            self.changed.send_replace(self.state.ended());
        }
    }

    /// Something went wrong with a task. Of very many tasks only some are remembered, the last one always.
    pub(super) fn note_failure(&mut self, task: TaskId, class: Option<FailureClass>, words: String) {
        if LAST_FAILURES_MAX <= self.last_failure.len() && !self.last_failure.contains_key(&task) {
            self.last_failure.pop_first();
        }
        self.last_failure.insert(task, (class, words));
    }

    pub(super) fn incident(&mut self, now: Time, text: &str) {
        if self.incidents.len() == INCIDENTS_MAX {
            self.incidents.pop_front();
            self.incidents_omitted += 1;
        }
        let since = now.since(self.arrived).seconds();
        self.incidents.push_back(format!("{since:.3} s: {}", clean::message(text)));
    }

    /// Says once that not all counters are kept.
    pub(super) fn tell_of_counters(&mut self, now: Time) {
        if self.records.has_begun_to_leave_out_counters() {
            let text =
                format!("it counts by more than {COUNTERS_MAX} names: what further ones count is left out");
            self.incident(now, &text);
        }
    }

    /// How the job stands. Costs the same however many tasks it has, but for the parts.
    pub(super) fn status(&self, now: Time, id: JobId, around: Around) -> JobStatus {
        self.told.set(false);
        let submission = &self.submission;
        let records = &self.records;
        JobStatus {
            schema: SCHEMA,
            job: id,
            name: submission.name.clone(),
            parameters: submission.parameters.clone(),
            state: self.shown_state(),
            maps: TaskCounts {
                total: self.maps,
                running: around.running[TaskKind::Map as usize],
                done: records.maps_succeeded,
            },
            reduces: TaskCounts {
                total: submission.reduces,
                running: around.running[TaskKind::Reduce as usize],
                done: self.reduces_done,
            },
            segments_total: u64::from(self.maps) * u64::from(submission.reduces),
            input_bytes: self.input_bytes,
            input_bytes_read: records.sums.map_bytes_in.saturating_add(self.bytes_in_flight),
            arrived_ns: self.arrived.0,
            started_ns: self.started.map(|at| at.0),
            maps_done_ns: self.maps_done.map(|at| at.0),
            shuffle_done_ns: self.shuffle_done.map(|at| at.0),
            ended_ns: self.ended.map(|at| at.0),
            now_ns: now.0,
            totals: records.sums.clone(),
            attempts: self.attempts,
            counters: records.counters.clone(),
            parts: self.parts.values().filter(|_| around.parts).map(|(part, _)| part.clone()).collect(),
            built: self.parts.values().filter(|_| around.built).map(|(_, built)| *built).collect(),
            incidents: self.incidents.iter().cloned().collect(),
            incidents_omitted: self.incidents_omitted,
            failure: self.failure.clone(),
            remarks: submission.remarks.clone(),
            workers: around.workers,
            slots: around.slots,
            output: submission.output.clone(),
            weight: submission.weight,
            pool: submission.pool.clone(),
            priority: submission.priority,
            deadline_ns: submission.deadline_ns.map(|span| self.arrived.0.saturating_add(span)),
            deadline_outlook: self.outlook.clone(),
        }
    }
}

fn named_workers(submission: &Submission) -> Vec<WorkerId> {
    let pieces = submission.splits.iter().chain(&submission.side).flat_map(|split| &split.pieces);
    let named: BTreeSet<WorkerId> = pieces
        .filter_map(|piece| match piece.place {
            Place::Worker(worker) => Some(worker),
            Place::Submitter => None,
        })
        .collect();
    named.into_iter().collect()
}

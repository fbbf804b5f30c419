//! Parts of a job's entry: input, keys, times, output, incidents, failures and followers.

use super::as_json;
use crate::api::{BuiltPart, INCIDENTS_MAX, JobFailure, Submission};
use gristmill_scheduler::command::Outcome;
use gristmill_scheduler::ids::{AttemptId, TaskId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::agent::check::wall_ms;
use gristmill_worker::http::Secret;
use gristmill_worker::input::{Place, Split};
use gristmill_worker::protocol::{AddedMap, FailureClass, Part};
use gristmill_worker::sanitize;
use gristmill_worker::segment::KeyBounds;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::sync::watch;

/// Number of tasks of one job whose last failure is kept.
const LAST_FAILURES_MAX: usize = 1000;

#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct JobInput {
    /// Bytes of all splits.
    pub(super) bytes: u64,
    /// Bytes of the splits that can be cut smaller. Compressed files are excluded: they are read from their start.
    pub(super) cuttable_bytes: u64,
    /// Bytes read so far by running maps.
    pub(super) bytes_in_flight: u64,
    /// Workers on which its input is located by name.
    pub(super) named: Vec<WorkerId>,
    /// Upper bounds of the ranges of a totally ordered job.
    pub(super) cuts: Vec<Vec<u8>>,
    /// Places of the maps that divisions added.
    pub(super) added: Vec<AddedMap>,
    /// Reduces that were divided or that divisions added.
    pub(super) cut: BTreeMap<u32, CutReduce>,
}

/// Keys of a reduce that was divided, or that a division added.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct CutReduce {
    /// Partition as submitted.
    pub(super) partition: u32,
    /// Reduce that was divided for this one.
    pub(super) divided: Option<u32>,
    pub(super) bounds: KeyBounds,
}

impl CutReduce {
    /// All keys of a partition.
    fn whole(partition: u32) -> Self {
        Self { partition, divided: None, bounds: KeyBounds::default() }
    }
}

impl JobInput {
    /// Returns the place of a map of this job of `maps` maps in the order of the input.
    pub(super) fn place(&self, map: u32, maps: u32) -> AddedMap {
        AddedMap::of_map(map, maps, &self.added)
    }

    /// Returns the keys of a reduce.
    pub(super) fn reduce(&self, reduce: u32) -> CutReduce {
        self.cut.get(&reduce).cloned().unwrap_or_else(|| CutReduce::whole(reduce))
    }

    /// Number of reduces that divisions added.
    pub(super) fn reduces_added(&self) -> u32 {
        self.cut.values().filter(|cut| cut.divided.is_some()).count() as u32
    }

    pub(super) fn from_submission(submission: &Submission, cuts: Vec<Vec<u8>>) -> Self {
        let pieces = submission.splits.iter().chain(&submission.side).flat_map(|split| &split.pieces);
        let named: BTreeSet<WorkerId> = pieces
            .filter_map(|piece| match piece.place {
                Place::Worker(worker) => Some(worker),
                Place::Submitter | Place::Store | Place::Steps => None,
            })
            .collect();
        let bytes = submission.splits.iter().map(Split::bytes).sum();
        let pieces = submission.splits.iter().flat_map(|split| &split.pieces);
        let cuttable = pieces.filter(|piece| !piece.is_decoded());
        let cuttable_bytes = cuttable.map(|piece| piece.length).sum();
        Self {
            bytes,
            cuttable_bytes,
            bytes_in_flight: 0,
            named: named.into_iter().collect(),
            cuts,
            added: Vec::new(),
            cut: BTreeMap::new(),
        }
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct JobKeys {
    /// Key of segments and files.
    pub(super) segments: Secret,
    /// Key from which the permits to send parts are derived.
    pub(super) permits: Secret,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Milestones {
    pub(super) arrived: Time,
    pub(super) started: Option<Time>,
    pub(super) maps_done: Option<Time>,
    pub(super) shuffle_done: Option<Time>,
    pub(super) ended: Option<Time>,
    /// Arrival, start and end in milliseconds since 1970.
    pub(super) wall_ms: [Option<u64>; 3],
}

impl Milestones {
    pub(super) fn from_arrival(arrived: Time) -> Self {
        let wall_ms = [Some(wall_ms()), None, None];
        Self { arrived, started: None, maps_done: None, shuffle_done: None, ended: None, wall_ms }
    }

    /// Enters the launch of the first task.
    pub(super) fn start(&mut self, now: Time) {
        self.started.get_or_insert(now);
        self.wall_ms[1].get_or_insert_with(wall_ms);
    }

    pub(super) fn end(&mut self, now: Time) {
        self.ended = Some(now);
        self.wall_ms[2] = Some(wall_ms());
    }

    /// Computes the wall-clock times back from now, because another master observed them.
    pub(super) fn count_back(&mut self, now: Time) {
        let wall = |at: Time| wall_ms().saturating_sub(now.since(at).0 / 1_000_000);
        self.wall_ms = [Some(self.arrived), self.started, self.ended].map(|at| at.map(wall));
    }
}

#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct JobOutput {
    /// Attempts permitted to publish their tasks' parts that have not done so.
    pub(super) permits: BTreeMap<TaskId, AttemptId>,
    pub(super) parts: BTreeMap<u32, (Part, BuiltPart)>,
    pub(super) reduces_done: u32,
    /// Number of attempts that could not write their part, by task.
    pub(super) failures: BTreeMap<TaskId, u32>,
    /// Becomes true once the output is closed, by the client's report or by the master.
    #[serde(skip)]
    pub(super) closed: watch::Sender<bool>,
    /// Outcome of the job once its output is closed.
    pub(super) closing: Option<Outcome>,
}

#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Incidents {
    /// The latest incidents, at most [`INCIDENTS_MAX`].
    pub(super) latest: VecDeque<String>,
    pub(super) omitted: u64,
}

impl Incidents {
    /// Adds an incident that happened this long after the job's arrival.
    pub(super) fn add(&mut self, since_arrival: Span, text: &str) {
        if self.latest.len() == INCIDENTS_MAX {
            self.latest.pop_front();
            self.omitted += 1;
        }
        self.latest.push_back(format!("{:.3} s: {}", since_arrival.seconds(), sanitize::message(text)));
    }
}

#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Failures {
    /// Failure of the job, if it did not succeed.
    #[serde(with = "as_json")]
    pub(super) of_job: Option<JobFailure>,
    /// Last failure of each task, in words, with its class unless a worker was lost.
    pub(super) last_by_task: BTreeMap<TaskId, (Option<FailureClass>, String)>,
    /// Number of workers that died for lack of memory while they ran nothing but this job.
    pub(super) memory_deaths: u32,
}

impl Failures {
    /// Notes a task's failure. Of very many tasks only some are remembered, always including the last one.
    pub(super) fn note(&mut self, task: TaskId, class: Option<FailureClass>, words: String) {
        if LAST_FAILURES_MAX <= self.last_by_task.len() && !self.last_by_task.contains_key(&task) {
            self.last_by_task.pop_first();
        }
        self.last_by_task.insert(task, (class, words));
    }
}

/// Followers of a job, and what they were notified of.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Followers {
    /// True once the job has ended; sent at a change of which followers are not yet notified.
    #[serde(skip)]
    pub(super) changed: watch::Sender<bool>,
    /// True if followers were notified of a change and have not read since, so that another notification is not needed.
    #[serde(skip)]
    pub(super) notified: Cell<bool>,
    /// True if the client that submitted the job follows it and closes its output.
    pub(super) client: bool,
    /// Time since which the client is disconnected, perhaps under an earlier master.
    pub(super) away: Option<Time>,
}

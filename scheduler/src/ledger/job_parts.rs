//! Parts of a live job. Each groups what changes together.
//!
//! The effects of the changes on the whole job are defined in `jobs`, `outputs` and `attempts`.

use crate::event::Failure;
use crate::ids::{AttemptId, TaskKind, WorkerId};
use crate::job::JobSpec;
use crate::ledger::ahead::Pace;
use crate::ledger::backups::UsualTime;
use crate::ledger::queue::Bound;
use crate::ledger::tasks::{Bits, GatheredSegments, MapRun, MapState};
use crate::units::{Bytes, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Monotonic counters of a job.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct JobTally {
    pub(crate) launched: u32,
    pub(crate) failed: [u32; Failure::ALL.len()],
    pub(crate) localities: [u32; 4],
    pub(crate) map_bytes: Bytes,
    pub(crate) reduce_bytes: Bytes,
    pub(crate) reduce_time: Span,
    pub(crate) first_launch: Option<Time>,
    pub(crate) maps_done_at: Option<Time>,
    /// Number of suspensions of attempts.
    pub(crate) suspended: u32,
    pub(crate) backups: BackupTotals,
}

/// Totals of a job's speculative attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct BackupTotals {
    /// Number of speculative attempts launched.
    pub launched: u32,
    /// Number that succeeded before the first attempt of their task.
    pub won: u32,
    /// Total slot time of those that ended.
    pub slot_time: Span,
}

/// Change of the list of start times of a job's running maps. Copies of the list apply the same change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunChange {
    /// An entry was appended.
    Started(Time),
    /// The last entry took this place.
    Ended(u32),
}

/// Counts of tasks and segments by state.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct TaskStateCounts {
    pub(crate) maps_waiting: u32,
    /// Running maps, including queued ones.
    pub(crate) maps_running: u32,
    pub(crate) maps_queued: u32,
    pub(crate) maps_done: u32,
    /// Counts by [`ReduceState`](crate::ledger::tasks::ReduceState).
    pub(crate) reduces: [u32; 5],
    /// Reduce attempts whose slot can be preempted, including those already ordered to suspend.
    pub(crate) yielding: u32,
    /// Map attempts that can be ordered to make way.
    #[serde(default)]
    pub(crate) maps_yielding: u32,
    /// Segments at their homes or used by finished reduces.
    pub(crate) segments_fetched: u64,
}

impl TaskStateCounts {
    pub(crate) fn new(maps: u32, reduces: u32) -> Self {
        Self { maps_waiting: maps, reduces: [reduces, 0, 0, 0, 0], ..Self::default() }
    }

    pub(crate) fn yielding_of(&mut self, kind: TaskKind) -> &mut u32 {
        match kind {
            TaskKind::Map => &mut self.maps_yielding,
            TaskKind::Reduce => &mut self.yielding,
        }
    }

    pub(crate) fn of_maps(&mut self, state: MapState) -> &mut u32 {
        match state {
            MapState::Waiting => &mut self.maps_waiting,
            MapState::Running => &mut self.maps_running,
            MapState::Done { .. } => &mut self.maps_done,
        }
    }
}

/// Total input and exact work, and how much of each is done.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct RemainingWork {
    pub(crate) input: Bytes,
    pub(crate) input_done: Bytes,
    /// Time and output of the maps that are done. A map whose output was lost and is made again counts once.
    pub(crate) maps_done: MapRun,
    /// Slot-seconds of all maps and of all reduces by [`JobSpec::exact`].
    pub(crate) exact_whole: [f64; 2],
    /// Slot-seconds of those not done.
    pub(crate) exact_left: [f64; 2],
}

impl RemainingWork {
    pub(crate) fn new(spec: &JobSpec) -> Self {
        let sum = |work: &[f64]| work.iter().sum::<f64>();
        let whole = spec.exact.as_ref().map_or([0.0; 2], |exact| [sum(&exact.maps), sum(&exact.reduces)]);
        let input = spec.maps.iter().map(|map| map.bytes).sum();
        Self {
            input,
            input_done: Bytes::ZERO,
            maps_done: MapRun::default(),
            exact_whole: whole,
            exact_left: whole,
        }
    }

    pub(crate) fn map_done(&mut self, bytes: Bytes, ran: MapRun, work: f64, last: bool) {
        self.input_done += bytes;
        self.maps_done.took += ran.took;
        self.maps_done.output += ran.output;
        self.exact_left[0] = lessen(self.exact_left[0], work, last);
    }

    pub(crate) fn map_undone(&mut self, bytes: Bytes, ran: MapRun, work: f64) {
        self.input_done = Bytes(self.input_done.0 - bytes.0);
        self.maps_done.took = Span(self.maps_done.took.0 - ran.took.0);
        self.maps_done.output = Bytes(self.maps_done.output.0 - ran.output.0);
        self.exact_left[0] += work;
    }

    pub(crate) fn reduce_done(&mut self, work: f64, last: bool) {
        self.exact_left[1] = lessen(self.exact_left[1], work, last);
    }
}

/// Subtracts a term from a sum. Without its last term the sum is exactly 0, despite rounding.
fn lessen(sum: f64, term: f64, last: bool) -> f64 {
    if last { 0.0 } else { (sum - term).max(0.0) }
}

/// Attempts of a job.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct JobAttempts {
    /// Attempts that hold a slot, are queued behind one, or are suspended.
    pub(crate) live: BTreeSet<AttemptId>,
    /// Map attempts that hold a slot, in the order of their start times in the policies' view.
    pub(crate) runs: Vec<AttemptId>,
    /// Changes of that list since the view was made.
    #[serde(skip)]
    pub(crate) run_changes: Vec<RunChange>,
    /// Mean time of maps.
    pub(crate) pace: Pace,
    /// Usual time of tasks, by kind.
    pub(crate) usual: [UsualTime; 2],
}

impl JobAttempts {
    /// Records that a map attempt got its slot. Returns its index.
    pub(crate) fn start_run(&mut self, attempt: AttemptId, now: Time) -> u32 {
        self.runs.push(attempt);
        self.run_changes.push(RunChange::Started(now));
        (self.runs.len() - 1) as u32
    }

    /// Records that the map attempt at this index released its slot. Returns the attempt that took the index.
    pub(crate) fn end_run(&mut self, place: u32) -> Option<AttemptId> {
        self.runs.swap_remove(place as usize);
        self.run_changes.push(RunChange::Ended(place));
        self.runs.get(place as usize).copied()
    }
}

/// Reduces that wait at their homes.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ReduceQueue {
    /// Reduces with all segments at their home.
    pub(crate) ready: Bound,
    /// Reduces whose attempt is suspended and may be resumed.
    pub(crate) parked: Bound,
    /// Ready reduces whose last attempt failed recently by a worker's fault.
    pub(crate) backing_off: BTreeSet<u32>,
}

impl ReduceQueue {
    pub(crate) fn new() -> Self {
        Self { ready: Bound::of_ready(), parked: Bound::new(TaskKind::Reduce), backing_off: BTreeSet::new() }
    }
}

/// Homes of the partitions of unfinished reduces.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Homes {
    pub(crate) at: BTreeMap<WorkerId, BTreeSet<u32>>,
    /// Partitions without a home.
    pub(crate) unassigned: BTreeSet<u32>,
    /// Segments of each map that have arrived at each home.
    pub(crate) gathered: BTreeMap<WorkerId, GatheredSegments>,
    /// Second homes of partitions, for speculative attempts of their reduces.
    pub(crate) second: BTreeMap<u32, SecondHome>,
}

/// Worker that gathers a partition whose reduce runs elsewhere.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct SecondHome {
    pub(crate) at: WorkerId,
    /// Maps whose segment has arrived.
    pub(crate) gathered: Bits,
}

impl Homes {
    pub(crate) fn new(reduces: u32) -> Self {
        Self { unassigned: (0..reduces).collect(), ..Self::default() }
    }
}

/// Outputs of maps.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct MapOutputs {
    /// Maps whose output a live worker keeps.
    pub(crate) kept: BTreeMap<WorkerId, BTreeSet<u32>>,
    /// Maps with an empty output. All homes have it, including future ones.
    pub(crate) empty: Bits,
}

/// State of workers with respect to one job.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct JobWorkers {
    /// Failures by a worker's fault.
    pub(crate) failures: BTreeMap<WorkerId, u32>,
    /// Live workers that get no more tasks of this job while others are available.
    pub(crate) excluded: BTreeSet<WorkerId>,
    /// Workers that were lost while attempts of the job ran there, unless an attempt of another job crashed them.
    pub(crate) deaths: u32,
    /// Times that memory ran out where attempts of the job ran.
    #[serde(default)]
    pub(crate) memory_deaths: u32,
    /// Time since when some maps are pinned to hosts without a worker.
    pub(crate) orphaned_since: Option<Time>,
    /// Workers that maps have been assigned to.
    pub(crate) assigned_ever: BTreeSet<WorkerId>,
    /// Live workers that were notified of the job.
    pub(crate) informed: BTreeSet<WorkerId>,
}

//! View of a policy: one row per live job, under a dense handle that is reused when the job has left.
//!
//! The view has no tasks, attempts and workers: a policy decides which job, never where. It is read-only.

pub use crate::station::{PerStation, Station};
use crate::units::Time;

/// Job in a view: an index into [`View::rows`]. It is reused after the job left; order and ties follow [`Row::seq`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Handle(pub u32);

impl Handle {
    /// Returns the index into [`View::rows`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Row of one job.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row {
    /// Order of arrival; unique, never reused.
    pub seq: u64,
    /// Time of arrival.
    pub arrival: Time,
    /// Time by which it should end; `None` without deadline.
    pub deadline: Option<Time>,
    /// Weight of the job, above 0.
    pub weight: f64,
    /// Priority; higher is more urgent.
    pub priority: i32,
    /// Pool of the job; `None` is a pool of its own.
    pub pool: Option<u32>,
    /// Weight of that pool as given by the job; `None` uses the policy's default.
    pub pool_weight: Option<f64>,
    /// True if any of its tasks was launched.
    pub started: bool,
    /// True if this row currently belongs to a job.
    pub live: bool,
    /// True if its job has left without a result: it was cancelled or has failed.
    pub abandoned: bool,
    /// True if the estimated work is more than a guess: maps have finished, or the estimator knows similar jobs.
    pub known: bool,
    /// Total work as estimated: slot-seconds of maps and of reduces, and at the shuffle seconds of the whole network.
    /// The models use their own unit of time.
    pub whole: PerStation<f64>,
    /// Work left, in the unit of `whole`.
    pub left: PerStation<f64>,
    /// Number of tasks that could start now in addition to those held. Zero is exact for tasks bound to one worker (a
    /// reduce whose home has no idle slot is not counted), except for workers that many jobs wait for. Otherwise it is
    /// an upper bound, since retries avoid some workers.
    pub can: PerStation<f64>,
    /// Slots held by its attempts, including queued ones; 0 at the shuffle. A preemptive policy distributes the slots
    /// of suspendable reduces again in every plan: they are in `can` and not here.
    pub held: PerStation<f64>,
    /// True if any such reduce of it runs. Among equals these go first, or slots would move back and forth.
    pub yields: bool,
    /// Number of tasks (segments at the shuffle) neither done nor running.
    pub pend: PerStation<u32>,
    /// Number of finished maps.
    pub done: u32,
    /// Sum of the running times of finished map attempts, in seconds.
    pub done_time: f64,
    /// Shuffle work per unit of map work.
    pub feed: f64,
}

/// View at one instant.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct View<'a> {
    pub now: Time,
    /// One row per handle; those with `live == false` belong to no job.
    pub rows: &'a [Row],
    /// Live jobs whose rows changed since the policy's last observation.
    pub touched: &'a [Handle],
    /// Capacity of each station: slots of live workers; the shuffle has capacity 1.
    pub cap: PerStation<f64>,
    /// True if maps and reduces share the same slots; then both capacities are that one number.
    pub unified: bool,
    /// Start times of each job's running map attempts by handle, unordered; empty where they are not recorded.
    pub runs: &'a [Vec<Time>],
}

impl View<'_> {
    /// Returns the row of this job.
    #[must_use]
    pub fn row(&self, job: Handle) -> &Row {
        &self.rows[job.index()]
    }

    /// Returns the work left at a station in seconds of the whole station: comparable between stations. 0 while the
    /// station has no capacity.
    #[must_use]
    pub fn time_left(&self, job: Handle, station: Station) -> f64 {
        self.of_station(self.row(job).left[station], station)
    }

    /// Returns the total work as [`View::time_left`].
    #[must_use]
    pub fn time_whole(&self, job: Handle, station: Station) -> f64 {
        self.of_station(self.row(job).whole[station], station)
    }

    /// Returns the start times of the job's running map attempts, unordered.
    #[must_use]
    pub fn running_since(&self, job: Handle) -> &[Time] {
        self.runs.get(job.index()).map_or(&[], Vec::as_slice)
    }

    fn of_station(&self, work: f64, station: Station) -> f64 {
        let capacity = self.cap[station];
        if 0.0 < capacity { work / capacity } else { 0.0 }
    }
}

/// Change that a policy is notified of; the changed rows are in [`View::touched`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A job is new.
    Arrived(Handle),
    /// A job is over; its row still exists, but its handle may be reused right after this.
    Left(Handle),
    /// Rows in `touched` changed.
    Progress,
    /// The time requested with [`Plan::wake`](crate::plan::Plan::wake) has come.
    Tick,
}

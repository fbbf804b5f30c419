//! What a policy sees: one row per live job, under a dense handle that is used again when the job has left.
//!
//! Not here: tasks, attempts and workers; a policy decides which job, never where. A view cannot change
//! anything.

pub use crate::station::{PerStation, Station};
use crate::units::Time;

/// A job in a view: an index into [`View::rows`]. It is used again after the job left; order and ties go by
/// [`Row::seq`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Handle(pub u32);

impl Handle {
    /// The index into [`View::rows`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One job.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row {
    /// Order of arrival; unique, never used again.
    pub seq: u64,
    /// When it arrived.
    pub arrival: Time,
    /// When it should end; `None` is no wish.
    pub deadline: Option<Time>,
    /// Its weight, above 0.
    pub weight: f64,
    /// Urgency, the higher the sooner.
    pub priority: i32,
    /// The pool it shares; `None` is one of its own.
    pub pool: Option<u32>,
    /// Weight of that pool, as the job says; `None`: the policy's.
    pub pool_weight: Option<f64>,
    /// Whether any task of it was ever launched.
    pub started: bool,
    /// Whether this row stands for a job at present.
    pub live: bool,
    /// All its work as the estimator sees it: slot-seconds of maps and of reduces, and at the shuffle seconds of the
    /// whole network. The models count in their own unit of time instead.
    pub whole: PerStation<f64>,
    /// Its work not done yet, in the unit of `whole`.
    pub left: PerStation<f64>,
    /// Tasks that could start now beyond those held. Zero is exact for tasks bound to one worker (a reduce
    /// whose home has no idle slot is not counted), but for workers that many jobs wait for; else an upper bound,
    /// since retries avoid some workers.
    pub can: PerStation<f64>,
    /// Slots held by its attempts, with those queued for one; 0 at the shuffle. A policy that preempts distributes the
    /// slots of reduces that could be suspended anew in every plan: it sees these in `can` and not here.
    pub held: PerStation<f64>,
    /// Whether any such reduce of it runs. Among equals these go first, or slots would go back and forth.
    pub yields: bool,
    /// Tasks (segments at the shuffle) neither done nor running.
    pub pend: PerStation<u32>,
    /// Maps that finished.
    pub done: u32,
    /// Sum of the running times of finished map attempts, in seconds.
    pub done_time: f64,
    /// Shuffle work that a unit of map work brings.
    pub feed: f64,
}

/// The whole picture at one instant.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct View<'a> {
    pub now: Time,
    /// One row per handle; those with `live == false` stand for nobody.
    pub rows: &'a [Row],
    /// The jobs whose rows changed since the policy looked last; none of them is dead.
    pub touched: &'a [Handle],
    /// Capacity of each station: slots of live workers; the shuffle counts as 1 whole.
    pub cap: PerStation<f64>,
    /// Maps and reduces draw on the same slots; then both capacities are that one number.
    pub unified: bool,
    /// By handle, when the job's running map attempts began, in no particular order; empty where nobody counts them.
    pub runs: &'a [Vec<Time>],
}

impl View<'_> {
    /// The row of this job.
    #[must_use]
    pub fn row(&self, job: Handle) -> &Row {
        &self.rows[job.index()]
    }

    /// Work left at a station in seconds of the whole station: comparable between stations. 0 while the station has
    /// no capacity.
    #[must_use]
    pub fn time_left(&self, job: Handle, station: Station) -> f64 {
        self.of_station(self.row(job).left[station], station)
    }

    /// As [`View::time_left`], of all the job's work there.
    #[must_use]
    pub fn time_whole(&self, job: Handle, station: Station) -> f64 {
        self.of_station(self.row(job).whole[station], station)
    }

    /// When the job's running map attempts began, in no particular order.
    #[must_use]
    pub fn running_since(&self, job: Handle) -> &[Time] {
        self.runs.get(job.index()).map_or(&[], Vec::as_slice)
    }

    fn of_station(&self, work: f64, station: Station) -> f64 {
        let capacity = self.cap[station];
        if 0.0 < capacity { work / capacity } else { 0.0 }
    }
}

/// What a policy is informed of; the rows that changed stand in [`View::touched`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A job is new.
    Arrived(Handle),
    /// A job is over; its row still stands, but its handle may be used again right after this.
    Left(Handle),
    /// Rows in `touched` changed.
    Progress,
    /// The time asked for with [`Plan::wake`](crate::plan::Plan::wake) has come.
    Tick,
}

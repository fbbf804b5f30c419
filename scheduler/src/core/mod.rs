//! The scheduler of the master as a pure state machine: events in, commands out.
//!
//! One call takes all events of one instant. They are entered into the ledger, the policy observes the changes and
//! plans once, and its plan is executed against the ledger as it is written.
//!
//! The core has no clocks, sockets or threads. The cost of a call depends only on what changed, not on the number of
//! jobs or tasks.

mod backup;
mod divide;
mod execute;
mod expected;
mod explain;
mod guarded;
mod preempt;
mod queries;
mod queue_order;
mod rehome;
mod saved;
mod settle;
mod show;
mod time_left;

pub use expected::ExpectedHome;
pub use explain::Outlook;
pub use guarded::PolicyPanics;
pub use queue_order::Turn;
pub use saved::{CoreToSave, SavedCore};

use crate::command::Command;
use crate::estimate::Estimator;
use crate::event::Event;
use crate::ids::{JobId, TaskKind};
pub use crate::ledger::{
    AheadConfig, BackupLimits, CloneLimits, CoreConfig, DivideLimits, MoveLimits, RouteLimits, SuspendLimits,
};
pub use crate::ledger::{
    AttemptSnapshot, AttemptTotals, BackupTotals, CoreJobState, JobSnapshot, MapCounts, ReduceCounts,
    WorkerSnapshot,
};
use crate::ledger::{Ledger, UsualMap};
use crate::placement::Placement;
use crate::plan::{Plan, Share};
use crate::policy::Policy;
use crate::station::PerStation;
use crate::units::Time;
use crate::view::Row;
use execute::Executor;
use guarded::Guarded;
use show::view_of;

/// Maximum number of entries in the standing shuffle order. Workers choose locally among the first few entries, so more
/// would only make the order long.
pub const SHUFFLE_ORDER_MAX: usize = 64;

/// Priorities of jobs in the shuffle, according to the policy's last plan.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct ShuffleOrder {
    /// Most urgent first, at most [`SHUFFLE_ORDER_MAX`]. Other jobs come after, by age.
    pub grants: Vec<(JobId, Share)>,
    /// Fractions of the lanes by line; empty when the policy uses no lines.
    pub lines: Vec<f64>,
    /// True if jobs that are not named get no lane.
    pub only: bool,
}

/// The scheduler of a master.
pub struct Core {
    ledger: Ledger,
    policy: Guarded,
    placement: Box<dyn Placement>,
    estimator: Option<Box<dyn Estimator>>,
    /// Rows by handle.
    rows: Vec<Row>,
    /// Start times of the running maps of each job, by handle.
    runs: Vec<Vec<Time>>,
    /// Job of each handle.
    handles: Vec<Option<JobId>>,
    /// Free handles.
    spare: Vec<u32>,
    next_seq: u64,
    /// Last requested tick.
    wake: Option<Time>,
    shuffle: ShuffleOrder,
    /// Previous order, kept to reuse its memory.
    shuffle_before: ShuffleOrder,
    shuffle_revision: u64,
}

impl Core {
    /// Creates a core without workers or jobs.
    ///
    /// # Panics
    /// If the policy suspends maps, which no worker supports.
    #[must_use]
    pub fn new(config: CoreConfig, policy: Box<dyn Policy>, placement: Box<dyn Placement>) -> Self {
        let mut ledger = Ledger::new(config);
        ledger.preempts = preempts(&*policy);
        Self {
            ledger,
            policy: Guarded::new(policy),
            placement,
            estimator: None,
            rows: Vec::new(),
            runs: Vec::new(),
            handles: Vec::new(),
            spare: Vec::new(),
            next_seq: 0,
            wake: None,
            shuffle: ShuffleOrder::default(),
            shuffle_before: ShuffleOrder::default(),
            shuffle_revision: 0,
        }
    }

    /// Replaces the policy and the placement. The policy sees all live jobs as if they arrived now, in the order of
    /// their arrival. The placement assigns again all maps that have not started. Attempts continue. The standing order
    /// of the shuffle, lines and a requested wake are dropped. The next call of [`Core::handle`] plans.
    ///
    /// # Panics
    /// If the policy suspends maps, which no worker supports.
    pub fn decide_by(&mut self, policy: Box<dyn Policy>, placement: Box<dyn Placement>) {
        self.ledger.preempts = preempts(&*policy);
        self.policy = Guarded::new(policy);
        self.placement = placement;
        self.wake = None;
        self.shuffle = ShuffleOrder::default();
        self.shuffle_revision += 1;
        self.ledger.reset_decisions();
        self.introduce_all();
    }

    /// Uses this estimator for sizes of jobs. Without one, the policy sees numbers of tasks and segments instead.
    #[must_use]
    pub fn with_estimator(mut self, estimator: Box<dyn Estimator>) -> Self {
        self.estimator = Some(estimator);
        self
    }

    /// Sets the state of the estimator to an earlier result of [`Core::memory`], and forgets the usual time of maps and
    /// the rate of the network, so that one experiment teaches the next one nothing. Sizes already reported for live
    /// jobs stay until these jobs change.
    ///
    /// # Errors
    /// If the memory is invalid, or the core has no estimator; then nothing has changed.
    pub fn restore_memory(&mut self, memory: &serde_json::Value) -> Result<(), String> {
        let Some(estimator) = &mut self.estimator else { return Err("there is no estimator".to_owned()) };
        estimator.restore(memory)?;
        self.ledger.usual_map = UsualMap::default();
        self.ledger.rates.forget_inbound();
        Ok(())
    }

    /// Enters all events of one instant, plans once and appends the resulting commands, to be carried out in order.
    /// Time never decreases: an earlier `now` counts as the last one.
    ///
    /// # Panics
    /// On events that only a bug of the driver can produce. Examples are an id that is used twice, a job that
    /// fails [`JobSpec::check`](crate::job::JobSpec::check), a worker without slots, and a map reported as a
    /// reduce.
    pub fn handle(&mut self, now: Time, events: &[Event], commands: &mut Vec<Command>) {
        let now = now.max(self.ledger.now);
        let span = now.since(self.ledger.now);
        let capacity = Self::capacity(&self.ledger);
        for (lines, capacity) in self.ledger.lines.iter_mut().zip(capacity) {
            lines.pass(span, capacity);
        }
        let before = std::mem::replace(&mut self.ledger.now, now);
        // Another event may overtake the tick, and its plan may replace the wake. Then this call acts as the tick.
        let mut ticked = self.wake.take_if(|wake| *wake <= now).is_some();
        for event in events {
            ticked |= *event == Event::Tick;
            self.ledger.enter(event, commands);
        }
        self.ledger.end_backoff(commands);
        self.ledger.try_routes(before, commands);
        self.leave_draining(commands);
        self.settle(commands);
        self.leave_slow_homes(commands);
        self.observe(ticked);
        let preempted = self.preempt(commands);
        let wish = self.plan(commands);
        let rehomed = self.rehome(commands);
        let again = self.recall(commands);
        let divided = self.divide(commands);
        let backups = self.back_up(commands);
        self.ask_for_wake([preempted, wish, rehomed, again, divided, backups], commands);
    }

    /// Lets the policy plan, and executes its plan.
    fn plan(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        std::mem::swap(&mut self.shuffle, &mut self.shuffle_before);
        self.shuffle.grants.clear();
        self.shuffle.lines.clear();
        self.shuffle.only = false;
        let mut executor = Executor {
            ledger: &mut self.ledger,
            placement: &mut *self.placement,
            handles: &self.handles,
            shuffle: &mut self.shuffle,
            commands,
            lines_drawn: PerStation::default(),
            ahead_open: true,
        };
        let view = view_of(executor.ledger, (&self.rows, &self.runs), &[]);
        let mut plan = Plan::new(&mut executor);
        self.policy.plan(view, &mut plan);
        let wish = plan.wished_wake();
        executor.end();
        self.shuffle_revision += u64::from(self.shuffle != self.shuffle_before);
        wish
    }

    /// Requests one standing wake, at the earliest of several times. These are the given wishes, the end of a
    /// pause, the end of a grace period (without workers, or without those that maps are pinned to), and the
    /// next try of a cut route.
    fn ask_for_wake(&mut self, wishes: [Option<Time>; 6], commands: &mut Vec<Command>) {
        let now = self.ledger.now;
        let pause = self.ledger.waits.backing_off.first().map(|&(due, _)| due);
        let (grace, orphans) = (settle::grace_ends(&self.ledger), settle::orphans_end(&self.ledger));
        let wishes = wishes.into_iter().chain([pause, grace, orphans, self.ledger.routes.next_try(now)]);
        let Some(time) = wishes.flatten().filter(|&time| now < time).min() else { return };
        if self.wake != Some(time) {
            self.wake = Some(time);
            commands.push(Command::WakeAt { time });
        }
    }

    /// Checks every invariant of the ledger from scratch. Cost: linear in the ledger; for tests, and not in
    /// release builds.
    ///
    /// # Errors
    /// If an invariant is violated, which is a bug of this crate.
    #[cfg(any(test, debug_assertions))]
    pub fn audit(&self) -> Result<(), Vec<String>> {
        crate::ledger::tests::audit::audit(&self.ledger)
    }

    /// Returns the capacity by station, as policies see it.
    fn capacity(ledger: &Ledger) -> PerStation<f64> {
        let slots = |kind: TaskKind| f64::from(ledger.workers.slots_of(kind));
        PerStation::new(slots(TaskKind::Map), 1.0, slots(TaskKind::Reduce))
    }
}

/// True if the policy preempts reduces.
fn preempts(policy: &dyn Policy) -> bool {
    assert!(!policy.suspends_maps(), "policy {} suspends maps, which no worker can", policy.name());
    policy.preempts()
}

#[cfg(test)]
mod tests;

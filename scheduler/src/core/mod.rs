//! The whole master as a pure state machine: facts in, orders out.
//!
//! One call takes all facts of one instant: they are entered into the books, the policy observes what
//! changed, plans once, and its plan is executed against the books as it is written.
//!
//! Not here: clocks, sockets, threads; and no cost per call that grows with all jobs or tasks, only with what
//! changed.

mod enter;
mod execute;
mod explain;
mod guarded;
mod preempt;
mod rehome;
mod show;
mod snapshot;

pub use explain::Outlook;
pub use guarded::PolicyPanics;
pub use snapshot::{AttemptSnapshot, JobSnapshot, JobState, MapCounts, ReduceCounts, WorkerSnapshot};

use crate::command::Command;
use crate::estimate::Estimator;
use crate::event::Event;
use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
pub use crate::ledger::AheadConfig;
use crate::ledger::{Books, Violation};
use crate::placement::Placement;
use crate::plan::{Plan, Share};
use crate::policy::Policy;
use crate::units::{Bytes, Span, Time};
use crate::view::{Row, View};
use execute::Executor;
use guarded::Guarded;

/// Most entries of the standing shuffle order: workers choose locally among the first few, so more would
/// only make the order long.
pub const SHUFFLE_ORDER_MAX: usize = 64;

/// Limits of the core.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct CoreConfig {
    /// How long maps that are pinned to a host wait for a worker there before their job fails; 30 s.
    pub pinned_grace: Span,
    /// How long live jobs wait when there is no worker before they fail; 30 s by default.
    pub no_workers_grace: Span,
    /// Failures by a worker's fault after which a job gives it nothing more while there are others; 3.
    pub troubles_bar: u32,
    /// Failures by a worker's fault after which a job is given up, being the last resort of a job that has
    /// only bad workers; 24.
    pub troubles_max: u32,
    /// Times that a map is made again because a home could not read its output; 8.
    pub rereads_max: u32,
    /// Workers that one task may lose while it runs, those not counted that another attempt is known to have brought down;
    /// 8.
    pub losses_max: u32,
    /// Workers that one job may lose while its attempts run there, beyond as many as it has tasks that are done; 64.
    pub deaths_max: u32,
    /// Failures of one task by nobody's fault, lost workers not counted; 16.
    pub uncharged_max: u32,
    /// How long a task waits after it failed by a worker's fault (disk full, I/O error); 1 s.
    pub trouble_pause: Span,
    /// Ended jobs that can still be looked up; 1,000.
    pub ended_jobs_max: usize,
    /// What is queued behind running attempts.
    pub ahead: AheadConfig,
    /// What each worker can take in from others, in bytes per second, for estimates of the shuffle; `None`, the
    /// default, counts as no limit.
    pub network: Option<Bytes>,
    /// How long a reduce keeps a slot at least before a policy that preempts may suspend it; 200 ms. A suspension costs
    /// tens of milliseconds, and slots that go back and forth would be nothing but cost.
    pub suspend_after_min: Span,
    /// Suspended attempts that a worker keeps at most, since each keeps its memory and its thread; 64.
    pub suspended_per_worker_max: u32,
    /// How long a suspended attempt waits for a slot of its worker while one elsewhere stays idle before it is handed
    /// over; 2 s. Its segments are then fetched anew.
    pub hand_over_after: Span,
    /// How long slots stay idle while ready reduces wait for busy homes before these move; 200 ms.
    pub move_after: Span,
    /// Input of a reduce, in the mean of its job, up to which it moves; 32 MiB, a third of a second on a common network.
    pub move_bytes_max: Bytes,
}

impl Default for CoreConfig {
    fn default() -> Self {
        Self {
            pinned_grace: Span::whole_seconds(30),
            no_workers_grace: Span::whole_seconds(30),
            troubles_bar: 3,
            troubles_max: 24,
            rereads_max: 8,
            losses_max: 8,
            deaths_max: 64,
            uncharged_max: 16,
            trouble_pause: Span::whole_seconds(1),
            ended_jobs_max: 1000,
            ahead: AheadConfig::default(),
            network: None,
            suspend_after_min: Span::milliseconds(200),
            suspended_per_worker_max: 64,
            hand_over_after: Span::whole_seconds(2),
            move_after: Span::milliseconds(200),
            move_bytes_max: Bytes(32 << 20),
        }
    }
}

impl CoreConfig {
    pub(crate) fn troubles(&self) -> (u32, u32) {
        (self.troubles_bar, self.troubles_max)
    }
}

/// Which jobs' segments go first, as the policy's last plan has it.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct ShuffleOrder {
    /// Most urgent first, at most [`SHUFFLE_ORDER_MAX`]; jobs that are not named come after, by age.
    pub grants: Vec<(JobId, Share)>,
    /// Fractions of the lanes by line; empty when the policy draws no lines.
    pub lines: Vec<f64>,
    /// Jobs that are not named get nothing at all.
    pub only: bool,
}

/// The brain.
pub struct Core {
    books: Books,
    policy: Guarded,
    placement: Box<dyn Placement>,
    estimator: Option<Box<dyn Estimator>>,
    /// By handle.
    rows: Vec<Row>,
    /// By handle, when the running maps of its job began.
    runs: Vec<Vec<Time>>,
    /// The job of each handle.
    handles: Vec<Option<JobId>>,
    /// Handles that nobody has.
    spare: Vec<u32>,
    next_seq: u64,
    /// The tick that was asked for last.
    wake: Option<Time>,
    shuffle: ShuffleOrder,
    /// The order before, kept for its memory.
    shuffle_before: ShuffleOrder,
    shuffle_revision: u64,
}

impl Core {
    /// An empty core: no workers, no jobs.
    ///
    /// # Panics
    /// If the policy suspends maps, which no worker can.
    #[must_use]
    pub fn new(config: CoreConfig, policy: Box<dyn Policy>, placement: Box<dyn Placement>) -> Self {
        let mut books = Books::new(config);
        books.preempts = preempts(&*policy);
        Self {
            books,
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

    /// From now on another policy and another placement decide. The policy sees all live jobs as if they arrived now, in
    /// the order of their arrival; the placement deals anew what has not begun. Attempts go on, the standing order of the
    /// shuffle, lines and a wake that was asked for are dropped, and the next call of [`Core::handle`] plans.
    ///
    /// # Panics
    /// If the policy suspends maps, which no worker can.
    pub fn decide_by(&mut self, policy: Box<dyn Policy>, placement: Box<dyn Placement>) {
        self.books.preempts = preempts(&*policy);
        self.policy = Guarded::new(policy);
        self.placement = placement;
        self.wake = None;
        self.shuffle = ShuffleOrder::default();
        self.shuffle_revision += 1;
        self.books.decide_anew();
        self.introduce_all();
    }

    /// With sizes of jobs by this estimator; without one, the policy sees numbers of tasks and segments instead.
    #[must_use]
    pub fn with_estimator(mut self, estimator: Box<dyn Estimator>) -> Self {
        self.estimator = Some(estimator);
        self
    }

    /// Enters all facts of one instant, plans once and appends the orders that follow, to be carried out in
    /// their order. Time never goes back: an earlier `now` counts as the last one.
    ///
    /// # Panics
    /// On facts that only a bug of the driver can produce: an id that is used twice, a job that fails
    /// [`JobSpec::check`](crate::job::JobSpec::check), a worker without slots, a map reported as a reduce.
    pub fn handle(&mut self, now: Time, events: &[Event], commands: &mut Vec<Command>) {
        let now = now.max(self.books.now);
        let span = now.since(self.books.now);
        let capacity = Self::capacity(&self.books);
        for (lines, capacity) in self.books.lines.iter_mut().zip(capacity) {
            lines.pass(span, capacity);
        }
        self.books.now = now;
        // Another fact may overtake the tick, and its plan replace the wake: then this call is the tick.
        let mut ticked = self.wake.take_if(|wake| *wake <= now).is_some();
        for event in events {
            ticked |= *event == Event::Tick;
            self.books.enter(event, commands);
        }
        self.books.rouse(commands);
        self.settle(commands);
        self.observe(ticked);
        let taken = self.take_back(commands);
        let wish = self.plan(commands);
        let moved = self.hand_over(commands);
        let rehomed = self.rehome(commands);
        let again =
            self.books.call_back(|attempt, worker| commands.push(Command::Recall { attempt, worker }));
        self.ask_for_wake([taken, wish, moved, rehomed, again], commands);
    }

    /// Lets the policy plan and executes its plan.
    fn plan(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        std::mem::swap(&mut self.shuffle, &mut self.shuffle_before);
        self.shuffle.grants.clear();
        self.shuffle.lines.clear();
        self.shuffle.only = false;
        let mut executor = Executor {
            books: &mut self.books,
            placement: &mut *self.placement,
            handles: &self.handles,
            shuffle: &mut self.shuffle,
            commands,
            lines_drawn: [false; 3],
            ahead_open: true,
        };
        let cap = executor.capacity();
        let unified = !executor.books.workers.pooled;
        let now = executor.books.now;
        let view = View { now, rows: &self.rows, touched: &[], cap, unified, runs: &self.runs };
        let mut plan = Plan::new(&mut executor);
        self.policy.plan(view, &mut plan);
        let wish = plan.wished_wake();
        executor.end();
        self.shuffle_revision += u64::from(self.shuffle != self.shuffle_before);
        wish
    }

    /// One standing wake: the earliest of these wishes, the end of a pause, and the end of the grace without
    /// workers, of any or of those that maps are pinned to.
    fn ask_for_wake(&mut self, wishes: [Option<Time>; 5], commands: &mut Vec<Command>) {
        let now = self.books.now;
        let pause = self.books.resting.first().map(|&(due, _)| due);
        let wishes = wishes.into_iter().chain([pause, self.books.grace_ends(), self.books.orphans_end()]);
        let Some(time) = wishes.flatten().filter(|&time| now < time).min() else { return };
        if self.wake != Some(time) {
            self.wake = Some(time);
            commands.push(Command::WakeAt { time });
        }
    }

    /// The standing order of the shuffle after the last call.
    #[must_use]
    pub fn shuffle_order(&self) -> &ShuffleOrder {
        &self.shuffle
    }

    /// Rises whenever [`Core::shuffle_order`] becomes another.
    #[must_use]
    pub fn shuffle_revision(&self) -> u64 {
        self.shuffle_revision
    }

    /// The handed-over attempt that this one goes on from. `None` if it begins from its inputs, as all others do; then
    /// nothing that an earlier attempt left behind is of use to it.
    #[must_use]
    pub fn continues(&self, attempt: AttemptId) -> Option<AttemptId> {
        self.books.continued(attempt)
    }

    /// Checks every invariant of the books from scratch. Cost: all of the books; meant for tests.
    ///
    /// # Errors
    /// What does not hold; a bug of this crate.
    pub fn audit(&self) -> Result<(), Vec<Violation>> {
        self.books.audit()
    }

    /// Facts that came too late to matter and were ignored.
    #[must_use]
    pub fn late_events(&self) -> u64 {
        self.books.late
    }

    /// What the estimator has learned so far; null if there is none, or it learns nothing.
    #[must_use]
    pub fn memory(&self) -> serde_json::Value {
        self.estimator.as_ref().map_or(serde_json::Value::Null, |estimator| estimator.memory())
    }

    /// Whether the policy takes slots back from reduces.
    #[must_use]
    pub fn preempts(&self) -> bool {
        self.books.preempts
    }

    /// Whether the policy looks at the pools of jobs.
    #[must_use]
    pub fn knows_pools(&self) -> bool {
        self.policy.policy().knows_pools()
    }

    /// The name of the policy.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        self.policy.policy().name()
    }

    /// How often the policy panicked since it decides, and `fifo` decided in its place.
    #[must_use]
    pub fn policy_panics(&self) -> &PolicyPanics {
        self.policy.panics()
    }

    /// The time of the last call.
    #[must_use]
    pub fn now(&self) -> Time {
        self.books.now
    }

    /// Slots of all live workers, of both pools together, and how many of them are free.
    #[must_use]
    pub fn slots(&self) -> (u32, u32) {
        (self.books.workers.slots.iter().sum(), self.books.workers.free.iter().sum())
    }

    /// This job, live or among the last that ended.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<JobSnapshot> {
        match self.books.jobs.get(&id) {
            Some(job) => Some(JobSnapshot::of(job, None)),
            None => self.books.ended.get(&id).cloned(),
        }
    }

    /// The live jobs, in the order of arrival.
    pub fn live_jobs(&self) -> impl Iterator<Item = JobSnapshot> {
        self.books.jobs.values().map(|job| JobSnapshot::of(job, None))
    }

    /// The last jobs that ended, in the order of arrival.
    pub fn ended_jobs(&self) -> impl Iterator<Item = &JobSnapshot> {
        self.books.ended.values()
    }

    /// The machine of a worker, also of one that is lost; `None` if it never joined.
    #[must_use]
    pub fn host(&self, worker: WorkerId) -> Option<HostId> {
        self.books.workers.host(worker)
    }

    /// This worker, if it is live.
    #[must_use]
    pub fn worker(&self, id: WorkerId) -> Option<WorkerSnapshot> {
        self.books.workers.get(id).map(|worker| WorkerSnapshot::of(worker, &self.books))
    }

    /// The live workers by id.
    pub fn workers(&self) -> impl Iterator<Item = WorkerSnapshot> {
        self.books.workers.iter().map(|worker| WorkerSnapshot::of(worker, &self.books))
    }

    /// The attempts that hold a slot, are queued behind one, or are suspended, by id.
    pub fn attempts(&self) -> impl Iterator<Item = (AttemptId, AttemptSnapshot)> {
        self.books.attempts.iter().map(|(&id, attempt)| (id, AttemptSnapshot::of(attempt)))
    }

    /// The maps of this live job whose output is empty, one bit each, 64 to a word, the lowest first; maps
    /// beyond the last word are not among them. Homes fetch nothing of them and must be told before a reduce.
    #[must_use]
    pub fn empty_maps(&self, job: JobId) -> &[u64] {
        self.books.jobs.get(&job).map_or(&[], |job| job.empty.words())
    }

    /// Whether a segment of this map attempt's output, which has been made, is lacking at this worker as the home of
    /// the partition. Nobody else can have fetched it.
    #[must_use]
    pub fn awaits(&self, home: WorkerId, map: AttemptId, partition: u32) -> bool {
        let job = self.books.jobs.get(&map.task.job).filter(|_| map.task.kind == TaskKind::Map);
        job.is_some_and(|job| job.lacks(home, map, partition))
    }

    /// Whether this home could have failed to fetch this output from that worker, which holds it.
    #[must_use]
    pub fn could_fetch(&self, home: WorkerId, map: AttemptId, from: WorkerId) -> bool {
        let job = self.books.jobs.get(&map.task.job).filter(|_| map.task.kind == TaskKind::Map);
        job.is_some_and(|job| job.held_at(map) == Some(from) && job.home_lacks(home, map.task.index))
    }

    /// This attempt, if it holds a slot, is queued behind one, or is suspended.
    #[must_use]
    pub fn attempt(&self, id: AttemptId) -> Option<AttemptSnapshot> {
        self.books.attempts.get(&id).map(AttemptSnapshot::of)
    }

    /// Number of outputs of this live job that the worker keeps.
    #[must_use]
    pub fn outputs_at(&self, job: JobId, worker: WorkerId) -> usize {
        let outputs = self.books.jobs.get(&job).and_then(|job| job.outputs.get(&worker));
        outputs.map_or(0, std::collections::BTreeSet::len)
    }

    /// The worker that gathers this partition; `None` when there is none, or the part is done.
    #[must_use]
    pub fn home(&self, job: JobId, partition: u32) -> Option<WorkerId> {
        self.books.jobs.get(&job)?.reduces.get(partition as usize)?.home
    }

    /// Whether the partition's home does not have its segment of this map.
    pub(crate) fn lacks(&self, job: JobId, partition: u32, map: u32) -> bool {
        let reduce = self.books.jobs.get(&job).and_then(|job| job.reduces.get(partition as usize));
        reduce.is_some_and(|reduce| !reduce.gathered.get(map))
    }

    /// Capacity by station, as policies see it.
    fn capacity(books: &Books) -> [f64; 3] {
        let slots = |kind: TaskKind| f64::from(books.workers.slots_of(kind));
        [slots(TaskKind::Map), 1.0, slots(TaskKind::Reduce)]
    }
}

/// Whether the policy takes slots back from reduces.
fn preempts(policy: &dyn Policy) -> bool {
    assert!(!policy.suspends_maps(), "policy {} suspends maps, which no worker can", policy.name());
    policy.preempts()
}

#[cfg(test)]
mod tests;

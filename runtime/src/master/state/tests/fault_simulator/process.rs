//! One simulated worker process. It follows the rules of the agent's control loop, with the agent's own fetch plan,
//! store, segments and frames.
//!
//! It has no side effects: it receives the time and the input, and leaves its actions in [`Process::effects`]. The work
//! of user code, disks and sockets of a real process is in `slots` and in the world around it.

use super::fault::Fault;
use super::scenario::JobPlan;
use super::slots::{Fate, Group, Stage, Try};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::http::Endpoint;
use gristmill_worker::protocol::{
    AttemptProgress, AttemptReport, FailureClass, Heartbeat, HeldAttempt, HeldHome, Holding, JobOrder,
    MasterFrame, Session, Slots, WorkerFrame, push_worker_frame,
};
use gristmill_worker::segment::SegmentData;
use gristmill_worker::shuffle::plan::{Fetch, FetchLimits, FetchPlan};
use gristmill_worker::shuffle::store::{GatheredFor, SegmentStore};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// Identifies a process within a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ProcessId(pub u32);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.0)
    }
}

/// An action outside the control loop.
pub(super) enum Effect {
    /// A step of an attempt is over after this time, unless the attempt has moved to another stage.
    Step { attempt: AttemptId, turn: u32, after: Span },
    /// A request is sent for these partitions of each map.
    Ask { fetch: Fetch, wanted: Vec<(AttemptId, Vec<GatheredFor>)> },
    /// A part is built and stored at the output.
    Write { attempt: AttemptId, groups: Vec<Group> },
    /// A part is no longer needed.
    Remove { attempt: AttemptId },
    /// User code crashes the process.
    Crash { attempt: AttemptId },
    /// The process ends because an attempt hangs.
    Stuck,
    /// The fault that waited for a commit is injected.
    StopsInCommit,
    /// The restarted master does not know what an earlier one had confirmed.
    Forgotten,
    /// A fault of this name took effect.
    Fires(&'static str),
}

/// An encoded frame, and a flag if a new connection may deliver it twice.
pub(super) struct SentFrame {
    pub bytes: Vec<u8>,
    pub repeatable: bool,
}

/// Response of another worker.
pub(super) enum Answer {
    /// The segments of the partitions.
    Held(Vec<(GatheredFor, SegmentData)>),
    Missing,
    /// The connection broke, or no process listened.
    Broken,
}

pub(super) struct Process {
    pub id: ProcessId,
    /// Number assigned by the master.
    pub worker: Option<WorkerId>,
    pub place: usize,
    pub slots: Slots,
    pub stopped_until: Option<Time>,
    /// Factor by which all work is slowed down.
    pub slowness: u64,
    /// True if memory and disk are full.
    pub full: bool,
    pub stop_in_commit: Option<Span>,
    pub fates: VecDeque<Fate>,
    pub rng: ChaCha8Rng,
    pub store: SegmentStore,
    pub plan: FetchPlan,
    pub jobs: BTreeMap<JobId, JobPlan>,
    pub tries: BTreeMap<AttemptId, Try>,
    /// Attempts that wait for a slot, by pool.
    pub lines: [VecDeque<AttemptId>; 2],
    /// Outputs that a fault may lose.
    pub outputs: BTreeSet<AttemptId>,
    pub lost: BTreeSet<AttemptId>,
    pub effects: Vec<Effect>,
    pub outbox: Vec<SentFrame>,
    /// Number of times it was made the home of a partition.
    pub housed: BTreeMap<(JobId, u32), u32>,
    /// Reduces that were launched here although their input was incomplete.
    pub incomplete: Vec<AttemptId>,
    /// The master's description of itself.
    pub session: Session,
    /// True if the master cannot be reached.
    pub away: bool,
    /// Encoded numbered frames that the master has not confirmed.
    unheard: VecDeque<Vec<u8>>,
    first_unheard: u64,
}

impl Process {
    pub fn new(id: ProcessId, (place, slots): (usize, Slots), seed: u64) -> Self {
        Self {
            id,
            worker: None,
            place,
            slots,
            stopped_until: None,
            slowness: 1,
            full: false,
            stop_in_commit: None,
            fates: VecDeque::new(),
            rng: ChaCha8Rng::seed_from_u64(seed ^ u64::from(id.0) << 32),
            store: SegmentStore::default(),
            plan: FetchPlan::new(FetchLimits::default()),
            jobs: BTreeMap::new(),
            tries: BTreeMap::new(),
            lines: Default::default(),
            outputs: BTreeSet::new(),
            lost: BTreeSet::new(),
            effects: Vec::new(),
            outbox: Vec::new(),
            housed: BTreeMap::new(),
            incomplete: Vec::new(),
            session: Session { generation: 0, returns: false, heard: 0 },
            away: false,
            unheard: VecDeque::new(),
            first_unheard: 1,
        }
    }

    /// Endpoint at which a process serves segments.
    pub fn endpoint(id: ProcessId) -> Endpoint {
        Endpoint { host: "127.0.0.1".to_owned(), port: 1_000 + id.0 as u16, pin: None }
    }

    /// Process of an endpoint.
    pub fn at(endpoint: &Endpoint) -> ProcessId {
        ProcessId(u32::from(endpoint.port) - 1_000)
    }

    pub fn send(&mut self, frame: &WorkerFrame) {
        let mut bytes = Vec::new();
        push_worker_frame(frame, &mut bytes).expect("simulated frames are short");
        let counts = self.session.returns && frame.is_numbered();
        if counts {
            self.unheard.push_back(bytes.clone());
        }
        if self.away {
            return;
        }
        // Suspensions must be counted in order.
        let repeatable = !counts
            && !matches!(
                frame,
                WorkerFrame::Suspended { .. }
                    | WorkerFrame::NotSuspended { .. }
                    | WorkerFrame::Divided { .. }
                    | WorkerFrame::NotDivided { .. }
            );
        self.outbox.push(SentFrame { bytes, repeatable });
    }

    pub fn fail(&mut self, attempt: AttemptId, class: FailureClass) {
        self.send(&WorkerFrame::AttemptFailed {
            attempt,
            class,
            message: "simulated".to_owned(),
            report: AttemptReport::default(),
        });
    }

    pub fn heartbeat(&mut self) {
        let running = self
            .tries
            .iter()
            .filter(|(attempt, one)| attempt.task.kind == TaskKind::Reduce && one.stage == Stage::Working);
        let progress = running.map(|(attempt, one)| AttemptProgress {
            attempt: *attempt,
            bytes_in: one.groups.len() as u64,
            records_in: 0,
            divisible_bytes: one.keys.len() as u64,
        });
        let running = progress.collect();
        self.send(&WorkerFrame::Heartbeat(Heartbeat { running, ..Heartbeat::default() }));
    }

    /// Executes an order of the master.
    pub fn execute(&mut self, now: Time, frame: MasterFrame) {
        match frame {
            MasterFrame::Welcome { worker, session, .. } => self.welcome(worker, session),
            MasterFrame::Refused { reason } => panic!("{} was refused: {reason}", self.id),
            MasterFrame::Heard { through } => self.heard(through),
            MasterFrame::Shutdown => {}
            MasterFrame::Ping { master_ns } => {
                self.send(&WorkerFrame::Pong { master_ns, worker_ns: now.0 });
            }
            MasterFrame::Job(order) => self.open_job(&order),
            MasterFrame::LaunchMap { attempt, split, .. } => self.launch_map(attempt, split.bytes()),
            MasterFrame::LaunchReduce { attempt, empty, added, bounds, .. } => {
                self.launch_reduce(attempt, &empty, &added, &bounds);
            }
            MasterFrame::Divide { attempt, at_once } => self.divide(attempt, at_once),
            MasterFrame::MapsAdded { job, maps } => self.store.add_maps(job, maps),
            MasterFrame::Suspend { attempt } => self.suspend(attempt),
            MasterFrame::Resume { attempt } => self.resume(attempt),
            MasterFrame::Lanes(order) => self.plan.order(&order),
            MasterFrame::Recall { attempt } => {
                if self.withdraw(attempt, Stage::Waiting) {
                    self.tries.remove(&attempt);
                    self.send(&WorkerFrame::Returned { attempt });
                }
            }
            MasterFrame::Home { job, reduce, partition } => {
                *self.housed.entry((job, reduce)).or_default() += 1;
                self.store.home(job, reduce, partition);
            }
            MasterFrame::HomeOfRest { job, divided, reduce, partition } => {
                // The divided one may have ended with its segments.
                let may_lack = !self.store.homes().iter().any(|home| (home.0, home.1) == (job, divided));
                *self.housed.entry((job, reduce)).or_default() += if may_lack { 2 } else { 1 };
                self.store.home_of_rest(job, divided, reduce, partition);
            }
            MasterFrame::Unhome { job, reduce } => drop(self.store.unhome(job, reduce)),
            MasterFrame::Announce { maps, from, .. } if Some(from) == self.worker => {
                self.read_in_place(&maps, from);
            }
            MasterFrame::Announce { maps, from, endpoint } => {
                maps.into_iter().for_each(|map| self.plan.announce(map, from, &endpoint));
            }
            MasterFrame::Retract { map } => self.plan.retract(map),
            MasterFrame::Kill { attempt } => self.kill(attempt),
            MasterFrame::CommitGranted { attempt, .. } => self.commit_answered(attempt, true),
            MasterFrame::CommitRefused { attempt } => self.commit_answered(attempt, false),
            MasterFrame::Forget { job } => self.forget(job),
        }
    }

    /// Handles the welcome of a master: the first one, or one that now receives what it has missed and what exists.
    fn welcome(&mut self, worker: WorkerId, session: Session) {
        let comes_back = self.worker.replace(worker).is_some();
        self.session = session;
        if !comes_back {
            return;
        }
        if session.heard + 1 < self.first_unheard {
            return self.effects.push(Effect::Forgotten);
        }
        self.away = false;
        self.heard(session.heard);
        let again = self.unheard.iter().map(|bytes| SentFrame { bytes: bytes.clone(), repeatable: false });
        self.outbox.extend(again.collect::<Vec<_>>());
        let held = |(attempt, one): (&AttemptId, &Try)| HeldAttempt {
            attempt: *attempt,
            suspended: one.stage == Stage::Parked,
            awaits_permit: one.stage == Stage::Built && one.answer.is_none(),
        };
        let home = |(job, partition, segments)| HeldHome { job, partition, segments };
        self.send(&WorkerFrame::Holding(Holding {
            jobs: self.jobs.keys().copied().collect(),
            attempts: self.tries.iter().map(held).collect(),
            homes: self.store.homes().into_iter().map(home).collect(),
        }));
    }

    /// Drops frames up to this one: the master has written them down.
    fn heard(&mut self, through: u64) {
        while self.first_unheard <= through {
            self.unheard.pop_front().expect("nothing is confirmed that was not said");
            self.first_unheard += 1;
        }
    }

    fn open_job(&mut self, order: &JobOrder) {
        if self.jobs.contains_key(&order.job) {
            return;
        }
        self.store.open_job(order.job, order.key.clone(), order.maps);
        let plan = serde_json::from_str(&order.parameters).expect("the parameters are a plan");
        self.jobs.insert(order.job, plan);
    }

    fn forget(&mut self, job: JobId) {
        let tries = self.tries.keys().filter(|attempt| attempt.task.job == job).copied();
        for attempt in tries.collect::<Vec<_>>() {
            self.kill(attempt);
        }
        self.plan.forget(job);
        self.jobs.remove(&job);
        self.store.forget(job);
        self.outputs.retain(|attempt| attempt.task.job != job);
    }

    /// Sends the requests of the plan and fills free slots, as at the end of an iteration of the loop.
    pub fn end_turn(&mut self, now: Time) {
        self.begin_waiting();
        while let Some(fetch) = self.plan.next(now) {
            if !self.jobs.contains_key(&fetch.job) {
                self.plan.forget(fetch.job);
                self.plan.ended(fetch.id);
                continue;
            }
            let lacking = |map: &AttemptId| (*map, self.store.lacking(fetch.job, map.task.index));
            let wanted = fetch.maps.iter().map(lacking).collect();
            self.effects.push(Effect::Ask { fetch, wanted });
        }
    }

    /// Attempts that have started and not been reported.
    pub fn begun(&self) -> Vec<AttemptId> {
        let begun = self.tries.iter().filter(|(_, one)| one.stage.has_slot());
        begun.map(|(attempt, _)| *attempt).collect()
    }

    /// Attempts with a permit to publish that have not done so.
    pub fn publishing(&self) -> impl Iterator<Item = AttemptId> {
        self.tries.iter().filter(|(_, one)| one.stage == Stage::Publishing).map(|(attempt, _)| *attempt)
    }

    /// Pool of slots used by this kind.
    pub fn pool(&self, kind: TaskKind) -> usize {
        usize::from(matches!((self.slots, kind), (Slots::Pools { .. }, TaskKind::Reduce)))
    }

    /// Accepts a fault that waits for the next attempt, or changes what it does. Returns true if it is such a fault.
    pub fn suffers(&mut self, fault: &Fault, lasts: Span) -> bool {
        match fault {
            Fault::Crash => self.fates.push_back(Fate::Crash),
            Fault::Hang => self.fates.push_back(Fate::Hang),
            Fault::Fail(class) => self.fates.push_back(Fate::Fail(*class)),
            Fault::StopInCommit => self.stop_in_commit = Some(lasts),
            Fault::Fill => self.full = true,
            Fault::Slow(times) => self.slowness = u64::from(*times),
            _ => return false,
        }
        true
    }

    /// Ends all lasting effects of faults.
    pub fn heal(&mut self) {
        self.fates.clear();
        (self.full, self.slowness, self.stop_in_commit) = (false, 1, None);
    }
}

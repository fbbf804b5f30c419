//! The control loop of a worker: carries out the master's orders and says what became of them.
//!
//! One thread drives it together with the shuffle; slots run user code. What is said in one turn of the loop
//! goes out in one piece. Not here: what to run and where (the master decides), the connection (`connect`).

mod suspend;
mod watch;

use super::begun::Begun;
use super::capture::{self, Capture};
use super::files::{self, JobFiles};
use super::handed_over::HandoverStore;
use super::slots::{
    self, Assignment, AttemptInput, Done, Ended, LeaveSlot, Permit, RunningJob, SlotEvent, SlotSetting,
};
use super::work::{Turn, Work};
use super::{JobSource, WorkerConfig, WorkerError, WorkerExit, chain};
use crate::attempt::SideInputs;
use crate::budget::{Budget, Shares};
use crate::collect::pair_bytes_max;
use crate::descriptors;
use crate::fault;
use crate::http::limits::STALL_TIME;
use crate::http::{Endpoint, Pool, Timeouts};
use crate::input::InputLimits;
use crate::protocol::{
    AttemptReport, Continuation, FailureClass, FetchedOutput, JobOrder, MasterFrame, WorkerFrame,
    push_worker_frame,
};
use crate::recycle::Recycler;
use crate::segment::{PARTITIONS_MAX, SegmentData, SpillDirs};
use crate::settings::Shuffle;
use crate::shuffle::fetch::{FetchError, Fetcher, Outcome};
use crate::shuffle::pace::InPace;
use crate::shuffle::plan::{Fetch, FetchPlan, Retry};
use crate::shuffle::store::{Gone, Held, Store};
use crate::task::{Parking, Progress, TaskSettings};
use crossbeam_channel::Sender;
use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::MissedTickBehavior;

/// User output in one [`WorkerFrame::Log`], bytes.
pub const LOG_CHUNK_BYTES_MAX: usize = 64 << 10;

/// Chunks of user output that are handed over at once when an attempt ends: as much as its file can hold.
const LOG_CHUNKS_MAX: usize = capture::FILE_BYTES_MAX as usize / LOG_CHUNK_BYTES_MAX;

/// How often the loop looks at user output, hanging attempts and its own memory.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Attempts that are suspended at once, or asked to be; of more than that each keeps its slot. Each keeps a thread, its
/// buffers and its segments.
pub const SUSPENDED_MAX: usize = 64;

/// Partitions named in one frame, if they are not of one output: far less than a frame can hold.
const FRAME_PARTITIONS_MAX: usize = 1 << 18;

/// Words of slots that are heard in one turn of the loop.
const SLOT_EVENTS_MAX: usize = 256;

struct RunningAttempt {
    progress: Arc<Progress>,
    permit: Sender<Permit>,
    hang: Duration,
    /// The part is built: no user code runs any more, and how long it takes to publish is not its fault.
    built: bool,
    suspension: Suspension,
    seen: (u64, u64, u64),
    seen_at: Instant,
    killed_at: Option<Instant>,
}

/// Whether an attempt is suspended, as far as this loop has heard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suspension {
    /// It runs, or waits for its slot.
    None,
    /// It was asked to stop.
    Asked,
    /// It has no slot.
    Suspended,
    /// It has none and writes down where it stands, which is user code.
    HandingOver,
}

/// What comes back from the tasks that fetch.
struct Fetched {
    fetch: Fetch,
    outcomes: Vec<Outcome>,
    started_ns: u64,
    ended_ns: u64,
}

/// One part in so many of the machine's memory: bytes of input files that map outputs of this worker may rely on to
/// stay in the page cache, so that several workers of a machine leave it room for other things.
const KEPT_IN_FILES_SHARE: u64 = 8;

/// What a worker has once its master has greeted it.
pub(super) struct JoinedWorker {
    /// The number that the master gave it.
    pub worker: WorkerId,
    /// What its shuffle server serves.
    pub store: Store,
    /// The same, of parts that were handed over.
    pub handovers: HandoverStore,
    /// Its clock starts here.
    pub epoch: Instant,
    /// Takes encoded frames to the master.
    pub frames: UnboundedSender<Vec<u8>>,
}

/// The way to the master.
struct Outgoing {
    frames: UnboundedSender<Vec<u8>>,
    /// Encoded frames to be sent when this turn of the loop is over.
    pending: Vec<u8>,
}

/// The threads that run attempts: what they take, what they say, and what they have in common.
struct SlotThreads {
    work: Work,
    events: UnboundedReceiver<SlotEvent>,
    setting: SlotSetting,
}

/// Gathering segments: what to fetch next, and what came of it.
struct Fetching {
    plan: FetchPlan,
    fetcher: Fetcher,
    /// `None`: as fast as it goes.
    pace: Option<InPace>,
    results: UnboundedReceiver<Fetched>,
    sender: UnboundedSender<Fetched>,
}

/// What the tasks of all jobs share of this worker's memory, besides the budget.
struct TaskMemory {
    recycler: Recycler,
    slot_bytes: usize,
    kept_in_files: Budget,
}

pub(super) struct Agent {
    config: WorkerConfig,
    source: Arc<dyn JobSource>,
    worker: WorkerId,
    epoch: Instant,
    store: Store,
    handovers: HandoverStore,
    outgoing: Outgoing,
    slots: SlotThreads,
    fetching: Fetching,
    memory: TaskMemory,
    jobs: BTreeMap<JobId, Arc<RunningJob>>,
    running: BTreeMap<AttemptId, RunningAttempt>,
    disk_free: watch::DiskFree,
    /// A slot's thread has died.
    broken: bool,
}

impl Fetching {
    fn new(config: &WorkerConfig, fetcher: Fetcher) -> Self {
        let (pace, limits) = match config.settings.nic_bytes_per_second {
            Some(rate) => (Some(InPace::start(rate)), config.fetch.clone().paced(rate.get())),
            None => (None, config.fetch.clone()),
        };
        // On a network that is made slow all bytes have to travel.
        let in_place = config.settings.shuffle == Shuffle::Auto && pace.is_none();
        let fetcher = Fetcher { sees: if in_place { crate::machine::files_seen() } else { None }, ..fetcher };
        let (sender, results) = unbounded_channel();
        Self { plan: FetchPlan::new(limits), fetcher, pace, results, sender }
    }
}

impl Agent {
    pub(super) fn new(
        config: WorkerConfig,
        source: Arc<dyn JobSource>,
        joined: JoinedWorker,
    ) -> Result<Self, WorkerError> {
        let JoinedWorker { worker, store, handovers, epoch, frames } = joined;
        let settings = &config.settings;
        let work = Work::new(settings.slots);
        let (events, slot_events) = unbounded_channel();
        let timeouts = Timeouts { stall: fault::span("worker.stall", STALL_TIME), ..Timeouts::default() };
        let pool = Pool::new(timeouts, config.bind.permissions.plaintext());
        let shares = Shares::of(settings.memory.get() as usize, settings.slots.total());
        let budget = Budget::new(shares.kept_bytes);
        let spill = SpillDirs::with_reserve(config.spill_dirs.clone(), settings.disk_reserve.get());
        let setting = SlotSetting {
            memory: settings.memory,
            budget: budget.clone(),
            spill: spill.clone(),
            pool: pool.clone(),
            runtime: tokio::runtime::Handle::current(),
            epoch,
            events,
            begun: Begun::create(spill.first()).map_err(|source| WorkerError::Start { source })?,
            written: config.capture.as_ref().map(Capture::mark),
            memory_peak: Arc::default(),
        };
        slots::start(settings.slots, &work, &setting).map_err(|source| WorkerError::Start { source })?;
        let memory = TaskMemory {
            recycler: Recycler::default(),
            slot_bytes: shares.slot_bytes,
            kept_in_files: Budget::new((crate::machine_memory_bytes() / KEPT_IN_FILES_SHARE) as usize),
        };
        let fetcher = Fetcher { pool, store: store.clone(), budget, spill: spill.clone(), sees: None };
        Ok(Self {
            fetching: Fetching::new(&config, fetcher),
            config,
            source,
            worker,
            epoch,
            store,
            handovers,
            outgoing: Outgoing { frames, pending: Vec::new() },
            slots: SlotThreads { work, events: slot_events, setting },
            memory,
            jobs: BTreeMap::new(),
            running: BTreeMap::new(),
            disk_free: watch::DiskFree::new(spill),
            broken: false,
        })
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Says something to the master, at the end of this turn of the loop.
    fn say(&mut self, frame: &WorkerFrame) {
        if let Err(error) = push_worker_frame(frame, &mut self.outgoing.pending) {
            tracing::error!(%error, "a frame could not be sent; ending this process");
            // The master would wait for it for ever.
            self.broken = true;
        }
    }

    fn flush(&mut self) {
        if !self.outgoing.pending.is_empty() {
            // Fails only when the connection is gone, which ends the loop by itself.
            let _ = self.outgoing.frames.send(std::mem::take(&mut self.outgoing.pending));
        }
    }

    /// The last word. Slots take nothing more.
    pub(super) fn leave(mut self) {
        self.say(&WorkerFrame::Goodbye);
        self.flush();
        self.slots.work.close();
        // Nobody lets these go on any more.
        for running in self.running.values().filter(|running| running.suspension == Suspension::Suspended) {
            running.progress.cancel();
        }
    }

    pub(super) async fn drive(
        &mut self,
        incoming: &mut Receiver<Vec<MasterFrame>>,
        mut shutdown: tokio::sync::watch::Receiver<bool>,
        heartbeat_ms: u32,
    ) -> WorkerExit {
        let mut heartbeat = tokio::time::interval(Duration::from_millis(u64::from(heartbeat_ms.max(10))));
        let mut watch = tokio::time::interval(WATCH_INTERVAL);
        // After a stall one look is enough.
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let pause = self
                .fetching
                .plan
                .wake_at(Time(self.now_ns()))
                .map(|at| self.epoch + Duration::from_nanos(at.0));
            let wake = async {
                match pause {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                frames = incoming.recv() => {
                    let Some(frames) = frames else { return WorkerExit::MasterGone };
                    for frame in frames {
                        if matches!(frame, MasterFrame::Shutdown) {
                            return WorkerExit::Shutdown;
                        }
                        self.obey(frame);
                    }
                }
                Some(event) = self.slots.events.recv() => {
                    self.slot(event);
                    self.slots_so_far();
                }
                Some(fetched) = self.fetching.results.recv() => self.fetched(fetched),
                () = wake => {}
                _ = heartbeat.tick() => self.heartbeat(),
                due = watch.tick() => {
                    if 2 * WATCH_INTERVAL < due.elapsed() {
                        self.excuse_stall();
                    }
                    self.watch_output();
                    if let Some(attempt) = self.stuck() {
                        return WorkerExit::Stuck(attempt);
                    }
                }
                _ = shutdown.wait_for(|stop| *stop) => return WorkerExit::Shutdown,
            }
            self.start_fetches();
            self.flush();
            if self.broken {
                return WorkerExit::Broken;
            }
        }
    }

    /// Hears what slots have said meanwhile.
    fn slots_so_far(&mut self) {
        for _ in 0..SLOT_EVENTS_MAX {
            let Ok(event) = self.slots.events.try_recv() else { return };
            self.slot(event);
        }
    }

    fn obey(&mut self, frame: MasterFrame) {
        match frame {
            MasterFrame::Welcome { .. } | MasterFrame::Refused { .. } | MasterFrame::Shutdown => {}
            MasterFrame::Ping { master_ns } => {
                let worker_ns = self.now_ns();
                self.say(&WorkerFrame::Pong { master_ns, worker_ns });
            }
            MasterFrame::Job(order) => self.open_job(*order),
            MasterFrame::LaunchMap { attempt, split } => {
                self.launch(attempt, AttemptInput::Split(split), None);
            }
            MasterFrame::LaunchReduce { attempt, empty, resume } => {
                self.launch_reduce(attempt, &empty, resume);
            }
            MasterFrame::Suspend { attempt } => self.suspend(attempt),
            MasterFrame::Resume { attempt } => self.resume(attempt),
            MasterFrame::HandOver { attempt } => self.hand_over(attempt),
            MasterFrame::Lanes(order) => {
                self.fetching.plan.order(&order);
                if let Some(pace) = &self.fetching.pace {
                    pace.order(order);
                }
            }
            MasterFrame::Recall { attempt } => {
                if self.slots.work.withdraw(attempt) {
                    self.running.remove(&attempt);
                    self.say(&WorkerFrame::Returned { attempt });
                }
            }
            MasterFrame::Home { job, partition } => self.store.home(job, partition),
            MasterFrame::Unhome { job, partition } => delete(self.store.unhome(job, partition)),
            MasterFrame::Announce { maps, from, endpoint }
                if from == self.worker && self.config.settings.shuffle == Shuffle::Auto =>
            {
                self.read_in_place(&maps, &endpoint);
            }
            MasterFrame::Announce { maps, from, endpoint } => {
                for map in maps {
                    self.fetching.plan.announce(map, from, &endpoint);
                }
            }
            MasterFrame::Retract { map } => self.fetching.plan.retract(map),
            MasterFrame::Kill { attempt } => self.kill(attempt),
            MasterFrame::CommitGranted { attempt, permit } => self.permit(attempt, Permit::Granted(permit)),
            MasterFrame::CommitRefused { attempt } => self.permit(attempt, Permit::Refused),
            MasterFrame::Forget { job } => self.forget(job),
        }
    }

    fn open_job(&mut self, order: JobOrder) {
        let job = order.job;
        if self.jobs.contains_key(&job) {
            return;
        }
        self.store.open_job(job, order.key.clone(), order.maps);
        let source = self.source.clone();
        let (name, parameters) = (order.name.clone(), order.parameters.clone());
        let making = std::panic::AssertUnwindSafe(move || source.plan(&name, &parameters));
        let plan = std::panic::catch_unwind(making);
        let plan = match plan {
            // A sort has 20 bits for a partition's number.
            Ok(Ok(_)) if PARTITIONS_MAX < order.partitions => Err(format!(
                "{} partitions are more than the {PARTITIONS_MAX} that a job can have",
                order.partitions
            )),
            Ok(Ok(plan)) => Ok(plan),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the job's plan panicked".to_owned()),
        };
        let files = Arc::new(JobFiles {
            route: files::job_route(job),
            worker: Some(self.worker),
            key: files::FileKey::OfJob(order.key.clone()),
            submitter: order.submitter.clone(),
            peers: order.peers.iter().cloned().collect(),
            pool: self.slots.setting.pool.clone(),
            runtime: self.slots.setting.runtime.clone(),
        });
        let limits = InputLimits {
            record_max: order.limits.record_bytes_max,
            buffered_record_max: pair_bytes_max(self.memory.slot_bytes) as u64,
            expansion_max: order.limits.expansion_max,
            ..InputLimits::default()
        };
        let settings = TaskSettings {
            collector_bytes: self.memory.slot_bytes,
            merge_bytes: self.memory.slot_bytes,
            cuts: Arc::new(order.cuts.clone()),
            recycler: self.memory.recycler.clone(),
            kept_in_files: self.memory.kept_in_files.clone(),
            limits,
            ..TaskSettings::new(job, order.partitions, self.slots.setting.spill.clone())
        };
        let side = Arc::new(SideInputs::new(order.side.clone(), files.clone(), limits));
        let destination = OnceLock::new();
        self.jobs.insert(job, Arc::new(RunningJob { order, plan, files, side, settings, destination }));
    }

    fn refuse(&mut self, attempt: AttemptId, class: FailureClass, why: &str) {
        self.say(&WorkerFrame::AttemptFailed {
            attempt,
            class,
            message: why.to_owned(),
            report: AttemptReport::default(),
        });
    }

    fn launch_reduce(&mut self, attempt: AttemptId, empty: &[u64], resume: Option<Continuation>) {
        let (job, partition) = (attempt.task.job, attempt.task.index);
        for (word, first) in empty.iter().zip((0..).step_by(64)) {
            for map in (0..64).filter(|bit| word >> bit & 1 == 1).map(|bit| first + bit) {
                let nothing = SegmentData::Memory(bytes::Bytes::new());
                self.store.fill(job, partition, map, Held { data: nothing, reservation: None });
            }
        }
        match self.store.complete(job, partition) {
            Some(segments) => self.launch(attempt, AttemptInput::Segments(segments), resume),
            // The master then has the partition gathered anew.
            None => self.refuse(attempt, FailureClass::Fetch, "its input is not complete here"),
        }
    }

    fn launch(&mut self, attempt: AttemptId, input: AttemptInput, resume: Option<Continuation>) {
        let Some(job) = self.jobs.get(&attempt.task.job).cloned() else {
            return self.refuse(attempt, FailureClass::Worker, "its job is not known here");
        };
        let parking = (attempt.task.kind == TaskKind::Reduce).then(|| {
            let (work, setting) = (self.slots.work.clone(), self.slots.setting.clone());
            Box::new(LeaveSlot { attempt, work, setting }) as Box<dyn Parking>
        });
        let progress = Arc::new(Progress::new(self.config.settings.speed, parking));
        // One answer at most: the permit is asked for once.
        let (permit, answer) = crossbeam_channel::bounded(1);
        let hang = Duration::from_millis(job.order.hang_ms);
        self.running.insert(
            attempt,
            RunningAttempt {
                progress: progress.clone(),
                permit,
                hang,
                built: false,
                suspension: Suspension::None,
                seen: (0, 0, 0),
                seen_at: Instant::now(),
                killed_at: None,
            },
        );
        let assignment = Assignment { attempt, job, input, resume, progress, permit: answer };
        self.slots.work.push(Turn::Begin(Box::new(assignment)));
    }

    fn kill(&mut self, attempt: AttemptId) {
        if self.slots.work.withdraw(attempt) {
            self.running.remove(&attempt);
            return self.refuse(attempt, FailureClass::Cancelled, "it was told to stop before it began");
        }
        self.slots.work.withdraw_suspended(attempt);
        if let Some(running) = self.running.get_mut(&attempt) {
            running.progress.cancel();
            running.killed_at.get_or_insert_with(Instant::now);
            let _ = running.permit.try_send(Permit::Refused);
        }
    }

    fn permit(&mut self, attempt: AttemptId, permit: Permit) {
        if let Some(running) = self.running.get_mut(&attempt) {
            let _ = running.permit.try_send(permit);
        }
    }

    fn forget(&mut self, job: JobId) {
        let attempts: Vec<AttemptId> =
            self.running.keys().filter(|attempt| attempt.task.job == job).copied().collect();
        for attempt in attempts {
            self.kill(attempt);
        }
        self.fetching.plan.forget(job);
        if let Some(pace) = &self.fetching.pace {
            pace.forget(job);
        }
        self.jobs.remove(&job);
        if self.jobs.is_empty() {
            self.memory.recycler.clear();
        }
        // Files are deleted there, and disks may be slow.
        let (store, handovers) = (self.store.clone(), self.handovers.clone());
        tokio::task::spawn_blocking(move || {
            store.forget(job);
            handovers.forget(job);
        });
    }

    /// Outputs of this very worker: their segments go into the gathers as they are.
    fn read_in_place(&mut self, maps: &[AttemptId], endpoint: &Endpoint) {
        let now = self.now_ns();
        let mut outputs = Vec::with_capacity(maps.len());
        for &map in maps {
            let Some(partitions) = self.store.fill_own(map) else {
                self.say(&WorkerFrame::FetchFailed {
                    map,
                    from: self.worker,
                    class: FailureClass::Missing,
                    message: format!("{map} is not held at {endpoint} any more"),
                });
                continue;
            };
            outputs.push(FetchedOutput { map, partitions, bytes: 0 });
        }
        self.say_fetched(outputs, self.worker, (now, now));
    }

    /// Says what has arrived, in as many frames as it takes: outputs times partitions may be more than one can hold.
    fn say_fetched(
        &mut self,
        outputs: Vec<FetchedOutput>,
        from: WorkerId,
        (started_ns, ended_ns): (u64, u64),
    ) {
        let mut outputs = outputs.into_iter().peekable();
        while outputs.peek().is_some() {
            let (mut some, mut partitions) = (Vec::new(), 0);
            while let Some(next) = outputs.next_if(|_| partitions < FRAME_PARTITIONS_MAX) {
                // The output itself takes place too, also where nothing of it was new.
                partitions += 1 + next.partitions.len();
                some.push(next);
            }
            self.say(&WorkerFrame::Fetched { outputs: some, from, started_ns, ended_ns });
        }
    }

    fn start_fetches(&mut self) {
        while let Some(fetch) = self.fetching.plan.next(Time(self.now_ns())) {
            let Some(job) = self.jobs.get(&fetch.job) else {
                self.fetching.plan.forget(fetch.job);
                self.fetching.plan.ended(fetch.id);
                continue;
            };
            let (fetcher, key, results) =
                (self.fetching.fetcher.clone(), job.order.key.clone(), self.fetching.sender.clone());
            let stream = self.fetching.pace.as_ref().map(|pace| pace.open(fetch.job, fetch.id));
            let epoch = self.epoch;
            tokio::spawn(async move {
                let started_ns = epoch.elapsed().as_nanos() as u64;
                let outcomes = fetcher.fetch_through(&fetch, &key, stream.as_ref()).await;
                drop(stream);
                let ended_ns = epoch.elapsed().as_nanos() as u64;
                let _ = results.send(Fetched { fetch, outcomes, started_ns, ended_ns });
            });
        }
    }

    fn fetched(&mut self, fetched: Fetched) {
        let Fetched { fetch, outcomes, started_ns, ended_ns } = fetched;
        let from = fetch.from;
        let mut outputs = Vec::with_capacity(outcomes.len());
        let mut failures = Vec::new();
        for Outcome { map, filled, bytes, error } in outcomes {
            if !filled.is_empty() {
                outputs.push(FetchedOutput { map, partitions: filled, bytes });
            }
            let Some(error) = error else {
                self.fetching.plan.arrived(fetch.id, map, bytes);
                continue;
            };
            if error.gave_way() {
                self.fetching.plan.gave_way(fetch.id, map, Time(self.now_ns()));
                continue;
            }
            tracing::debug!(%map, %from, %error, "fetch failed");
            // An output that is not there will not come back; only the way to it may.
            let retry = match error {
                FetchError::Missing { .. } => {
                    let wanted = self.fetching.plan.wants(fetch.id, map);
                    self.fetching.plan.arrived(fetch.id, map, 0);
                    if wanted { Retry::GiveUp } else { Retry::NotWanted }
                }
                _ if descriptors::caused(&error) => {
                    self.fetching.plan.lacked_means(fetch.id, map, Time(self.now_ns()))
                }
                _ => self.fetching.plan.failed(fetch.id, map, Time(self.now_ns())),
            };
            if retry == Retry::GiveUp {
                let class = fetch_class(&error);
                let message = crate::clean::message(&chain(&error));
                failures.push(WorkerFrame::FetchFailed { map, from, class, message });
            }
        }
        self.say_fetched(outputs, from, (started_ns, ended_ns));
        for failure in &failures {
            self.say(failure);
        }
        self.fetching.plan.ended(fetch.id);
    }

    fn slot_broke(&mut self, attempt: Option<AttemptId>, message: &str) {
        tracing::error!(?attempt, message, "the thread of a slot has died; ending this process");
        self.broken = true;
        if let Some(attempt) = attempt.filter(|attempt| self.running.remove(attempt).is_some()) {
            self.refuse(attempt, FailureClass::Engine, message);
        }
    }

    fn slot(&mut self, event: SlotEvent) {
        let ended = match event {
            SlotEvent::WantsCommit(attempt) => {
                if let Some(running) = self.running.get_mut(&attempt) {
                    running.built = true;
                }
                return self.say(&WorkerFrame::CommitRequest { attempt });
            }
            SlotEvent::Suspended { attempt, written } => return self.suspended(attempt, written),
            SlotEvent::NotSuspended(attempt) => return self.not_suspended(attempt),
            SlotEvent::Broken { attempt, message } => return self.slot_broke(attempt, &message),
            SlotEvent::Ended(ended) => ended,
        };
        let Ended { attempt, result, report, written } = *ended;
        // With one slot, what was written up to its end is this attempt's and nobody else's, if it had the slot.
        let had_slot = self.running.get(&attempt).is_some_and(|running| {
            !matches!(running.suspension, Suspension::Suspended | Suspension::HandingOver)
        });
        let writer =
            (had_slot && self.config.settings.slots.total() == 1).then_some(attempt).or_else(|| self.alone());
        self.forward_output(writer, written);
        self.running.remove(&attempt);
        match result {
            Ok(Done::Output(output)) => {
                let report = AttemptReport { bytes_out: output.bytes(), ..report };
                let print = output.print();
                // Homes fetch nothing of an empty output, so there is nothing to keep.
                if 0 < report.bytes_out {
                    delete(self.store.put_output(attempt, Arc::new(output)));
                }
                self.say(&WorkerFrame::MapFinished { attempt, print, report });
            }
            Ok(Done::Part { part, stamp, sent: _ }) => {
                if attempt.task.kind == TaskKind::Reduce {
                    delete(self.store.unhome(attempt.task.job, attempt.task.index));
                }
                self.say(&WorkerFrame::PartFinished { attempt, part, stamp, report });
            }
            Ok(Done::HandedOver { state, built }) => {
                if self.jobs.contains_key(&attempt.task.job) {
                    self.handovers.keep(attempt, built);
                } else {
                    // Nobody will come for it, and nobody forgets the job again. It may be gone with the output already.
                    tokio::task::spawn_blocking(move || built.remove());
                }
                self.say(&WorkerFrame::HandedOver { attempt, state: *state, report });
            }
            Err(failed) => {
                let (class, message) = (failed.class, failed.message);
                self.say(&WorkerFrame::AttemptFailed { attempt, class, message, report });
            }
        }
    }
}

/// What the master hears of a fetch that was given up.
pub(super) fn fetch_class(error: &FetchError) -> FailureClass {
    match error {
        // Nothing is wrong with the output if this worker has no descriptor left for a connection.
        _ if descriptors::caused(error) => FailureClass::Worker,
        FetchError::Corrupt { .. } => FailureClass::Corrupt,
        FetchError::Disk { .. } => FailureClass::Worker,
        // The other worker has answered, so that the way to it is well.
        FetchError::Missing { .. } => FailureClass::Missing,
        FetchError::Request { .. } => FailureClass::Fetch,
    }
}

/// Deletes files off this thread: disks may be slow.
fn delete(gone: Gone) {
    if gone.is_nothing() {
        return;
    }
    tokio::task::spawn_blocking(move || drop(gone));
}

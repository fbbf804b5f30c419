//! The worker process: joins a master, runs attempts in its slots, serves and gathers segments.
//!
//! One thread drives the control connection, the shuffle and the clock; slot threads run user code. What to run
//! and where is the master's decision; this loop only carries out. Not here: starting and replacing worker
//! processes (`runtime::cluster`).

pub mod capture;
pub mod files;
pub mod slots;

use crate::answer;
use crate::api::{JobPlan, PlanError};
use crate::budget::Budget;
use crate::http::{
    self, Bind, Body, Connection, Door, Doors, Duplex, Endpoint, HttpError, Pool, Secret, ServerConfig,
    Timeouts, Transport,
};
use crate::input::list::list_local;
use crate::input::{FilePath, InputLimits, SideInputs};
use crate::protocol::{
    AttemptProgress, CONNECT_PATH, CONTROL_PROTOCOL, FRAME_BYTES_MAX, FailureClass, FrameError, Heartbeat,
    Hello, JobOrder, MasterFrame, PROTOCOL_VERSION, WorkerFrame, push_frame, read_frame,
};
use crate::recycle::Recycler;
use crate::segment::SpillDirs;
use crate::shuffle::fetch::{FetchError, Fetcher, Outcome};
use crate::shuffle::plan::{Fetch, FetchLimits, FetchPlan, Retry};
use crate::shuffle::serve;
use crate::shuffle::store::{Held, Store};
use crate::task::{Progress, TaskSettings};
use capture::Capture;
use crossbeam_channel::Sender;
use files::{JobFiles, Served};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Bytes, Time};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use slots::{Assignment, AttemptInput, Done, KILL_GRACE, Permit, RunningJob, SlotEvent, SlotSetting};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// User output in one [`WorkerFrame::Log`], bytes.
pub const LOG_CHUNK_BYTES_MAX: usize = 64 << 10;

/// Chunks of user output that are handed over at once when an attempt ends: as much as its file can hold.
const LOG_CHUNKS_MAX: usize = capture::FILE_BYTES_MAX as usize / LOG_CHUNK_BYTES_MAX;

/// How often the loop looks at user output, hanging attempts and its own memory.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// How long a worker waits between attempts to reach a master that is not there yet.
const JOIN_PAUSE: Duration = Duration::from_millis(250);

/// How long the master may take to greet.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);

/// Frames that wait to be written before the loop writes them in one go, bytes.
const WRITE_BATCH_BYTES: usize = 256 << 10;

/// Turns a job's name and parameters into its plan; the registry of the program does that.
pub trait JobSource: Send + Sync {
    /// The plan of the job of this name with these parameters (JSON).
    ///
    /// # Errors
    /// A name that is not registered (as [`PlanError::Parameter`]) or parameters that do not fit.
    fn plan(&self, name: &str, parameters: &str) -> Result<JobPlan, PlanError>;
}

/// How a worker runs.
pub struct WorkerConfig {
    /// The master to join.
    pub master: Endpoint,
    /// The cluster's secret.
    pub secret: Secret,
    /// Attempts at once; each has a thread.
    pub slots: u32,
    /// Memory for collectors, map outputs and gathered segments.
    pub memory: Bytes,
    /// Folders for runs and segments that do not fit, private to this process; must exist.
    pub spill_dirs: Vec<PathBuf>,
    /// Where the shuffle server listens.
    pub bind: Bind,
    /// The name or address under which others reach it; `None`: the address that the master sees.
    pub advertise: Option<String>,
    /// Name of this machine; workers with the same name share a disk.
    pub host: String,
    /// Identifies the executable; see [`crate::build_id`].
    pub build: String,
    /// How long to keep trying to reach the master at first.
    pub join_patience: Duration,
    /// Limits of fetching.
    pub fetch: FetchLimits,
    /// User output caught so far, if it is caught.
    pub capture: Option<Capture>,
}

/// Why a worker's process ends.
#[derive(Debug, PartialEq, Eq)]
pub enum WorkerExit {
    /// The master said so, or the shutdown signal came.
    Shutdown,
    /// The master is gone.
    MasterGone,
    /// User code hangs in a thread that nothing can stop: the process must be replaced.
    Stuck(AttemptId),
}

/// Why a worker could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The shuffle server cannot listen.
    #[error("the shuffle server cannot listen")]
    Listen {
        /// Why.
        #[source]
        source: http::BindError,
    },
    /// The master could not be reached in time.
    #[error("could not reach the master at {master} within {seconds} s")]
    Unreachable {
        /// Where.
        master: Endpoint,
        /// How long it was tried.
        seconds: u64,
        /// What the last try said.
        #[source]
        source: Box<HttpError>,
    },
    /// The master does not want this worker.
    #[error("the master at {master} refused this worker: {reason}")]
    Refused {
        /// Where.
        master: Endpoint,
        /// Its words.
        reason: String,
    },
    /// The secret is not the master's.
    #[error("the master at {master} refused the secret")]
    Unauthorised {
        /// Where.
        master: Endpoint,
    },
    /// The first frames went wrong.
    #[error("the master at {master} did not greet as expected")]
    Greeting {
        /// Where.
        master: Endpoint,
        /// How.
        #[source]
        source: Box<FrameError>,
    },
    /// A thread or file of the worker itself.
    #[error("could not start the worker")]
    Start {
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Runs a worker until its master or `shutdown` ends it.
///
/// # Errors
/// What keeps it from starting or from joining.
pub async fn run(
    config: WorkerConfig,
    jobs: Arc<dyn JobSource>,
    shutdown: tokio::sync::watch::Receiver<bool>,
) -> Result<WorkerExit, WorkerError> {
    let epoch = Instant::now();
    let store = Store::default();
    let listener = config.bind.listen().await.map_err(|source| WorkerError::Listen { source })?;
    let address = listener.local_addr().map_err(|source| WorkerError::Start { source })?;
    let pin = match &config.bind.transport {
        Transport::Plain => None,
        Transport::Tls(identity) => Some(identity.pin()),
    };
    // An empty host lets the master fill in the address that it sees.
    let shuffle = Endpoint { host: config.advertise.clone().unwrap_or_default(), port: address.port(), pin };
    serve_shuffle(listener, &config, store.clone(), shutdown.clone());

    let io = join(&config, &shutdown).await?;
    let Some(io) = io else { return Ok(WorkerExit::Shutdown) };
    let (mut reader, writer) = tokio::io::split(io);
    let hello = WorkerFrame::Hello(Hello {
        protocol: PROTOCOL_VERSION,
        build: config.build.clone(),
        slots: config.slots,
        shuffle,
        host: config.host.clone(),
        pid: std::process::id(),
        memory_bytes: config.memory.get(),
        worker_ns: epoch.elapsed().as_nanos() as u64,
    });
    let (frames, to_write) = unbounded_channel();
    let _ = frames.send(hello);
    let written = tokio::spawn(write_frames(writer, to_write));
    let greeting = read_frame::<MasterFrame, _>(&mut reader, FRAME_BYTES_MAX);
    let greeting = tokio::time::timeout(GREETING_PATIENCE, greeting).await.unwrap_or(Ok(None));
    let master = config.master.clone();
    let (worker, heartbeat_ms) = match greeting {
        Ok(Some(MasterFrame::Welcome { worker, heartbeat_ms })) => (worker, heartbeat_ms),
        Ok(Some(MasterFrame::Refused { reason })) => return Err(WorkerError::Refused { master, reason }),
        Ok(_) => return Ok(WorkerExit::MasterGone),
        Err(source) => return Err(WorkerError::Greeting { master, source: Box::new(source) }),
    };
    tracing::info!(%worker, %master, slots = config.slots, "joined");

    let (orders, mut incoming) = unbounded_channel();
    tokio::spawn(async move {
        // The reader is a task of its own: a frame half read must not be lost when something else happens.
        while let Ok(Some(frame)) = read_frame::<MasterFrame, _>(&mut reader, FRAME_BYTES_MAX).await {
            if orders.send(frame).is_err() {
                return;
            }
        }
    });

    let mut agent = Agent::new(config, jobs, worker, store, epoch, frames)?;
    let exit = agent.drive(&mut incoming, shutdown, heartbeat_ms).await;
    agent.say(WorkerFrame::Goodbye);
    drop(agent);
    // The last words, such as which attempt hangs, must be out before the process ends.
    let _ = tokio::time::timeout(Duration::from_secs(1), written).await;
    Ok(exit)
}

/// Opens the control connection, trying until the patience ends. `None` on shutdown.
async fn join(
    config: &WorkerConfig,
    shutdown: &tokio::sync::watch::Receiver<bool>,
) -> Result<Option<Duplex>, WorkerError> {
    let started = Instant::now();
    let mut said = Instant::now();
    let mut shutdown = shutdown.clone();
    loop {
        let tried = tokio::select! {
            tried = connect(config) => tried,
            _ = shutdown.wait_for(|stop| *stop) => return Ok(None),
        };
        let source = match tried {
            Ok(io) => return Ok(Some(io)),
            Err(source) => source,
        };
        let master = config.master.clone();
        if matches!(source, HttpError::Unauthorized { .. }) {
            return Err(WorkerError::Unauthorised { master });
        }
        if !matches!(source, HttpError::Connect { .. } | HttpError::Timeout { .. } | HttpError::Closed { .. })
        {
            let reason = chain(&source);
            return Err(WorkerError::Refused { master, reason });
        }
        if config.join_patience < started.elapsed() {
            let seconds = config.join_patience.as_secs();
            return Err(WorkerError::Unreachable { master, seconds, source: Box::new(source) });
        }
        if Duration::from_secs(5) < said.elapsed() {
            said = Instant::now();
            tracing::warn!(%master, "master not reachable yet, still trying");
        }
        tokio::time::sleep(JOIN_PAUSE).await;
    }
}

async fn connect(config: &WorkerConfig) -> Result<Duplex, HttpError> {
    let connection = Connection::open(&config.master, Timeouts::default()).await?;
    connection.upgrade(Some(&config.secret), CONNECT_PATH, CONTROL_PROTOCOL).await
}

/// Writes frames as they come, several at once when they queue up.
async fn write_frames(mut writer: tokio::io::WriteHalf<Duplex>, mut frames: UnboundedReceiver<WorkerFrame>) {
    let mut buffer = Vec::new();
    while let Some(first) = frames.recv().await {
        buffer.clear();
        let mut next = Some(first);
        while let Some(frame) = next {
            if let Err(error) = push_frame(&frame, &mut buffer) {
                tracing::error!(%error, "a frame could not be sent");
            }
            next = if buffer.len() < WRITE_BATCH_BYTES { frames.try_recv().ok() } else { None };
        }
        if writer.write_all(&buffer).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

struct ShuffleDoors {
    store: Store,
    list: Secret,
}

impl Doors for ShuffleDoors {
    fn secret_for(&self, method: &Method, path: &str) -> Door {
        if path == files::SAMPLE_ROUTE && method == Method::POST {
            return Door::Secret(self.list.clone());
        }
        let mut parts = path.strip_prefix('/').unwrap_or(path).splitn(2, '/');
        let door = (parts.next(), parts.next().and_then(|job| job.parse::<JobId>().ok()));
        match door {
            (Some("shuffle" | "files"), Some(job)) if method == Method::POST => {
                self.store.key(job).map_or(Door::Closed, Door::Secret)
            }
            (Some("list"), None) if method == Method::POST => Door::Secret(self.list.clone()),
            _ => Door::Closed,
        }
    }
}

/// Serves segments, files and listings to other workers and submitters.
fn serve_shuffle(
    listener: tokio::net::TcpListener,
    config: &WorkerConfig,
    store: Store,
    mut shutdown: tokio::sync::watch::Receiver<bool>,
) {
    let doors = Arc::new(ShuffleDoors { store: store.clone(), list: config.secret.derive(LIST_PURPOSE) });
    let mut server = ServerConfig::new(config.bind.transport.clone());
    server.host_names.extend(config.advertise.clone());
    let handler = move |request: Request<Incoming>| respond(store.clone(), request);
    tokio::spawn(async move {
        let stop = async move {
            let _ = shutdown.wait_for(|stop| *stop).await;
        };
        http::serve(listener, Arc::new(server), doors, handler, stop).await;
    });
}

/// What the secret is derived for that opens `POST /list` and [`files::SAMPLE_ROUTE`].
pub const LIST_PURPOSE: &str = "list files of a worker";

async fn respond(store: Store, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if let Some(job) = path.strip_prefix("/shuffle/").and_then(|job| job.parse().ok()) {
        return serve::segments(&store, job, request).await;
    }
    if path.starts_with("/files/") {
        return files::serve_range(Served::Any, request).await;
    }
    if path == "/list" {
        return answer_list(request).await;
    }
    answer::status(StatusCode::NOT_FOUND)
}

async fn answer_list(request: Request<Incoming>) -> Response<Body> {
    let Ok(body) = http::read_limited(request.into_body(), files::REQUEST_BYTES_MAX).await else {
        return answer::status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let Ok(path) = serde_json::from_slice::<FilePath>(&body) else {
        return answer::status(StatusCode::BAD_REQUEST);
    };
    let listed = tokio::task::spawn_blocking(move || list_local(&path)).await;
    match listed {
        Ok(Ok(files)) => answer::json(StatusCode::OK, &files),
        Ok(Err(error)) => answer::json(StatusCode::NOT_FOUND, &error.to_string()),
        Err(_) => answer::status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

struct RunningAttempt {
    progress: Arc<Progress>,
    permit: Sender<Permit>,
    hang: Duration,
    /// The part is built: no user code runs any more, and how long it takes to publish is not its fault.
    built: bool,
    seen: (u64, u64),
    seen_at: Instant,
    killed_at: Option<Instant>,
}

/// What comes back from the tasks that fetch.
struct Fetched {
    fetch: Fetch,
    outcomes: Vec<Outcome>,
    started_ns: u64,
    ended_ns: u64,
}

struct Agent {
    config: WorkerConfig,
    source: Arc<dyn JobSource>,
    worker: WorkerId,
    epoch: Instant,
    store: Store,
    frames: UnboundedSender<WorkerFrame>,
    work: Sender<Assignment>,
    slot_events: UnboundedReceiver<SlotEvent>,
    fetch_results: UnboundedReceiver<Fetched>,
    fetch_sender: UnboundedSender<Fetched>,
    jobs: BTreeMap<JobId, Arc<RunningJob>>,
    running: BTreeMap<AttemptId, RunningAttempt>,
    plan: FetchPlan,
    fetcher: Fetcher,
    setting: SlotSetting,
    recycler: Recycler,
}

impl Agent {
    fn new(
        config: WorkerConfig,
        source: Arc<dyn JobSource>,
        worker: WorkerId,
        store: Store,
        epoch: Instant,
        frames: UnboundedSender<WorkerFrame>,
    ) -> Result<Self, WorkerError> {
        let (work, queue) = crossbeam_channel::unbounded();
        let (events, slot_events) = unbounded_channel();
        let (fetch_sender, fetch_results) = unbounded_channel();
        let pool = Pool::new(Timeouts::default());
        let budget = Budget::new(config.memory.get() as usize / 2);
        let spill = SpillDirs::new(config.spill_dirs.clone());
        let setting = SlotSetting {
            budget: budget.clone(),
            spill: spill.clone(),
            pool: pool.clone(),
            runtime: tokio::runtime::Handle::current(),
            epoch,
            events,
        };
        slots::start(config.slots, &queue, &setting).map_err(|source| WorkerError::Start { source })?;
        let fetcher = Fetcher { pool, store: store.clone(), budget, spill };
        let plan = FetchPlan::new(config.fetch.clone());
        Ok(Self {
            config,
            source,
            worker,
            epoch,
            store,
            frames,
            work,
            slot_events,
            fetch_results,
            fetch_sender,
            jobs: BTreeMap::new(),
            running: BTreeMap::new(),
            plan,
            fetcher,
            setting,
            recycler: Recycler::default(),
        })
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn say(&self, frame: WorkerFrame) {
        // Fails only when the connection is gone, which ends the loop by itself.
        let _ = self.frames.send(frame);
    }

    async fn drive(
        &mut self,
        incoming: &mut UnboundedReceiver<MasterFrame>,
        mut shutdown: tokio::sync::watch::Receiver<bool>,
        heartbeat_ms: u32,
    ) -> WorkerExit {
        let mut heartbeat = tokio::time::interval(Duration::from_millis(u64::from(heartbeat_ms.max(10))));
        let mut watch = tokio::time::interval(WATCH_INTERVAL);
        loop {
            let pause =
                self.plan.wake_at(Time(self.now_ns())).map(|at| self.epoch + Duration::from_nanos(at.0));
            let wake = async {
                match pause {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                frame = incoming.recv() => match frame {
                    None => return WorkerExit::MasterGone,
                    Some(MasterFrame::Shutdown) => return WorkerExit::Shutdown,
                    Some(frame) => self.obey(frame),
                },
                Some(event) = self.slot_events.recv() => self.slot(event),
                Some(fetched) = self.fetch_results.recv() => self.fetched(fetched),
                () = wake => {}
                _ = heartbeat.tick() => self.heartbeat(),
                _ = watch.tick() => {
                    self.forward_output();
                    if let Some(attempt) = self.stuck() {
                        return WorkerExit::Stuck(attempt);
                    }
                }
                _ = shutdown.wait_for(|stop| *stop) => return WorkerExit::Shutdown,
            }
            self.start_fetches();
        }
    }

    fn obey(&mut self, frame: MasterFrame) {
        match frame {
            MasterFrame::Welcome { .. } | MasterFrame::Refused { .. } | MasterFrame::Shutdown => {}
            MasterFrame::Ping { master_ns } => {
                self.say(WorkerFrame::Pong { master_ns, worker_ns: self.now_ns() });
            }
            MasterFrame::Job(order) => self.open_job(*order),
            MasterFrame::LaunchMap { attempt, split } => self.launch(attempt, AttemptInput::Split(split)),
            MasterFrame::LaunchReduce { attempt } => {
                let task = attempt.task;
                match self.store.complete(task.job, task.index) {
                    Some(segments) => self.launch(attempt, AttemptInput::Segments(segments)),
                    // The master then has the partition gathered anew.
                    None => self.refuse(attempt, FailureClass::Fetch, "its input is not complete here"),
                }
            }
            MasterFrame::Home { job, partition } => self.store.home(job, partition),
            MasterFrame::Unhome { job, partition } => self.store.unhome(job, partition),
            MasterFrame::Announce { map, from, endpoint } if from == self.worker => {
                self.read_in_place(map, &endpoint);
            }
            MasterFrame::Announce { map, from, endpoint } => self.plan.announce(map, from, &endpoint),
            MasterFrame::Retract { map } => self.plan.retract(map),
            MasterFrame::Kill { attempt } => self.kill(attempt),
            MasterFrame::CommitGranted { attempt, replace } => {
                self.permit(attempt, Permit::Granted { replace });
            }
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
            Ok(Ok(plan)) => Ok(plan),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the job's plan panicked".to_owned()),
        };
        let files = Arc::new(JobFiles {
            route: files::job_route(job),
            worker: Some(self.worker),
            key: order.key.clone(),
            submitter: order.submitter.clone(),
            peers: order.peers.iter().cloned().collect(),
            pool: self.setting.pool.clone(),
            runtime: self.setting.runtime.clone(),
        });
        // Half of the memory holds outputs and gathered segments, half is for what slots collect and merge.
        let slot_memory = self.config.memory.get() as usize / 2 / self.config.slots.max(1) as usize;
        let limits = InputLimits {
            record_max: order.record_bytes_max,
            expansion_max: order.expansion_max,
            ..InputLimits::default()
        };
        let settings = TaskSettings {
            collector_bytes: slot_memory,
            merge_bytes: slot_memory,
            cuts: Arc::new(order.cuts.clone()),
            recycler: self.recycler.clone(),
            limits,
            ..TaskSettings::new(job, order.partitions, self.setting.spill.clone())
        };
        let side = Arc::new(SideInputs::new(order.side.clone(), files.clone(), limits));
        let destination = OnceLock::new();
        self.jobs.insert(job, Arc::new(RunningJob { order, plan, files, side, settings, destination }));
    }

    fn refuse(&self, attempt: AttemptId, class: FailureClass, why: &str) {
        self.say(WorkerFrame::AttemptFailed {
            attempt,
            class,
            message: why.to_owned(),
            report: crate::protocol::AttemptReport::default(),
        });
    }

    fn launch(&mut self, attempt: AttemptId, input: AttemptInput) {
        let Some(job) = self.jobs.get(&attempt.task.job).cloned() else {
            return self.refuse(attempt, FailureClass::Worker, "its job is not known here");
        };
        let progress = Arc::new(Progress::default());
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
                seen: (0, 0),
                seen_at: Instant::now(),
                killed_at: None,
            },
        );
        let assignment = Assignment { attempt, job, input, progress, permit: answer };
        // The slots live as long as this object.
        let _ = self.work.send(assignment);
    }

    fn kill(&mut self, attempt: AttemptId) {
        if let Some(running) = self.running.get_mut(&attempt) {
            running.progress.cancelled.store(true, Ordering::Relaxed);
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
        self.plan.forget(job);
        self.jobs.remove(&job);
        if self.jobs.is_empty() {
            self.recycler.clear();
        }
        // Files are deleted there, and disks may be slow.
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || store.forget(job));
    }

    /// An output of this very worker: its segments go into the gathers as they are.
    fn read_in_place(&mut self, map: AttemptId, endpoint: &Endpoint) {
        let (job, index) = (map.task.job, map.task.index);
        let Some(output) = self.store.output(job, index, map.epoch) else {
            return self.say(WorkerFrame::FetchFailed {
                map,
                from: self.worker,
                class: FailureClass::Fetch,
                message: format!("{map} is not held at {endpoint} any more"),
            });
        };
        let now = self.now_ns();
        let partitions: Vec<u32> = self
            .store
            .lacking(job, index)
            .into_iter()
            .filter(|partition| {
                output.segment(*partition).is_some_and(|data| {
                    self.store.fill(job, *partition, index, Held { data, reservation: None })
                })
            })
            .collect();
        let from = self.worker;
        self.say(WorkerFrame::Fetched { map, partitions, bytes: 0, from, started_ns: now, ended_ns: now });
    }

    fn start_fetches(&mut self) {
        while let Some(fetch) = self.plan.next(Time(self.now_ns())) {
            let Some(job) = self.jobs.get(&fetch.job) else {
                self.plan.forget(fetch.job);
                self.plan.ended(fetch.id);
                continue;
            };
            let (fetcher, key, results) =
                (self.fetcher.clone(), job.order.key.clone(), self.fetch_sender.clone());
            let epoch = self.epoch;
            tokio::spawn(async move {
                let started_ns = epoch.elapsed().as_nanos() as u64;
                let outcomes = fetcher.fetch(&fetch, &key).await;
                let ended_ns = epoch.elapsed().as_nanos() as u64;
                let _ = results.send(Fetched { fetch, outcomes, started_ns, ended_ns });
            });
        }
    }

    fn fetched(&mut self, fetched: Fetched) {
        let Fetched { fetch, outcomes, started_ns, ended_ns } = fetched;
        let from = fetch.from;
        for Outcome { map, filled, bytes, error } in outcomes {
            if !filled.is_empty() {
                self.say(WorkerFrame::Fetched { map, partitions: filled, bytes, from, started_ns, ended_ns });
            }
            let Some(error) = error else {
                self.plan.arrived(fetch.id, map);
                continue;
            };
            tracing::debug!(%map, %from, %error, "fetch failed");
            // An output that is not there will not come back; only the way to it may.
            let retry = match error {
                FetchError::Missing { .. } => {
                    let wanted = self.plan.wants(fetch.id, map);
                    self.plan.arrived(fetch.id, map);
                    if wanted { Retry::GiveUp } else { Retry::NotWanted }
                }
                _ => self.plan.failed(fetch.id, map, Time(self.now_ns())),
            };
            if retry == Retry::GiveUp {
                let class = match error {
                    FetchError::Corrupt { .. } => FailureClass::Corrupt,
                    FetchError::Disk { .. } => FailureClass::Worker,
                    _ => FailureClass::Fetch,
                };
                let message = slots::clean(&chain(&error));
                self.say(WorkerFrame::FetchFailed { map, from, class, message });
            }
        }
        self.plan.ended(fetch.id);
    }

    fn slot(&mut self, event: SlotEvent) {
        match event {
            SlotEvent::WantsCommit(attempt) => {
                if let Some(running) = self.running.get_mut(&attempt) {
                    running.built = true;
                }
                self.say(WorkerFrame::CommitRequest { attempt });
            }
            SlotEvent::Ended { attempt, result, report } => {
                // All of it: what is left would count as the next attempt's.
                for _ in 0..LOG_CHUNKS_MAX {
                    if self.forward_output() < LOG_CHUNK_BYTES_MAX {
                        break;
                    }
                }
                self.running.remove(&attempt);
                match result {
                    Ok(Done::Output(output)) => {
                        self.store.put_output(attempt, Arc::new(output));
                        self.say(WorkerFrame::MapFinished { attempt, report });
                    }
                    Ok(Done::Part(part)) => {
                        if attempt.task.kind == TaskKind::Reduce {
                            self.store.unhome(attempt.task.job, attempt.task.index);
                        }
                        self.say(WorkerFrame::PartFinished { attempt, part, report });
                    }
                    Err(failed) => {
                        let (class, message) = (failed.class, failed.message);
                        self.say(WorkerFrame::AttemptFailed { attempt, class, message, report });
                    }
                }
            }
        }
    }

    fn heartbeat(&self) {
        let running = self
            .running
            .iter()
            .map(|(attempt, running)| AttemptProgress {
                attempt: *attempt,
                bytes_in: running.progress.bytes_in.load(Ordering::Relaxed),
                records_in: running.progress.records_in.load(Ordering::Relaxed),
            })
            .collect();
        let disk_free_bytes = self.setting.spill.free_bytes();
        self.say(WorkerFrame::Heartbeat(Heartbeat {
            running,
            memory_bytes: memory_bytes(),
            disk_free_bytes,
        }));
    }

    /// Hands a chunk of what user code has written since the last time to the master; answers its bytes.
    fn forward_output(&mut self) -> usize {
        let Some(capture) = &mut self.config.capture else { return 0 };
        let attempt = match self.running.len() {
            1 => self.running.keys().next().copied(),
            _ => None,
        };
        match capture.take(LOG_CHUNK_BYTES_MAX) {
            Ok(bytes) if bytes.is_empty() => 0,
            Ok(bytes) => {
                let length = bytes.len();
                self.say(WorkerFrame::Log { attempt, bytes });
                length
            }
            Err(error) => {
                tracing::warn!(%error, "user output could not be read");
                0
            }
        }
    }

    /// The first attempt that does not move, or does not stop, beyond its limit. Its failure is reported here.
    fn stuck(&mut self) -> Option<AttemptId> {
        let now = Instant::now();
        let mut found = None;
        for (attempt, running) in &mut self.running {
            let seen = (
                running.progress.bytes_in.load(Ordering::Relaxed),
                running.progress.records_in.load(Ordering::Relaxed)
                    + running.progress.records_out.load(Ordering::Relaxed),
            );
            if seen != running.seen || running.built {
                (running.seen, running.seen_at) = (seen, now);
            }
            let hangs = running.hang < now - running.seen_at;
            let lingers = running.killed_at.is_some_and(|killed| KILL_GRACE < now - killed);
            if hangs || lingers {
                found = Some((*attempt, hangs, running.hang));
                break;
            }
        }
        let (attempt, hangs, limit) = found?;
        if hangs {
            self.forward_output();
            self.say(WorkerFrame::AttemptFailed {
                attempt,
                class: FailureClass::Hang,
                message: format!("no record read or written for {} s", limit.as_secs_f64()),
                report: crate::protocol::AttemptReport::default(),
            });
        }
        Some(attempt)
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Resident anonymous and shared memory of this process, bytes; 0 where the system does not tell.
fn memory_bytes() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    (field("RssAnon:").unwrap_or(0) + field("RssShmem:").unwrap_or(0)) << 10
}

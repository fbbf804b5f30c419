//! The master process: one loop that owns the books, fed by worker connections, client requests and timers.
//!
//! The loop gathers everything that has happened, enters it as the facts of one instant, and sends out what the
//! core orders. Not here: decisions (the scheduler), bytes of jobs (they never come here).

mod address;
mod auth;
mod books;
mod history;
mod register;
mod routes;
pub mod tokens;
mod translate;

use crate::api::{ApiError, PolicyChange, Submission, WorkerEnded};
use crate::deciders::MadeDeciders;
use crate::journal::{self, Header, Journal};
use crate::output_dir::OutputDirectory;
use crate::registry::Registry;
use auth::MasterAuth;
#[cfg(test)]
pub use books::tests::status_of;
use books::{Books, Deciders, Setting, TaskName};
use gristmill_scheduler::core::{Core, CoreConfig};
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::clean;
use gristmill_worker::descriptors;
use gristmill_worker::fault;
use gristmill_worker::http::limits::strangers_max;
use gristmill_worker::http::{Bind, Duplex, Plaintext, Secret, ServerConfig, ShownKey, serve};
use gristmill_worker::protocol::{
    FrameReader, HELLO_BYTES_MAX, Hello, MasterFrame, PROTOCOL_VERSION, WORKER_FRAME_BYTES_MAX,
    WORKER_FRAME_MEMORY_MAX, WorkerFrame, write_frame,
};
use history::HistoryFile;
use register::Register;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokens::Tokens;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

/// Heartbeats are this far apart.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// A worker silent for this long is lost.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How long the loss of a worker waits for the word of whoever started its process.
const END_PATIENCE: Duration = Duration::from_millis(300);

/// How long workers and clients may take to hear that the master ends.
const END_PATIENCE_ALL: Duration = Duration::from_secs(2);

/// How long a client may take nothing of what it is told and keep its attached job: it may be stopped, or its machine
/// asleep. About as long as the system itself tries to reach a machine that is silent. A client whose process ends is
/// noticed at once.
const CLIENT_STALL_MAX: Duration = Duration::from_secs(15 * 60);

/// Descriptors that are not for connections: files, the listener, what the runtime needs.
const DESCRIPTORS_KEPT: usize = 48;

/// What a worker that is given up was told last may take so long to go out.
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(1);

/// How long a connection may take to introduce itself.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);

/// Facts entered in one go, so that a flood of them cannot keep orders back.
const BATCH_MAX: usize = 1024;

/// Batches of frames of one worker that wait to be entered and settled.
const BATCHES_AHEAD: usize = 2;

/// Bytes of frames to one worker that are written in one go.
const WRITE_BATCH_BYTES: usize = 256 << 10;

/// A worker's token is looked at anew this often, and whenever one is revoked.
const TOKEN_LOOK: Duration = Duration::from_secs(1);

/// How a master runs.
pub struct MasterConfig {
    /// Where it listens.
    pub bind: Bind,
    /// Further host names under which it is reached.
    pub host_names: Vec<String>,
    /// What may reach which of its routes.
    pub tokens: Arc<Tokens>,
    /// Identifies the executable.
    pub build: String,
    /// Who decides.
    pub deciders: MadeDeciders,
    /// What makes other policies and placements when somebody asks for them.
    pub registry: Registry,
    /// The pools that there are, with their weights; when empty, every name is a pool of the policy's usual weight.
    pub pools: BTreeMap<String, f64>,
    /// A file to be made, into which every fact and every order is written.
    pub journal: Option<PathBuf>,
    /// Where what the estimator has learned is kept between runs.
    pub history: Option<PathBuf>,
    /// Where the numbers and ends of jobs are kept, so that none comes twice; `None`: numbers begin at 1.
    pub register: Option<PathBuf>,
}

/// Why a master cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MasterError {
    /// The journal's file could not be made; one that exists is not touched.
    #[error("could not begin the journal {path}")]
    Journal {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The register of jobs could not be read or written: numbers of jobs might come twice.
    #[error("could not open the register of jobs {path}")]
    Register {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What the loop is fed with.
enum Input {
    Join {
        hello: Hello,
        frames: UnboundedSender<Vec<u8>>,
        reply: oneshot::Sender<Joined>,
    },
    /// `turn` is given back once what follows from the frames has been settled.
    Frames {
        worker: WorkerId,
        frames: Vec<WorkerFrame>,
        turn: OwnedSemaphorePermit,
    },
    Gone {
        worker: WorkerId,
        goodbye: bool,
    },
    ProcessEnded {
        end: WorkerEnded,
        key: Secret,
        reply: oneshot::Sender<bool>,
    },
    Submit {
        submission: Box<Submission>,
        reply: oneshot::Sender<Submitted>,
    },
    ClientLost(JobId),
    ClientClosed {
        job: JobId,
        failed: Option<String>,
        reply: oneshot::Sender<()>,
    },
    Cancel {
        job: JobId,
        reply: oneshot::Sender<bool>,
    },
    DecideBy {
        change: PolicyChange,
        reply: oneshot::Sender<Result<(), ApiError>>,
    },
    Explain {
        job: JobId,
        task: Option<TaskName>,
        reply: oneshot::Sender<Option<Vec<String>>>,
    },
    Closed {
        job: JobId,
        failed: Option<String>,
    },
    Query(Look),
}

/// A look at the books.
type Look = Box<dyn FnOnce(&Books, Time) + Send>;
type Joined = Result<WorkerId, String>;
type Submitted = Result<(JobId, watch::Receiver<bool>, Option<Lease>), ApiError>;

/// Held by the answer to an attached submission: dropped before the job has ended, it ends the job.
struct Lease {
    inputs: UnboundedSender<Input>,
    job: Option<JobId>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            let _ = self.inputs.send(Input::ClientLost(job));
        }
    }
}

/// A way to the loop; cloning shares it.
#[derive(Clone)]
struct Handle {
    inputs: UnboundedSender<Input>,
    shutdown: Arc<watch::Sender<bool>>,
    /// Dropped with the last connection of a worker: tells when all have been told to end.
    _attended: mpsc::Sender<()>,
    build: String,
    /// Which endpoints of others may speak plain HTTP.
    plaintext: Plaintext,
    tokens: Arc<Tokens>,
}

impl Handle {
    /// The answer of a look at the books; `None` if the master is ending.
    async fn query<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Books, Time) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let query = Box::new(move |books: &Books, now| {
            let _ = reply.send(look(books, now));
        });
        self.inputs.send(Input::Query(query)).ok()?;
        answer.await.ok()
    }
}

/// A master that is ready to run: all that could be refused has been.
pub struct Prepared {
    bind: Bind,
    host_names: Vec<String>,
    tokens: Arc<Tokens>,
    build: String,
    books: Books,
    history: Option<HistoryFile>,
}

impl Prepared {
    /// Recalls what an earlier master has learned and begins the journal.
    ///
    /// # Errors
    /// A journal that cannot be begun, a register that cannot be opened. A history that cannot be read is no error: it is moved aside with a warning.
    pub fn new(config: MasterConfig) -> Result<Self, MasterError> {
        let MadeDeciders { names, policy, placement, mut estimator } = config.deciders;
        let history = config.history.and_then(|path| HistoryFile::recall(path, &mut *estimator));
        let core_config = CoreConfig::default();
        let journal = config.journal.map(|path| {
            let header = Header {
                schema: journal::SCHEMA,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                build: config.build.clone(),
                policy: names.policy.clone(),
                placement: names.placement.clone(),
                estimator: names.estimator.clone(),
                memory: estimator.memory(),
                core: core_config.clone(),
            };
            Journal::create(&path, &header).map_err(|source| MasterError::Journal { path, source })
        });
        let journal = journal.transpose()?;
        let register = match config.register {
            None => Register::volatile(),
            Some(path) => Register::open(&path, books::ENDED_JOBS_MAX)
                .map_err(|source| MasterError::Register { path, source })?,
        };
        let core = Core::new(core_config, policy, placement).with_estimator(estimator);
        let setting = Setting {
            list_secret: config.tokens.list_secret(),
            build: config.build.clone(),
            heartbeat_ms: HEARTBEAT.as_millis() as u32,
            deciders: Deciders { registry: config.registry, names },
            pools: config.pools,
            journal,
            register,
        };
        Ok(Self {
            bind: config.bind,
            host_names: config.host_names,
            tokens: config.tokens,
            build: config.build,
            books: Books::new(core, setting),
            history,
        })
    }

    /// Runs on an open listener until `stop` turns true or a client asks it to end.
    pub async fn run(self, listener: TcpListener, mut stop: watch::Receiver<bool>) {
        let (inputs, fed) = unbounded_channel();
        let (shutdown, mut ending) = watch::channel(false);
        let (attended, mut all_left) = mpsc::channel(1);
        let handle = Handle {
            inputs,
            shutdown: Arc::new(shutdown),
            _attended: attended,
            build: self.build.clone(),
            plaintext: self.bind.permissions.plaintext(),
            tokens: self.tokens.clone(),
        };
        let mut server = ServerConfig::new(self.bind.transport.clone());
        server.host_names = self.host_names.clone();
        server.limits.connections_max = connections_max();
        server.limits.stall = fault::span("master.stall", CLIENT_STALL_MAX);
        let auth = Arc::new(MasterAuth(self.tokens.clone()));
        let asked = handle.clone();
        let answer = move |request| routes::respond(asked.clone(), request);
        let mut closing = handle.shutdown.subscribe();
        let serving = tokio::spawn(async move {
            let end = async move {
                let _ = closing.wait_for(|end| *end).await;
            };
            serve(listener, Arc::new(server), auth, answer, end).await;
        });
        let mut master = Master {
            books: self.books,
            history: self.history,
            fed,
            inputs: handle.inputs.clone(),
            turns: Vec::new(),
            start: Instant::now(),
            silence_max: fault::span("master.silence", SILENCE_MAX),
            gone: BTreeMap::new(),
            ended: BTreeMap::new(),
        };
        tokio::select! {
            () = master.drive() => {}
            _ = stop.wait_for(|stop| *stop) => {}
            _ = ending.wait_for(|end| *end) => {}
        }
        master.books.shutdown_workers();
        let _ = handle.shutdown.send(true);
        let unfinished = master.books.unfinished();
        master.books.end_journal();
        master.books.rest();
        if let Some(history) = &mut master.history {
            history.keep_at_end(master.books.memory()).await;
        }
        // Workers are told through their own writers, which end when the books do.
        drop(master);
        drop(handle);
        let left = async {
            let _ = serving.await;
            let _ = all_left.recv().await;
        };
        let _ = tokio::time::timeout(END_PATIENCE_ALL, left).await;
        // Now nobody writes there any more. A client that lives does the same for its own job; twice does no harm.
        for output in unfinished {
            output.abandon();
        }
    }
}

struct Master {
    books: Books,
    history: Option<HistoryFile>,
    fed: UnboundedReceiver<Input>,
    inputs: UnboundedSender<Input>,
    /// Of the frames that have been entered and not settled.
    turns: Vec<OwnedSemaphorePermit>,
    start: Instant,
    silence_max: Duration,
    /// Workers whose connection is gone but whose end has not been explained yet, and until when to wait.
    gone: BTreeMap<WorkerId, Instant>,
    /// Processes that ended before their connection did.
    ended: BTreeMap<WorkerId, WorkerEnded>,
}

impl Master {
    fn now(&self) -> Time {
        Time(self.start.elapsed().as_nanos() as u64)
    }

    async fn drive(&mut self) {
        let mut check = tokio::time::interval(HEARTBEAT);
        loop {
            let wake = self.next_wake();
            let sleep = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                input = self.fed.recv() => {
                    let Some(input) = input else { return };
                    let now = self.now();
                    self.enter(now, input);
                    for _ in 1..BATCH_MAX {
                        let Ok(input) = self.fed.try_recv() else { break };
                        self.enter(now, input);
                    }
                }
                () = sleep => {}
                due = check.tick() => {
                    let now = self.now();
                    // After a stall of our own, such as a suspended laptop, the workers' signs of life are still
                    // unread: they are no worse off than we.
                    if 2 * HEARTBEAT < due.elapsed() {
                        self.books.excuse_silence(now);
                    }
                    self.books.ping(now);
                    for worker in self.books.silent_since(now - Span(self.silence_max.as_nanos() as u64)) {
                        self.books.fell_silent(now, worker);
                    }
                }
            }
            let now = self.now();
            self.give_up_waiting(now);
            if self.books.wake.is_some_and(|at| at <= now) {
                self.books.tick();
            }
            self.books.settle(now);
            self.turns.clear();
            self.books.catch_up(now);
            self.close_outputs();
            self.keep_history(now);
        }
    }

    /// Outputs are finished and abandoned off this loop: disks may be slow.
    fn close_outputs(&mut self) {
        for closing in self.books.closings.drain(..) {
            let inputs = self.inputs.clone();
            tokio::task::spawn_blocking(move || {
                let failed = match (closing.output, closing.success) {
                    (Some(output), Some(success)) => {
                        let finished = output.finish(&success, &closing.built, closing.sync);
                        finished.err().map(|error| crate::chain(&error))
                    }
                    (Some(output), None) => {
                        output.abandon();
                        None
                    }
                    (None, Some(success)) if let Some(left) = &closing.left => {
                        let finished = OutputDirectory::left_finished(left, &success);
                        finished.err().map(|error| crate::chain(&error))
                    }
                    (None, Some(_)) => {
                        Some("the master does not see the output directory any more".to_owned())
                    }
                    (None, None) => None,
                };
                let _ = inputs.send(Input::Closed { job: closing.job, failed });
            });
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let kept = self.history.as_ref().and_then(HistoryFile::due);
        let books = self.books.wake.into_iter().chain(self.books.due()).chain(kept);
        let books = books.map(|at| self.start + Duration::from_nanos(at.0));
        books.chain(self.gone.values().copied()).min()
    }

    /// What the estimator has learned from jobs that have ended is kept, off this loop.
    fn keep_history(&mut self, now: Time) {
        let learned = std::mem::take(&mut self.books.learned);
        if let Some(history) = &mut self.history {
            history.keep(now, learned, || self.books.memory());
        }
    }

    fn give_up_waiting(&mut self, now: Time) {
        let late: Vec<WorkerId> = self
            .gone
            .iter()
            .filter(|(_, until)| **until <= Instant::now())
            .map(|(worker, _)| *worker)
            .collect();
        for worker in late {
            self.gone.remove(&worker);
            self.books.lost(now, worker, None);
        }
    }

    fn enter(&mut self, now: Time, input: Input) {
        match input {
            Input::Join { hello, frames, reply } => {
                let _ = reply.send(self.books.join(now, hello, frames));
            }
            Input::Frames { worker, frames, turn } => {
                for frame in frames {
                    self.books.frame(now, worker, frame);
                }
                self.turns.push(turn);
            }
            Input::Gone { worker, goodbye } => self.gone(now, worker, goodbye),
            Input::ProcessEnded { end, key, reply } => {
                let _ = reply.send(self.process_ended(now, end, &key));
            }
            Input::Submit { submission, reply } => {
                let attached = submission.attached;
                let submitted = self.books.submit(now, *submission).map(|(job, changes)| {
                    // Made here, so that an answer that reaches nobody ends the job too.
                    let lease = attached.then(|| Lease { inputs: self.inputs.clone(), job: Some(job) });
                    (job, changes, lease)
                });
                let _ = reply.send(submitted);
            }
            Input::ClientLost(job) => self.books.client_lost(job),
            Input::ClientClosed { job, failed, reply } => {
                self.books.client_closed(now, job, failed);
                let _ = reply.send(());
            }
            Input::Closed { job, failed } => self.books.closed(now, job, failed),
            Input::Cancel { job, reply } => {
                let _ = reply.send(self.books.cancel(job));
            }
            Input::DecideBy { change, reply } => {
                let _ = reply.send(self.books.decide_by(now, change));
            }
            Input::Explain { job, task, reply } => {
                self.books.settle(now);
                let _ = reply.send(self.books.explain(now, job, task));
            }
            // What came before it in this batch must show in the answer.
            Input::Query(look) => {
                self.books.settle(now);
                look(&self.books, now);
            }
        }
    }

    /// A connection is gone. Whoever started the process says how it ended, and that is worth waiting for: it
    /// tells whether user code is to blame.
    fn gone(&mut self, now: Time, worker: WorkerId, goodbye: bool) {
        match self.ended.remove(&worker) {
            Some(end) => self.books.lost(now, worker, Some(&end)),
            None if !goodbye => {
                self.gone.insert(worker, Instant::now() + END_PATIENCE);
            }
            None => self.books.left(now, worker),
        }
    }

    /// Answers whether there is such a process, and whoever tells of its end has started it.
    fn process_ended(&mut self, now: Time, end: WorkerEnded, key: &Secret) -> bool {
        let Some(worker) = self.books.worker_of_process(&end.host, end.pid, key) else { return false };
        if self.gone.remove(&worker).is_some() {
            self.books.lost(now, worker, Some(&end));
        } else {
            // Frames that the worker wrote before it died may still be on their way; its connection tells.
            self.ended.insert(worker, end);
        }
        true
    }
}

/// As many connections of those who know the secret as this process can have descriptors for.
fn connections_max() -> usize {
    descriptors::allowed().saturating_sub(DESCRIPTORS_KEPT + strangers_max()).max(1)
}

/// Greets a worker on a fresh connection and carries its frames until it is gone.
async fn attend(handle: Handle, io: Duplex, peer: IpAddr, key: ShownKey) {
    let (reader, mut writer) = tokio::io::split(io);
    let mut reader = FrameReader::new(reader, HELLO_BYTES_MAX);
    let greeting = tokio::time::timeout(HELLO_PATIENCE, reader.next());
    let Ok(Ok(Some(WorkerFrame::Hello(mut hello)))) = greeting.await else {
        tracing::debug!(%peer, "a connection did not introduce itself as a worker");
        return;
    };
    let refuse = |reason: &str| MasterFrame::Refused { reason: clean::message(reason) };
    if hello.protocol != PROTOCOL_VERSION {
        let reason = format!("it speaks protocol {} instead of {PROTOCOL_VERSION}", hello.protocol);
        let _ = write_frame(&mut writer, &refuse(&reason)).await;
        return;
    }
    hello.shuffle = match address::of_peer(hello.shuffle, peer, handle.plaintext).await {
        Ok(endpoint) => endpoint,
        Err(reason) => {
            tracing::warn!(%peer, reason, "refused a worker");
            let _ = write_frame(&mut writer, &refuse(&reason)).await;
            return;
        }
    };
    let (frames, mut to_write) = unbounded_channel::<Vec<u8>>();
    let (reply, joined) = oneshot::channel();
    if handle.inputs.send(Input::Join { hello, frames, reply }).is_err() {
        return;
    }
    let worker = match joined.await {
        Ok(Ok(worker)) => worker,
        Ok(Err(reason)) => {
            tracing::warn!(%peer, reason = clean::message(&reason), "refused a worker");
            let _ = write_frame(&mut writer, &refuse(&reason)).await;
            return;
        }
        Err(_) => return,
    };
    reader.set_limits(WORKER_FRAME_BYTES_MAX, WORKER_FRAME_MEMORY_MAX);
    let turns = Arc::new(Semaphore::new(BATCHES_AHEAD));
    let mut writing = tokio::spawn(async move { write_frames(&mut writer, &mut to_write).await });
    let mut goodbye = false;
    let mut shutdown = handle.shutdown.subscribe();
    let mut changed = handle.tokens.changes();
    // It may have ceased to hold since the gate let it pass.
    changed.mark_changed();
    let mut look = tokio::time::interval(TOKEN_LOOK);
    loop {
        let next = async {
            // Nothing more is read of a worker that speaks faster than it can be heard. The turn comes first: what has been
            // read would be lost if this were dropped while it waits.
            let turn = Arc::clone(&turns).acquire_owned().await;
            (reader.next().await, turn)
        };
        let (first, turn) = tokio::select! {
            next = next => next,
            // The worker is lost, or takes nothing: it may never close its end.
            _ = &mut writing => {
                let _ = handle.inputs.send(Input::Gone { worker, goodbye });
                return;
            }
            _ = shutdown.wait_for(|end| *end) => break,
            // It was revoked, or the time of grace for tokens of its generation is over.
            () = token_looked_at(&mut changed, &mut look) => match handle.tokens.find(&key.0) {
                Some(_) => continue,
                None => {
                    tracing::warn!(%worker, token = clean::message(&key.0), "the token of a worker holds no more");
                    break;
                }
            },
        };
        let first = match first {
            Ok(Some(first)) => first,
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%worker, error = crate::chain(&error), "refused what a worker said");
                break;
            }
        };
        let mut frames = vec![first];
        while frames.len() < BATCH_MAX
            && let Ok(Some(frame)) = reader.ready()
        {
            frames.push(frame);
        }
        goodbye |= matches!(frames.last(), Some(WorkerFrame::Goodbye));
        let Ok(turn) = turn else { break };
        if handle.inputs.send(Input::Frames { worker, frames, turn }).is_err() {
            break;
        }
    }
    let _ = handle.inputs.send(Input::Gone { worker, goodbye });
    // Frames that are queued, such as the order to end, still go out; the handle is held until then.
    let _ = writing.await;
}

/// Waits until a token is to be looked at anew.
async fn token_looked_at(changed: &mut watch::Receiver<()>, look: &mut tokio::time::Interval) {
    tokio::select! {
        _ = changed.changed() => {}
        _ = look.tick() => {}
    }
}

/// Writes frames until the books have dropped the worker, several at once when they queue up; then the connection
/// ends, so that the worker notices. One that takes nothing any more cannot keep it open.
async fn write_frames(writer: &mut (impl AsyncWrite + Unpin), frames: &mut UnboundedReceiver<Vec<u8>>) {
    while let Some(mut batch) = frames.recv().await {
        while batch.len() < WRITE_BATCH_BYTES
            && let Ok(more) = frames.try_recv()
        {
            batch.extend_from_slice(&more);
        }
        let write = async {
            writer.write_all(&batch).await?;
            writer.flush().await
        };
        let given_up = async {
            while !frames.is_closed() {
                tokio::time::sleep(HEARTBEAT).await;
            }
            tokio::time::sleep(LAST_WORDS_PATIENCE).await;
        };
        tokio::select! {
            biased;
            written = write => if written.is_err() { return },
            () = given_up => return,
        }
    }
    let _ = tokio::time::timeout(LAST_WORDS_PATIENCE, writer.shutdown()).await;
}

#[cfg(test)]
mod tests;

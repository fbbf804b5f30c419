//! The master's loop: it gathers all events, enters them as the facts of one instant, and sends the orders of the core.

use super::archive::JobArchive;
use super::batches::Batches;
use super::input::{Joined, Lease, MasterInput, Submitted};
use super::limits::{BATCH_MAX, HEARTBEAT};
use super::state::{ClientRoute, Closing, Guarantee, MasterState};
use crate::api::{Submission, WorkerEnded};
use crate::output_dir::{ClaimedOutput, OutputError};
use crate::plural::counted;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::fault;
use gristmill_worker::http::Secret;
use gristmill_worker::protocol::Hello;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Silence after which a worker is lost.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Silence after which a worker gets no new work until its next sign of life: four signs are missing.
const SILENCE_SUSPECT: Duration = Duration::from_secs(2);

/// Time for which a recoverable master waits for the client of an attached job after its connection has broken.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The same for a client that reached this master without a network. If it lives, it is back at once.
const LOCAL_CLIENT_TIMEOUT: Duration = Duration::from_millis(1500);

/// Time for which the loss of a worker waits for the report of the process that started it.
const END_TIMEOUT: Duration = Duration::from_millis(300);

/// Number of outputs closed at once. Each takes a few file descriptors out of those not reserved for connections.
const CLOSERS_MAX: usize = 6;

/// The loop and its data.
pub(super) struct Master {
    pub(super) state: MasterState,
    /// Archive of ended jobs.
    archive: Option<Arc<JobArchive>>,
    fed: UnboundedReceiver<MasterInput>,
    inputs: UnboundedSender<MasterInput>,
    /// Turns of the frames that have been entered and not settled.
    turns: Vec<OwnedSemaphorePermit>,
    start: Instant,
    /// Time at its start: that of the earlier master continues.
    base: Time,
    silence_max: Duration,
    /// Workers whose connection is gone and whose end is not yet explained, with the end of the wait.
    gone: BTreeMap<WorkerId, Instant>,
    /// Number of each worker's connection.
    connections: BTreeMap<WorkerId, u64>,
    /// Number of the lease of each attached job.
    leases: BTreeMap<JobId, u64>,
    /// Responses to submissions that are sent once these are written down.
    acknowledgements: Vec<(Guarantee, Submitted, oneshot::Sender<Submitted>)>,
    batches: Batches,
    /// Number of connections and leases so far.
    given: u64,
    /// Attached jobs whose client is disconnected, with the end of the wait.
    clients_away: BTreeMap<JobId, Time>,
    /// Processes that ended before their connection did.
    ended: BTreeMap<WorkerId, WorkerEnded>,
    /// Permits to close outputs.
    closers: Arc<Semaphore>,
}

impl Master {
    pub(super) fn new(
        mut state: MasterState,
        archive: Option<Arc<JobArchive>>,
        fed: UnboundedReceiver<MasterInput>,
        inputs: UnboundedSender<MasterInput>,
        base: Time,
    ) -> Self {
        // Clients of an earlier master.
        let patience = span_of(fault::span("master.client", CLIENT_TIMEOUT));
        let attended = state.jobs.attended();
        let clients_away = attended
            .into_iter()
            .map(|job| (job, state.jobs.client_away(base, job, &mut state.journal) + patience))
            .collect();
        Self {
            state,
            archive,
            fed,
            inputs,
            turns: Vec::new(),
            start: Instant::now(),
            base,
            silence_max: fault::span("master.silence", SILENCE_MAX),
            gone: BTreeMap::new(),
            connections: BTreeMap::new(),
            leases: BTreeMap::new(),
            acknowledgements: Vec::new(),
            batches: Batches::default(),
            given: 0,
            clients_away,
            ended: BTreeMap::new(),
            closers: Arc::new(Semaphore::new(CLOSERS_MAX)),
        }
    }

    fn now(&self) -> Time {
        self.base + Span(self.start.elapsed().as_nanos() as u64)
    }

    /// Runs until all handles are dropped.
    pub(super) async fn drive(&mut self) {
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
                    // After a stall of this process, such as a suspended laptop, the workers' signs of life are still
                    // unread: they are no worse off than the master.
                    if 2 * HEARTBEAT < due.elapsed() {
                        self.state.fleet.reset_silence(now);
                    }
                    self.state.journal.look_for_file();
                    self.state.ping(now);
                    self.state.suspect_silent(now - Span(SILENCE_SUSPECT.as_nanos() as u64));
                    for worker in self.state.fleet.silent_since(now - Span(self.silence_max.as_nanos() as u64)) {
                        self.state.fell_silent(now, worker);
                    }
                }
            }
            let now = self.now();
            self.confirm_losses(now);
            self.give_up_clients(now);
            self.batches.give_up(now);
            if self.state.wake.is_some_and(|at| at <= now) {
                self.state.tick();
            }
            self.state.settle(now);
            self.state.dismiss_drained(now);
            self.state.compact_if_grown(now);
            self.turns.clear();
            self.state.catch_up(now);
            self.acknowledge();
            self.close_outputs();
            self.keep_ended();
        }
    }

    /// Sends the responses to submissions that are written down, and starts the sync for which others wait on another
    /// thread.
    fn acknowledge(&mut self) {
        for (guarantee, submitted, reply) in std::mem::take(&mut self.acknowledgements) {
            if submitted.is_err() || self.state.journal.stands(guarantee) {
                let _ = reply.send(submitted);
            } else {
                self.acknowledgements.push((guarantee, submitted, reply));
            }
        }
        if let Some(order) = self.state.journal.sync_order() {
            let inputs = self.inputs.clone();
            tokio::task::spawn_blocking(move || {
                let _ = inputs.send(MasterInput::Synced(order.carry_out()));
            });
        }
    }

    /// Finishes and abandons outputs off this loop, because disks may be slow.
    fn close_outputs(&mut self) {
        for closing in self.state.jobs.closings.drain(..) {
            let (inputs, closers) = (self.inputs.clone(), self.closers.clone());
            tokio::spawn(async move {
                let turn = closers.acquire_owned().await;
                tokio::task::spawn_blocking(move || {
                    let job = closing.job;
                    let failed = close_output(&closing).err();
                    drop(turn);
                    let _ = inputs.send(MasterInput::Closed { job, failed });
                });
            });
        }
    }

    /// Archives ended jobs, also off this loop.
    fn keep_ended(&mut self) {
        for job in self.state.jobs.archived.drain(..) {
            if let Some(archive) = self.archive.clone() {
                tokio::task::spawn_blocking(move || archive.keep(job));
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let state = self.state.wake.into_iter().chain(self.state.due());
        let state = state.chain(self.clients_away.values().copied());
        let state = state.map(|at| self.start + Duration::from_nanos(at.since(self.base).0));
        state.chain(self.gone.values().copied()).min()
    }

    fn confirm_losses(&mut self, now: Time) {
        let late: Vec<WorkerId> = self
            .gone
            .iter()
            .filter(|(_, until)| **until <= Instant::now())
            .map(|(worker, _)| *worker)
            .collect();
        for worker in late {
            self.gone.remove(&worker);
            self.state.lost(now, worker, None);
        }
    }

    /// Ends the jobs for good. Outputs of successful jobs whose client is disconnected are completed here.
    pub(super) fn abandon_jobs(&mut self) {
        let now = self.now();
        for job in std::mem::take(&mut self.clients_away).into_keys() {
            self.state.client_lost(job);
        }
        for closing in std::mem::take(&mut self.state.jobs.closings) {
            self.state.closed(now, closing.job, close_output(&closing).err());
        }
        let jobs = counted(u64::from(self.state.jobs.live_count()), "job", "jobs");
        tracing::info!("ends for good: {jobs} abandoned");
    }

    /// Ends the jobs of clients that did not come back.
    fn give_up_clients(&mut self, now: Time) {
        let late: Vec<JobId> =
            self.clients_away.iter().filter(|(_, until)| **until <= now).map(|(job, _)| *job).collect();
        for job in late {
            self.clients_away.remove(&job);
            self.state.client_lost(job);
        }
    }

    /// Handles the loss of a client's connection.
    fn client_away(&mut self, now: Time, job: JobId, lease: u64) {
        if self.leases.get(&job) != Some(&lease) {
            return;
        }
        self.leases.remove(&job);
        let returns = self.state.jobs.client_returns(job).filter(|_| self.state.journal.is_recoverable());
        let patience = match returns {
            None => return self.state.client_lost(job),
            Some(ClientRoute::Local) => LOCAL_CLIENT_TIMEOUT,
            Some(ClientRoute::Network) => CLIENT_TIMEOUT,
        };
        let away = self.state.jobs.client_away(now, job, &mut self.state.journal);
        self.clients_away.insert(job, away + span_of(patience));
    }

    fn lease(&mut self, job: JobId) -> Lease {
        self.given += 1;
        self.leases.insert(job, self.given);
        Lease { inputs: self.inputs.clone(), job: Some(job), number: self.given }
    }

    fn join(&mut self, now: Time, hello: Hello, frames: UnboundedSender<Vec<u8>>) -> Joined {
        // It reconnected before it was lost, perhaps before the end of its old connection was noticed.
        if let Some(before) = hello.rejoin
            && self.state.is_known(&hello, before)
        {
            self.gone.remove(&before.worker);
            self.state.expect_back(before.worker);
        }
        let worker = self.state.join(now, hello, frames)?;
        self.given += 1;
        self.connections.insert(worker, self.given);
        Ok((worker, self.given))
    }

    /// Handles a client that follows its job again.
    fn follow_again(&mut self, key: &Secret) -> Submitted {
        let (job, changes, attached) = self.state.jobs.follow_again(key, &mut self.state.journal)?;
        self.clients_away.remove(&job);
        Ok((job, changes, attached.then(|| self.lease(job))))
    }

    fn submit(&mut self, now: Time, submission: Submission, reply: oneshot::Sender<Submitted>) {
        let (attached, sync) = (submission.attached, submission.sync);
        // Its client repeats the request because it received no response.
        if let Ok(key) = submission.permit_key.parse()
            && let Ok(known) = self.follow_again(&key)
        {
            let guarantee = self.state.journal.guarantee(sync);
            return self.acknowledgements.push((guarantee, Ok(known), reply));
        }
        let submitted = self.state.submit(now, submission).map(|(job, changes)| {
            // The lease is created here, so that an undeliverable response ends the job too.
            (job, changes, attached.then(|| self.lease(job)))
        });
        let guarantee = self.state.journal.guarantee(sync);
        self.acknowledgements.push((guarantee, submitted, reply));
    }

    fn enter(&mut self, now: Time, input: MasterInput) {
        match input {
            MasterInput::Join { hello, frames, reply } => {
                let _ = reply.send(self.join(now, hello, frames));
            }
            MasterInput::Frames { worker, connection, frames, turn } => {
                if self.connections.get(&worker) != Some(&connection) {
                    return;
                }
                for frame in frames {
                    self.state.frame(now, worker, frame);
                }
                self.state.fleet.confirm_if_many(worker, self.state.journal.is_recoverable());
                self.turns.push(turn);
            }
            MasterInput::Gone { worker, connection, goodbye } => {
                if self.connections.get(&worker) == Some(&connection) {
                    self.connections.remove(&worker);
                    self.gone(now, worker, goodbye);
                }
            }
            MasterInput::ProcessEnded { end, key, reply } => {
                let _ = reply.send(self.process_ended(now, end, &key));
            }
            MasterInput::Submit { submission, reply } => {
                for (submission, reply) in self.batches.add(now, (submission, reply)) {
                    self.submit(now, *submission, reply);
                }
            }
            MasterInput::ClientLost { job, lease } => self.client_away(now, job, lease),
            MasterInput::Attend { key, reply } => {
                let _ = reply.send(self.follow_again(&key));
            }
            MasterInput::Synced(synced) => self.state.journal.synced(synced),
            MasterInput::Closed { job, failed } => self.state.closed(now, job, failed),
            // Earlier inputs of this batch must be visible in the result.
            MasterInput::Call(call) => {
                self.state.settle(now);
                call(&mut self.state, now);
            }
        }
    }

    /// Handles the loss of a worker's connection. The process that started the worker reports how it ended. That report
    /// is worth a wait: it shows if user code is to blame.
    fn gone(&mut self, now: Time, worker: WorkerId, goodbye: bool) {
        match self.ended.remove(&worker) {
            Some(end) => self.state.lost(now, worker, Some(&end)),
            None if !goodbye => {
                self.gone.insert(worker, Instant::now() + END_TIMEOUT);
            }
            None => self.state.worker_left(now, worker),
        }
    }

    /// Handles the report of a process's end. Returns true if the process exists and the reporter has its key.
    fn process_ended(&mut self, now: Time, end: WorkerEnded, key: &Secret) -> bool {
        let Some(worker) = self.state.fleet.worker_of_process(&end.host, end.pid, key) else {
            return self.state.fleet.silent_lost.has_ended(&end.host, end.pid, key);
        };
        if self.gone.remove(&worker).is_some() {
            self.state.lost(now, worker, Some(&end));
        } else {
            // Frames that the worker sent before it died may still be in flight; the end of its connection follows
            // them.
            self.ended.insert(worker, end);
        }
        true
    }
}

fn span_of(duration: Duration) -> Span {
    Span(duration.as_nanos() as u64)
}

/// Finishes or abandons an output. `Err` describes why it is not complete.
pub(super) fn close_output(closing: &Closing) -> Result<(), String> {
    let Closing { submission, success, built, left, .. } = closing;
    let closed = match (ClaimedOutput::adopt(submission, None), success) {
        (Ok(output), Some(success)) => output.finish(success, built, submission.sync).map(drop),
        (Ok(output), None) => {
            output.abandon();
            Ok(())
        }
        (Err(_), success) if *left => {
            ClaimedOutput::close_left(submission, success.as_ref(), built).map(drop)
        }
        (Err(_), None) => Ok(()),
        (Err(error), Some(_)) => Err(error),
    };
    closed.map_err(|error: OutputError| gristmill_worker::error_text::chain(&error))
}

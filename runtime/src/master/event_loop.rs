//! The master's loop: it gathers everything that has happened, enters it as the facts of one instant, and sends out what
//! the core orders.

use super::history::HistoryFile;
use super::input::{Lease, MasterInput};
use super::state::{Closing, MasterState};
use super::{BATCH_MAX, HEARTBEAT};
use crate::api::WorkerEnded;
use crate::output_dir::OutputDirectory;
use gristmill_scheduler::ids::WorkerId;
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::fault;
use gristmill_worker::http::Secret;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// A worker silent for this long is lost.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// A worker silent for this long gets nothing new until it is heard of; four of its signs of life are missing.
const SILENCE_SUSPECT: Duration = Duration::from_secs(2);

/// How long the loss of a worker waits for the word of whoever started its process.
const END_PATIENCE: Duration = Duration::from_millis(300);

/// The loop and what it owns.
pub(super) struct Master {
    pub(super) state: MasterState,
    pub(super) history: Option<HistoryFile>,
    fed: UnboundedReceiver<MasterInput>,
    inputs: UnboundedSender<MasterInput>,
    /// Of the frames that have been entered and not settled.
    turns: Vec<OwnedSemaphorePermit>,
    start: Instant,
    /// The time when it started: that of the master before it goes on.
    base: Time,
    silence_max: Duration,
    /// Workers whose connection is gone but whose end has not been explained yet, and until when to wait.
    gone: BTreeMap<WorkerId, Instant>,
    /// Processes that ended before their connection did.
    ended: BTreeMap<WorkerId, WorkerEnded>,
}

impl Master {
    pub(super) fn new(
        state: MasterState,
        history: Option<HistoryFile>,
        fed: UnboundedReceiver<MasterInput>,
        inputs: UnboundedSender<MasterInput>,
        base: Time,
    ) -> Self {
        Self {
            state,
            history,
            fed,
            inputs,
            turns: Vec::new(),
            start: Instant::now(),
            base,
            silence_max: fault::span("master.silence", SILENCE_MAX),
            gone: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    fn now(&self) -> Time {
        self.base + Span(self.start.elapsed().as_nanos() as u64)
    }

    /// Runs until nobody can feed it any more.
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
                    // After a stall of our own, such as a suspended laptop, the workers' signs of life are still
                    // unread: they are no worse off than we.
                    if 2 * HEARTBEAT < due.elapsed() {
                        self.state.reset_silence(now);
                    }
                    self.state.ping(now);
                    self.state.suspect_silent(now - Span(SILENCE_SUSPECT.as_nanos() as u64));
                    for worker in self.state.silent_since(now - Span(self.silence_max.as_nanos() as u64)) {
                        self.state.fell_silent(now, worker);
                    }
                }
            }
            let now = self.now();
            self.confirm_losses(now);
            if self.state.pending.wake.is_some_and(|at| at <= now) {
                self.state.tick();
            }
            self.state.settle(now);
            self.state.dismiss_drained(now);
            self.state.compact_if_grown(now);
            self.turns.clear();
            self.state.catch_up(now);
            self.close_outputs();
            self.keep_history(now);
        }
    }

    /// Outputs are finished and abandoned off this loop: disks may be slow.
    fn close_outputs(&mut self) {
        for closing in self.state.pending.closings.drain(..) {
            let inputs = self.inputs.clone();
            tokio::task::spawn_blocking(move || {
                let job = closing.job;
                let failed = close_output(closing).err();
                let _ = inputs.send(MasterInput::Closed { job, failed });
            });
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let kept = self.history.as_ref().and_then(HistoryFile::due);
        let state = self.state.pending.wake.into_iter().chain(self.state.due()).chain(kept);
        let state = state.map(|at| self.start + Duration::from_nanos(at.since(self.base).0));
        state.chain(self.gone.values().copied()).min()
    }

    /// What the estimator has learned from jobs that have ended is kept, off this loop.
    fn keep_history(&mut self, now: Time) {
        let learned = std::mem::take(&mut self.state.pending.learned);
        if let Some(history) = &mut self.history {
            history.keep(now, learned, || self.state.memory());
        }
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

    fn enter(&mut self, now: Time, input: MasterInput) {
        match input {
            MasterInput::Join { hello, frames, reply } => {
                // Its connection is gone, and it has found another before it was given up.
                if let Some(before) = hello.rejoin
                    && self.gone.remove(&before.worker).is_some()
                {
                    self.state.expect_back(before.worker);
                }
                let _ = reply.send(self.state.join(now, hello, frames));
            }
            MasterInput::Frames { worker, frames, turn } => {
                for frame in frames {
                    self.state.frame(now, worker, frame);
                }
                self.state.confirm_if_many(worker);
                self.turns.push(turn);
            }
            MasterInput::Gone { worker, goodbye } => self.gone(now, worker, goodbye),
            MasterInput::ProcessEnded { end, key, reply } => {
                let _ = reply.send(self.process_ended(now, end, &key));
            }
            MasterInput::Submit { submission, reply } => {
                let attached = submission.attached;
                let submitted = self.state.submit(now, *submission).map(|(job, changes)| {
                    // Made here, so that an answer that reaches nobody ends the job too.
                    let lease = attached.then(|| Lease { inputs: self.inputs.clone(), job: Some(job) });
                    (job, changes, lease)
                });
                let _ = reply.send(submitted);
            }
            MasterInput::ClientLost(job) => self.state.client_lost(job),
            MasterInput::ClientClosed { job, failed, reply } => {
                self.state.client_closed(now, job, failed);
                self.state.settle(now);
                let _ = reply.send(());
            }
            MasterInput::Closed { job, failed } => self.state.closed(now, job, failed),
            MasterInput::Drain { worker, reply } => {
                let found = self.state.drain(worker);
                self.state.settle(now);
                let _ = reply.send(found);
            }
            MasterInput::Cancel { job, reply } => {
                let found = self.state.cancel(job);
                self.state.settle(now);
                let _ = reply.send(found);
            }
            MasterInput::DecideBy { change, reply } => {
                let _ = reply.send(self.state.change_policy(now, change));
            }
            MasterInput::Restore { memory, reply } => {
                let _ = reply.send(self.state.restore_memory(now, memory));
            }
            MasterInput::Explain { job, task, reply } => {
                self.state.settle(now);
                let _ = reply.send(self.state.explain(now, job, task));
            }
            // What came before it in this batch must show in the answer.
            MasterInput::Query(look) => {
                self.state.settle(now);
                look(&self.state, now);
            }
        }
    }

    /// A connection is gone. Whoever started the process says how it ended, and that is worth waiting for: it
    /// tells whether user code is to blame.
    fn gone(&mut self, now: Time, worker: WorkerId, goodbye: bool) {
        match self.ended.remove(&worker) {
            Some(end) => self.state.lost(now, worker, Some(&end)),
            None if !goodbye => {
                self.gone.insert(worker, Instant::now() + END_PATIENCE);
            }
            None => self.state.left(now, worker),
        }
    }

    /// Answers whether there is such a process, and whoever tells of its end has started it.
    fn process_ended(&mut self, now: Time, end: WorkerEnded, key: &Secret) -> bool {
        let Some(worker) = self.state.worker_of_process(&end.host, end.pid, key) else { return false };
        if self.gone.remove(&worker).is_some() {
            self.state.lost(now, worker, Some(&end));
        } else {
            // Frames that the worker wrote before it died may still be on their way; its connection tells.
            self.ended.insert(worker, end);
        }
        true
    }
}

/// Finishes or abandons an output. `Err` says why it is not complete.
fn close_output(closing: Closing) -> Result<(), String> {
    let Closing { output, success, built, left, sync, .. } = closing;
    let closed = match (output, success, left) {
        (Some(output), Some(success), _) => output.finish(&success, &built, sync).map(Some),
        (Some(output), None, _) => {
            output.abandon();
            Ok(None)
        }
        (None, success, Some(left)) => OutputDirectory::close_left(&left, success.as_ref(), &built),
        (None, Some(_), None) => {
            return Err("the master does not see the output directory any more".to_owned());
        }
        (None, None, None) => Ok(None),
    };
    closed.map(drop).map_err(|error| crate::chain(&error))
}

//! The control loop of a worker: executes the master's orders and reports the results.
//!
//! One thread drives it together with the shuffle; slots run user code. The frames of one turn of the loop
//! are sent in one piece.

mod attempts;
pub(super) mod fetches;
mod jobs;
mod slot_events;
mod start;
mod suspend;
mod watch;

use super::capture;
use super::handed_over::HandoverStore;
use super::slots::{AttemptInput, Permit, RunningJob, SlotEvent, SlotSetting};
use super::work::SlotWork;
use super::{EndRequests, JobSource, WorkerConfig, WorkerExit};
use crate::budget::Budget;
use crate::protocol::{MasterFrame, WorkerFrame, push_worker_frame};
use crate::recycle::Recycler;
use crate::settings::Shuffle;
use crate::shuffle::store::{Gone, Store};
use attempts::{RunningAttempt, Suspension};
use fetches::Fetching;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::Time;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender};
use tokio::time::MissedTickBehavior;

pub(super) use start::JoinedWorker;

/// User output in one [`WorkerFrame::Log`], bytes.
pub const LOG_CHUNK_BYTES_MAX: usize = 64 << 10;

/// Chunks of user output that are handed over at once when an attempt ends: as much as its file can hold.
const LOG_CHUNKS_MAX: usize = capture::FILE_BYTES_MAX as usize / LOG_CHUNK_BYTES_MAX;

/// How often the loop looks at user output, hanging attempts and its own memory.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Attempts that are suspended at once, or asked to be; of more than that each keeps its slot. Each keeps a thread, its
/// buffers and its segments.
pub const SUSPENDED_MAX: usize = 64;

/// The way to the master.
struct Outgoing {
    frames: UnboundedSender<Vec<u8>>,
    /// Encoded frames to be sent when this turn of the loop is over.
    pending: Vec<u8>,
}

/// The threads that run attempts: their queue, their events, and what they share.
struct SlotThreads {
    work: SlotWork,
    events: UnboundedReceiver<SlotEvent>,
    setting: SlotSetting,
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
    /// When it was asked to leave in good order.
    leaving_since: Option<Instant>,
    /// A slot's thread has died.
    broken: bool,
}

impl Agent {
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Sends a frame to the master, at the end of this turn of the loop.
    fn send(&mut self, frame: &WorkerFrame) {
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

    /// Says goodbye to the master. Slots take nothing more.
    pub(super) fn leave(mut self) {
        self.send(&WorkerFrame::Goodbye);
        self.flush();
        self.slots.work.close();
        // Nobody lets these go on any more.
        for running in self.running.values().filter(|running| running.suspension == Suspension::Suspended) {
            running.progress.cancel();
        }
    }

    /// Asks the master to let this worker go once nobody needs it any more.
    fn ask_to_leave(&mut self) {
        self.leaving_since = Some(Instant::now());
        self.send(&WorkerFrame::Leave);
    }

    pub(super) async fn drive(
        &mut self,
        incoming: &mut Receiver<Vec<MasterFrame>>,
        mut requests: EndRequests,
        heartbeat_ms: u32,
    ) -> WorkerExit {
        let mut heartbeat = tokio::time::interval(Duration::from_millis(u64::from(heartbeat_ms.max(10))));
        let mut watch = tokio::time::interval(WATCH_INTERVAL);
        let (mut silence, mut to_end) = (Duration::ZERO, requests.clone());
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
                    silence = Duration::ZERO;
                    for frame in frames {
                        if matches!(frame, MasterFrame::Shutdown) {
                            return WorkerExit::Shutdown;
                        }
                        self.execute(frame);
                    }
                }
                Some(event) = self.slots.events.recv() => {
                    self.handle_slot_event(event);
                    self.drain_slot_events();
                }
                Some(fetched) = self.fetching.results.recv() => self.fetched(fetched),
                () = wake => {}
                _ = heartbeat.tick() => self.heartbeat(),
                due = watch.tick() => {
                    if 2 * WATCH_INTERVAL < due.elapsed() {
                        self.excuse_stall();
                    }
                    self.watch_output();
                    silence += WATCH_INTERVAL;
                    if self.config.master_silence_max < silence {
                        tracing::warn!(seconds = silence.as_secs_f64(), "the master is silent: it counts as gone");
                        return WorkerExit::MasterGone;
                    }
                    if self.leaving_since.is_some_and(|since| self.config.leave_max < since.elapsed()) {
                        tracing::warn!(after = ?self.config.leave_max, "not left in good order in time: ending");
                        return WorkerExit::Shutdown;
                    }
                    if let Some(attempt) = self.stuck() {
                        return WorkerExit::Stuck(attempt);
                    }
                }
                () = requests.to_leave(), if self.leaving_since.is_none() => self.ask_to_leave(),
                () = to_end.to_end() => return WorkerExit::Shutdown,
            }
            self.start_fetches();
            self.flush();
            if self.broken {
                return WorkerExit::Broken;
            }
        }
    }

    fn execute(&mut self, frame: MasterFrame) {
        match frame {
            MasterFrame::Welcome { .. } | MasterFrame::Refused { .. } | MasterFrame::Shutdown => {}
            MasterFrame::Ping { master_ns } => {
                let worker_ns = self.now_ns();
                self.send(&WorkerFrame::Pong { master_ns, worker_ns });
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
                    self.send(&WorkerFrame::Returned { attempt });
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
}

/// Deletes files off this thread: disks may be slow.
fn delete(gone: Gone) {
    if gone.is_nothing() {
        return;
    }
    tokio::task::spawn_blocking(move || drop(gone));
}

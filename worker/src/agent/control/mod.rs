//! The control loop of a worker: executes the master's orders and reports the results.
//!
//! One thread drives it together with the shuffle; slots run user code. The frames of one turn of the
//! loop are sent together.

mod attempts;
pub(super) mod fetches;
mod jobs;
mod link;
mod slot_events;
mod start;
mod suspend;
mod watch;

use super::assignment::{AttemptInput, Permit, SlotEvent, SlotSetting};
use super::capture;
use super::config::{JobSource, WorkerConfig, WorkerExit};
use super::end_requests::EndRequests;
use super::job::RunningJob;
use super::rejoin::{Greeted, MasterDoor, MasterNews, MasterSide};
use super::work::SlotWork;
use crate::budget::KeptInFiles;
use crate::protocol::{HeldAttempt, HeldHome, Hello, Holding, MasterFrame, WorkerFrame};
use crate::recycle::Recycler;
use crate::settings::Shuffle;
use crate::shuffle::store::{DiscardedData, SegmentStore};
use attempts::{RunningAttempt, Suspension};
use fetches::Fetching;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::Time;
use link::MasterLink;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

pub(super) use start::JoinedWorker;

/// Maximum bytes of user output in one [`WorkerFrame::Log`].
const LOG_CHUNK_BYTES_MAX: usize = 64 << 10;

/// Maximum number of chunks of user output that are sent at once when an attempt ends: the content of a
/// full file.
const LOG_CHUNKS_MAX: usize = capture::FILE_BYTES_MAX as usize / LOG_CHUNK_BYTES_MAX;

/// Interval at which the loop checks user output, hanging attempts and its own memory.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum number of attempts that are suspended at once, or asked to be. Further ones keep their slot.
/// Each suspended one keeps a thread, its buffers and its segments.
const SUSPENDED_MAX: usize = 64;

/// Threads that run attempts: their queue, their events, and their shared context.
struct SlotThreads {
    work: SlotWork,
    events: UnboundedReceiver<SlotEvent>,
    setting: SlotSetting,
}

/// Memory settings that the tasks of all jobs share, in addition to the budget.
struct TaskMemory {
    recycler: Recycler,
    slot_bytes: usize,
    kept_in_files: KeptInFiles,
}

pub(super) struct Agent {
    config: WorkerConfig,
    source: Arc<dyn JobSource>,
    worker: WorkerId,
    epoch: Instant,
    store: SegmentStore,
    link: MasterLink,
    /// Introduction of this worker, with its address.
    hello: Hello,
    door: MasterDoor,
    /// Completes when all sent frames are written.
    written: JoinHandle<()>,
    slots: SlotThreads,
    fetching: Fetching,
    memory: TaskMemory,
    jobs: BTreeMap<JobId, Arc<RunningJob>>,
    running: BTreeMap<AttemptId, RunningAttempt>,
    disk_free: watch::DiskFree,
    processors: watch::Processors,
    /// Time of the request to leave gracefully.
    leaving_since: Option<Instant>,
    /// True if a slot's thread has panicked.
    broken: bool,
}

impl Agent {
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Sends a frame to the master, at the end of this turn of the loop.
    fn send(&mut self, frame: &WorkerFrame) {
        if let Err(error) = self.link.send(frame) {
            tracing::error!(%error, "a frame could not be sent; ending this process");
            // Otherwise the master would wait for it forever.
            self.broken = true;
        }
    }

    /// Disconnects from the master. Slots take no more work. The returned handle completes when all
    /// frames are written.
    pub(super) fn leave(mut self) -> JoinHandle<()> {
        self.send(&WorkerFrame::Goodbye);
        self.link.flush();
        self.slots.work.close();
        // These are never resumed.
        for running in self.running.values().filter(|running| running.suspension == Suspension::Suspended) {
            running.progress.cancel();
        }
        self.written
    }

    /// Asks the master to release this worker once it is not needed any more. `Err` if no master is
    /// connected.
    fn ask_to_leave(&mut self) -> Result<(), WorkerExit> {
        if self.link.is_away() {
            return Err(WorkerExit::Shutdown);
        }
        self.leaving_since = Some(Instant::now());
        self.send(&WorkerFrame::Leave);
        Ok(())
    }

    pub(super) async fn drive(
        &mut self,
        incoming: Receiver<Vec<MasterFrame>>,
        mut requests: EndRequests,
        heartbeat_ms: u32,
    ) -> WorkerExit {
        let mut master = MasterSide::Here(incoming);
        let mut heartbeat = tokio::time::interval(Duration::from_millis(u64::from(heartbeat_ms.max(10))));
        let mut watch = tokio::time::interval(WATCH_INTERVAL);
        let (mut silence, mut to_end) = (Duration::ZERO, requests.clone());
        // After a stall one check is enough.
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
                news = master.next() => {
                    silence = Duration::ZERO;
                    if let Err(exit) = self.hear(news, &mut master) {
                        return exit;
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
                    silence += WATCH_INTERVAL;
                    if let Err(exit) = self.look_around(silence, &mut master) {
                        return exit;
                    }
                }
                () = requests.to_leave(), if self.leaving_since.is_none() => {
                    if let Err(exit) = self.ask_to_leave() {
                        return exit;
                    }
                }
                () = to_end.to_end() => return WorkerExit::Shutdown,
            }
            self.start_fetches();
            self.link.flush();
            if self.broken {
                return WorkerExit::Broken;
            }
            if self.link.is_full() {
                tracing::warn!("more is to be said to the master than can be kept until it is there again");
                return WorkerExit::MasterGone;
            }
        }
    }

    /// Checks conditions that send no event: user output, timeouts, hanging attempts. `Err` if the worker
    /// is to end.
    fn look_around(&mut self, silence: Duration, master: &mut MasterSide) -> Result<(), WorkerExit> {
        self.watch_output();
        if self.config.master_silence_max < silence && !self.link.is_away() {
            tracing::warn!(seconds = silence.as_secs_f64(), "the master is silent: it counts as gone");
            self.master_lost(master)?;
        }
        if self.leaving_since.is_some_and(|since| self.config.leave_max < since.elapsed()) {
            tracing::warn!(after = ?self.config.leave_max, "not left in good order in time: ending");
            return Err(WorkerExit::Shutdown);
        }
        self.stuck().map_or(Ok(()), |attempt| Err(WorkerExit::Stuck(attempt)))
    }

    /// Handles frames of the master, its loss, or its return. `Err` if the worker is to end.
    fn hear(&mut self, news: MasterNews, master: &mut MasterSide) -> Result<(), WorkerExit> {
        match news {
            MasterNews::Frames(frames) => {
                for frame in frames {
                    if matches!(frame, MasterFrame::Shutdown) {
                        return Err(WorkerExit::Shutdown);
                    }
                    self.execute(frame);
                }
                Ok(())
            }
            MasterNews::Gone => self.master_lost(master),
            MasterNews::Back(back) => self.returned(back, master),
            MasterNews::NoneComes => Err(WorkerExit::MasterGone),
        }
    }

    /// Handles the loss of the connection to the master. Running attempts continue if a successor may
    /// come. `Err` if not.
    fn master_lost(&mut self, master: &mut MasterSide) -> Result<(), WorkerExit> {
        if !self.link.session.returns {
            return Err(WorkerExit::MasterGone);
        }
        if self.leaving_since.is_some() {
            // No master can release this worker.
            return Err(WorkerExit::Shutdown);
        }
        tracing::warn!("the connection to the master is gone: going on with what there is, until it is back");
        self.link.cut();
        let mut hello = self.hello.clone();
        hello.worker_ns = self.now_ns();
        let looked_for = self.door.look_for_master(self.worker, self.link.session.generation, hello);
        *master = MasterSide::Away(looked_for);
        Ok(())
    }

    /// Handles a reconnected master: it receives missed frames and the current state. `Err` if its state
    /// is too old.
    fn returned(&mut self, back: Greeted, master: &mut MasterSide) -> Result<(), WorkerExit> {
        let Greeted { frames, incoming, written, session, .. } = back;
        if !self.link.resume(frames, session) {
            tracing::warn!("the master has lost what it had confirmed; joining as a new worker");
            return Err(WorkerExit::MasterGone);
        }
        self.written = written;
        *master = MasterSide::Here(incoming);
        let holding = self.holding();
        self.send(&WorkerFrame::Holding(holding));
        Ok(())
    }

    fn holding(&self) -> Holding {
        let attempts = self.running.iter().map(|(attempt, running)| HeldAttempt {
            attempt: *attempt,
            suspended: running.suspension == Suspension::Suspended,
            awaits_permit: running.built && !running.answered,
        });
        let homes = self.store.homes().into_iter();
        Holding {
            jobs: self.jobs.keys().copied().collect(),
            attempts: attempts.collect(),
            homes: homes.map(|(job, partition, segments)| HeldHome { job, partition, segments }).collect(),
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
            MasterFrame::LaunchMap { attempt, split, alone } => {
                self.launch(attempt, AttemptInput::Split(split), alone);
            }
            MasterFrame::LaunchReduce { attempt, empty, added, alone, partition, bounds } => {
                self.launch_reduce(attempt, &empty, &added, (partition, bounds), alone);
            }
            MasterFrame::Divide { attempt, at_once } => self.divide(attempt, at_once),
            MasterFrame::MapsAdded { job, maps } => self.store.add_maps(job, maps),
            MasterFrame::Suspend { attempt } => self.suspend(attempt),
            MasterFrame::Resume { attempt } => self.resume(attempt),
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
            MasterFrame::Home { job, reduce, partition } => self.store.home(job, reduce, partition),
            MasterFrame::HomeOfRest { job, divided, reduce, partition } => {
                self.store.home_of_rest(job, divided, reduce, partition);
            }
            MasterFrame::Unhome { job, reduce } => delete(self.store.unhome(job, reduce)),
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
            MasterFrame::Heard { through } => self.link.heard(through),
        }
    }
}

/// Deletes files off this thread, as disks may be slow.
fn delete(discarded: DiscardedData) {
    if discarded.is_nothing() {
        return;
    }
    tokio::task::spawn_blocking(move || drop(discarded));
}

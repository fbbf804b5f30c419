//! Reconnection of a worker to its master or to the successor: the states of both sides are reconciled.
//!
//! First come the frames that the worker had sent and the master had not written down; they are entered like any other
//! frames. Then the worker reports what it holds, and the master sends again what the worker should have or do and does
//! not. This repairs everything that was in flight in either direction when the connection broke. Nothing that was
//! written down is requested again.

use super::MasterState;
use gristmill_scheduler::event::{Event, Failure};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId, WorkerId};
use gristmill_scheduler::rules::{Rule, holds};
use gristmill_scheduler::units::Time;
use gristmill_worker::protocol::{HeldAttempt, HeldHome, Hello, Holding, MasterFrame, Rejoin};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc::UnboundedSender;

/// Maximum number of frames of a worker entered before it is notified that it need not keep them.
const HEARD_AHEAD_MAX: u64 = 1024;

impl MasterState {
    /// Accepts a worker of this master, or of its predecessor, that has reconnected. An `Err` is sent to the worker.
    ///
    /// # Errors
    /// A worker that is not expected, or not the one it claims to be.
    pub(super) fn rejoin(
        &mut self,
        now: Time,
        hello: &Hello,
        before: Rejoin,
        frames: UnboundedSender<Vec<u8>>,
    ) -> Result<WorkerId, String> {
        let Rejoin { worker, generation } = before;
        if self.join_terms.generation < generation {
            return Err(format!("it has worked for a later master, of generation {generation}"));
        }
        let known = self.workers.get_mut(&worker).filter(|entry| {
            entry.away && entry.hello.ended_proof == hello.ended_proof && entry.hello.pid == hello.pid
        });
        let Some(entry) = known else {
            return Err(format!("{worker} is not waited for: it was given up, or never was of this master"));
        };
        entry.frames = frames;
        entry.outbox.clear();
        entry.last_heard = now;
        entry.offset_ns = (hello.worker_ns as i64).wrapping_sub(now.0 as i64);
        entry.round_trip_ns = u64::MAX;
        self.greet(now, worker);
        self.flush();
        tracing::info!(%worker, "came back");
        Ok(worker)
    }

    /// Notifies workers of the frames that they need not keep any more.
    pub(super) fn confirm_heard(&mut self) {
        let behind = |worker: &&WorkerId| self.workers[*worker].heard_told < self.workers[*worker].heard;
        for worker in self.workers.keys().filter(behind).copied().collect::<Vec<_>>() {
            self.confirm_heard_of(worker);
        }
    }

    /// Notifies one worker in the same manner, if it keeps very many frames.
    pub(crate) fn confirm_if_many(&mut self, worker: WorkerId) {
        let many = |entry: &super::WorkerEntry| HEARD_AHEAD_MAX <= entry.heard - entry.heard_told;
        if self.workers.get(&worker).is_some_and(many) {
            self.confirm_heard_of(worker);
        }
    }

    fn confirm_heard_of(&mut self, worker: WorkerId) {
        let Some(entry) = self.workers.get_mut(&worker).filter(|entry| !entry.away) else { return };
        entry.heard_told = entry.heard;
        let through = entry.heard;
        // It is sent only after the received frames have been written down.
        if self.journal.is_recoverable() {
            self.queue(worker, &MasterFrame::Heard { through });
        }
    }

    /// Reconciles the state with what a reconnected worker holds.
    pub(super) fn reconcile(&mut self, now: Time, worker: WorkerId, holding: &Holding) {
        // Its earlier frames are handled first.
        self.settle(now);
        let Some(entry) = self.workers.get_mut(&worker).filter(|entry| entry.away) else { return };
        entry.away = false;
        if !holds(Rule::WorkersThatComeBackAreReconciled) {
            return;
        }
        entry.lanes_revision_sent = 0;
        entry.gathers.clear();
        let live = |job: &&JobId| self.core.is_live(**job);
        entry.jobs_known = holding.jobs.iter().filter(live).copied().collect();
        let over: Vec<_> = holding.jobs.iter().filter(|job| !live(job)).copied().collect();
        for job in over {
            self.queue(worker, &MasterFrame::Forget { job });
        }
        self.reconcile_homes(now, worker, holding);
        for (map, from) in self.core.outputs_owed_to(worker) {
            self.outgoing.announced.entry((worker, from, map.task.job)).or_default().push(map);
        }
        self.announce();
        self.reconcile_attempts(worker, &holding.attempts);
        self.settle(now);
        self.flush();
    }

    fn reconcile_homes(&mut self, now: Time, worker: WorkerId, holding: &Holding) {
        let of_home = |home: &HeldHome| ((home.job, home.partition), home.segments);
        let mut held: BTreeMap<_, u32> = holding.homes.iter().map(of_home).collect();
        let reduces: BTreeSet<TaskId> = holding.attempts.iter().map(|held| held.attempt.task).collect();
        for home in self.core.homes_at(worker) {
            let (job, partition) = (home.job, home.partition);
            let segments = held.remove(&(job, partition));
            self.gathers(now, worker, job);
            // A partition with other segments than reported is rebuilt: it was moved away and back meanwhile. If there
            // is nothing to fetch, both the home and its reduce may have been ordered without effect.
            let never_told = segments.is_none() && !reduces.contains(&TaskId::reduce(job, partition));
            let same = home.in_use && !never_told || segments == Some(home.fetched);
            if same {
                continue;
            }
            if segments.is_some() {
                self.send(worker, job, &MasterFrame::Unhome { job, partition });
            }
            self.send(worker, job, &MasterFrame::Home { job, partition });
        }
        for (job, partition) in held.into_keys() {
            self.send(worker, job, &MasterFrame::Unhome { job, partition });
        }
    }

    fn reconcile_attempts(&mut self, worker: WorkerId, held: &[HeldAttempt]) {
        let believed: BTreeMap<AttemptId, _> = self.core.attempts_at(worker).collect();
        let there: BTreeSet<AttemptId> = held.iter().map(|held| held.attempt).collect();
        for held in held {
            let attempt = held.attempt;
            let Some(known) = believed.get(&attempt).filter(|known| !known.dying) else {
                self.queue(worker, &MasterFrame::Kill { attempt });
                continue;
            };
            if held.awaits_permit {
                self.events.push(Event::CommitRequested { attempt });
            }
            match (held.suspended, known.suspended) {
                (true, false) => self.queue(worker, &MasterFrame::Resume { attempt }),
                (true, true) if known.handing_over => self.queue(worker, &MasterFrame::HandOver { attempt }),
                (false, false) if known.leaving => self.queue(worker, &MasterFrame::Suspend { attempt }),
                _ => {}
            }
        }
        for (attempt, known) in believed.iter().filter(|(attempt, _)| !there.contains(*attempt)) {
            if known.dying || known.suspended {
                // It never started, or has vanished: no result will follow.
                self.stopped_there(worker, *attempt);
                self.events.push(Event::AttemptFailed { attempt: *attempt, class: Failure::Cancelled });
            } else {
                // The order to run it was lost with the connection. An attempt that had ended was reported before.
                self.order_launch(*attempt, worker);
            }
        }
    }

    /// True if this worker is not lost and may reconnect to the master.
    pub(crate) fn is_known(&self, hello: &Hello, before: Rejoin) -> bool {
        before.generation <= self.join_terms.generation
            && self.workers.get(&before.worker).is_some_and(|entry| {
                entry.hello.ended_proof == hello.ended_proof && entry.hello.pid == hello.pid
            })
    }

    /// Enters that a connection is gone whose worker may reconnect.
    pub(crate) fn expect_back(&mut self, worker: WorkerId) {
        if let Some(entry) = self.workers.get_mut(&worker) {
            entry.away = true;
            entry.outbox.clear();
            self.forget_permits(worker);
        }
    }
}

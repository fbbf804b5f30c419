//! Workers that join, reconnect, are drained or get lost.
//!
//! When a worker reconnects, to its master or to the successor, the states of both sides are reconciled. First come the
//! frames that the worker had sent and the master had not written down; they are entered like any other frames. Then
//! the worker reports what it holds, and the master sends again what the worker should have or do and does not. This
//! repairs everything that was in flight in either direction when the connection broke. Nothing that was written down
//! is requested again.

use super::super::recovery::RecoveryNote;
use super::super::tokens::list_key;
use super::MasterState;
use super::fleet::{WorkerEntry, check_offer};
use super::losses::{Loss, WorkerEnd};
use crate::api::WorkerEnded;
use crate::journal::{Encoded, JournalRecord};
use gristmill_scheduler::event::{Event, External, Failure};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::rules::{Rule, holds};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::protocol::{
    Heartbeat, HeldAttempt, HeldHome, Hello, Holding, MasterFrame, Rejoin, Session,
};
use gristmill_worker::sanitize;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc::UnboundedSender;

/// Workers that join within this time after a job's first task count as present from its start.
const STARTING: Span = Span::whole_seconds(1);

/// Joins.
impl MasterState {
    /// Registers a worker. An `Err` is sent to the worker.
    ///
    /// # Errors
    /// Another build or protocol.
    pub(crate) fn join(
        &mut self,
        now: Time,
        hello: Hello,
        frames: UnboundedSender<Vec<u8>>,
    ) -> Result<WorkerId, String> {
        if hello.build != self.join_terms.build {
            return Err(format!(
                "its program differs from the master's (build {} instead of {}): user functions are compiled in, \
                 so start the same executable everywhere",
                hello.build, self.join_terms.build
            ));
        }
        if let Some(before) = hello.rejoin {
            return self.rejoin(now, &hello, before, frames);
        }
        check_offer(&hello, self.join_terms.divided_slots)?;
        let worker = self.jobs.register.next_worker();
        self.journal.note(|| JournalRecord::Worker {
            worker,
            speed: hello.speed,
            nic_bytes_per_second: hello.nic_bytes_per_second,
        });
        self.journal.keep(|| RecoveryNote::Joined { at: now, worker, hello: Encoded::new(&hello) });
        let (host, slots) = (sanitize::message(&hello.host), hello.slots.total());
        self.enter_worker(now, worker, hello, frames);
        self.greet(now, worker);
        tracing::info!(%worker, host, slots, workers = self.fleet.workers.len(), "a worker joined");
        Ok(worker)
    }

    /// Adds a worker to this master's workers.
    pub(super) fn enter_worker(
        &mut self,
        now: Time,
        worker: WorkerId,
        hello: Hello,
        frames: UnboundedSender<Vec<u8>>,
    ) {
        let host = self.fleet.host(&hello.host);
        let offset_ns = (hello.worker_ns as i64).wrapping_sub(now.0 as i64);
        self.events.push(Event::WorkerJoined { worker, host, slots: hello.slots });
        let entry = WorkerEntry {
            endpoint: hello.shuffle.clone(),
            hello,
            frames,
            outbox: Vec::new(),
            away: self.replaying,
            heard: 0,
            heard_confirmed: 0,
            jobs_known: BTreeSet::new(),
            gathers: BTreeSet::new(),
            lanes_revision_sent: 0,
            running: BTreeMap::new(),
            suspended: BTreeSet::new(),
            heartbeat: Heartbeat::default(),
            joined: now,
            last_heard: now,
            silent: false,
            offset_ns,
            round_trip_ns: u64::MAX,
        };
        for job in self.jobs.live_mut() {
            let is_late = job.times.started.is_some_and(|started| STARTING < now.since(started));
            job.shared |= is_late || entry.is_divided();
        }
        self.fleet.insert(worker, entry);
        self.fleet.learn_network(&mut self.events);
    }

    /// Sends a worker the confirmation that it has joined.
    fn greet(&mut self, now: Time, worker: WorkerId) {
        let list_key = list_key(&self.join_terms.list_secret, worker);
        let Some(entry) = self.fleet.get_mut(worker) else { return };
        entry.heard_confirmed = entry.heard;
        let session = Session {
            generation: self.join_terms.generation,
            returns: self.journal.is_recoverable(),
            heard: entry.heard,
        };
        let heartbeat_ms = self.join_terms.heartbeat_ms;
        self.fleet.queue_frame(worker, &MasterFrame::Welcome { worker, heartbeat_ms, list_key, session });
        self.fleet.queue_frame(worker, &MasterFrame::Ping { master_ns: now.0 });
    }
}

/// Reconnections.
impl MasterState {
    /// Accepts a worker of this master, or of its predecessor, that has reconnected. An `Err` is sent to the worker.
    ///
    /// # Errors
    /// A worker that is not expected, or not the one it claims to be.
    fn rejoin(
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
        let known = self.fleet.get_mut(worker).filter(|entry| {
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

    /// Reconciles the state with what a reconnected worker holds.
    pub(super) fn reconcile(&mut self, now: Time, worker: WorkerId, holding: &Holding) {
        // Its earlier frames are handled first.
        self.settle(now);
        let Some(entry) = self.fleet.get_mut(worker).filter(|entry| entry.away) else { return };
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
            self.fleet.queue(worker, &MasterFrame::Forget { job });
        }
        for job in self.fleet.get(worker).map(|entry| entry.jobs_known.clone()).unwrap_or_default() {
            if let Some(entry) = self.jobs.get(job).filter(|entry| !entry.input.added.is_empty()) {
                self.fleet.queue(worker, &MasterFrame::MapsAdded { job, maps: entry.maps });
            }
        }
        self.reconcile_homes(now, worker, holding);
        for (map, from) in self.core.outputs_owed_to(worker) {
            self.announced.entry((worker, from, map.task.job)).or_default().push(map);
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
            self.lanes.gathers(now, job, self.fleet.get_mut(worker));
            // A partition with other segments than reported is rebuilt: it was moved away and back meanwhile. If there
            // is nothing to fetch, both the home and its reduce may have been ordered without effect.
            let never_told = segments.is_none() && !reduces.contains(&TaskId::reduce(job, partition));
            let same = home.in_use && !never_told || segments == Some(home.fetched);
            if same {
                continue;
            }
            if segments.is_some() {
                self.send(worker, job, &MasterFrame::Unhome { job, reduce: partition });
            }
            // A reduce that a division added has segments before the worker reports any. It may be launched already.
            let starts_full = segments.is_none() && 0 < home.fetched;
            match starts_full
                && self.jobs.get(job).is_some_and(|job| job.input.reduce(partition).divided.is_some())
            {
                true => self.send_home_of_rest(worker, job, partition),
                false => self.send_home(worker, job, partition),
            }
        }
        for (job, partition) in held.into_keys() {
            self.send(worker, job, &MasterFrame::Unhome { job, reduce: partition });
        }
    }

    fn reconcile_attempts(&mut self, worker: WorkerId, held: &[HeldAttempt]) {
        let believed: BTreeMap<AttemptId, _> = self.core.attempts_at(worker).collect();
        let there: BTreeSet<AttemptId> = held.iter().map(|held| held.attempt).collect();
        for held in held {
            let attempt = held.attempt;
            let Some(known) = believed.get(&attempt).filter(|known| !known.dying) else {
                self.fleet.queue(worker, &MasterFrame::Kill { attempt });
                continue;
            };
            if held.awaits_permit {
                self.events.push(Event::CommitRequested { attempt });
            }
            match (held.suspended, known.suspended) {
                (true, false) => self.fleet.queue(worker, &MasterFrame::Resume { attempt }),
                (false, false) if known.leaving && attempt.task.kind == TaskKind::Reduce => {
                    self.fleet.queue(worker, &MasterFrame::Suspend { attempt });
                }
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
        for (&attempt, known) in believed.iter().filter(|(_, known)| known.dividing && !known.dying) {
            self.fleet.queue(worker, &MasterFrame::Divide { attempt, at_once: known.leaving });
        }
    }

    /// True if this worker is not lost and may reconnect to the master.
    pub(crate) fn is_known(&self, hello: &Hello, before: Rejoin) -> bool {
        before.generation <= self.join_terms.generation
            && self.fleet.get(before.worker).is_some_and(|entry| {
                entry.hello.ended_proof == hello.ended_proof && entry.hello.pid == hello.pid
            })
    }

    /// Enters that a connection is gone whose worker may reconnect.
    pub(crate) fn expect_back(&mut self, worker: WorkerId) {
        if let Some(entry) = self.fleet.get_mut(worker) {
            entry.away = true;
            entry.outbox.clear();
            self.journal.forget_permits(worker);
        }
    }
}

/// Losses and drains.
impl MasterState {
    /// Enters that a worker's connection is gone. `end` describes how its process ended, if its starter reported that.
    pub(crate) fn lost(&mut self, now: Time, worker: WorkerId, end: Option<&WorkerEnded>) {
        self.lose(now, worker, end.map_or(WorkerEnd::Closed, WorkerEnd::Process));
    }

    /// Enters that a worker has said goodbye.
    pub(crate) fn worker_left(&mut self, now: Time, worker: WorkerId) {
        self.lose(now, worker, WorkerEnd::Left);
    }

    /// Enters that a worker was silent for too long.
    pub(crate) fn fell_silent(&mut self, now: Time, worker: WorkerId) {
        let Some(silent) = self.fleet.workers.get(&worker) else { return };
        let silence = now.since(silent.last_heard);
        self.fleet.silent_lost.add(now, worker, &silent.hello);
        self.lose(now, worker, WorkerEnd::Silent(silence));
    }

    fn lose(&mut self, now: Time, worker: WorkerId, end: WorkerEnd<'_>) {
        let Some(gone) = self.fleet.remove(worker) else { return };
        for (&attempt, &bytes) in &gone.running {
            self.jobs.read_in_flight(attempt, bytes, 0);
        }
        let loss = Loss::investigate(worker, &gone, end, &self.core);
        for &attempt in gone.running.keys() {
            if let Some(job) = self.jobs.get_mut(attempt.task.job) {
                loss.enter_attempt(now, attempt, job);
            }
        }
        let live = |job: &&JobId| self.jobs.get(**job).is_some_and(|job| !job.state.ended());
        let mut concerned: BTreeSet<JobId> = gone.jobs_known.iter().filter(live).copied().collect();
        concerned.extend(gone.running.keys().map(|attempt| attempt.task.job));
        for &job in &concerned {
            let held = self.core.outputs_at(job, worker);
            if let Some(entry) = self.jobs.get_mut(job) {
                loss.report(now, (job, entry), &gone, held);
            }
        }
        if loss.out_of_memory {
            self.ran_out_of_memory(&gone, &loss, &concerned);
        }
        self.events.push(Event::WorkerLost { worker, culprit: loss.culprit.into_iter().collect() });
        self.fleet.learn_network(&mut self.events);
    }

    /// Enters that memory ran out on a worker, which knew the jobs `concerned`. The attempts that ran there run alone
    /// from now on. If only one task ran, its job is kept apart from other jobs near the memory limit, and fails before
    /// it has taken down all workers. So does the only job of a worker that ran none: its outputs took the memory.
    fn ran_out_of_memory(&mut self, gone: &WorkerEntry, loss: &Loss, concerned: &BTreeSet<JobId>) {
        let attempts = loss.awake(gone);
        self.events.push(Event::MemoryRanOut { attempts: attempts.clone() });
        let only_job = concerned.first().filter(|_| concerned.len() == 1);
        let job = match (&attempts[..], only_job) {
            ([attempt], _) => attempt.task.job,
            ([], Some(&job)) => job,
            _ => return,
        };
        let entry = self.jobs.get_mut(job).filter(|entry| !entry.state.ended());
        if entry.is_some_and(|entry| loss.count_memory_death(entry)) {
            self.events.push(Event::JobFailed { job, cause: External::LimitPassed });
        }
    }

    /// Gives no new work to workers without a sign of life since `limit` until they give one.
    pub(crate) fn suspect_silent(&mut self, limit: Time) {
        self.fleet.suspect_silent(limit, &mut self.events);
    }

    /// Starts to drain a worker. Returns true if the worker exists.
    pub(crate) fn drain(&mut self, worker: WorkerId) -> bool {
        if !self.fleet.workers.contains_key(&worker) {
            return false;
        }
        self.fleet.draining.insert(worker);
        self.events.push(Event::WorkerDraining { worker });
        tracing::info!(%worker, "is to leave: it ends what it runs, and others fetch what they lack of it");
        true
    }

    /// Orders draining workers to exit as soon as none of their data is needed.
    pub(crate) fn dismiss_drained(&mut self, now: Time) {
        // A disconnected worker gets the order when it is back.
        let here = |worker: &WorkerId| self.fleet.get(*worker).is_some_and(|entry| !entry.away);
        let may_leave = |worker: &WorkerId| here(worker) && self.core.may_leave(*worker, now);
        for worker in self.fleet.draining.iter().copied().filter(may_leave).collect::<Vec<_>>() {
            self.fleet.draining.remove(&worker);
            self.fleet.queue(worker, &MasterFrame::Shutdown);
        }
        self.flush();
    }

    /// Pings every worker to measure clock offsets.
    pub(crate) fn ping(&mut self, now: Time) {
        self.fleet.confirm_heard(self.journal.is_recoverable());
        let ping = MasterFrame::Ping { master_ns: now.0 };
        match self.journal.trouble() {
            None => self.fleet.queue_for_all(&ping),
            // A ping does not wait for disk space: a silent master would be considered gone.
            Some(_) => self.fleet.send_at_once(&ping),
        }
        self.flush();
    }

    /// Orders every worker to exit.
    pub(crate) fn shutdown_workers(&mut self) {
        self.fleet.queue_for_all(&MasterFrame::Shutdown);
        self.flush();
    }
}

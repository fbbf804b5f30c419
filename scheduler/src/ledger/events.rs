//! Enters events into the ledger: each changes the facts by its rule and returns the commands that follow at once.
//!
//! Ends of attempts are in `ends`, speculative attempts in `backups`, suspended ones in `suspensions`, cut routes in
//! `detours`.

use crate::command::{Cause, Command, Outcome};
use crate::event::{Event, Failure};
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::JobSpec;
use crate::ledger::attempts::TaskEnd;
use crate::ledger::{Job, Ledger};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Ledger {
    /// Enters one event.
    pub(crate) fn enter(&mut self, event: &Event, out: &mut Vec<Command>) {
        match event {
            Event::WorkerJoined { worker, host, slots } => {
                self.workers.join(*worker, *host, *slots);
                self.welcome(*worker, out);
            }
            Event::WorkerSilent { worker, silent } => {
                if !self.workers.fall_silent(*worker, *silent) {
                    self.late();
                }
            }
            Event::WorkerDiskRoom { worker, free, reserve } => {
                match self.workers.has_room(*worker, *free, *reserve) {
                    true => self.route_around(out),
                    false => self.late(),
                }
            }
            Event::WorkerDraining { worker } => match self.workers.drain(*worker, self.now) {
                true => self.route_around(out),
                false => self.late(),
            },
            Event::MemoryRanOut { attempts } => self.memory_ran_out(attempts),
            Event::WorkerLost { worker, culprit } => self.lose_worker(*worker, culprit, out),
            Event::JobArrived { job, spec } => self.arrive(*job, Arc::clone(spec), out),
            Event::JobCancelled { job } => self.give_up(*job, Outcome::Cancelled, out),
            Event::JobFailed { job, cause } => {
                let cause = Cause::External { cause: *cause };
                self.give_up(*job, Outcome::Failed { cause }, out);
            }
            Event::MapFinished { attempt, output_bytes, took, fingerprint } => {
                let result = TaskEnd { output: *output_bytes, took: *took, fingerprint: *fingerprint };
                self.finished(*attempt, TaskKind::Map, result, out);
            }
            Event::ReduceFinished { attempt, output_bytes, took } => {
                let result = TaskEnd { output: *output_bytes, took: *took, fingerprint: None };
                self.finished(*attempt, TaskKind::Reduce, result, out);
            }
            Event::AttemptFailed { attempt, class } => self.failed(*attempt, *class, out),
            Event::AttemptSuspended { attempt } => self.suspended(*attempt),
            Event::SuspensionRefused { attempt } => self.suspension_refused(*attempt),
            Event::AttemptReturned { attempt } => self.returned(*attempt, out),
            Event::Fetched { job, home, map, partitions } => {
                self.fetched((*job, *map), *home, partitions, out);
            }
            Event::FetchFailed { job, home, map, class } => {
                self.fetch_failed(*job, *home, *map, *class, out);
            }
            Event::FetchRates { home, routes } => self.fetch_rates(*home, routes, out),
            Event::AttemptProgressed { attempt, read, of } => self.progressed(*attempt, *read, *of),
            Event::MapDivided { attempt, kept, work } => self.divided(*attempt, *kept, *work, out),
            Event::ReduceDivided { attempt, key, left, work } => {
                self.reduce_divided(*attempt, key, (*left, *work), out);
            }
            Event::DivisionRefused { attempt } => self.division_refused(*attempt),
            Event::CommitRequested { attempt } => self.commit(*attempt, out),
            Event::NetworkRate { per_worker } => {
                self.config.network = *per_worker;
                self.unseen.dirty.extend(self.jobs.keys());
            }
            Event::Tick => {}
        }
    }

    fn arrive(&mut self, id: JobId, spec: Arc<JobSpec>, out: &mut Vec<Command>) {
        assert!(self.last_job.is_none_or(|last| last < id), "{id} arrived after {:?}", self.last_job);
        let checked = spec.check();
        assert!(checked.is_ok(), "{id} arrived unchecked: {checked:?}");
        self.last_job = Some(id);
        self.arrivals.add(self.now, spec.maps.len());
        let mut job = Job::new(id, spec, self.now);
        job.workers.excluded.clone_from(self.routes.aside());
        let waits = (0..job.maps.len() as u32).try_for_each(|map| job.map_waits(map, &mut self.workers));
        let complete = job.complete();
        self.owners.add(&job);
        self.jobs.insert(id, job);
        self.unseen.arrived.push(id);
        self.unseen.dirty.insert(id);
        match waits {
            Err(cause) => self.end(id, Outcome::Failed { cause }, out),
            Ok(()) if complete => self.end(id, Outcome::Succeeded, out),
            Ok(()) => {}
        }
    }

    fn give_up(&mut self, job: JobId, outcome: Outcome, out: &mut Vec<Command>) {
        if self.jobs.contains_key(&job) {
            self.end(job, outcome, out);
        } else {
            self.late();
        }
    }

    /// Handles a new worker. It gets a share of the homes that are free to move, assigned maps that have not started
    /// are assigned again, and jobs that used excluded workers leave those. Only this function scans all live jobs;
    /// workers join rarely.
    fn welcome(&mut self, worker: WorkerId, out: &mut Vec<Command>) {
        for (&id, job) in &mut self.jobs {
            job.leave_excluded(&mut self.workers, out);
            job.queue.welcome(id, worker, (&job.spec.maps, &job.maps), &mut self.workers);
            job.share_homes(worker, &mut self.workers, out);
            job.unassign_all(&mut self.workers);
            let orphaned = job.workers.orphaned_since.is_some();
            if orphaned || !job.homes.unassigned.is_empty() || job.queue.assignable().next().is_some() {
                self.unseen.dirty.insert(id);
            }
        }
    }

    fn lose_worker(&mut self, id: WorkerId, culprits: &[AttemptId], out: &mut Vec<Command>) {
        let Some(worker) = self.workers.lose(id) else { return self.late() };
        if self.workers.count() == 0 {
            self.waits.deserted_at = self.now;
        }
        if self.routes.aside().contains(&id) {
            for job in self.jobs.values_mut() {
                job.workers.excluded.remove(&id);
            }
        }
        // Remove all attempts from the table before handling the effects, which may end a job.
        let gone: Vec<AttemptId> =
            worker.running.iter().chain(&worker.queued).chain(&worker.suspended).copied().collect();
        let released = |&attempt: &AttemptId| {
            let record = self.release(attempt).filter(|record| !record.dying)?;
            Some((attempt, record))
        };
        let released: Vec<_> = gone.iter().filter_map(released).collect();
        let charged = |attempt: &AttemptId| culprits.contains(attempt);
        let known = released.iter().any(|(attempt, _)| charged(attempt));
        let ran = released.iter().filter(|(attempt, record)| match known {
            true => charged(attempt),
            false => !record.queued,
        });
        self.count_death(ran.map(|(attempt, _)| attempt));
        for (attempt, record) in released {
            match charged(&attempt) {
                true => self.stopped(attempt, &record, Failure::User, out),
                false if known && !record.queued => self.stopped_by_another(attempt, &record, out),
                false if record.queued => {
                    // The attempt may have started and crashed the worker before the worker could report it.
                    if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                        job.tries_mut(attempt.task).alone = true;
                    }
                    self.map_again(attempt, out);
                }
                false => self.stopped(attempt, &record, Failure::Lost, out),
            }
        }
        let concerned: BTreeSet<JobId> =
            worker.marks.jobs.iter().chain(&worker.marks.bound).chain(&worker.marks.named).copied().collect();
        for concerned in concerned {
            let Some(job) = self.jobs.get_mut(&concerned) else { continue };
            self.unseen.dirty.insert(concerned);
            if let Err(cause) = job.lose_worker(&worker, &mut self.workers, out) {
                self.end(concerned, Outcome::Failed { cause }, out);
            }
        }
        self.rates.lose(id);
        if self.routes.lose(id) {
            self.route_around(out);
        }
    }

    /// Records that memory ran out where these attempts ran. The attempt at fault is unknown.
    fn memory_ran_out(&mut self, attempts: &[AttemptId]) {
        let known: Vec<TaskId> = attempts
            .iter()
            .filter(|attempt| self.attempts.contains_key(attempt))
            .map(|attempt| attempt.task)
            .collect();
        for task in &known {
            if let Some(job) = self.jobs.get_mut(&task.job) {
                job.tries_mut(*task).short_of_memory = true;
            }
        }
        for id in known.iter().map(|task| task.job).collect::<BTreeSet<_>>() {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.workers.memory_deaths += 1;
            }
        }
    }

    /// Records the loss of a worker with these attempts, or with the one that crashed it.
    fn count_death<'a>(&mut self, ran: impl Iterator<Item = &'a AttemptId>) {
        let jobs: BTreeSet<JobId> = ran.map(|attempt| attempt.task.job).collect();
        for id in jobs {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.workers.deaths += 1;
            }
        }
    }

    /// Records that a home has segments of a map.
    fn fetched(
        &mut self,
        (id, map): (JobId, AttemptId),
        home: WorkerId,
        partitions: &[u32],
        out: &mut Vec<Command>,
    ) {
        let live = self.jobs.get_mut(&id).filter(|_| map.task.job == id && is_map(map));
        let Some(job) = live else { return self.late() };
        let from = job.held_at(map);
        match job.fetched(home, map, partitions, &mut self.workers) {
            Ok(true) => {
                self.unseen.dirty.insert(id);
                if from.is_some_and(|from| self.routes.read(home, from, self.now)) {
                    self.route_around(out);
                }
            }
            Ok(false) => self.late(),
            Err(cause) => self.end(id, Outcome::Failed { cause }, out),
        }
    }

    /// Handles a home that has given up fetching from a map.
    fn fetch_failed(
        &mut self,
        id: JobId,
        home: WorkerId,
        map: AttemptId,
        class: Failure,
        out: &mut Vec<Command>,
    ) {
        let limits = (self.config.rereads_max, self.config.worker_failures());
        let job = self.jobs.get_mut(&id).filter(|_| map.task.job == id && is_map(map));
        let lacked = job.as_ref().filter(|job| job.home_lacks(home, map.task.index));
        let from = lacked.and_then(|job| job.held_at(map)).filter(|&from| from != home);
        // A disk that rejected the bytes was reached; damaged bytes also arrived over a working route.
        if let (Failure::Fetch, Some(from)) = (class, from) {
            if self.workers.get(from).is_some_and(|worker| worker.silent) {
                // The master receives no heartbeats from it either, and soon decides if it is lost.
                return out.push(Command::Announce { job: id, map, from, to: home });
            }
            return self.route_failed(home, from, out);
        }
        let workers = &mut self.workers;
        match job.and_then(|job| job.fetch_failed((home, map), class, limits, workers, out)) {
            None => self.late(),
            Some(Ok(())) => {
                self.unseen.dirty.insert(id);
            }
            Some(Err(cause)) => self.end(id, Outcome::Failed { cause }, out),
        }
    }
}

fn is_map(attempt: AttemptId) -> bool {
    attempt.task.kind == TaskKind::Map
}

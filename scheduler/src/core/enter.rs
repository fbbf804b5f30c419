//! Enters events into the ledger and settles what cannot wait for a plan: homes, and jobs without workers.

use crate::command::{Cause, Command, Outcome};
use crate::core::Core;
use crate::event::{Event, Failure};
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::JobSpec;
use crate::ledger::ends::TaskEnd;
use crate::ledger::{Job, Ledger};
use crate::placement::{AssignmentRequest, HomeRequest};
use crate::units::Time;
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
            Event::MapFinished { attempt, output_bytes, took, print } => {
                let result = TaskEnd { output: *output_bytes, took: *took, print: *print };
                self.finished(*attempt, TaskKind::Map, result, out);
            }
            Event::ReduceFinished { attempt, output_bytes, took } => {
                let result = TaskEnd { output: *output_bytes, took: *took, print: None };
                self.finished(*attempt, TaskKind::Reduce, result, out);
            }
            Event::AttemptFailed { attempt, class } => self.failed(*attempt, *class, out),
            Event::AttemptSuspended { attempt } => self.suspended(*attempt),
            Event::SuspensionRefused { attempt } => self.suspension_refused(*attempt),
            Event::AttemptHandedOver { attempt } => self.handed_over(*attempt, out),
            Event::AttemptReturned { attempt } => self.returned(*attempt, out),
            Event::Fetched { job, home, map, partitions } => {
                self.fetched((*job, *map), *home, partitions, out);
            }
            Event::FetchFailed { job, home, map, class } => {
                self.fetch_failed(*job, *home, *map, *class, out);
            }
            Event::FetchRates { home, ways } => self.fetch_rates(*home, ways, out),
            Event::AttemptProgressed { attempt, read } => self.progressed(*attempt, *read),
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
            job.take_back_all(&mut self.workers);
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

    /// Returns the time when the next job fails for lack of a worker that its maps are pinned to; `None` if none waits.
    pub(crate) fn orphans_end(&self) -> Option<Time> {
        self.waits.orphaned.first().map(|&(since, _)| since + self.config.pinned_grace)
    }

    /// Updates which of the changed jobs have maps pinned to hosts without a worker.
    fn look_at_orphans(&mut self) {
        for id in &self.unseen.dirty {
            let job = self.jobs.get_mut(id).expect("jobs that ended are not dirty");
            match (job.queue.orphans.is_empty(), job.workers.orphaned_since) {
                (false, None) => {
                    job.workers.orphaned_since = Some(self.now);
                    self.waits.orphaned.insert((self.now, *id));
                }
                (true, Some(since)) => {
                    job.workers.orphaned_since = None;
                    self.waits.orphaned.remove(&(since, *id));
                }
                _ => {}
            }
        }
    }

    /// Returns the time when the next job fails for lack of workers; `None` if there are workers or no jobs.
    pub(crate) fn grace_ends(&self) -> Option<Time> {
        if 0 < self.workers.count() {
            return None;
        }
        // Jobs are ordered by arrival, so the first one fails first.
        let (_, job) = self.jobs.first_key_value()?;
        Some(job.arrival.max(self.waits.deserted_at) + self.config.no_workers_grace)
    }
}

impl Core {
    /// Assigns homes to partitions without one, and fails jobs that waited too long for a worker.
    pub(super) fn settle(&mut self, out: &mut Vec<Command>) {
        while self.ledger.grace_ends().is_some_and(|end| end <= self.ledger.now) {
            let (&id, _) = self.ledger.jobs.first_key_value().expect("a job's grace ended");
            self.ledger.end(id, Outcome::Failed { cause: Cause::NoWorkers }, out);
        }
        while self.ledger.orphans_end().is_some_and(|end| end <= self.ledger.now) {
            let &(_, id) = self.ledger.waits.orphaned.first().expect("a job's grace ended");
            let job = &self.ledger.jobs[&id];
            let Some(&orphan) = job.queue.orphans.first() else {
                // The worker it waited for has joined at this very instant.
                self.ledger.unseen.dirty.insert(id);
                self.ledger.look_at_orphans();
                continue;
            };
            let cause = job.orphan(orphan);
            self.ledger.end(id, Outcome::Failed { cause }, out);
        }
        if self.ledger.workers.count() == 0 {
            return self.ledger.look_at_orphans();
        }
        let unassigned =
            |id: &JobId| self.ledger.jobs.get(id).is_some_and(|job| !job.homes.unassigned.is_empty());
        for id in self.ledger.unseen.dirty.iter().copied().filter(unassigned).collect::<Vec<_>>() {
            self.house(id, out);
        }
        self.assign();
        self.ledger.look_at_orphans();
    }

    /// Lets the placement assign maps of new jobs, and maps that lost their assigned worker.
    fn assign(&mut self) {
        let ledger = &mut self.ledger;
        for id in &ledger.unseen.dirty {
            let job = ledger.jobs.get_mut(id).expect("jobs that ended are not dirty");
            if job.queue.assignable().next().is_none() {
                continue;
            }
            let tasks_per_second = ledger.arrivals.rate();
            let maps = job.queue.open.len() + job.queue.preferring.len();
            let request = AssignmentRequest { job, maps, workers: &ledger.workers, tasks_per_second };
            let Some(places) = self.placement.assign(request) else { continue };
            let name = self.placement.name();
            assert!(places.len() == maps, "{name} assigned {} of {maps} maps of {id}", places.len());
            let waiting: Vec<u32> = job.queue.assignable().collect();
            for (map, to) in waiting.into_iter().zip(places) {
                let usable = ledger.workers.is_live(to) && job.may_use(to, &ledger.workers);
                assert!(usable, "{name} assigned {id} to {to}, which it cannot use");
                job.assign(map, to, &mut ledger.workers);
            }
        }
    }

    fn house(&mut self, id: JobId, out: &mut Vec<Command>) {
        let ledger = &mut self.ledger;
        let job = ledger.jobs.get_mut(&id).expect("only live jobs are housed");
        let mut new = BTreeSet::new();
        for partition in job.homes.unassigned.clone() {
            let goes_on = job.reduces[partition as usize].continues.is_some();
            let request = HomeRequest { job, partition, goes_on, workers: &ledger.workers };
            let home = self.placement.home(request);
            assert!(
                ledger.workers.is_live(home),
                "{} chose {home}, which is not live",
                self.placement.name()
            );
            assert!(
                job.may_use(home, &ledger.workers),
                "{} chose {home}, excluded for {id}",
                self.placement.name()
            );
            job.set_home(partition, home, &mut ledger.workers, out);
            new.insert(home);
        }
        match job.supply(&new, &mut ledger.workers, out) {
            Err(cause) => ledger.end(id, Outcome::Failed { cause }, out),
            Ok(()) => ledger.give_up_cut_off(id, out),
        }
    }
}

//! Settles what cannot wait for a plan: homes of partitions, assignments of maps, and jobs without workers.

use crate::command::{Cause, Command, Outcome};
use crate::core::Core;
use crate::ids::JobId;
use crate::ledger::Ledger;
use crate::placement::{AssignmentRequest, HomeRequest};
use crate::units::Time;
use std::collections::BTreeSet;

impl Core {
    /// Assigns homes to partitions without one, and fails jobs that waited too long for a worker.
    pub(super) fn settle(&mut self, out: &mut Vec<Command>) {
        while grace_ends(&self.ledger).is_some_and(|end| end <= self.ledger.now) {
            let (&id, _) = self.ledger.jobs.first_key_value().expect("a job's grace ended");
            self.ledger.end(id, Outcome::Failed { cause: Cause::NoWorkers }, out);
        }
        while orphans_end(&self.ledger).is_some_and(|end| end <= self.ledger.now) {
            let &(_, id) = self.ledger.waits.orphaned.first().expect("a job's grace ended");
            let job = &self.ledger.jobs[&id];
            let Some(&orphan) = job.queue.orphans.first() else {
                // The worker it waited for has joined at this very instant.
                self.ledger.unseen.dirty.insert(id);
                update_orphans(&mut self.ledger);
                continue;
            };
            let cause = job.orphan(orphan);
            self.ledger.end(id, Outcome::Failed { cause }, out);
        }
        if self.ledger.workers.count() == 0 {
            return update_orphans(&mut self.ledger);
        }
        let unassigned =
            |id: &JobId| self.ledger.jobs.get(id).is_some_and(|job| !job.homes.unassigned.is_empty());
        for id in self.ledger.unseen.dirty.iter().copied().filter(unassigned).collect::<Vec<_>>() {
            self.assign_homes(id, out);
        }
        self.assign();
        update_orphans(&mut self.ledger);
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

    fn assign_homes(&mut self, id: JobId, out: &mut Vec<Command>) {
        let ledger = &mut self.ledger;
        let job = ledger.jobs.get_mut(&id).expect("only live jobs are housed");
        let mut new = BTreeSet::new();
        for partition in job.homes.unassigned.clone() {
            let request = HomeRequest { job, partition, workers: &ledger.workers };
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

/// Returns the time when the next job fails for lack of a worker that its maps are pinned to; `None` if none waits.
pub(super) fn orphans_end(ledger: &Ledger) -> Option<Time> {
    ledger.waits.orphaned.first().map(|&(since, _)| since + ledger.config.pinned_grace)
}

/// Updates which of the changed jobs have maps pinned to hosts without a worker.
fn update_orphans(ledger: &mut Ledger) {
    for id in &ledger.unseen.dirty {
        let job = ledger.jobs.get_mut(id).expect("jobs that ended are not dirty");
        match (job.queue.orphans.is_empty(), job.workers.orphaned_since) {
            (false, None) => {
                job.workers.orphaned_since = Some(ledger.now);
                ledger.waits.orphaned.insert((ledger.now, *id));
            }
            (true, Some(since)) => {
                job.workers.orphaned_since = None;
                ledger.waits.orphaned.remove(&(since, *id));
            }
            _ => {}
        }
    }
}

/// Returns the time when the next job fails for lack of workers; `None` if there are workers or no jobs.
pub(super) fn grace_ends(ledger: &Ledger) -> Option<Time> {
    if 0 < ledger.workers.count() {
        return None;
    }
    // Jobs are ordered by arrival, so the first one fails first.
    let (_, job) = ledger.jobs.first_key_value()?;
    Some(job.arrival.max(ledger.waits.deserted_at) + ledger.config.no_workers_grace)
}

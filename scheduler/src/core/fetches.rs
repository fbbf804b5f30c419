//! Enters reports of homes about their fetches: arrived segments, failures, and their cause.

use crate::command::{Command, Outcome};
use crate::event::Failure;
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::ledger::Ledger;

impl Ledger {
    /// Records that a home has segments of a map.
    pub(super) fn fetched(
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
    pub(super) fn fetch_failed(
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

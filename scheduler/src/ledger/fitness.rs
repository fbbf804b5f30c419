//! Workers that are unfit for a job: when the job stops using them, and when it fails for lack of better ones.

use crate::command::{Cause, Command};
use crate::ids::{TaskId, WorkerId};
use crate::ledger::jobs::Job;
use crate::ledger::tasks::ReduceState;
use crate::ledger::workers::Workers;

impl Job {
    /// Records a failure of this job by a worker's fault. After `bar` failures the worker is excluded; after `max` the
    /// job fails if there is no better worker. A worker with many slots may exceed these limits in one instant.
    pub(crate) fn worker_failed(
        &mut self,
        worker: WorkerId,
        task: TaskId,
        (bar, max): (u32, u32),
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        let worker_failures = self.workers.failures.entry(worker).or_default();
        *worker_failures += 1;
        let worker_failures = *worker_failures;
        if bar <= worker_failures && workers.is_live(worker) && self.workers.excluded.insert(worker) {
            self.leave_excluded(workers, out);
        }
        match max <= worker_failures && self.workers.excluded.len() == workers.count() {
            true => Err(Cause::WorkersUnfit { task }),
            false => Ok(()),
        }
    }

    /// Readmits a worker where an attempt succeeded although all workers had failed the job: its fault has passed. Its
    /// next failure excludes it again.
    pub(crate) fn worker_did_well(
        &mut self,
        worker: WorkerId,
        bar: u32,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) {
        let had_to_do = self.workers.excluded.len() == workers.count();
        let failures = self.workers.failures.get_mut(&worker).filter(|failures| bar <= **failures);
        if let Some(failures) = failures.filter(|_| had_to_do)
            && self.workers.excluded.remove(&worker)
        {
            *failures = bar.saturating_sub(1);
            self.leave_excluded(workers, out);
        }
    }

    /// Handles a worker without a route to the submitter or to others that have input. It gets no more tasks while
    /// there are others, and each task keeps its retries.
    pub(crate) fn cut_off(
        &mut self,
        worker: WorkerId,
        task: TaskId,
        bar: u32,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        match self.workers.failures.get(&worker).is_some_and(|&worker_failures| bar <= worker_failures) {
            true => Ok(()),
            false => self.worker_failed(worker, task, (bar, u32::MAX), workers, out),
        }
    }

    /// Moves partitions away from excluded homes while there are better ones. Reduces that have started may end there.
    pub(crate) fn leave_excluded(&mut self, workers: &mut Workers, out: &mut Vec<Command>) {
        if self.workers.excluded.len() == workers.count() {
            return;
        }
        for worker in self.workers.excluded.clone() {
            for partition in self.homes.at.get(&worker).cloned().unwrap_or_default() {
                let state = self.reduces[partition as usize].state;
                if !matches!(state, ReduceState::Running | ReduceState::Suspended) {
                    self.unhome(partition, workers, out);
                }
            }
            self.take_back(worker, workers);
        }
    }
}

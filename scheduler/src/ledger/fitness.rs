//! Workers that are no good for a job: when it leaves them, and when it is given up because there are no better ones.
//!
//! Not here: which failures are a worker's fault (`attempts`, `outputs`).

use crate::command::{Cause, Command};
use crate::ids::{TaskId, WorkerId};
use crate::ledger::jobs::Job;
use crate::ledger::tasks::ReduceState;
use crate::ledger::workers::Workers;

impl Job {
    /// A worker failed this job by its own fault; after `bar` times it gets no more, after `max` the job gives up, if
    /// there is no better worker. A worker of many slots may fail more often than that in one instant.
    pub(crate) fn trouble(
        &mut self,
        worker: WorkerId,
        task: TaskId,
        (bar, max): (u32, u32),
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        let troubles = self.troubles.entry(worker).or_default();
        *troubles += 1;
        let troubles = *troubles;
        if bar <= troubles && workers.is_live(worker) && self.barred.insert(worker) {
            self.leave_barred(workers, out);
        }
        match max <= troubles && self.barred.len() == workers.count() {
            true => Err(Cause::WorkersUnfit { task }),
            false => Ok(()),
        }
    }

    /// A worker has no way to the submitter, or to others that have input: it gets no more while there are others, and
    /// each task has its tries.
    pub(crate) fn cut_off(
        &mut self,
        worker: WorkerId,
        task: TaskId,
        bar: u32,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        match self.troubles.get(&worker).is_some_and(|&troubles| bar <= troubles) {
            true => Ok(()),
            false => self.trouble(worker, task, (bar, u32::MAX), workers, out),
        }
    }

    /// Takes partitions away from barred homes while there are better ones; reduces that have begun may end there.
    pub(crate) fn leave_barred(&mut self, workers: &mut Workers, out: &mut Vec<Command>) {
        if self.barred.len() == workers.count() {
            return;
        }
        for worker in self.barred.clone() {
            for partition in self.homes.get(&worker).cloned().unwrap_or_default() {
                let state = self.reduces[partition as usize].state;
                if !matches!(state, ReduceState::Running | ReduceState::Suspended) {
                    self.unhome(partition, workers, out);
                }
            }
            self.undeal(worker, workers);
        }
    }
}

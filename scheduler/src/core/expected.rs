//! Expected state of a worker according to the ledger, for a driver that compares it after a lost connection.

use crate::core::{AttemptSnapshot, Core};
use crate::ids::{AttemptId, JobId, WorkerId};
use crate::ledger::Job;
use crate::ledger::tasks::{MapState, ReduceState};

/// Partition that a worker should gather.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpectedHome {
    /// Job of the partition.
    pub job: JobId,
    /// Number of the partition.
    pub partition: u32,
    /// Non-empty segments that have arrived, according to the worker's reports.
    pub fetched: u32,
    /// True if an attempt of its reduce holds them.
    pub in_use: bool,
}

impl Core {
    /// Returns the attempts of this worker that have not ended, by id. Cost: linear in the attempts of all workers.
    pub fn attempts_at(&self, worker: WorkerId) -> impl Iterator<Item = (AttemptId, AttemptSnapshot)> {
        self.attempts().filter(move |(_, attempt)| attempt.worker == worker)
    }

    /// Returns the unfinished partitions of live jobs whose home or second home is this worker.
    #[must_use]
    pub fn homes_at(&self, worker: WorkerId) -> Vec<ExpectedHome> {
        let homes = |job: &Job| {
            let partitions = job.homes.at.get(&worker).into_iter().flatten();
            let first = partitions.map(|&partition| {
                let reduce = &job.reduces[partition as usize];
                ExpectedHome {
                    job: job.id,
                    partition,
                    fetched: reduce.gathered.count() - job.outputs.empty.count(),
                    in_use: matches!(reduce.state, ReduceState::Running | ReduceState::Suspended),
                }
            });
            let second = job.homes.second.iter().filter(|(_, second)| second.at == worker);
            let second = second.map(|(&partition, second)| ExpectedHome {
                job: job.id,
                partition,
                fetched: second.gathered.count() - job.outputs.empty.count(),
                in_use: job.reduces[partition as usize].tries.backup.is_some(),
            });
            first.chain(second).collect::<Vec<_>>()
        };
        self.ledger.jobs.values().flat_map(homes).collect()
    }

    /// Returns the map outputs of which this worker lacks segments as a home, with the workers that have them.
    #[must_use]
    pub fn outputs_owed_to(&self, worker: WorkerId) -> Vec<(AttemptId, WorkerId)> {
        let owed = |job: &Job| {
            let second =
                |map: u32| job.homes.second.keys().any(|&partition| job.second_lacks(worker, map, partition));
            let maps = (0..job.maps.len() as u32).filter(|&map| job.home_lacks(worker, map) || second(map));
            let made = maps.filter_map(|map| match job.maps[map as usize].state {
                MapState::Done { output: Some(from) } => Some((job.current_map(map), from)),
                _ => None,
            });
            made.collect::<Vec<_>>()
        };
        let gathers = |job: &&Job| {
            job.homes.at.contains_key(&worker) || job.homes.second.values().any(|second| second.at == worker)
        };
        self.ledger.jobs.values().filter(gathers).flat_map(owed).collect()
    }

    /// True if this job has arrived and not ended.
    #[must_use]
    pub fn is_live(&self, job: JobId) -> bool {
        self.ledger.jobs.contains_key(&job)
    }
}

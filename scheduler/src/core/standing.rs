//! What a worker should have and do by the ledger: a driver that has lost the way to it, and found it again, compares.

use crate::core::{AttemptSnapshot, Core};
use crate::ids::{AttemptId, JobId, WorkerId};
use crate::ledger::Job;
use crate::ledger::tasks::{MapState, ReduceState};

/// A partition that a worker should gather.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StandingHome {
    /// Of this job.
    pub job: JobId,
    /// Its number.
    pub partition: u32,
    /// Segments with pairs that have come, by what its worker has reported.
    pub fetched: u32,
    /// An attempt of its reduce holds them.
    pub in_use: bool,
}

impl Core {
    /// The attempts of this worker that have not ended, by id. Costs as much as there are attempts on all workers.
    pub fn attempts_at(&self, worker: WorkerId) -> impl Iterator<Item = (AttemptId, AttemptSnapshot)> {
        self.attempts().filter(move |(_, attempt)| attempt.worker == worker)
    }

    /// The partitions of live jobs whose home or second home this worker is, and which are not done.
    #[must_use]
    pub fn homes_at(&self, worker: WorkerId) -> Vec<StandingHome> {
        let homes = |job: &Job| {
            let partitions = job.homes.at.get(&worker).into_iter().flatten();
            let standing = partitions.map(|&partition| {
                let reduce = &job.reduces[partition as usize];
                StandingHome {
                    job: job.id,
                    partition,
                    fetched: reduce.gathered.count() - job.outputs.empty.count(),
                    in_use: matches!(reduce.state, ReduceState::Running | ReduceState::Suspended),
                }
            });
            let second = job.homes.second.iter().filter(|(_, second)| second.at == worker);
            let second = second.map(|(&partition, second)| StandingHome {
                job: job.id,
                partition,
                fetched: second.gathered.count() - job.outputs.empty.count(),
                in_use: job.reduces[partition as usize].tries.backup.is_some(),
            });
            standing.chain(second).collect::<Vec<_>>()
        };
        self.ledger.jobs.values().flat_map(homes).collect()
    }

    /// The map outputs of which this worker lacks segments as a home, and who has them.
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

    /// Whether this job has come and not ended.
    #[must_use]
    pub fn is_live(&self, job: JobId) -> bool {
        self.ledger.jobs.contains_key(&job)
    }
}

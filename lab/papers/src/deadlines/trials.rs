//! Runs the four jobs of the deadlines paper under all schedulers, with each distribution of the map lengths of its two
//! Join jobs. All sections on goals read these runs.

use super::trial::{DeadlineTrial, Scheduler, simulate};
use crate::prelude::*;
use crate::workload::deadlines::Joins;

/// Runs of all schedulers on all kinds of Joins with all seeds.
pub(super) struct Trials {
    pub(super) seeds: Vec<u64>,
    /// Runs by seed, in the order of [`Joins::ALL`] and [`Scheduler::ALL`].
    pub(super) all: Vec<Vec<DeadlineTrial>>,
}

impl Trials {
    pub(super) fn trials(&self, joins: Joins, scheduler: Scheduler) -> &[DeadlineTrial] {
        &self.all[joins as usize * Scheduler::ALL.len() + scheduler as usize]
    }
}

pub(super) fn trials(seeds: &[u64]) -> anyhow::Result<Trials> {
    let schedulers = |joins| Scheduler::ALL.into_iter().map(move |scheduler| (joins, scheduler));
    let cells: Vec<(Joins, Scheduler)> = Joins::ALL.into_iter().flat_map(schedulers).collect();
    let all = each_cell(&cells, seeds, |&(joins, scheduler), &seed| simulate(joins, scheduler, seed))?;
    Ok(Trials { seeds: seeds.to_vec(), all })
}

//! The deadlines paper: completion times estimated from completed tasks, and slots assigned by goals.
//!
//! Not here: the policies (`gristmill_scheduler::policy::deadlines`), the estimate
//! (`gristmill_scheduler::estimate::completion`) and the stand-in for the paper's jobs
//! (`crate::workload::deadlines`).

mod estimates;
mod goals;
mod sensitivity;
#[cfg(test)]
pub(super) mod tests;
mod trial;

use crate::prelude::*;
use crate::workload::deadlines::Joins;
use trial::{DeadlineTrial, Scheduler, simulate};

pub(super) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Runs all experiments.
///
/// # Errors
/// A simulation that fails, which is a bug.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    page(context, &context.seeds(context.scaled(5, 10, 30)))
}

fn page(context: &Context<'_>, seeds: &[u64]) -> anyhow::Result<Paper> {
    let mut sections = estimates::sections(context, seeds)?;
    (context.progress)("deadlines: four jobs under five schedulers, three kinds of Joins");
    let trials = trials(seeds)?;
    sections.extend(goals::sections(&trials));
    sections.push(sensitivity::whole(&trials));
    Ok(WORDS.paper("deadlines", holes![], sections))
}

/// Runs of all schedulers on all kinds of Joins with all seeds.
struct Trials {
    seeds: Vec<u64>,
    /// Runs by seed, in the order of [`Joins::ALL`] and [`Scheduler::ALL`].
    all: Vec<Vec<DeadlineTrial>>,
}

impl Trials {
    fn of(&self, joins: Joins, scheduler: Scheduler) -> &[DeadlineTrial] {
        &self.all[joins as usize * Scheduler::ALL.len() + scheduler as usize]
    }
}

fn trials(seeds: &[u64]) -> anyhow::Result<Trials> {
    let schedulers = |joins| Scheduler::ALL.into_iter().map(move |scheduler| (joins, scheduler));
    let cells: Vec<(Joins, Scheduler)> = Joins::ALL.into_iter().flat_map(schedulers).collect();
    let all = each_cell(&cells, seeds, |&(joins, scheduler), &seed| simulate(joins, scheduler, seed))?;
    Ok(Trials { seeds: seeds.to_vec(), all })
}

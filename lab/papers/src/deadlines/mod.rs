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
mod trials;

use crate::prelude::*;
use trials::trials;

/// Text of the page: titles, captions and claims. Its holes, `{name}`, are filled with results by the sections.
pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

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

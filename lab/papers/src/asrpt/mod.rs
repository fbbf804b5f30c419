//! The experiments of the ASRPT paper: efficiency ratios, their convergence, distributions of flow times, the examples
//! and the theorems.
//!
//! Everything runs in the slotted model of the scheduler, with its policies. Not here: the layout of the
//! page.

mod constants;
mod counterexample;
mod examples;
mod ratios;
mod runs;
mod tails;
#[cfg(test)]
pub(super) mod tests;

use crate::prelude::*;
use crate::workload::asrpt::{MACHINES, RATE, SLOTS};
use counterexample::BurstRatios;
use runs::AsrptRuns;

/// Text of the page: titles, captions and claims. Its holes, `{name}`, are filled with results by the sections.
pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Runs the experiments.
///
/// # Errors
/// A simulation that fails, with its setting and seed.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    page(context, context.scaled(4, 30, 100))
}

/// Builds the page from this many seeds.
fn page(context: &Context<'_>, seeds: u64) -> anyhow::Result<Paper> {
    let runs = AsrptRuns::new(context, seeds)?;
    let mut sections = vec![examples::quick_example()?, examples::figure_4()?];
    sections.extend(ratios::figures_5_to_8(&runs));
    sections.push(ratios::figure_9(&runs));
    sections.extend(tails::figures_10_to_13(&runs));
    let bursts = BurstRatios::new(context)?;
    sections.extend([ratios::theorem_4(&runs, &bursts), counterexample::section(&bursts)?]);
    sections.push(tails::section_7_c(&runs));
    let holes = holes![machines = MACHINES, rate = RATE, slots = SLOTS, seeds = runs.seeds_in_words()];
    Ok(WORDS.paper("asrpt", holes, sections))
}

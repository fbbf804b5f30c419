//! The overlap paper: the overlapping tandem queue, MaxSRPT and SplitSRPT.
//!
//! Not here: the model and the policies (`gristmill_scheduler::sim::fluid`,
//! `gristmill_scheduler::policy`). This module computes only what the paper compares them with.

mod cells;
mod common;
mod hardness;
mod means;
mod optimum;
mod progress;
mod random;
mod sizes;
mod slowdown;
#[cfg(test)]
pub(super) mod tests;
mod tight;
mod trace;
mod unstable;

use common::Amounts;
pub(crate) use progress::{ModelProgress, overlapping, traditional};

/// Text of the page: titles, captions and claims. Its holes, `{name}`, are filled with results by the sections.
pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

use crate::prelude::*;

/// Runs all experiments.
///
/// # Errors
/// A simulation that fails, which is a bug.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    const LOADS: &[f64] = &[0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75];
    let amounts = Amounts {
        trace_loads: context.scaled(&[0.25, 0.75], LOADS, LOADS),
        traces: context.scaled(1, 12, 40),
        trace_jobs_max: usize::MAX,
        table_jobs: context.scaled(20_000, 500_000, 5_000_000),
        reading_jobs: context.scaled(5_000, 80_000, 200_000),
        reading_seeds: context.scaled(3, 10, 20),
    };
    page(context, &amounts)
}

fn page(context: &Context<'_>, amounts: &Amounts) -> anyhow::Result<Paper> {
    let mut sections = progress::sections()?;
    (context.progress)("overlap: tight examples and random instances");
    sections.push(hardness::section(context)?);
    sections.extend([random::section(context)?, tight::corollary_4(context)?, tight::corollary_6(context)?]);
    sections.extend(trace::sections(context, amounts)?);
    sections.extend(means::sections(context, amounts.table_jobs)?);
    sections.push(unstable::section(context, amounts.reading_jobs, amounts.reading_seeds)?);
    Ok(WORDS.paper("overlap", holes![], sections))
}

//! The deadlines paper on real execution: its four experiments with sleeping twins of its jobs on twenty
//! workers.
//!
//! Not here: the same scenario in the cluster simulator (`crate::deadlines`).

mod common;
pub(super) mod estimates;
pub(super) mod goals;
mod twin_jobs;
mod twins;

use super::context::RealContext;
use crate::prelude::*;
use crate::workload::deadlines::SLOTS;
use common::WORKERS;

/// Text of the page: titles, captions and claims. Its holes, `{name}`, are filled with results by the sections.
pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    // One second of the paper, in seconds of this run.
    let second = context.scaled(1.0 / 800.0, 1.0 / 200.0, 1.0 / 100.0);
    let sections = twins::sections(context, second)?;
    let holes = holes![nodes = SLOTS, workers = WORKERS, shorter = 1.0 / second];
    Ok(WORDS.paper("deadlines", holes, sections))
}

//! The experiments of the five papers on real execution: real processes, a real shuffle, and the live
//! policies.
//!
//! The file of each paper defines jobs, machines and policies, and judges the paper's claims by
//! measurements. Running and comparing is done by `gristmill_lab::compare`, drawing by
//! `gristmill_lab::report`. Not here: the same experiments in the papers' models (the sibling modules).

mod asrpt;
mod common;
mod context;
mod control;
mod deadlines;
mod judging;
mod overlap;
mod pairs;
mod runs;
mod stragglers;
#[cfg(test)]
pub(super) mod tests;

pub use context::{CarryOut, Interrupted, RealContext};
pub use runs::RunsDirectory;

use crate::Paper;

/// Function that runs the experiments of one paper on real processes.
///
/// An error names the experiment, its values, and the cause.
pub type RealExperiment = fn(&RealContext<'_>) -> anyhow::Result<Paper>;

/// The papers by name, in the order in which `all` runs them.
pub const REAL_PAPERS: &[(&str, RealExperiment)] = &[
    ("asrpt", asrpt::run),
    ("overlap", overlap::run),
    ("pairs", pairs::run),
    ("deadlines", deadlines::run),
    ("stragglers", stragglers::run),
];

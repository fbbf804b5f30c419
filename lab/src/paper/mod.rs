//! The experiments of the five papers, run anew: figures and tables with our numbers beside the printed ones.
//!
//! One file (or folder) for each paper makes plain data (`model`); drawing and writing it is `write`'s affair. The
//! simulators and policies are those of the scheduler; nothing here decides.

mod asrpt;
mod deadlines;
mod judge;
pub mod model;
mod overlap;
mod pairs;
mod parallel;
mod real;
mod stragglers;
#[cfg(test)]
mod tests;
mod words;
mod write;

use crate::report::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Compared, Section, Series, Table, Verdict,
};

use model::each_cell;
pub use model::{Context, Paper, Scale, first_seed};
pub use parallel::each;
pub use real::{
    CarryOut, Interrupted, REAL_PAPERS, RealContext, RealExperiment, RunsFolder, RunsFolderError,
};
pub use write::{Failure, Folder, MARK, Run, SCHEMA, WriteError};

/// Runs the experiments of one paper.
///
/// An error is in words: which experiment, with which values, and why it failed.
pub type Experiment = fn(&Context<'_>) -> anyhow::Result<Paper>;

/// The papers by name, in the order in which `all` runs them.
pub const PAPERS: &[(&str, Experiment)] = &[
    ("asrpt", asrpt::run),
    ("overlap", overlap::run),
    ("pairs", pairs::run),
    ("deadlines", deadlines::run),
    ("stragglers", stragglers::run),
];

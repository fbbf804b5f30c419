//! The experiments of five papers, run again: figures and tables with our numbers next to the printed
//! ones, and worked cases of the papers, computed and compared ([`verify`]).
//!
//! The directory of each paper produces plain data (`model`), with the words of its page in a file next
//! to it (`words`). `write` draws and writes the page. The simulators and policies are those of the
//! scheduler; nothing here decides.

mod asrpt;
mod deadlines;
mod judge;
pub mod model;
mod overlap;
mod pairs;
mod prelude;
mod real;
mod stragglers;
#[cfg(test)]
mod tests;
pub mod verify;
mod words;
pub mod workload;
mod write;

use prelude::*;

pub use model::{Context, Paper, PaperScale, first_seed};
pub use real::{CarryOut, Interrupted, REAL_PAPERS, RealContext, RealExperiment, RunsDirectory};
pub use write::{FailedPaper, MARK, PaperDirectory, PaperWriteError, Run, SCHEMA};

/// Function that runs the experiments of one paper.
///
/// An error names the experiment, its values, and the cause.
pub type Experiment = fn(&Context<'_>) -> anyhow::Result<Paper>;

/// The papers by name, in the order in which `all` runs them.
pub const PAPERS: &[(&str, Experiment)] = &[
    ("asrpt", asrpt::run),
    ("overlap", overlap::run),
    ("pairs", pairs::run),
    ("deadlines", deadlines::run),
    ("stragglers", stragglers::run),
];

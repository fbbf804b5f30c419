//! The experiments of the pairs paper: its examples and theorems, Tables 2 and 3, figures 2 to 4.
//!
//! Orders of jobs that are all present at the start are computed in the paper's closed form, streams of
//! jobs in the fluid model. Both use the scheduler's policies. Not here: the layout of the page.

mod examples;
mod offline;
mod online;
mod sweeps;
#[cfg(test)]
pub(super) mod tests;
mod theorems;

use crate::prelude::*;
use gristmill_scheduler::policy::pairs::PairsRule;

pub(super) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Rules of Table 2 with the paper's parameters, best first in the paper's order.
const OFFLINE: [PairsRule; 10] = [
    PairsRule::Match { alpha: ALPHA },
    PairsRule::Group { alpha: ALPHA, k: K },
    PairsRule::Generalized { delta: DELTA, alpha: ALPHA },
    PairsRule::Couple { delta: DELTA },
    PairsRule::Pair { delta: DELTA },
    PairsRule::MaxSrpt,
    PairsRule::NewCouple { delta: DELTA },
    PairsRule::MaxShuffle,
    PairsRule::Pairwise,
    PairsRule::MaxDiff,
];

/// Step of sizes, in seconds.
const DELTA: f64 = 0.1;
/// Weight of the dominant workload, or of the pairing degree.
const ALPHA: f64 = 0.5;
/// Number of groups.
const K: usize = 20;
/// Mean map time of a job present at the start, in seconds.
const MEAN: f64 = 10.0;

/// Runs the experiments.
///
/// # Errors
/// A simulation that fails, with its policy and seed.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    (context.progress)("pairs: examples and theorems");
    let mut sections =
        vec![examples::figure_1(), examples::weak_pairs(), examples::n_couple(), theorems::section(context)];
    (context.progress)("pairs: Table 2");
    sections.push(offline::table_2(context));
    (context.progress)("pairs: figures 2 and 3");
    sections.push(sweeps::figure_2(context));
    sections.push(sweeps::figure_3(context));
    (context.progress)("pairs: Table 3 and figure 4");
    let streams = online::Streams::run(context)?;
    sections.push(streams.figure_4());
    sections.push(streams.table_3());
    Ok(WORDS.paper("pairs", holes![], sections))
}

/// Returns the title of a policy in the paper.
fn title(rule: &PairsRule) -> &'static str {
    match rule {
        PairsRule::MaxDiff => "MaxDiff",
        PairsRule::Pairwise => "Pairwise",
        PairsRule::MaxShuffle => "MaxShuffle",
        PairsRule::MaxSrpt => "MaxSRPT",
        PairsRule::Pair { .. } => "Pair-based",
        PairsRule::Couple { .. } => "Couple-based",
        PairsRule::Generalized { .. } => "Generalized",
        PairsRule::Group { .. } => "Group-based",
        PairsRule::OnlineGroup { .. } => "OGroup-based",
        PairsRule::NewCouple { .. } => "NCouple-based",
        PairsRule::Match { .. } => "Match-based",
        PairsRule::OnlineMatch { .. } => "OMatch-based",
    }
}

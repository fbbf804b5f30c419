//! The experiments of the pairs paper: its examples and theorems, Tables 2 and 3, figures 2 to 4.
//!
//! Orders of jobs that are all there are computed in the paper's closed form, streams of jobs in the fluid model, both
//! with the scheduler's policies. Not here: how the page looks.

mod examples;
#[cfg(test)]
pub(super) mod made_up;
mod offline;
mod online;
mod sweeps;
mod theorems;

use super::{Cell, Context, Paper};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::policy::pairs::Rule;

/// The rules of Table 2 with the paper's parameters, best first as the paper has them.
const OFFLINE: [Rule; 10] = [
    Rule::Match { alpha: ALPHA },
    Rule::Group { alpha: ALPHA, k: K },
    Rule::Generalized { delta: DELTA, alpha: ALPHA },
    Rule::Couple { delta: DELTA },
    Rule::Pair { delta: DELTA },
    Rule::MaxSrpt,
    Rule::NewCouple { delta: DELTA },
    Rule::MaxShuffle,
    Rule::Pairwise,
    Rule::MaxDiff,
];

/// Step of sizes, in seconds.
const DELTA: f64 = 0.1;
/// Weight of the dominant workload, or of the pairing degree.
const ALPHA: f64 = 0.5;
/// Number of groups.
const K: usize = 20;
/// Mean map time of a job that is there at the start, in seconds.
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
    Ok(Paper {
        name: "pairs",
        title: "H. Zheng, J. Wu: Joint Scheduling of Overlapping MapReduce Phases: Pair Jobs for Optimization (2017)",
        about: vec![
            "The shuffle of a job can run while its maps do, but not end before them. A job with much to shuffle and \
             little to map leaves work for the network while the next job maps; a map-heavy one leaves the network \
             idle. So the paper runs shuffle-heavy jobs before map-heavy ones, in pairs that use both stations fully, \
             and weighs that against running small jobs first."
                .to_owned(),
            "Jobs that are all there run in one order at both stations; their times are the closed form \
             M(i) = M(i-1) + map(i), F(i) = max(F(i-1) + shuffle(i), M(i)), which reproduces the paper's examples. \
             Waiting is the time until a job's maps begin, execution from there to the end of its shuffle, makespan \
             their sum. Streams of jobs run in the fluid model: the map takes the next job when it is free, without \
             preemption, and the order is made anew when jobs come."
                .to_owned(),
            "The paper's jobs come from a Google trace of 2011 by a method that is not printed, so sizes are drawn \
             here from several distributions, from mild to heavy tails, and the page says for which of them each \
             claim holds. Steps of delta are cut as floor(size / delta)."
                .to_owned(),
        ],
        sections,
    })
}

/// The title of a policy in the paper.
fn title(rule: &Rule) -> &'static str {
    match rule {
        Rule::MaxDiff => "MaxDiff",
        Rule::Pairwise => "Pairwise",
        Rule::MaxShuffle => "MaxShuffle",
        Rule::MaxSrpt => "MaxSRPT",
        Rule::Pair { .. } => "Pair-based",
        Rule::Couple { .. } => "Couple-based",
        Rule::Generalized { .. } => "Generalized",
        Rule::Group { .. } => "Group-based",
        Rule::OnlineGroup { .. } => "OGroup-based",
        Rule::NewCouple { .. } => "NCouple-based",
        Rule::Match { .. } => "Match-based",
        Rule::OnlineMatch { .. } => "OMatch-based",
    }
}

/// Mean and half width of samples, one for each seed.
fn mean(samples: &[f64]) -> Interval {
    Interval::of(samples).expect("at least one seed")
}

fn cell(interval: Interval) -> Cell {
    Cell::Number { value: interval.mean, half_width: interval.half_width }
}

#[cfg(test)]
mod tests;

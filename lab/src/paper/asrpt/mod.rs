//! The experiments of the ASRPT paper: efficiency ratios, their convergence, distributions of flow times, the examples
//! and the theorems.
//!
//! Everything runs in the slotted model of the scheduler, with its policies. Not here: how the page looks.

mod examples;
#[cfg(test)]
pub(super) mod made_up;
mod ratios;
mod runs;
mod tails;

use super::{Context, Paper};
use gristmill_scheduler::workload::asrpt::{MACHINES, RATE, SLOTS};
use runs::Runs;

/// Runs the experiments.
///
/// # Errors
/// A simulation that fails, with its setting and seed.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    page(context, context.scaled(4, 30, 100))
}

/// The page of this many seeds.
fn page(context: &Context<'_>, seeds: u64) -> anyhow::Result<Paper> {
    let runs = Runs::new(context, seeds)?;
    let mut sections = vec![examples::quick_example()?, examples::figure_4()?];
    sections.extend(ratios::figures_5_to_8(&runs));
    sections.push(ratios::figure_9(&runs));
    sections.extend(tails::figures_10_to_13(&runs));
    sections.push(ratios::claims::section(&runs));
    sections.push(tails::claims(&runs));
    sections.push(ratios::left_open(&runs));
    Ok(Paper {
        name: "asrpt",
        title: "Y. Zheng, N. B. Shroff, P. Sinha: A New Analytical Technique for Designing Provably \
                Efficient MapReduce Schedulers (INFOCOM 2013)",
        about: vec![
            "Jobs with maps and reduces arrive over time; a reduce starts in the slot after its job's last \
             map. The paper looks for a schedule with little total flow time (the sum over jobs of the \
             slots from arrival to end), shows that no online policy is within a constant of the optimum in \
             the worst case, and proposes to judge policies by the ratio that they reach almost surely as \
             time goes on: the efficiency ratio. Its policy ASRPT follows an SRPT that runs virtually \
             beside it."
                .to_owned(),
            format!(
                "All runs are of the paper's slotted model with {MACHINES} machines, Poisson arrivals of \
                 {RATE} jobs in a slot over {SLOTS} slots, {}; every run goes on until all jobs have ended. \
                 Ratios are to the bound of Lemma 1 (SRPT without precedence), as in the paper; intervals \
                 are 95 % over seeds. The paper prints its results as curves and bars only, so numbers \
                 stand beside those of an independent reference implementation (30 seeds).",
                runs.seeds_in_words()
            ),
            "The paper does not say how a job's reduce work is cut into tasks (\"up to 10\"), which decides \
             the non-preemptive ratios; three cuts are shown: even (one to ten tasks, equally likely, of \
             equal length), random (as many, cut at random places) and ten (ten of equal length). \
             Exponential sizes are rounded to the nearest whole number of units, at least one."
                .to_owned(),
        ],
        sections,
    })
}

#[cfg(test)]
mod tests;

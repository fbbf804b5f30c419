//! The overlap paper: the overlapping tandem queue, MaxSRPT and SplitSRPT.
//!
//! Not here: the model and the policies (`scheduler::sim::fluid`, `scheduler::policy`); what is computed beside them
//! is only what the paper compares them with.

#[cfg(test)]
pub(super) mod made_up;
mod progress;
mod table;
mod trace;
mod unstable;
mod worst;

pub(in crate::paper) use progress::{Progress, overlapping, traditional};

use super::{Block, Context, Paper, Section};
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::fluid::{self, FluidSummary};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::Job;

/// The policies of the experiments as they are called here, and as the paper calls them.
const POLICIES: [(&str, &str); 3] =
    [("k-lps:k=100", "k-LPS"), ("max-srpt", "MaxSRPT"), ("split-srpt", "SplitSRPT")];

/// Runs everything.
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

/// How much of what takes long is simulated.
struct Amounts {
    /// Loads of the trace.
    trace_loads: &'static [f64],
    traces: u64,
    /// Of each trace no more jobs than these, the first.
    trace_jobs_max: usize,
    /// Jobs of each run of the log-normal workload.
    table_jobs: usize,
    /// Jobs of the longest runs of each literal reading.
    reading_jobs: usize,
    reading_seeds: u64,
}

fn page(context: &Context<'_>, amounts: &Amounts) -> anyhow::Result<Paper> {
    let mut sections = progress::sections()?;
    sections.extend(worst::sections(context)?);
    sections.extend(trace::sections(context, amounts)?);
    sections.extend(table::sections(context, amounts.table_jobs)?);
    sections.push(unstable::section(context, amounts.reading_jobs, amounts.reading_seeds)?);
    let about = [
        "A job has map work x and shuffle work y, measured in the time of the whole cluster and of the \
         whole network. What is mapped can be shuffled at once, so both stations work on a job at the same \
         time, but no job is shuffled further than it is mapped. The paper asks in which order jobs should \
         go to make the mean response time (from arrival to the end of the shuffle) small. It proves that \
         the best order is hard to find and gives two rules within a factor of 2 of it: MaxSRPT serves the \
         job with the least max(x, y) left; SplitSRPT serves map-heavy and shuffle-heavy jobs side by side \
         on separate shares.",
        "Every number here comes from the policy objects that also run on a live master, driven by an exact \
         event-driven simulation of the paper's model (piecewise linear, no time steps). k-LPS is the \
         paper's model of Hadoop's fair scheduler: the 100 oldest jobs share the map, all share the \
         shuffle.",
        "Where the text leaves something open, the reading that gives the printed numbers is used: a \
         shuffle share that a job cannot use goes to others, under all three policies. The last section \
         shows what the literal readings give.",
        "In a quick run intervals are wide, and what they do not show stays open; queues have no time to fill, so that \
         what is said of the literal readings may fail.",
    ];
    Ok(Paper {
        name: "overlap",
        title: "Joint Optimization of Overlapping Phases in MapReduce (M. Lin, L. Zhang, A. Wierman, J. \
                Tan, 2013)",
        about: about.map(str::to_owned).to_vec(),
        sections,
    })
}

/// Runs jobs under the policy of this name.
fn simulate(
    policy: &str,
    jobs: impl IntoIterator<Item = Job>,
    mut sink: impl FnMut(&JobRecord),
) -> anyhow::Result<FluidSummary> {
    let mut policy = policy::by_name(policy)?;
    Ok(fluid::run(&mut *policy, jobs, &mut sink)?)
}

/// Total response time of a batch or stream, `[arrival, map, shuffle]`.
fn total(policy: &str, sizes: &[[f64; 3]]) -> anyhow::Result<f64> {
    let mut total = 0.0;
    simulate(policy, jobs_of(sizes), |record| total += record.flow())?;
    Ok(total)
}

fn jobs_of(sizes: &[[f64; 3]]) -> impl Iterator<Item = Job> {
    let job = |&[arrival, map, shuffle]: &[f64; 3]| Job {
        arrival,
        work: PerStation::new(map, shuffle, 0.0),
        ..Job::default()
    };
    sizes.iter().map(job)
}

/// A batch: all jobs arrive at 0.
fn batch(sizes: &[[f64; 2]]) -> Vec<[f64; 3]> {
    sizes.iter().map(|&[map, shuffle]| [0.0, map, shuffle]).collect()
}

fn section(id: &str, title: &str, text: &[&str], blocks: Vec<Block>) -> Section {
    Section::new(id, title, text.iter().copied(), blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Scale;
    use crate::paper::judge::refuted::{check, check_listed};
    use crate::paper::testing::check_whole;

    #[test]
    fn every_claim_of_the_page_can_fail_and_can_hold() {
        let amounts = Amounts {
            trace_loads: &[0.75],
            traces: 2,
            trace_jobs_max: 1_000,
            table_jobs: 1_000,
            reading_jobs: 800,
            reading_seeds: 2,
        };
        let context = Context { scale: Scale::Quick, first_seed: 1, progress: &|_| {} };
        let paper = page(&context, &amounts).unwrap();
        check_whole(&paper);
        check_listed(&paper, &made_up::rules());
        check(&made_up::rules());
    }
}

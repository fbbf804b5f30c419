//! Sections 5.1 and 5.2: the trace of a Google cluster, as a stand-in, and mean response against load.
//!
//! Not here: the trace itself, which is not public as filtered and measured in the paper.

use super::WORDS;
use super::common::{Amounts, POLICIES, distribution, in_order, simulate, work};
use crate::prelude::*;
use crate::workload::overlap_trace::{Balance, DiurnalTrace, TRACE_HOURS, TRACE_JOBS, TRACE_PEAK};
use gristmill_scheduler::sim::fluid::lower_bound::lower_bound;

/// Mean responses of one trace at one load divided by its lower bound, by policy.
pub(super) type Relative = [f64; POLICIES.len()];

pub(super) fn sections(context: &Context<'_>, amounts: &Amounts) -> anyhow::Result<Vec<Section>> {
    let seeds = context.seeds(amounts.traces);
    (context.progress)("overlap: stand-ins of the trace");
    let traces = each(&seeds, |&seed| DiurnalTrace::new(seed));
    let [first, ..] = &traces[..] else { anyhow::bail!("there is no trace without a seed") };
    Ok(vec![arrivals(first), sizes(&traces)?, relative(context, amounts, &traces)?])
}

fn arrivals(trace: &DiurnalTrace) -> Section {
    let points = trace.profile.iter().enumerate().map(|(hour, &rate)| (hour as f64 / 24.0, rate)).collect();
    let chart = WORDS.chart("figure-5", holes![], vec![Series::new("stand-in", points)]);
    let holes = holes![jobs = TRACE_JOBS, days = TRACE_HOURS / 24, peak = TRACE_PEAK];
    WORDS.section("figure-5", holes, vec![chart])
}

/// Sorted map sizes, shuffle sizes and ratios of a stand-in.
struct SortedAmounts([Vec<f64>; 3]);

impl SortedAmounts {
    fn new(trace: &DiurnalTrace) -> anyhow::Result<Self> {
        let jobs = trace.jobs(0.5, Balance::Original)?;
        let values: [fn(&Job) -> f64; 3] = [
            |job| job.work[Station::Map],
            |job| job.work[Station::Shuffle],
            |job| job.work[Station::Map] / job.work[Station::Shuffle],
        ];
        Ok(Self(values.map(|value| in_order(jobs.iter().map(value)))))
    }
}

fn sizes(traces: &[DiurnalTrace]) -> anyhow::Result<Section> {
    let all = traces.iter().map(SortedAmounts::new).collect::<anyhow::Result<Vec<_>>>()?;
    let [SortedAmounts(first), ..] = &all[..] else { anyhow::bail!("there is no trace") };
    let charts = ["figure-6-map", "figure-6-shuffle", "figure-6-ratio"].into_iter().zip(first);
    let charts =
        charts.map(|(key, sorted)| WORDS.chart(key, holes![], vec![distribution("stand-in", sorted)]));
    let blocks = charts.chain([Block::Comparison(printed_numbers(&all))]).collect();
    Ok(WORDS.section("figure-6", holes![], blocks))
}

/// Returns the standard deviation of sizes whose mean is 1.
fn deviation(values: &[f64]) -> f64 {
    let squares = values.iter().map(|value| (value - 1.0).powi(2)).sum::<f64>();
    (squares / values.len() as f64).sqrt()
}

/// Compares the numbers that the paper prints of its single trace with the stand-ins.
fn printed_numbers(all: &[SortedAmounts]) -> Vec<Compared> {
    let note = |key: &str| WORDS.note(key, holes![]);
    let near = |what: &str, printed: f64, ours: Interval| {
        let printed = Known::drawn_alike(printed, 1).rounded_to(2);
        KnownNumber::mean(what, ours, printed).note(note("single-trace")).judged()
    };
    let heavy = mean_by(all, |SortedAmounts([_, _, ratio])| {
        ratio.iter().filter(|&&ratio| 1.0 < ratio).count() as f64 / ratio.len() as f64
    });
    let range = mean_by(all, |SortedAmounts([map, ..])| map[map.len() - 1] / map[0]);
    vec![
        near("standard deviation of map sizes", 3.65, mean_by(all, |sorted| deviation(&sorted.0[0]))),
        near("standard deviation of shuffle sizes", 12.95, mean_by(all, |sorted| deviation(&sorted.0[1]))),
        more_than("map-heavy jobs, part of all (more than)", 0.8, heavy, note("printed-moments")),
        more_than("largest over smallest map size (more than)", 1e3, range, note("no-jumps")),
    ]
}

/// Compares a number of which the paper states that its single trace has more.
fn more_than(what: &str, least: f64, ours: Interval, note: String) -> Compared {
    let single = ours.minus_drawn_alike(least, 1);
    let verdict = match single.half_width {
        None => Verdict::Open,
        Some(half_width) if -half_width <= single.mean => Verdict::Holds,
        Some(_) => Verdict::Fails,
    };
    let Interval { mean, half_width, .. } = ours;
    Compared { printed: Some(least), half_width, note, ..Compared::new(what, mean, verdict) }
}

/// Runs the first jobs of a trace under each policy.
fn one(trace: &DiurnalTrace, jobs_max: usize, load: f64, balance: Balance) -> anyhow::Result<Relative> {
    let mut jobs = trace.jobs(load, balance)?;
    jobs.truncate(jobs_max);
    let bound = lower_bound(jobs.iter().map(work));
    let mut relative = [0.0; POLICIES.len()];
    for ((call, _), relative) in POLICIES.iter().zip(&mut relative) {
        simulate(call, jobs.iter().cloned(), |record| *relative += record.flow() / bound)?;
    }
    Ok(relative)
}

/// Mean responses of all traces at a load.
type AtLoad = (f64, Vec<Relative>);

fn relative(context: &Context<'_>, amounts: &Amounts, traces: &[DiurnalTrace]) -> anyhow::Result<Section> {
    let mut blocks = Vec::new();
    for (balance, panel, sizes) in
        [(Balance::Original, "a", "original sizes"), (Balance::CubeRoot, "b", "cube root of every ratio")]
    {
        // The highest load first: it takes longest.
        let loads: Vec<f64> = amounts.trace_loads.iter().rev().copied().collect();
        let numbers: Vec<usize> = (0..traces.len()).collect();
        let runs = each_cell(&loads, &numbers, |&load, &trace| {
            (context.progress)(&format!("overlap: figure 7({panel}) at load {load}, trace {}", trace + 1));
            one(&traces[trace], amounts.trace_jobs_max, load, balance)
        })?;
        let by_load: Vec<AtLoad> = loads.into_iter().zip(runs).rev().collect();
        blocks.push(relative_chart(panel, sizes, &by_load));
        let claims = [better_than_k_lps(panel, &by_load), max_against_split(panel, balance, &by_load)];
        blocks.push(Block::Claims(claims.into_iter().flatten().collect()));
    }
    Ok(WORDS.section("figure-7", holes![traces = traces.len(), seed = context.first_seed], blocks))
}

fn relative_chart(panel: &str, sizes: &str, by_load: &[AtLoad]) -> Block {
    let series = POLICIES.iter().enumerate().map(|(policy, &(_, name))| {
        let means = by_load.iter().map(|(load, runs)| (*load, mean_of(&of_policy(runs, policy))));
        let curve = Series::means(name, means);
        // A single trace has no intervals.
        if by_load.iter().any(|(_, runs)| runs.len() < 2) {
            curve.with_half_widths(Vec::new())
        } else {
            curve
        }
    });
    WORDS.chart("figure-7{panel}", holes![panel, sizes], series.collect())
}

/// Returns the mean responses under a policy, by trace.
fn of_policy(runs: &[Relative], policy: usize) -> Vec<f64> {
    runs.iter().map(|run| run[policy]).collect()
}

pub(super) fn better_than_k_lps(panel: &str, by_load: &[AtLoad]) -> Option<Claim> {
    // All policies see the same jobs.
    let gains = by_load.iter().flat_map(|(load, runs)| {
        [1, 2].map(|policy| (*load, policy, log_ratio(&of_policy(runs, 0), &of_policy(runs, policy))))
    });
    let gains: Vec<(f64, usize, Interval)> = gains.collect();
    let (load, policy, least) = gains.iter().min_by(|(.., a), (.., b)| a.mean.total_cmp(&b.mean))?;
    let (highest, runs) = by_load.last()?;
    let [lps, max, split] = [0, 1, 2].map(|policy| mean_of(&of_policy(runs, policy)).mean);
    let seen = gains.iter().map(|(.., gain)| CaseVerdict::above(gain, 0.0));
    let (policy, least) = (POLICIES[*policy].1, percent(least));
    let holes = holes![panel, highest = *highest, lps, max, split, load = *load, policy, least];
    Some(WORDS.claim("better-than-k-lps", every(seen), holes))
}

/// Compares by trace at the highest load, since all policies have the same jobs.
pub(super) fn max_against_split(panel: &str, balance: Balance, by_load: &[AtLoad]) -> Option<Claim> {
    let (load, runs) = by_load.last()?;
    let gap = log_ratio(&of_policy(runs, 2), &of_policy(runs, 1));
    let (key, seen) = match balance {
        Balance::Original => ("split-outperforms", CaseVerdict::below(&gap, 0.0)),
        Balance::CubeRoot => ("max-is-better", CaseVerdict::above(&gap, 0.0)),
    };
    let holes = holes![panel, load = *load, gap = percent(&gap), traces = runs.len()];
    Some(WORDS.claim(key, every([seen]), holes))
}

//! Sections 5.1 and 5.2: the trace of a Google cluster, as a stand-in, and mean response against load.
//!
//! Not here: the trace itself; filtered and measured as in the paper it is not public.

use super::super::{Axis, Block, Chart, Claim, Compared, Context, Section, Series, Verdict, each};
use super::{Amounts, POLICIES, section, simulate};
use crate::paper::judge::{Beside, Known, Seen, every, log_ratio, mean_of, percent};
use gristmill_scheduler::bound::overlap::lower_bound;
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::overlap::{Balance, DiurnalTrace, TRACE_HOURS, TRACE_JOBS, TRACE_PEAK};

/// Mean responses of one trace at one load over its lower bound, by policy.
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
    let chart = Chart::steps(
        "figure-5",
        "job submissions by hour, the busiest hour as 1",
        [Axis::linear("day"), Axis::linear("submissions, part of the peak")],
        vec![Series::new("stand-in", points)],
    );
    let text = format!(
        "The trace of May 2011 is not public in the form used. Its stand-in: {TRACE_JOBS} jobs in {} days, \
         with a daily and a weekly pattern and hours that differ by chance, raised to the power that makes \
         the busiest hour {:.2} times the mean one (the text: 300 against 110 jobs an hour).",
        TRACE_HOURS / 24,
        TRACE_PEAK
    );
    section("figure-5", "Figure 5: job submissions (stand-in)", &[&text], vec![Block::Chart(chart)])
}

/// Sorted map sizes, shuffle sizes and ratios of a stand-in.
struct Sorted([Vec<f64>; 3]);

impl Sorted {
    fn new(trace: &DiurnalTrace) -> anyhow::Result<Self> {
        let jobs = trace.jobs(0.5, Balance::Original)?;
        let sorted = |value: fn(&Job) -> f64| {
            let mut values: Vec<f64> = jobs.iter().map(value).collect();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        Ok(Self([
            sorted(|job| job.work[Station::Map]),
            sorted(|job| job.work[Station::Shuffle]),
            sorted(|job| job.work[Station::Map] / job.work[Station::Shuffle]),
        ]))
    }
}

fn sizes(traces: &[DiurnalTrace]) -> anyhow::Result<Section> {
    let all = traces.iter().map(Sorted::new).collect::<anyhow::Result<Vec<_>>>()?;
    let [Sorted([map, shuffle, ratio]), ..] = &all[..] else { anyhow::bail!("there is no trace") };
    let text = "Log-normal sizes with the printed moments, as in the paper's section 5.3, scaled so that \
                the means of this sample are exactly 1. The ratio drawn is map over shuffle size. The first stand-in is \
                drawn; numbers are means over all stand-ins.";
    Ok(section(
        "figure-6",
        "Figure 6: job sizes (stand-in)",
        &[text],
        vec![
            distribution("figure-6-map", "map sizes", "map size", map),
            distribution("figure-6-shuffle", "shuffle sizes", "shuffle size", shuffle),
            distribution("figure-6-ratio", "ratio of map to shuffle size", "x / y", ratio),
            Block::Comparison(printed_numbers(&all)),
        ],
    ))
}

fn distribution(id: &str, caption: &str, label: &str, sorted: &[f64]) -> Block {
    let places = (0..=200).map(|step| (step * (sorted.len() - 1)) / 200);
    let points = places.map(|place| (sorted[place], (place + 1) as f64 / sorted.len() as f64)).collect();
    let axes = [Axis::logarithmic(label), Axis::linear("part of the jobs")];
    Block::Chart(Chart::lines(id, caption, axes, vec![Series::new("stand-in", points)]))
}

/// Standard deviation of sizes whose mean is 1.
fn deviation(values: &[f64]) -> f64 {
    let squares = values.iter().map(|value| (value - 1.0).powi(2)).sum::<f64>();
    (squares / values.len() as f64).sqrt()
}

/// What the paper prints of its trace, which is one, beside the stand-ins.
fn printed_numbers(all: &[Sorted]) -> Vec<Compared> {
    let mean = |value: &dyn Fn(&Sorted) -> f64| mean_of(&all.iter().map(value).collect::<Vec<f64>>());
    let single = "the printed number is of a single trace, which may differ as stand-ins do; a heavy tail makes them vary";
    let near = |what: &str, printed: f64, ours: Interval| {
        Beside::mean(what, ours, Known::drawn_alike(printed, 1).rounded_to(2).printed()).note(single).judged()
    };
    let heavy = |sorted: &Sorted| {
        let ratio = &sorted.0[2];
        ratio.iter().filter(|&&ratio| 1.0 < ratio).count() as f64 / ratio.len() as f64
    };
    let range = |sorted: &Sorted| sorted.0[0][sorted.0[0].len() - 1] / sorted.0[0][0];
    let moments = "78.4 % follow from the printed moments";
    let smooth = "a log-normal has no jumps: few sizes do not make up most of the work";
    vec![
        near("standard deviation of map sizes", 3.65, mean(&|sorted| deviation(&sorted.0[0]))),
        near("standard deviation of shuffle sizes", 12.95, mean(&|sorted| deviation(&sorted.0[1]))),
        more_than("map-heavy jobs, part of all (more than)", 0.8, mean(&heavy), moments),
        more_than("largest over smallest map size (more than)", 1e3, mean(&range), smooth),
    ]
}

/// A number of which the paper says that its trace, a single one, has more.
fn more_than(what: &str, least: f64, ours: Interval, note: &str) -> Compared {
    let single = ours.minus_drawn_alike(least, 1);
    let verdict = match single.half_width {
        None => Verdict::Open,
        Some(half_width) if -half_width <= single.mean => Verdict::Holds,
        Some(_) => Verdict::Fails,
    };
    Compared {
        printed: Some(least),
        half_width: ours.half_width,
        note: note.to_owned(),
        ..Compared::new(what, ours.mean, verdict)
    }
}

/// The first jobs of a trace under each policy.
fn one(trace: &DiurnalTrace, jobs_max: usize, load: f64, balance: Balance) -> anyhow::Result<Relative> {
    let mut jobs = trace.jobs(load, balance)?;
    jobs.truncate(jobs_max);
    let bound =
        lower_bound(jobs.iter().map(|job| [job.arrival, job.work[Station::Map], job.work[Station::Shuffle]]));
    let mut relative = [0.0; POLICIES.len()];
    for ((call, _), relative) in POLICIES.iter().zip(&mut relative) {
        simulate(call, jobs.iter().cloned(), |record| *relative += record.flow() / bound)?;
    }
    Ok(relative)
}

fn relative(context: &Context<'_>, amounts: &Amounts, traces: &[DiurnalTrace]) -> anyhow::Result<Section> {
    let mut blocks = Vec::new();
    for (balance, panel, sizes) in
        [(Balance::Original, "a", "original sizes"), (Balance::CubeRoot, "b", "cube root of every ratio")]
    {
        let by_load = by_load(context, amounts, traces, (balance, panel))?;
        blocks.push(Block::Chart(relative_chart(panel, sizes, &by_load)));
        blocks.push(Block::Claims(relative_claims(panel, balance, &by_load)));
    }
    let text = format!(
        "Average load up to 0.75, at which the busiest hours bring twice what the cluster can do. {} \
         stand-ins of the trace (seeds from {}), relative to the lower bound of the same jobs: 1 is as good \
         as can be.",
        traces.len(),
        context.first_seed
    );
    Ok(section(
        "figure-7",
        "Figure 7: mean response over the lower bound, against load (stand-in)",
        &[
            &text,
            "Panel (b) takes the cube root of every job's ratio, so that jobs are better balanced, and \
             scales the shuffle sizes to mean 1 again.",
        ],
        blocks,
    ))
}

/// The mean responses of all traces at each load.
fn by_load(
    context: &Context<'_>,
    amounts: &Amounts,
    traces: &[DiurnalTrace],
    (balance, panel): (Balance, &str),
) -> anyhow::Result<Vec<(f64, Vec<Relative>)>> {
    let loads = amounts.trace_loads;
    // The highest load first: it takes longest.
    let items: Vec<(f64, usize)> =
        loads.iter().rev().flat_map(|&load| (0..traces.len()).map(move |trace| (load, trace))).collect();
    let results = each(&items, |&(load, trace)| {
        (context.progress)(&format!("overlap: figure 7({panel}) at load {load}, trace {}", trace + 1));
        one(&traces[trace], amounts.trace_jobs_max, load, balance)
    });
    let mut by_load: Vec<(f64, Vec<Relative>)> = loads.iter().map(|&load| (load, Vec::new())).collect();
    for ((load, _), result) in items.into_iter().zip(results) {
        let place = by_load.iter_mut().find(|(other, _)| *other == load);
        place.ok_or_else(|| anyhow::anyhow!("no place for load {load}"))?.1.push(result?);
    }
    Ok(by_load)
}

fn relative_chart(panel: &str, sizes: &str, by_load: &[(f64, Vec<Relative>)]) -> Chart {
    let series = POLICIES.iter().enumerate().map(|(policy, &(_, name))| {
        let mut series = Series { name: name.to_owned(), ..Series::default() };
        for (load, runs) in by_load {
            if let Some(interval) = Interval::of(&runs.iter().map(|run| run[policy]).collect::<Vec<_>>()) {
                series.points.push((*load, interval.mean));
                series.half_widths.extend(interval.half_width);
            }
        }
        series
    });
    Chart::lines(
        format!("figure-7{panel}"),
        format!("({panel}) {sizes}"),
        [Axis::linear("average load"), Axis::linear("mean response over the lower bound")],
        series.collect(),
    )
}

fn relative_claims(panel: &str, balance: Balance, by_load: &[(f64, Vec<Relative>)]) -> Vec<Claim> {
    let place = format!("figure 7({panel})");
    let claims = [better_than_k_lps(&place, by_load), max_against_split(&place, balance, by_load)];
    claims.into_iter().flatten().collect()
}

/// The mean responses under a policy, by trace.
fn of_policy(runs: &[Relative], policy: usize) -> Vec<f64> {
    runs.iter().map(|run| run[policy]).collect()
}

pub(super) fn better_than_k_lps(place: &str, by_load: &[(f64, Vec<Relative>)]) -> Option<Claim> {
    // All policies see the same jobs.
    let gains = by_load.iter().flat_map(|(load, runs)| {
        [1, 2].map(|policy| (*load, policy, log_ratio(&of_policy(runs, 0), &of_policy(runs, policy))))
    });
    let gains: Vec<(f64, usize, Interval)> = gains.collect();
    let (load, policy, least) = gains.iter().min_by(|(.., a), (.., b)| a.mean.total_cmp(&b.mean))?;
    let (highest, runs) = by_load.last()?;
    let [lps, max, split] = [0, 1, 2].map(|policy| mean_of(&of_policy(runs, policy)).mean);
    Some(Claim::new(
        place,
        "Both algorithms are better than k-LPS at every load.",
        every(gains.iter().map(|(.., gain)| Seen::above(gain, 0.0))),
        format!(
            "at load {highest}: k-LPS {lps:.2}, MaxSRPT {max:.2}, SplitSRPT {split:.2} times the bound; closest at load \
             {load}, where k-LPS is off {} by {}",
            POLICIES[*policy].1,
            percent(least)
        ),
    ))
}

/// By trace at the highest load, since all policies see the same jobs.
pub(super) fn max_against_split(
    place: &str,
    balance: Balance,
    by_load: &[(f64, Vec<Relative>)],
) -> Option<Claim> {
    let (load, runs) = by_load.last()?;
    let gap = log_ratio(&of_policy(runs, 2), &of_policy(runs, 1));
    let (statement, seen) = match balance {
        Balance::Original => ("SplitSRPT outperforms MaxSRPT when the load is high.", Seen::below(&gap, 0.0)),
        Balance::CubeRoot => {
            ("With balanced sizes MaxSRPT is better than SplitSRPT.", Seen::above(&gap, 0.0))
        }
    };
    let evidence = format!(
        "at load {load} the mean response of SplitSRPT is off that of MaxSRPT by {}, by pairs of {} traces",
        percent(&gap),
        runs.len()
    );
    Some(Claim::new(place, statement, every([seen]), evidence))
}

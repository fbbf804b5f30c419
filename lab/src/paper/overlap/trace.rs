//! Sections 5.1 and 5.2: the trace of a Google cluster, as a stand-in, and mean response against load.
//!
//! Not here: the trace itself; filtered and measured as in the paper it is not public.

use super::super::{Axis, Block, Chart, Claim, Compared, Context, Section, Series, Verdict, each};
use super::{POLICIES, section, simulate};
use gristmill_scheduler::bound::overlap::lower_bound;
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::overlap::{Balance, DiurnalTrace, TRACE_HOURS, TRACE_JOBS, TRACE_PEAK};

/// Mean responses of one trace at one load over its lower bound, by policy.
type Relative = [f64; POLICIES.len()];

pub(super) fn sections(context: &Context<'_>) -> anyhow::Result<Vec<Section>> {
    let loads: &[f64] = context.scaled(
        &[0.25, 0.75],
        &[0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75],
        &[0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75],
    );
    let seeds: Vec<u64> = (0..context.scaled(1, 12, 40)).map(|run| context.seed.wrapping_add(run)).collect();
    (context.progress)("overlap: stand-ins of the trace");
    let traces = each(&seeds, |&seed| DiurnalTrace::new(seed));
    let [first, ..] = &traces[..] else { anyhow::bail!("there is no trace without a seed") };
    Ok(vec![arrivals(first), sizes(first)?, relative(context, loads, &traces)?])
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

fn sizes(trace: &DiurnalTrace) -> anyhow::Result<Section> {
    let jobs = trace.jobs(0.5, Balance::Original)?;
    let sorted = |value: fn(&Job) -> f64| {
        let mut values: Vec<f64> = jobs.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let map = sorted(|job| job.work[Station::Map]);
    let shuffle = sorted(|job| job.work[Station::Shuffle]);
    let ratio = sorted(|job| job.work[Station::Map] / job.work[Station::Shuffle]);
    let text = "Log-normal sizes with the printed moments, as in the paper's section 5.3, scaled so that \
                the means of this sample are exactly 1. The ratio drawn is map over shuffle size.";
    Ok(section(
        "figure-6",
        "Figure 6: job sizes (stand-in)",
        &[text],
        vec![
            distribution("figure-6-map", "map sizes", "map size", &map),
            distribution("figure-6-shuffle", "shuffle sizes", "shuffle size", &shuffle),
            distribution("figure-6-ratio", "ratio of map to shuffle size", "x / y", &ratio),
            Block::Comparison(printed_numbers(&map, &shuffle, &ratio)),
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

/// What the paper prints of the trace, beside the sorted sizes and ratios of the stand-in.
fn printed_numbers(map: &[f64], shuffle: &[f64], ratio: &[f64]) -> Vec<Compared> {
    let compared = |what: &str, [printed, ours]: [f64; 2], holds: bool, note: &str| Compared {
        printed: Some(printed),
        note: note.to_owned(),
        ..Compared::new(what, ours, if holds { Verdict::Holds } else { Verdict::Partly })
    };
    let near = |what: &str, printed: f64, ours: f64| {
        let drawn = "of this sample; a heavy tail makes it vary much";
        compared(what, [printed, ours], (ours / printed - 1.0).abs() < 0.3, drawn)
    };
    let heavy = ratio.iter().filter(|&&ratio| 1.0 < ratio).count() as f64 / ratio.len() as f64;
    let range = map[map.len() - 1] / map[0];
    let moments = "78.4 % follow from the printed moments";
    let smooth = "a log-normal has no jumps: few sizes do not make up most of the work";
    vec![
        near("standard deviation of map sizes", 3.65, deviation(map)),
        near("standard deviation of shuffle sizes", 12.95, deviation(shuffle)),
        compared("map-heavy jobs, part of all (more than)", [0.8, heavy], 0.8 <= heavy, moments),
        compared("largest over smallest map size (more than)", [1e3, range], 1e3 < range, smooth),
    ]
}

fn one(trace: &DiurnalTrace, load: f64, balance: Balance) -> anyhow::Result<Relative> {
    let jobs = trace.jobs(load, balance)?;
    let bound =
        lower_bound(jobs.iter().map(|job| [job.arrival, job.work[Station::Map], job.work[Station::Shuffle]]));
    let mut relative = [0.0; POLICIES.len()];
    for ((call, _), relative) in POLICIES.iter().zip(&mut relative) {
        simulate(call, jobs.iter().cloned(), |record| *relative += record.flow() / bound)?;
    }
    Ok(relative)
}

fn relative(context: &Context<'_>, loads: &[f64], traces: &[DiurnalTrace]) -> anyhow::Result<Section> {
    let mut blocks = Vec::new();
    for (balance, panel, sizes) in
        [(Balance::Original, "a", "original sizes"), (Balance::CubeRoot, "b", "cube root of every ratio")]
    {
        let by_load = by_load(context, loads, traces, (balance, panel))?;
        blocks.push(Block::Chart(relative_chart(panel, sizes, &by_load)));
        blocks.push(Block::Claims(relative_claims(panel, balance, &by_load)));
    }
    let text = format!(
        "Average load up to 0.75, at which the busiest hours bring twice what the cluster can do. {} \
         stand-ins of the trace (seeds from {}), relative to the lower bound of the same jobs: 1 is as good \
         as can be.",
        traces.len(),
        context.seed
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
    loads: &[f64],
    traces: &[DiurnalTrace],
    (balance, panel): (Balance, &str),
) -> anyhow::Result<Vec<(f64, Vec<Relative>)>> {
    // The highest load first: it takes longest.
    let items: Vec<(f64, usize)> =
        loads.iter().rev().flat_map(|&load| (0..traces.len()).map(move |trace| (load, trace))).collect();
    let results = each(&items, |&(load, trace)| {
        (context.progress)(&format!("overlap: figure 7({panel}) at load {load}, trace {}", trace + 1));
        one(&traces[trace], load, balance)
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

fn better_than_k_lps(place: &str, by_load: &[(f64, Vec<Relative>)]) -> Option<Claim> {
    let mean = |runs: &[Relative], policy: usize| {
        runs.iter().map(|run| run[policy]).sum::<f64>() / runs.len() as f64
    };
    let means: Vec<(f64, Relative)> =
        by_load.iter().map(|(load, runs)| (*load, [0, 1, 2].map(|policy| mean(runs, policy)))).collect();
    let better = means.iter().all(|(_, [lps, max, split])| max < lps && split < lps);
    let (load, [lps, max, split]) = means.last()?;
    Some(Claim::new(
        place,
        "Both algorithms are better than k-LPS at every load.",
        if better { Verdict::Holds } else { Verdict::Partly },
        format!(
            "at load {load}: k-LPS {lps:.2}, MaxSRPT {max:.2}, SplitSRPT {split:.2} times the bound; {} at \
             all {} loads",
            if better { "both below it" } else { "not both below it" },
            means.len()
        ),
    ))
}

/// By trace at the highest load, since all policies see the same jobs.
fn max_against_split(place: &str, balance: Balance, by_load: &[(f64, Vec<Relative>)]) -> Option<Claim> {
    let (load, runs) = by_load.last()?;
    let gap = Interval::of(&runs.iter().map(|run| run[2] / run[1] - 1.0).collect::<Vec<_>>())?;
    let half_width = gap.half_width.unwrap_or(f64::INFINITY);
    let (statement, wanted) = match balance {
        Balance::Original => ("SplitSRPT outperforms MaxSRPT when the load is high.", -gap.mean),
        Balance::CubeRoot => ("With balanced sizes MaxSRPT is better than SplitSRPT.", gap.mean),
    };
    let verdict = if half_width < wanted {
        Verdict::Holds
    } else if wanted < -half_width {
        Verdict::Fails
    } else {
        Verdict::Open
    };
    let interval = gap.half_width.map_or_else(String::new, |half| format!(" ± {:.1}", 100.0 * half));
    let evidence = format!(
        "at load {load} the mean response of SplitSRPT is {:+.1}{interval} % off that of MaxSRPT, by pairs \
         of {} traces",
        100.0 * gap.mean,
        runs.len()
    );
    Some(Claim::new(place, statement, verdict, evidence))
}

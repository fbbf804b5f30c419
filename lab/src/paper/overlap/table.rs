//! Section 5.3: mean response and slowdown by size under the log-normal workload.
//!
//! Not here: the workload (`scheduler::workload::overlap`).

use super::super::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Compared, Context, Section, Series, Table, Verdict,
    each,
};
use super::{POLICIES, judged, section, simulate};
use gristmill_scheduler::bound::overlap::lower_bound;
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::overlap::Poisson;

const LOADS: [f64; 2] = [0.75, 0.9];
/// Runs of each cell, with seeds of their own.
const RUNS: u64 = 10;

/// Of a cell: the policy or the bound, the printed number, the reference's with its half width.
struct Known {
    load: f64,
    name: &'static str,
    printed: Option<f64>,
    reference: (f64, f64),
}

const BOUND: &str = "lower bound";

/// The printed table, beside the reference of 20 runs of 2.5 million jobs.
const KNOWN: [Known; 8] = [
    Known { load: 0.75, name: "k-LPS", printed: Some(6.50), reference: (6.557, 0.047) },
    Known { load: 0.75, name: "MaxSRPT", printed: Some(3.32), reference: (3.326, 0.012) },
    Known { load: 0.75, name: "SplitSRPT", printed: Some(3.55), reference: (3.583, 0.013) },
    Known { load: 0.75, name: BOUND, printed: None, reference: (2.361, 0.009) },
    Known { load: 0.9, name: "k-LPS", printed: Some(16.28), reference: (16.80, 0.33) },
    Known { load: 0.9, name: "MaxSRPT", printed: Some(5.58), reference: (5.550, 0.049) },
    Known { load: 0.9, name: "SplitSRPT", printed: Some(5.66), reference: (5.681, 0.038) },
    Known { load: 0.9, name: BOUND, printed: None, reference: (3.280, 0.026) },
];

/// Upper ends of the classes of max(x, y), the last without.
const CLASSES: [f64; 7] = [0.25, 1.0, 3.0, 10.0, 19.0, 50.0, 100.0];

/// The reference's slowdown of each class (6 million jobs for each load), in the order of `LOADS` and `POLICIES`.
const CLASS_REFERENCE: [[[f64; 8]; 3]; 2] = [
    [
        [4.252, 4.246, 4.241, 4.205, 4.188, 4.160, 4.090, 4.047],
        [1.029, 1.125, 1.321, 1.695, 2.231, 2.681, 3.094, 3.394],
        [3.580, 1.630, 1.708, 2.005, 2.357, 2.574, 2.804, 3.116],
    ],
    [
        [10.82, 10.80, 10.77, 10.67, 10.58, 10.48, 10.03, 10.08],
        [1.035, 1.154, 1.419, 2.025, 3.167, 4.619, 6.574, 8.065],
        [4.356, 1.838, 2.009, 2.690, 3.745, 4.547, 5.069, 5.893],
    ],
];

/// The paper's buckets: 400 up to 100.
const BUCKETS: usize = 400;
const BUCKET_WIDTH: f64 = 0.25;

/// Sum of slowdowns, and of jobs.
#[derive(Clone, Copy, Default)]
struct Share {
    slowdowns: f64,
    jobs: f64,
}

impl Share {
    fn add(&mut self, other: Share) {
        self.slowdowns += other.slowdowns;
        self.jobs += other.jobs;
    }

    fn mean(self) -> Option<f64> {
        (0.0 < self.jobs).then(|| self.slowdowns / self.jobs)
    }
}

/// One run.
struct Run {
    mean: f64,
    buckets: Vec<Share>,
    classes: [Share; CLASSES.len() + 1],
}

/// All runs of a policy at a load.
struct Of {
    load: f64,
    name: &'static str,
    runs: Vec<Run>,
}

impl Of {
    fn interval(&self) -> Option<Interval> {
        Interval::of(&self.runs.iter().map(|run| run.mean).collect::<Vec<_>>())
    }

    fn class(&self, class: usize) -> Option<Interval> {
        Interval::of(&self.runs.iter().filter_map(|run| run.classes[class].mean()).collect::<Vec<_>>())
    }
}

pub(super) fn sections(context: &Context<'_>) -> anyhow::Result<Vec<Section>> {
    let jobs = context.scaled(20_000, 500_000, 5_000_000);
    let cells = run_all(context, jobs)?;
    Ok(vec![means(context, jobs, &cells), sizes(context), slowdowns(context, jobs, &cells)])
}

fn run_all(context: &Context<'_>, jobs: usize) -> anyhow::Result<Vec<Of>> {
    // The slowest first, so that no thread is left with one of them at the end.
    let names: Vec<(Option<&str>, &'static str)> =
        POLICIES.iter().map(|&(call, name)| (Some(call), name)).chain([(None, BOUND)]).collect();
    let mut items = Vec::new();
    for &(call, name) in &names {
        for load in LOADS.into_iter().rev() {
            items.extend((0..RUNS).map(|run| (call, name, load, context.seed.wrapping_add(run))));
        }
    }
    let results = each(&items, |&(call, name, load, seed)| {
        (context.progress)(&format!("overlap: {name} at load {load}, seed {seed}"));
        one_run(call, load, seed, jobs)
    });
    let mut cells: Vec<Of> = Vec::new();
    for ((_, name, load, _), result) in items.into_iter().zip(results) {
        let run = result?;
        match cells.iter_mut().find(|cell| cell.name == name && cell.load == load) {
            Some(cell) => cell.runs.push(run),
            None => cells.push(Of { load, name, runs: vec![run] }),
        }
    }
    Ok(cells)
}

/// A policy, or without one the bound.
fn one_run(call: Option<&str>, load: f64, seed: u64, jobs: usize) -> anyhow::Result<Run> {
    let generated = Poisson::new(load, seed)?.take(jobs);
    let mut run = Run { mean: 0.0, buckets: Vec::new(), classes: Default::default() };
    let Some(call) = call else {
        run.mean = lower_bound(
            generated.map(|job| [job.arrival, job.work[Station::Map], job.work[Station::Shuffle]]),
        ) / jobs as f64;
        return Ok(run);
    };
    run.buckets = vec![Share::default(); BUCKETS];
    let mut flow = 0.0;
    simulate(call, generated, |record| {
        flow += record.flow();
        let size = record.work[Station::Map].max(record.work[Station::Shuffle]);
        let share = Share { slowdowns: record.flow() / size, jobs: 1.0 };
        run.classes[CLASSES.partition_point(|&end| end <= size)].add(share);
        if let Some(bucket) = run.buckets.get_mut((size / BUCKET_WIDTH) as usize) {
            bucket.add(share);
        }
    })?;
    run.mean = flow / jobs as f64;
    Ok(run)
}

fn find<'a>(cells: &'a [Of], load: f64, name: &str) -> Option<&'a Of> {
    cells.iter().find(|cell| cell.load == load && cell.name == name)
}

fn means(context: &Context<'_>, jobs: usize, cells: &[Of]) -> Section {
    let compared: Vec<Compared> = KNOWN.iter().filter_map(|known| compare(context, known, cells)).collect();
    let mut claims = Vec::new();
    for load in LOADS {
        let mean = |name: &str| find(cells, load, name).and_then(Of::interval).map(|interval| interval.mean);
        if let (Some(lps), Some(max), Some(split), Some(bound)) =
            (mean("k-LPS"), mean("MaxSRPT"), mean("SplitSRPT"), mean(BOUND))
        {
            let holds = bound < max && max < split && split < lps;
            claims.push(Claim {
                place: format!("section 5.3, load {load}"),
                statement: "Both algorithms are much better than k-LPS, MaxSRPT a little better than SplitSRPT.".to_owned(),
                verdict: judged(context, holds),
                evidence: format!(
                    "k-LPS {lps:.2}, SplitSRPT {split:.3}, MaxSRPT {max:.3}, lower bound {bound:.3}: {:.2}, {:.2} and \
                     {:.2} times the bound",
                    lps / bound,
                    split / bound,
                    max / bound
                ),
            });
        }
    }
    let seeds = format!(
        "{RUNS} runs of {jobs} jobs for each cell, seeds from {}, the same jobs for every policy; intervals are 95 % \
         (Student's t over the runs). Reference: an independent implementation, 20 runs of 2.5 million jobs.",
        context.seed
    );
    section(
        "section-5-3-means",
        "Section 5.3: mean response time of the synthetic workload",
        &[
            "Map sizes log-normal with mean 1 and standard deviation 3.65; the ratio of shuffle to map size log-normal \
             with mean 1 and standard deviation 3.28; Poisson arrivals. Load is the rate of arrivals.",
            &seeds,
        ],
        vec![Block::Comparison(compared), Block::Claims(claims)],
    )
}

fn compare(context: &Context<'_>, known: &Known, cells: &[Of]) -> Option<Compared> {
    let ours = find(cells, known.load, known.name)?.interval()?;
    let half_width = ours.half_width.unwrap_or(0.0);
    let (reference, reference_half_width) = known.reference;
    let overlaps = (ours.mean - reference).abs() <= half_width + reference_half_width;
    let gap = known.printed.map(|printed| 100.0 * (ours.mean - printed) / printed);
    let note = match gap {
        Some(gap) => format!("{gap:+.1} % of the printed number"),
        None => "printed only as a curve".to_owned(),
    };
    Some(Compared {
        what: format!("load {}, {}, mean response", known.load, known.name),
        printed: known.printed,
        reference: Some(known.reference),
        ours: ours.mean,
        half_width: ours.half_width,
        verdict: judged(context, overlaps),
        note,
    })
}

/// Figure 8 and the percentiles of the text.
fn sizes(context: &Context<'_>) -> Section {
    let jobs = context.scaled(20_000, 1_000_000, 1_000_000);
    let drawn: Vec<[f64; 2]> = Poisson::new(LOADS[0], context.seed)
        .into_iter()
        .flat_map(|generator| generator.take(jobs))
        .map(|job| [job.work[Station::Map], job.work[Station::Shuffle]])
        .collect();
    let sorted = |value: &dyn Fn(&[f64; 2]) -> f64| {
        let mut values: Vec<f64> = drawn.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let cdf = |name: &str, values: &[f64]| {
        let places = (0..=200).map(|step| (step * (values.len() - 1)) / 200);
        let points = places.map(|place| (values[place], (place + 1) as f64 / values.len() as f64)).collect();
        Series { name: name.to_owned(), points, ..Series::default() }
    };
    let largest = sorted(&|sizes| sizes[0].max(sizes[1]));
    let chart = Chart {
        id: "figure-8".to_owned(),
        caption: "distribution of the sizes".to_owned(),
        x: Axis::logarithmic("size"),
        y: Axis::linear("part of the jobs that are no larger"),
        kind: ChartKind::Lines,
        series: vec![
            cdf("map", &sorted(&|sizes| sizes[0])),
            cdf("shuffle", &sorted(&|sizes| sizes[1])),
            cdf("max(x, y)", &largest),
        ],
    };
    // Exactly, by the log-normal moments: (1 + sd²) multiplies.
    let shuffle_deviation = ((1.0 + 3.65_f64.powi(2)) * (1.0 + 3.28_f64.powi(2)) - 1.0).sqrt();
    let near = |what: &str, printed: f64, reference: f64, ours: f64, tolerance: f64, note: &str| Compared {
        what: what.to_owned(),
        printed: Some(printed),
        reference: Some((reference, 0.0)),
        ours,
        half_width: None,
        verdict: if (ours - reference).abs() <= tolerance * reference {
            Verdict::Holds
        } else {
            Verdict::Fails
        },
        note: note.to_owned(),
    };
    let part = |part: f64| largest[((largest.len() - 1) as f64 * part) as usize];
    // A quantile of so many jobs is within a few percent.
    let tolerance = context.scaled(0.15, 0.03, 0.03);
    let numbers = vec![
        near(
            "standard deviation of the shuffle size",
            12.95,
            12.95,
            shuffle_deviation,
            0.005,
            "from the two that are drawn",
        ),
        near("90th percentile of max(x, y)", 3.0, 2.86, part(0.9), tolerance, "the text rounds"),
        near("99th percentile of max(x, y)", 19.0, 19.7, part(0.99), tolerance, "the text rounds"),
    ];
    section(
        "figure-8",
        "Figure 8: sizes in the unfairness experiments",
        &["A job's shuffle size is its map size times the ratio, so both are log-normal and correlated."],
        vec![Block::Chart(chart), Block::Comparison(numbers)],
    )
}

fn slowdowns(context: &Context<'_>, jobs: usize, cells: &[Of]) -> Section {
    let jobs_min = context.scaled(100.0, 2_000.0, 10_000.0);
    let mut blocks = Vec::new();
    for (at, load) in LOADS.into_iter().enumerate() {
        blocks.push(Block::Chart(slowdown_chart(cells, load, jobs_min)));
        blocks.push(Block::Table(class_table(cells, load, &CLASS_REFERENCE[at])));
        blocks.push(Block::Claims(slowdown_claims(context, cells, load)));
    }
    let text = format!(
        "Slowdown of a job: its response time over max(x, y), which it would take alone. The same runs as the table of \
         means ({RUNS} runs of {jobs} jobs); 400 buckets of max(x, y) up to 100 as in the paper, neighbours drawn as one \
         until they have {jobs_min} jobs."
    );
    section("figure-9", "Figure 9: slowdown by size of the job", &[&text], blocks)
}

fn slowdown_chart(cells: &[Of], load: f64, jobs_min: f64) -> Chart {
    let series = POLICIES.iter().filter_map(|&(_, name)| find(cells, load, name)).map(|cell| {
        let mut points = Vec::new();
        let mut open = Share::default();
        let mut from = 0;
        for bucket in 0..BUCKETS {
            for run in &cell.runs {
                open.add(run.buckets[bucket]);
            }
            if jobs_min <= open.jobs || bucket + 1 == BUCKETS {
                let middle = BUCKET_WIDTH * (from + bucket + 1) as f64 / 2.0;
                points.extend(open.mean().map(|mean| (middle, mean)));
                open = Share::default();
                from = bucket + 1;
            }
        }
        Series { name: cell.name.to_owned(), points, ..Series::default() }
    });
    Chart {
        id: format!("figure-9-load-{:03}", (load * 100.0).round()),
        caption: format!("average slowdown at load {load}"),
        x: Axis::linear("max(x, y)"),
        y: Axis::linear("response time over max(x, y)"),
        kind: ChartKind::Lines,
        series: series.collect(),
    }
}

fn class_name(class: usize) -> String {
    match (class.checked_sub(1).map(|before| CLASSES[before]), CLASSES.get(class)) {
        (None, Some(end)) => format!("below {end}"),
        (Some(start), Some(end)) => format!("{start} to {end}"),
        (start, None) => format!("above {}", start.unwrap_or_default()),
    }
}

fn class_table(cells: &[Of], load: f64, reference: &[[f64; 8]; 3]) -> Table {
    let mut columns = vec![Column::new("max(x, y)", "")];
    for (_, name) in POLICIES {
        columns.push(Column::new(name, "times alone"));
        columns.push(Column::new(&format!("{name}, reference"), "times alone"));
    }
    let rows =
        (0..=CLASSES.len()).map(|class| {
            let mut row = vec![Cell::text(class_name(class))];
            for ((_, name), reference) in POLICIES.iter().zip(reference) {
                let ours = find(cells, load, name).and_then(|cell| cell.class(class));
                row.push(ours.map_or(Cell::Empty, |ours| Cell::Number {
                    value: ours.mean,
                    half_width: ours.half_width,
                }));
                row.push(Cell::number(reference[class]));
            }
            row
        });
    Table {
        id: format!("figure-9-classes-{:03}", (load * 100.0).round()),
        caption: format!("slowdown by class of size at load {load}, beside the reference's (6 million jobs)"),
        columns,
        rows: rows.collect(),
    }
}

fn slowdown_claims(context: &Context<'_>, cells: &[Of], load: f64) -> Vec<Claim> {
    let classes = |name: &str| -> Vec<f64> {
        let cell = find(cells, load, name);
        (0..=CLASSES.len()).filter_map(|class| Some(cell?.class(class)?.mean)).collect()
    };
    let (lps, max, split) = (classes("k-LPS"), classes("MaxSRPT"), classes("SplitSRPT"));
    let claim = |statement: &str, holds: bool, evidence: String| Claim {
        place: format!("section 5.3, load {load}"),
        statement: statement.to_owned(),
        verdict: judged(context, holds),
        evidence,
    };
    let first = |values: &[f64]| values.first().copied().unwrap_or(f64::NAN);
    let last = |values: &[f64]| values.last().copied().unwrap_or(f64::NAN);
    let spread = lps.iter().fold(0.0_f64, |most, &mean| most.max((mean / first(&lps) - 1.0).abs()));
    let below = |ours: &[f64]| ours.len() == lps.len() && ours.iter().zip(&lps).all(|(ours, lps)| ours < lps);
    let crossing = (0..max.len().min(split.len())).find(|&class| split[class] < max[class]);
    vec![
        claim(
            "The slowdown of k-LPS is nearly independent of the size, slightly decreasing.",
            spread < 0.2 && last(&lps) < first(&lps) * 1.05,
            format!("from {:.2} for the smallest to {:.2} for the largest", first(&lps), last(&lps)),
        ),
        claim(
            "Jobs of all sizes are better off under both algorithms than under k-LPS.",
            below(&max) && below(&split),
            format!(
                "largest jobs: k-LPS {:.2}, MaxSRPT {:.2}, SplitSRPT {:.2}",
                last(&lps),
                last(&max),
                last(&split)
            ),
        ),
        claim(
            "SplitSRPT is worse than MaxSRPT for small jobs and better for large ones.",
            first(&max) < first(&split) && last(&split) < last(&max),
            match crossing {
                Some(class) => format!(
                    "smallest {:.2} against {:.2}, largest {:.2} against {:.2}; SplitSRPT is ahead from class \"{}\" on",
                    first(&split),
                    first(&max),
                    last(&split),
                    last(&max),
                    class_name(class)
                ),
                None => "SplitSRPT is ahead in no class".to_owned(),
            },
        ),
    ]
}

//! Table 3 and figure 4: a stream of jobs under twelve policies, in the fluid model.

use super::offline::describe;
use super::online_claims::{of_figure_4, of_table_3};
use super::{ALPHA, DELTA, K, WORDS, online_table, title};
use crate::words::holes;
use crate::{Block, Context, Section, Series, each_cell};
use anyhow::Context as _;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::policy::pairs::{Pairs, Rule};
use gristmill_scheduler::sim::fluid;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::pairs::{Sizes, Stream};

/// Distributions of the streams: a mild one and a heavy-tailed one.
pub(super) const SIZES: [Sizes; 2] = [Sizes::Uniform, Sizes::Google];
/// Mean map time, in seconds.
const MEAN: f64 = 120.0;
const LOAD: f64 = 0.8;
/// Daily swing of arrivals about their mean; the paper's trace has peaks.
const SWING: f64 = 0.5;
pub(super) const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;

/// Returns the rules in the order of Table 3, with the average makespans printed there, in minutes.
pub(super) fn rules(seed: u64) -> [(Rule, f64); 12] {
    [
        (Rule::MaxDiff, 47.0),
        (Rule::Pairwise, 36.0),
        (Rule::MaxShuffle, 38.0),
        (Rule::MaxSrpt, 28.0),
        (Rule::Pair { delta: DELTA }, 22.0),
        (Rule::Couple { delta: DELTA }, 21.0),
        (Rule::Generalized { delta: DELTA, alpha: ALPHA }, 19.0),
        (Rule::Group { alpha: ALPHA, k: K }, 18.0),
        (Rule::OnlineGroup { alpha: ALPHA, k: K, seed }, 19.0),
        (Rule::NewCouple { delta: DELTA }, 32.0),
        (Rule::Match { alpha: ALPHA }, 15.0),
        (Rule::OnlineMatch { alpha: ALPHA, seed }, 16.0),
    ]
}

/// Panels of figure 4.
pub(super) const PANELS: [&str; 6] = ["pairwise", "max-srpt", "group", "o-group", "match", "o-match"];

/// Times of one job, in seconds.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) arrival: f64,
    pub(super) waiting: f64,
    pub(super) execution: f64,
    /// Execution time divided by the larger of map and shuffle.
    pub(super) ratio: f64,
}

impl Times {
    fn of(record: &JobRecord) -> Self {
        let (waiting, execution) = (record.times().waiting(), record.times().execution());
        let dominant = record.work[Station::Map].max(record.work[Station::Shuffle]);
        let ratio = if 0.0 < dominant { execution / dominant } else { 1.0 };
        Self { arrival: record.arrival, waiting, execution, ratio }
    }

    pub(super) fn makespan(&self) -> f64 {
        self.waiting + self.execution
    }
}

/// Results of one policy on one distribution: all jobs, for each seed.
pub(super) struct Outcome {
    pub(super) rule: Rule,
    pub(super) printed: f64,
    pub(super) runs: Vec<Vec<Times>>,
}

impl Outcome {
    /// Returns the mean over jobs, in minutes, for each seed.
    pub(super) fn means(&self, value: fn(&Times) -> f64) -> Vec<f64> {
        let of_run = |run: &Vec<Times>| run.iter().map(value).sum::<f64>() / run.len() as f64 / MINUTE;
        self.runs.iter().map(of_run).collect()
    }

    pub(super) fn makespans(&self) -> Vec<f64> {
        self.means(Times::makespan)
    }

    /// Returns the values of all jobs of all seeds, in ascending order.
    pub(super) fn sorted(&self, value: fn(&Times) -> f64) -> Vec<f64> {
        let mut all: Vec<f64> = self.runs.iter().flatten().map(value).collect();
        all.sort_by(f64::total_cmp);
        all
    }
}

/// All runs.
pub(super) struct Streams {
    jobs: usize,
    seeds: Vec<u64>,
    /// Results by index in [`SIZES`], then in the order of Table 3.
    outcomes: Vec<Vec<Outcome>>,
}

impl Streams {
    pub(super) fn run(context: &Context<'_>) -> anyhow::Result<Self> {
        let (jobs, runs) = (context.scaled(120, 3_000, 17_000), context.scaled(2, 40, 40));
        let seeds = context.seeds(runs);
        let mut outcomes = Vec::new();
        for sizes in SIZES {
            let stream = Stream { sizes, jobs, mean: MEAN, load: LOAD, swing: SWING };
            let places: Vec<usize> = (0..rules(0).len()).collect();
            let runs =
                each_cell(&places, &seeds, |&place, &seed| times_of(&stream, rules(seed)[place].0, seed))?;
            let by_rule = rules(0).into_iter().zip(runs);
            outcomes.push(by_rule.map(|((rule, printed), runs)| Outcome { rule, printed, runs }).collect());
        }
        Ok(Self { jobs, seeds, outcomes })
    }

    fn in_words(&self) -> String {
        format!(
            "{} jobs of mean map time {} minutes, load {LOAD}, Poisson arrivals with a daily swing of {:.0} \
             %; {} seeds from {} on, the same jobs for every policy. Intervals are 95 % over seeds.",
            self.jobs,
            MEAN / MINUTE,
            100.0 * SWING,
            self.seeds.len(),
            self.seeds.first().copied().unwrap_or_default()
        )
    }

    pub(super) fn figure_4(&self) -> Section {
        let panels = SIZES.into_iter().zip(&self.outcomes);
        let charts = panels.map(|(sizes, outcomes)| waiting_jobs(sizes, outcomes));
        let claims = Block::Claims(vec![of_figure_4(&self.outcomes)]);
        WORDS.section("figure-4", holes![setting = self.in_words()], charts.chain([claims]).collect())
    }

    pub(super) fn table_3(&self) -> Section {
        let tables = SIZES.into_iter().zip(&self.outcomes);
        let tables = tables.map(|(sizes, outcomes)| online_table::of(sizes, outcomes));
        let claims = Block::Claims(of_table_3(&self.outcomes));
        WORDS.section("table-3", holes![setting = self.in_words()], tables.chain([claims]).collect())
    }
}

fn times_of(stream: &Stream, rule: Rule, seed: u64) -> anyhow::Result<Vec<Times>> {
    let mut times = Vec::with_capacity(stream.jobs);
    fluid::run(&mut Pairs::new(rule), stream.draw(seed), &mut |record| times.push(Times::of(record)))
        .with_context(|| format!("could not simulate {} with seed {seed}", rule.name()))?;
    Ok(times)
}

pub(super) fn of<'a>(outcomes: &'a [Outcome], name: &str) -> &'a Outcome {
    outcomes.iter().find(|outcome| outcome.rule.name() == name).expect("a policy of the table")
}

/// Chart of the waiting jobs of figure 4.
fn waiting_jobs(sizes: Sizes, outcomes: &[Outcome]) -> Block {
    let series = PANELS.iter().map(|name| {
        let outcome = of(outcomes, name);
        Series::new(title(&outcome.rule), waiting_by_hour(&outcome.runs[0]))
    });
    let holes = holes![name = sizes.name(), sizes = describe(sizes)];
    WORDS.chart("figure-4-{name}", holes, series.collect())
}

fn waiting_by_hour(run: &[Times]) -> Vec<(f64, f64)> {
    // Arrivals and starts as steps of +1 and -1.
    let mut steps: Vec<(f64, i32)> =
        run.iter().flat_map(|times| [(times.arrival, 1), (times.arrival + times.waiting, -1)]).collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let end = steps.last().map_or(0.0, |step| step.0);
    let (mut points, mut waiting, mut next) = (Vec::new(), 0, 0);
    for hour in 0..=(end / HOUR).ceil() as u32 {
        let now = f64::from(hour) * HOUR;
        while next < steps.len() && steps[next].0 <= now {
            waiting += steps[next].1;
            next += 1;
        }
        points.push((f64::from(hour) / 24.0, f64::from(waiting)));
    }
    points
}

//! Table 3 and figure 4: a stream of jobs under twelve policies, in the fluid model.

use super::offline::describe;
use super::{ALPHA, DELTA, K, cell, mean, seeds, title};
use crate::paper::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Context, Section, Series, Table, Verdict, each,
};
use anyhow::Context as _;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::policy::pairs::{Pairs, Rule};
use gristmill_scheduler::sim::fluid;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::pairs::{Sizes, Stream};

/// Distributions of the streams: a mild one and a heavy-tailed one.
const SIZES: [Sizes; 2] = [Sizes::Uniform, Sizes::Google];
/// Mean map time, in seconds.
const MEAN: f64 = 120.0;
const LOAD: f64 = 0.8;
/// Daily swing of arrivals about their mean; the paper's trace has peaks.
const SWING: f64 = 0.5;
const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;

/// In the order of Table 3, with the average makespans printed there, in minutes.
fn rules(seed: u64) -> [(Rule, f64); 12] {
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
const PANELS: [&str; 6] = ["pairwise", "max-srpt", "group", "o-group", "match", "o-match"];

/// Times of one job, in seconds.
#[derive(Clone, Copy)]
struct Times {
    arrival: f64,
    waiting: f64,
    execution: f64,
    /// The execution over the larger of map and shuffle.
    ratio: f64,
}

impl Times {
    fn of(record: &JobRecord) -> Self {
        let (waiting, execution) = (record.times().waiting(), record.times().execution());
        let dominant = record.work[Station::Map].max(record.work[Station::Shuffle]);
        let ratio = if 0.0 < dominant { execution / dominant } else { 1.0 };
        Self { arrival: record.arrival, waiting, execution, ratio }
    }

    fn makespan(&self) -> f64 {
        self.waiting + self.execution
    }
}

/// One policy on one distribution: for each seed all jobs.
struct Outcome {
    rule: Rule,
    printed: f64,
    runs: Vec<Vec<Times>>,
}

impl Outcome {
    /// Mean over jobs, in minutes, one for each seed.
    fn means(&self, value: fn(&Times) -> f64) -> Vec<f64> {
        let of_run = |run: &Vec<Times>| run.iter().map(value).sum::<f64>() / run.len() as f64 / MINUTE;
        self.runs.iter().map(of_run).collect()
    }

    fn makespans(&self) -> Vec<f64> {
        self.means(Times::makespan)
    }

    /// Of all jobs of all seeds, in rising order.
    fn sorted(&self, value: fn(&Times) -> f64) -> Vec<f64> {
        let mut all: Vec<f64> = self.runs.iter().flatten().map(value).collect();
        all.sort_by(f64::total_cmp);
        all
    }
}

/// All runs.
pub(super) struct Streams {
    jobs: usize,
    seeds: Vec<u64>,
    /// By place in [`SIZES`], then in the order of Table 3.
    outcomes: Vec<Vec<Outcome>>,
}

impl Streams {
    pub(super) fn run(context: &Context<'_>) -> anyhow::Result<Self> {
        let (jobs, runs) = (context.scaled(120, 3_000, 17_000), context.scaled(2, 12, 20));
        let seeds = seeds(context, runs);
        let mut outcomes = Vec::new();
        for sizes in SIZES {
            let stream = Stream { sizes, jobs, mean: MEAN, load: LOAD, swing: SWING };
            let items: Vec<(usize, u64)> =
                (0..rules(0).len()).flat_map(|place| seeds.iter().map(move |&seed| (place, seed))).collect();
            let runs = each(&items, |&(place, seed)| times_of(&stream, rules(seed)[place].0, seed));
            let mut runs = runs.into_iter();
            let mut by_rule = Vec::new();
            for (rule, printed) in rules(0) {
                let runs = runs.by_ref().take(seeds.len()).collect::<anyhow::Result<_>>()?;
                by_rule.push(Outcome { rule, printed, runs });
            }
            outcomes.push(by_rule);
        }
        Ok(Self { jobs, seeds, outcomes })
    }

    fn in_words(&self) -> String {
        format!(
            "{} jobs of mean map time {} minutes, load {LOAD}, Poisson arrivals with a daily swing of {:.0} %; {} seeds \
             from {} on, the same jobs for every policy. Intervals are 95 % over seeds.",
            self.jobs,
            MEAN / MINUTE,
            100.0 * SWING,
            self.seeds.len(),
            self.seeds.first().copied().unwrap_or_default()
        )
    }

    pub(super) fn figure_4(&self) -> Section {
        let mut blocks = Vec::new();
        for (sizes, outcomes) in SIZES.iter().zip(&self.outcomes) {
            let shown =
                PANELS.iter().filter_map(|name| outcomes.iter().find(|outcome| outcome.rule.name() == *name));
            let series = shown.map(|outcome| Series {
                name: title(&outcome.rule).to_owned(),
                points: waiting_by_hour(&outcome.runs[0]),
                half_widths: Vec::new(),
                reference: false,
            });
            blocks.push(Block::Chart(Chart {
                id: format!("figure-4-{}", sizes.name()),
                caption: format!("Waiting jobs at every hour, first seed; sizes {}", describe(*sizes)),
                x: Axis::linear("time, days"),
                y: Axis::linear("waiting jobs"),
                kind: ChartKind::Lines,
                series: series.collect(),
            }));
        }
        blocks.push(Block::Claims(vec![self.judged(
            "Section 6.3, figure 4",
            "Pairwise has the most waiting jobs of the six policies shown, Match the fewest.",
            |outcomes| {
                let waiting = |name: &str| of(outcomes, name).means(|times| times.waiting);
                let most = PANELS.iter().all(|name| total(&waiting(name)) <= total(&waiting("pairwise")));
                let fewest = PANELS.iter().all(|name| total(&waiting("match")) <= total(&waiting(name)));
                (most && fewest, words(outcomes, &PANELS, |times| times.waiting))
            },
        )]));
        Section {
            id: "figure-4".to_owned(),
            title: "Figure 4: waiting jobs over time".to_owned(),
            text: vec![
                self.in_words(),
                "The printed time axis is a trace's 29 days, which are not public; over time as many jobs wait as \
                 arrive in an average waiting time, so the averages of Table 3 say the same."
                    .to_owned(),
            ],
            blocks,
        }
    }

    pub(super) fn table_3(&self) -> Section {
        let mut blocks: Vec<Block> = SIZES
            .iter()
            .zip(&self.outcomes)
            .map(|(sizes, outcomes)| Block::Table(table(*sizes, outcomes)))
            .collect();
        blocks.push(Block::Claims(self.claims()));
        Section {
            id: "table-3".to_owned(),
            title: "Table 3: a stream of jobs".to_owned(),
            text: vec![
                self.in_words(),
                "An 80 % interval leaves out the largest and the smallest tenth of all jobs; a job's ratio is its \
                 execution time over the larger of its map and shuffle times, and the worst ratio the largest (the \
                 paper's \"smallest\" is a slip). The order is made anew when jobs come; a started job is not \
                 preempted. The section says that the online problem is APX-hard; the paper it cites proves that no \
                 online policy has a constant competitive ratio."
                    .to_owned(),
            ],
            blocks,
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let place = "Section 6.3, Table 3";
        let others = |name: &'static str| {
            move |outcomes: &[Outcome]| {
                let best = of(outcomes, name).makespans();
                let rest = outcomes.iter().filter(|outcome| outcome.rule.name() != name);
                let better: Vec<(&str, bool, bool)> = rest
                    .map(|other| {
                        let apart = difference(&other.makespans(), &best);
                        (title(&other.rule), 0.0 < apart.0, apart.1 < apart.0)
                    })
                    .collect();
                let list = |keep: fn(&(&'static str, bool, bool)) -> bool| {
                    better
                        .iter()
                        .filter(|entry| keep(entry))
                        .map(|entry| entry.0)
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                let (worse, unsure) = (list(|entry| !entry.1), list(|entry| entry.1 && !entry.2));
                let mut evidence = format!("makespan {:.2} min", mean(&best).mean);
                if !worse.is_empty() {
                    evidence.push_str(&format!("; smaller under {worse}"));
                }
                if !unsure.is_empty() {
                    evidence.push_str(&format!("; within the noise of {unsure}"));
                }
                (worse.is_empty(), evidence)
            }
        };
        let slightly = |online: &'static str, offline: &'static str| {
            move |outcomes: &[Outcome]| {
                let [online, offline] = [online, offline].map(|name| of(outcomes, name).makespans());
                let (apart, width) = difference(&online, &offline);
                let part = apart / mean(&offline).mean;
                let evidence = format!(
                    "{:.2} against {:.2} min, difference {apart:.2} ± {width:.2} min ({:.1} %)",
                    mean(&online).mean,
                    mean(&offline).mean,
                    100.0 * part
                );
                // Not better beyond the noise, and worse by no more than a tenth: the paper's differ by 6 and 7 %.
                (-width <= apart && part <= 0.1, evidence)
            }
        };
        vec![
            self.judged(place, "Match has the smallest average makespan.", others("match")),
            self.judged(place, "OMatch is only slightly worse than Match.", slightly("o-match", "match")),
            self.judged(place, "OGroup is only slightly worse than Group.", slightly("o-group", "group")),
            self.judged(
                place,
                "Pairwise has the smallest execution time and a large waiting time.",
                |outcomes| {
                    let value =
                        |name: &str, of_job: fn(&Times) -> f64| total(&of(outcomes, name).means(of_job));
                    let least = outcomes.iter().all(|outcome| {
                        value("pairwise", |times| times.execution)
                            <= value(outcome.rule.name(), |times| times.execution)
                    });
                    let waits =
                        value("max-srpt", |times| times.waiting) < value("pairwise", |times| times.waiting);
                    (least && waits, words(outcomes, &["pairwise", "max-srpt"], |times| times.execution))
                },
            ),
            self.judged(place, "MaxSRPT executes longer than the policies that pair jobs.", |outcomes| {
                let paired = ["pair", "couple", "generalized", "group", "match"];
                let value = |name: &str| total(&of(outcomes, name).means(|times| times.execution));
                let longer = paired.iter().all(|name| value(name) < value("max-srpt"));
                (
                    longer,
                    words(
                        outcomes,
                        &["max-srpt", "pair", "couple", "generalized", "group", "match"],
                        |times| times.execution,
                    ),
                )
            }),
            self.judged(place, "MaxDiff, MaxShuffle and Pairwise have the largest makespans.", |outcomes| {
                let mut ranked: Vec<&Outcome> = outcomes.iter().collect();
                ranked.sort_by(|a, b| total(&b.makespans()).total_cmp(&total(&a.makespans())));
                let worst = ["max-diff", "max-shuffle", "pairwise"];
                let holds = ranked.iter().take(3).all(|outcome| worst.contains(&outcome.rule.name()));
                let names: Vec<&str> = ranked.iter().rev().map(|outcome| title(&outcome.rule)).collect();
                (holds, format!("best first: {}", names.join(", ")))
            }),
        ]
    }

    /// Judges a claim on every distribution; the test also gives what was seen, in words.
    fn judged(&self, place: &str, statement: &str, test: impl Fn(&[Outcome]) -> (bool, String)) -> Claim {
        let found: Vec<(bool, String)> = self.outcomes.iter().map(|outcomes| test(outcomes)).collect();
        let verdict = match (found.iter().all(|found| found.0), found.iter().any(|found| found.0)) {
            (true, _) => Verdict::Holds,
            (_, true) => Verdict::Partly,
            _ => Verdict::Fails,
        };
        let sentence = |(sizes, (holds, words)): (&Sizes, &(bool, String))| {
            format!("{}: {}; {words}.", describe(*sizes), if *holds { "yes" } else { "no" })
        };
        let evidence: Vec<String> = SIZES.iter().zip(&found).map(sentence).collect();
        Claim {
            place: place.to_owned(),
            statement: statement.to_owned(),
            verdict,
            evidence: evidence.join(" "),
        }
    }
}

fn times_of(stream: &Stream, rule: Rule, seed: u64) -> anyhow::Result<Vec<Times>> {
    let mut times = Vec::with_capacity(stream.jobs);
    fluid::run(&mut Pairs::new(rule), stream.draw(seed), &mut |record| times.push(Times::of(record)))
        .with_context(|| format!("could not simulate {} with seed {seed}", rule.name()))?;
    Ok(times)
}

fn of<'a>(outcomes: &'a [Outcome], name: &str) -> &'a Outcome {
    outcomes.iter().find(|outcome| outcome.rule.name() == name).expect("a policy of the table")
}

fn total(samples: &[f64]) -> f64 {
    samples.iter().sum()
}

/// Mean of the differences of two policies on the same jobs, and its half width.
fn difference(a: &[f64], b: &[f64]) -> (f64, f64) {
    let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let interval = mean(&apart);
    (interval.mean, interval.half_width.unwrap_or(f64::INFINITY))
}

fn words(outcomes: &[Outcome], names: &[&str], value: fn(&Times) -> f64) -> String {
    let one = |name: &&str| {
        let outcome = of(outcomes, name);
        format!("{} {:.2} min", title(&outcome.rule), mean(&outcome.means(value)).mean)
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
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

fn table(sizes: Sizes, outcomes: &[Outcome]) -> Table {
    let minutes = |name: &str| Column::new(name, "min");
    let columns = vec![
        Column::new("policy", ""),
        minutes("average waiting"),
        minutes("waiting, 80 % interval"),
        minutes("longest waiting"),
        minutes("average execution"),
        minutes("execution, 80 % interval"),
        Column::new("worst ratio", ""),
        minutes("average makespan"),
        minutes("makespan, 80 % interval"),
        minutes("smallest makespan"),
        minutes("largest makespan"),
        minutes("printed average makespan"),
    ];
    let most = |sorted: &[f64]| sorted.last().copied().unwrap_or_default();
    let inner = |sorted: &[f64]| {
        let cut = sorted.len() / 10;
        let (low, high) = (sorted.get(cut), sorted.get(sorted.len() - 1 - cut));
        let minutes = |value: Option<&f64>| value.copied().unwrap_or_default() / MINUTE;
        Cell::text(format!("[{:.1}, {:.1}]", minutes(low), minutes(high)))
    };
    let row = |outcome: &Outcome| {
        let waiting = outcome.sorted(|times| times.waiting);
        let execution = outcome.sorted(|times| times.execution);
        let makespan = outcome.sorted(Times::makespan);
        let mean_of = |value: fn(&Times) -> f64| cell(mean(&outcome.means(value)));
        vec![
            Cell::text(title(&outcome.rule)),
            mean_of(|times| times.waiting),
            inner(&waiting),
            Cell::number(most(&waiting) / MINUTE),
            mean_of(|times| times.execution),
            inner(&execution),
            Cell::number(most(&outcome.sorted(|times| times.ratio))),
            mean_of(Times::makespan),
            inner(&makespan),
            Cell::number(makespan.first().copied().unwrap_or_default() / MINUTE),
            Cell::number(most(&makespan) / MINUTE),
            Cell::number(outcome.printed),
        ]
    };
    Table {
        id: format!("table-3-{}", sizes.name()),
        caption: format!("Sizes {}; the printed column is the paper's own trace", describe(sizes)),
        columns,
        rows: outcomes.iter().map(row).collect(),
    }
}

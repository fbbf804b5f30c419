//! Table 3 and figure 4: a stream of jobs under twelve policies, in the fluid model; and the claims about both.

use super::WORDS;
use super::printed::{self, BySizes, COLUMNS, MAKESPAN, MATCH, StreamRow, TABLE_3, WORST_RATIO, compare};
use super::rules::{ALPHA, DELTA, K, describe, title};
use crate::prelude::*;
use crate::workload::pairs::{JobStream, SizeLaw};
use anyhow::Context as _;
use gristmill_scheduler::metrics::JobRecord;
use gristmill_scheduler::policy::pairs::{Pairs, PairsRule};
use gristmill_scheduler::sim::fluid;

/// Distributions of the streams: a mild one and a heavy-tailed one.
pub(super) const SIZES: [SizeLaw; 2] = [SizeLaw::Uniform, SizeLaw::Google];
/// Mean map time, in seconds.
const MEAN: f64 = 120.0;
const LOAD: f64 = 0.8;
/// Daily swing of arrivals about their mean; the paper's trace has peaks.
const SWING: f64 = 0.5;
pub(super) const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;

/// Returns the rules in the order of Table 3.
pub(super) fn rules(seed: u64) -> [PairsRule; 12] {
    [
        PairsRule::MaxDiff,
        PairsRule::Pairwise,
        PairsRule::MaxShuffle,
        PairsRule::MaxSrpt,
        PairsRule::Pair { delta: DELTA },
        PairsRule::Couple { delta: DELTA },
        PairsRule::Generalized { delta: DELTA, alpha: ALPHA },
        PairsRule::Group { alpha: ALPHA, k: K },
        PairsRule::OnlineGroup { alpha: ALPHA, k: K, seed },
        PairsRule::NewCouple { delta: DELTA },
        PairsRule::Match { alpha: ALPHA },
        PairsRule::OnlineMatch { alpha: ALPHA, seed },
    ]
}

/// Panels of figure 4.
pub(super) const PANELS: [&str; 6] = ["pairwise", "max-srpt", "group", "o-group", "match", "o-match"];

/// Times of one job, in seconds.
#[derive(Clone, Copy)]
pub(super) struct StreamTimes {
    pub(super) arrival: f64,
    pub(super) waiting: f64,
    pub(super) execution: f64,
    /// Execution time divided by the larger of map and shuffle.
    pub(super) ratio: f64,
}

impl StreamTimes {
    fn from_record(record: &JobRecord) -> Self {
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
pub(super) struct StreamOutcome {
    pub(super) rule: PairsRule,
    pub(super) runs: Vec<Vec<StreamTimes>>,
}

impl StreamOutcome {
    /// Returns the mean over jobs, in minutes, for each seed.
    pub(super) fn means(&self, value: fn(&StreamTimes) -> f64) -> Vec<f64> {
        let of_run = |run: &Vec<StreamTimes>| run.iter().map(value).sum::<f64>() / run.len() as f64 / MINUTE;
        self.runs.iter().map(of_run).collect()
    }

    pub(super) fn makespans(&self) -> Vec<f64> {
        self.means(StreamTimes::makespan)
    }
}

/// All runs.
pub(super) struct Streams {
    jobs: usize,
    seeds: Vec<u64>,
    /// Results by index in [`SIZES`], then in the order of Table 3.
    outcomes: Vec<Vec<StreamOutcome>>,
}

impl Streams {
    pub(super) fn run(context: &Context<'_>) -> anyhow::Result<Self> {
        let (jobs, runs) = (context.scaled(120, 3_000, 17_000), context.scaled(2, 40, 40));
        let seeds = context.seeds(runs);
        let mut outcomes = Vec::new();
        for sizes in SIZES {
            let stream = JobStream { sizes, jobs, mean: MEAN, load: LOAD, swing: SWING };
            let places: Vec<usize> = (0..rules(0).len()).collect();
            let runs =
                each_cell(&places, &seeds, |&place, &seed| times_of(&stream, rules(seed)[place], seed))?;
            let by_rule = rules(0).into_iter().zip(runs);
            outcomes.push(by_rule.map(|(rule, runs)| StreamOutcome { rule, runs }).collect());
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
        let tables = tables.map(|(sizes, outcomes)| table(sizes, outcomes));
        let compared = SIZES.into_iter().zip(&self.outcomes).map(compared);
        let mut compared: Vec<BySizes> = compared.collect();
        let holes = holes![setting = self.in_words(), found = printed::in_words(&compared)];
        let compared = Block::Comparison(compared.swap_remove(0).1);
        let claims = Block::Claims(of_table_3(&self.outcomes));
        WORDS.section("table-3", holes, tables.chain([compared, claims]).collect())
    }
}

fn times_of(stream: &JobStream, rule: PairsRule, seed: u64) -> anyhow::Result<Vec<StreamTimes>> {
    let mut times = Vec::with_capacity(stream.jobs);
    fluid::run(&mut Pairs::new(rule), stream.draw(seed), &mut |record| {
        times.push(StreamTimes::from_record(record));
    })
    .with_context(|| format!("could not simulate {} with seed {seed}", rule.name()))?;
    Ok(times)
}

pub(super) fn outcome_of<'a>(outcomes: &'a [StreamOutcome], name: &str) -> &'a StreamOutcome {
    outcomes.iter().find(|outcome| outcome.rule.name() == name).expect("a policy of the table")
}

/// Chart of the waiting jobs of figure 4.
fn waiting_jobs(sizes: SizeLaw, outcomes: &[StreamOutcome]) -> Block {
    let series = PANELS.iter().map(|name| {
        let outcome = outcome_of(outcomes, name);
        Series::new(title(&outcome.rule), waiting_by_hour(&outcome.runs[0]))
    });
    let holes = holes![name = sizes.name(), sizes = describe(sizes)];
    WORDS.chart("figure-4-{name}", holes, series.collect())
}

fn waiting_by_hour(run: &[StreamTimes]) -> Vec<(f64, f64)> {
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

/// Returns the row of Table 3 of each run, in the unit of its times.
fn stream_rows(outcome: &StreamOutcome) -> Vec<StreamRow> {
    let row = |run: &Vec<StreamTimes>| {
        let numbers = |value: TimeValue| {
            let mut all: Vec<f64> = run.iter().map(value).collect();
            all.sort_unstable_by(f64::total_cmp);
            let (cut, last) = (all.len() / 10, all.len() - 1);
            [all.iter().sum::<f64>() / all.len() as f64, all[cut], all[last - cut], all[0], all[last]]
        };
        let ratio: TimeValue = |times| times.ratio;
        let [w, e, ratio, m] = [WAITING, EXECUTION, ratio, StreamTimes::makespan].map(numbers);
        [w[0], w[1], w[2], w[4], e[0], e[1], e[2], ratio[4], m[0], m[1], m[2], m[3], m[4]]
    };
    outcome.runs.iter().map(row).collect()
}

/// Compares all numbers of Table 3 but Match's average makespan, which is the unit of times.
pub(super) fn compared((sizes, outcomes): (SizeLaw, &Vec<StreamOutcome>)) -> BySizes {
    let cells = (0..outcomes.len()).flat_map(|place| (0..COLUMNS.len()).map(move |column| (place, column)));
    let rows: Vec<Vec<StreamRow>> = outcomes.iter().map(stream_rows).collect();
    let units: Vec<f64> = rows[MATCH].iter().map(|row| row[MAKESPAN]).collect();
    let ones = vec![1.0; units.len()];
    let compared = cells.filter(|cell| *cell != (MATCH, MAKESPAN)).map(|(place, column)| {
        let what = format!("{}: {}", title(&outcomes[place].rule), COLUMNS[column]);
        let ours: Vec<f64> = rows[place].iter().map(|row| row[column]).collect();
        let (units, unit) =
            if column == WORST_RATIO { (&ones, 1.0) } else { (&units, TABLE_3[MATCH][MAKESPAN]) };
        compare(&what, sizes, [&ours, units], [TABLE_3[place][column], unit])
    });
    (sizes, compared.collect())
}

fn table(sizes: SizeLaw, outcomes: &[StreamOutcome]) -> Block {
    let row = |(outcome, printed): (&StreamOutcome, StreamRow)| {
        let rows = stream_rows(outcome);
        let unit = |at: usize| if at == WORST_RATIO { 1.0 } else { MINUTE };
        let means = (0..COLUMNS.len()).map(|at| mean_by(&rows, |row| row[at] / unit(at)).into());
        let name = Cell::text(title(&outcome.rule));
        [name, Cell::number(printed[MAKESPAN])].into_iter().chain(means).collect()
    };
    let holes = holes![name = sizes.name(), sizes = describe(sizes)];
    let rows = outcomes.iter().zip(TABLE_3).map(row).collect();
    WORDS.table_with("table-3-{name}", holes, COLUMNS.map(|name| Column::new(name, "")), rows)
}

/// Result for one distribution, and the numbers in words.
type StreamFinding = (CaseVerdict, String);

/// Relative difference by which an online policy may be worse than the offline one. The paper's differ by
/// 6 and 7 %.
const SLIGHTLY: f64 = 0.1;

/// Number of a job's times.
type TimeValue = fn(&StreamTimes) -> f64;

const WAITING: TimeValue = |times| times.waiting;
const EXECUTION: TimeValue = |times| times.execution;

/// Judges a claim on every distribution.
fn judged(all: &[Vec<StreamOutcome>], key: &str, test: impl Fn(&[StreamOutcome]) -> StreamFinding) -> Claim {
    let found: Vec<StreamFinding> = all.iter().map(|outcomes| test(outcomes)).collect();
    let sentence = |(sizes, (holds, words)): (&SizeLaw, &StreamFinding)| {
        format!("{}: {}; {words}.", describe(*sizes), holds.word())
    };
    let sentences: Vec<String> = SIZES.iter().zip(&found).map(sentence).collect();
    WORDS.claim(key, by_case(found.iter().map(|found| found.0)), holes![found = sentences.join(" ")])
}

/// Judges by the rules of a claim.
fn by_rules(all: &[Vec<StreamOutcome>], key: &str, words: impl Fn(&[StreamOutcome]) -> String) -> Claim {
    judged(all, key, |outcomes| {
        let names: Vec<&str> = outcomes.iter().map(|outcome| outcome.rule.name()).collect();
        let samples = |number: &str, name: &str| match number {
            "waiting" => outcome_of(outcomes, name).means(WAITING),
            "execution" => outcome_of(outcomes, name).means(EXECUTION),
            _ => outcome_of(outcomes, name).makespans(),
        };
        (keeps(WORDS.rules(key), &names, samples), words(outcomes))
    })
}

pub(super) fn of_figure_4(all: &[Vec<StreamOutcome>]) -> Claim {
    by_rules(all, "waiting-jobs", |outcomes| in_minutes(outcomes, &PANELS, WAITING))
}

pub(super) fn of_table_3(all: &[Vec<StreamOutcome>]) -> Vec<Claim> {
    let by_size = ["max-srpt", "pair", "couple", "generalized", "group", "match"];
    vec![
        by_rules(all, "stream-match-is-best", beside_match),
        judged(all, "o-match", |outcomes| slightly_worse("o-match", "match", outcomes)),
        judged(all, "o-group", |outcomes| slightly_worse("o-group", "group", outcomes)),
        by_rules(all, "pairwise-waits", |outcomes| {
            let [execution, waiting] =
                [EXECUTION, WAITING].map(|number| in_minutes(outcomes, &["pairwise", "max-srpt"], number));
            format!("execution {execution}; waiting {waiting}")
        }),
        by_rules(all, "max-srpt-executes", |outcomes| in_minutes(outcomes, &by_size, EXECUTION)),
        by_rules(all, "largest-makespans", best_first),
    ]
}

/// Describes the makespan of Match, and the policies that have a smaller one or are within the noise.
fn beside_match(outcomes: &[StreamOutcome]) -> String {
    let best = outcome_of(outcomes, "match").makespans();
    let others = outcomes.iter().filter(|outcome| outcome.rule.name() != "match");
    let seen: Vec<(CaseVerdict, &str)> =
        others.map(|other| (CaseVerdict::less(&best, &other.makespans()), title(&other.rule))).collect();
    let mut words = format!("makespan {:.2} min", mean_of(&best).mean);
    for (wanted, what) in [(CaseVerdict::No, "smaller under"), (CaseVerdict::Unclear, "within the noise of")]
    {
        let named = seen.iter().filter(|(seen, _)| *seen == wanted);
        let names: Vec<&str> = named.map(|(_, name)| *name).collect();
        if !names.is_empty() {
            words.push_str(&format!("; {what} {}", names.join(", ")));
        }
    }
    words
}

/// Judges if an online policy is worse than its offline one by at most [`SLIGHTLY`], and not better.
fn slightly_worse(online: &str, offline: &str, outcomes: &[StreamOutcome]) -> StreamFinding {
    let [online, offline] = [online, offline].map(|name| outcome_of(outcomes, name).makespans());
    let ratio = log_ratio(&online, &offline);
    let better = CaseVerdict::below(&ratio, 0.0) == CaseVerdict::Yes;
    let seen = if better { CaseVerdict::No } else { CaseVerdict::below(&ratio, SLIGHTLY.ln_1p()) };
    let evidence = format!(
        "{:.2} against {:.2} min, {} (up to {:.0} % is slightly worse)",
        mean_of(&online).mean,
        mean_of(&offline).mean,
        percent(&ratio),
        100.0 * SLIGHTLY
    );
    (seen, evidence)
}

fn best_first(outcomes: &[StreamOutcome]) -> String {
    let total = |outcome: &StreamOutcome| mean_of(&outcome.makespans()).mean;
    let mut ranked: Vec<&StreamOutcome> = outcomes.iter().collect();
    ranked.sort_by(|a, b| total(a).total_cmp(&total(b)));
    let names: Vec<&str> = ranked.iter().map(|outcome| title(&outcome.rule)).collect();
    format!("best first: {}", names.join(", "))
}

fn in_minutes(outcomes: &[StreamOutcome], names: &[&str], number: TimeValue) -> String {
    let one = |name: &&str| {
        let outcome = outcome_of(outcomes, name);
        format!("{} {:.2} min", title(&outcome.rule), mean_of(&outcome.means(number)).mean)
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

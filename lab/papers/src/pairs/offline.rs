//! Table 2: jobs that are all present at the start, under ten rules, for several distributions of sizes; and
//! the claims about it.

use super::rules::{DELTA, MEAN, OFFLINE, title};
use super::words::WORDS;
use crate::prelude::*;
use crate::workload::pairs::SizeLaw;
use gristmill_scheduler::policy::pairs::{Averages, PairsRule, averages, times};

/// Table 2 as printed, in the order of [`OFFLINE`]: waiting, execution and makespan in seconds.
const PRINTED: [[f64; 3]; 10] = [
    [4431.0, 512.0, 4943.0],
    [4619.0, 532.0, 5151.0],
    [4683.0, 560.0, 5243.0],
    [4787.0, 563.0, 5350.0],
    [4809.0, 581.0, 5390.0],
    [4768.0, 840.0, 5608.0],
    [5399.0, 636.0, 6035.0],
    [7929.0, 898.0, 8827.0],
    [8289.0, 149.0, 9138.0],
    [8806.0, 682.0, 9488.0],
];

/// Describes a distribution for tables.
pub(super) fn describe(sizes: SizeLaw) -> &'static str {
    match sizes {
        SizeLaw::Uniform => "uniform, independent",
        SizeLaw::Exponential => "exponential, independent",
        SizeLaw::LogNormal => "log-normal (sd 0.6), independent",
        SizeLaw::StrongPairs => "uniform, exact strong pairs",
        SizeLaw::Ratio => "log-normal (sd 0.6), shuffle = map × ratio",
        SizeLaw::Balanced => "Google fit, cube root of the ratio",
        SizeLaw::Google => "Google fit of the overlap paper",
    }
}

/// Averages of one rule and distribution, by seed.
type BySeed = Vec<Averages>;

/// Results for one distribution: by index in [`OFFLINE`], one sample for each seed.
pub(super) struct OfflineOutcome {
    pub(super) sizes: SizeLaw,
    pub(super) rules: Vec<BySeed>,
}

/// Number of a rule's averages.
pub(super) type AverageValue = fn(&Averages) -> f64;

/// Numbers shown, by name.
pub(super) const NUMBERS: [(&str, AverageValue); 3] = [
    ("waiting", |averages| averages.waiting),
    ("execution", |averages| averages.execution),
    ("makespan", |averages| averages.makespan),
];

impl OfflineOutcome {
    pub(super) fn samples(&self, rule: usize, number: AverageValue) -> Vec<f64> {
        self.rules[rule].iter().map(number).collect()
    }

    /// Returns a makespan divided by that of Match, by seed.
    fn over_match(&self, rule: usize) -> Vec<f64> {
        let pairs = self.rules[rule].iter().zip(&self.rules[0]);
        pairs.map(|(ours, best)| ours.makespan / best.makespan).collect()
    }
}

/// Returns averages of rules over seeds: for every rule one sample per seed, all on the same jobs.
pub(super) fn averages_of(rules: &[PairsRule], sizes: SizeLaw, jobs: usize, seeds: &[u64]) -> Vec<BySeed> {
    let by_seed = each(seeds, |&seed| {
        let jobs = sizes.draw(jobs, MEAN, seed);
        rules.iter().map(|rule| averages(&times(&jobs, &rule.order(&jobs)))).collect::<Vec<_>>()
    });
    (0..rules.len()).map(|rule| by_seed.iter().map(|averages| averages[rule]).collect()).collect()
}

pub(super) fn table_2(context: &Context<'_>) -> Section {
    let (jobs, runs) = (context.scaled(100, 200, 200), context.scaled(4, 40, 200));
    let seeds = context.seeds(runs);
    let outcomes: Vec<OfflineOutcome> = SizeLaw::ALL
        .into_iter()
        .map(|sizes| OfflineOutcome { sizes, rules: averages_of(&OFFLINE, sizes, jobs, &seeds) })
        .collect();
    let mut blocks = vec![chart(&outcomes)];
    blocks.extend(outcomes.iter().map(averages_table));
    blocks.push(Block::Comparison(comparison(&outcomes)));
    blocks.push(Block::Claims(claims(&outcomes)));
    let holes = holes![jobs, mean = MEAN, delta = DELTA, runs, seed = context.first_seed];
    WORDS.section("table-2", holes, blocks)
}

fn chart(outcomes: &[OfflineOutcome]) -> Block {
    let printed = (0_u32..).zip(PRINTED).map(|(at, row)| (f64::from(at), row[2] / PRINTED[0][2])).collect();
    let printed = Series::new("the paper", printed).as_reference();
    let ours = outcomes.iter().map(|outcome| {
        let ratio = |rule: usize| (rule as f64, mean_of(&outcome.over_match(rule)));
        Series::means(describe(outcome.sizes), (0..OFFLINE.len()).map(ratio))
    });
    let series = [printed].into_iter().chain(ours).collect();
    WORDS.chart_by_name("table-2", holes![], OFFLINE.iter().map(title), series)
}

fn averages_table(outcome: &OfflineOutcome) -> Block {
    let row = |place: usize| {
        let means = NUMBERS.map(|(_, number)| mean_of(&outcome.samples(place, number)).into());
        [Cell::text(title(&OFFLINE[place]))].into_iter().chain(means).collect()
    };
    let rows = (0..OFFLINE.len()).rev().map(row).collect();
    WORDS.table("table-2-{name}", holes![name = outcome.sizes.name(), sizes = describe(outcome.sizes)], rows)
}

fn comparison(outcomes: &[OfflineOutcome]) -> Vec<Compared> {
    let uniform = outcomes.first().into_iter();
    let ratios =
        uniform.flat_map(|one| (1..OFFLINE.len()).map(move |place| makespan_beside_printed(one, place)));
    ratios.collect()
}

fn makespan_beside_printed(uniform: &OfflineOutcome, place: usize) -> Compared {
    let what =
        format!("{}: average makespan over Match's, {}", title(&OFFLINE[place]), describe(uniform.sizes));
    // Both printed numbers are rounded to whole seconds.
    let (printed, best) = (PRINTED[place][2], PRINTED[0][2]);
    let known = Known::drawn_alike(printed / best, 1)
        .with_rounding_before(0.5 / best * (1.0 + printed / best))
        .printed();
    let ours = mean_of(&uniform.over_match(place));
    KnownNumber::mean(what, ours, known).note(WORDS.note("single-set", holes![])).judged()
}

/// Claims about Match and the rules that ignore the size of jobs, then about those that use it.
const CLAIMS: [&str; 8] = [
    "match-is-best",
    "worst-three",
    "max-shuffle",
    "pairwise-executes-fastest",
    "pair-waits",
    "couple-and-generalized",
    "group",
    "n-couple",
];

pub(super) fn claims(outcomes: &[OfflineOutcome]) -> Vec<Claim> {
    CLAIMS.map(|key| judged(outcomes, key)).to_vec()
}

/// Judges a claim on every distribution, by the intervals of differences on the same jobs.
fn judged(outcomes: &[OfflineOutcome], key: &str) -> Claim {
    let names: Vec<&str> = OFFLINE.iter().map(|rule| rule.name()).collect();
    let holds = |outcome: &OfflineOutcome| {
        keeps(WORDS.rules(key), &names, |number, rule| {
            let place = names.iter().position(|name| *name == rule).expect("a rule of the table");
            let number = NUMBERS.iter().find(|(name, _)| *name == number).expect("a number of the table");
            outcome.samples(place, number.1)
        })
    };
    let seen: Vec<CaseVerdict> = outcomes.iter().map(holds).collect();
    let words = |(wanted, what): (CaseVerdict, &str)| {
        let found = outcomes.iter().zip(&seen).filter(|(_, seen)| **seen == wanted);
        let found: Vec<&str> = found.map(|(outcome, _)| describe(outcome.sizes)).collect();
        (!found.is_empty()).then(|| format!("{what}: {}.", found.join("; ")))
    };
    let kinds = [
        (CaseVerdict::Yes, "It holds for"),
        (CaseVerdict::No, "It does not for"),
        (CaseVerdict::Unclear, "Unclear for"),
    ];
    let found = kinds.into_iter().filter_map(words).collect::<Vec<_>>().join(" ");
    WORDS.claim(key, by_case(seen), holes![found])
}

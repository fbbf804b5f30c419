//! Table 2: jobs that are all present at the start, under ten rules, for several distributions of sizes; and
//! the claims about it.

use super::WORDS;
use super::printed::{BySizes, TABLE_2, compare, in_words};
use super::rules::{DELTA, MEAN, OFFLINE, describe, title};
use crate::prelude::*;
use crate::workload::pairs::SizeLaw;
use gristmill_scheduler::policy::pairs::{Averages, PairsRule, averages, times};

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
    let mut compared: Vec<BySizes> = outcomes.iter().map(compared).collect();
    let found = in_words(&compared);
    // Those of the first distribution, whose intervals are the narrowest.
    blocks.push(Block::Comparison(compared.swap_remove(0).1));
    blocks.push(Block::Claims(claims(&outcomes)));
    let holes = holes![jobs, mean = MEAN, delta = DELTA, runs, seed = context.first_seed, found];
    WORDS.section("table-2", holes, blocks)
}

/// Compares all numbers of Table 2 but Match's makespan, which is the unit.
fn compared(outcome: &OfflineOutcome) -> BySizes {
    let units = outcome.samples(0, |averages| averages.makespan);
    let cells = (0..OFFLINE.len()).flat_map(|place| (0..NUMBERS.len()).map(move |number| (place, number)));
    let compared = cells.filter(|cell| *cell != (0, 2)).map(|(place, number)| {
        let what = format!("{}: average {}", title(&OFFLINE[place]), NUMBERS[number].0);
        let ours = outcome.samples(place, NUMBERS[number].1);
        compare(&what, outcome.sizes, [&ours, &units], [TABLE_2[place][number], TABLE_2[0][2]])
    });
    (outcome.sizes, compared.collect())
}

fn chart(outcomes: &[OfflineOutcome]) -> Block {
    let printed = (0_u32..).zip(TABLE_2).map(|(at, row)| (f64::from(at), row[2] / TABLE_2[0][2])).collect();
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

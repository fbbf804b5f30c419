//! Table 2: jobs that are all there, under ten rules, for several distributions of sizes.

pub(super) mod claims;

use super::{DELTA, MEAN, OFFLINE, cell, mean, title};
use crate::paper::judge::{Beside, Known, Seen, paired};
use crate::paper::{
    Axis, Block, Cell, Chart, Column, Compared, Context, Section, Series, Table, Verdict, each,
};
use gristmill_scheduler::policy::pairs::{Averages, Rule, averages, times};
use gristmill_scheduler::workload::pairs::Sizes;

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

/// Of an independent reference with 200 jobs and 6 seeds: pairs of policies in the opposite order of the paper's.
fn reference_inversions(sizes: Sizes) -> f64 {
    match sizes {
        Sizes::Uniform => 2.0,
        Sizes::Exponential | Sizes::LogNormal => 7.0,
        Sizes::StrongPairs => 8.0,
        Sizes::Ratio | Sizes::Balanced => 11.0,
        Sizes::Google => 15.0,
    }
}

/// In words, for tables.
pub(super) fn describe(sizes: Sizes) -> &'static str {
    match sizes {
        Sizes::Uniform => "uniform, independent",
        Sizes::Exponential => "exponential, independent",
        Sizes::LogNormal => "log-normal (sd 0.6), independent",
        Sizes::StrongPairs => "uniform, exact strong pairs",
        Sizes::Ratio => "log-normal (sd 0.6), shuffle = map × ratio",
        Sizes::Balanced => "Google fit, cube root of the ratio",
        Sizes::Google => "Google fit of the overlap paper",
    }
}

/// Averages of one rule and distribution, by seed.
type BySeed = Vec<Averages>;

/// What came out for one distribution: by place in [`OFFLINE`], one sample for each seed.
pub(super) struct Outcome {
    pub(super) sizes: Sizes,
    pub(super) rules: Vec<BySeed>,
}

impl Outcome {
    fn samples(&self, rule: usize, value: fn(&Averages) -> f64) -> Vec<f64> {
        self.rules[rule].iter().map(value).collect()
    }

    fn makespan(&self, rule: usize) -> f64 {
        mean(&self.samples(rule, |averages| averages.makespan)).mean
    }

    /// Places in [`OFFLINE`], best first.
    fn ranking(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..OFFLINE.len()).collect();
        places.sort_by(|&a, &b| self.makespan(a).total_cmp(&self.makespan(b)));
        places
    }

    /// Pairs of policies in the opposite order of the paper's.
    fn inversions(&self) -> usize {
        let worse = |a: usize, b: usize| self.makespan(b) < self.makespan(a);
        (0..OFFLINE.len()).map(|b| (0..b).filter(|&a| worse(a, b)).count()).sum()
    }

    /// Those of them whose paired difference is beyond its interval.
    fn clear_inversions(&self) -> usize {
        let samples = |rule| self.samples(rule, |averages| averages.makespan);
        let worse = |a: usize, b: usize| Seen::above(&paired(&samples(a), &samples(b)), 0.0) == Seen::Yes;
        (0..OFFLINE.len()).map(|b| (0..b).filter(|&a| worse(a, b)).count()).sum()
    }

    /// A makespan over that of Match, by seed.
    fn over_match(&self, rule: usize) -> Vec<f64> {
        self.rules[rule]
            .iter()
            .zip(&self.rules[0])
            .map(|(ours, best)| ours.makespan / best.makespan)
            .collect()
    }
}

/// Averages of rules over seeds: for every rule one sample per seed, all on the same jobs.
pub(super) fn averages_of(rules: &[Rule], sizes: Sizes, jobs: usize, seeds: &[u64]) -> Vec<BySeed> {
    let by_seed = each(seeds, |&seed| {
        let jobs = sizes.draw(jobs, MEAN, seed);
        rules.iter().map(|rule| averages(&times(&jobs, &rule.order(&jobs)))).collect::<Vec<_>>()
    });
    (0..rules.len()).map(|rule| by_seed.iter().map(|averages| averages[rule]).collect()).collect()
}

pub(super) fn table_2(context: &Context<'_>) -> Section {
    let (jobs, runs) = (context.scaled(100, 200, 200), context.scaled(4, 40, 200));
    let seeds = context.seeds(runs);
    let outcomes: Vec<Outcome> = Sizes::ALL
        .into_iter()
        .map(|sizes| Outcome { sizes, rules: averages_of(&OFFLINE, sizes, jobs, &seeds) })
        .collect();
    let mut blocks = vec![Block::Table(rankings(&outcomes)), Block::Chart(chart(&outcomes))];
    blocks.extend(outcomes.iter().map(|outcome| Block::Table(averages_table(outcome))));
    blocks.push(Block::Comparison(comparison(&outcomes, jobs)));
    blocks.push(Block::Claims(claims::of(&outcomes)));
    let text = [
        format!(
            "{jobs} jobs at time 0, mean map time {MEAN} s, delta {DELTA} s, alpha 0.5, k 20; {runs} seeds \
             from {} on, the same jobs for every policy; intervals are 95 % over seeds. MaxSRPT is the \
             fixed order by max(map, shuffle).",
            context.first_seed
        ),
        "The printed seconds belong to a set of jobs that is not public, so the comparison is of makespans \
         over Match's, and of the order of the policies: of their 45 pairs some come out in the opposite \
         order. The printed row of Pairwise does not add up (8289 + 149 = 8438, printed 9138)."
            .to_owned(),
    ];
    Section::new("table-2", "Table 2: jobs that are all there", text, blocks)
}

fn rankings(outcomes: &[Outcome]) -> Table {
    let columns = vec![
        Column::new("sizes", ""),
        Column::new("ranking, best first", ""),
        Column::new("pairs of policies inverted", "of 45"),
    ];
    let words = |places: &[usize]| {
        places
            .iter()
            .map(|&place| title(&OFFLINE[place]).replace("-based", ""))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let all: Vec<usize> = (0..OFFLINE.len()).collect();
    let mut rows = vec![vec![Cell::text("the paper"), Cell::text(words(&all)), Cell::number(0.0)]];
    rows.extend(outcomes.iter().map(|outcome| {
        vec![
            Cell::text(describe(outcome.sizes)),
            Cell::text(words(&outcome.ranking())),
            Cell::number(outcome.inversions() as f64),
        ]
    }));
    Table::new(
        "table-2-rankings",
        "Policies by average makespan, for each distribution of sizes",
        columns,
        rows,
    )
}

fn chart(outcomes: &[Outcome]) -> Chart {
    let names = OFFLINE.iter().map(|rule| title(rule).to_owned());
    let mut series = vec![
        Series::new(
            "the paper",
            (0_u32..).zip(PRINTED).map(|(at, row)| (f64::from(at), row[2] / PRINTED[0][2])).collect(),
        )
        .as_reference(),
    ];
    for outcome in outcomes {
        let ratios: Vec<_> = (0..OFFLINE.len()).map(|rule| mean(&outcome.over_match(rule))).collect();
        series.push(
            Series::new(
                describe(outcome.sizes).to_owned(),
                (0_u32..).zip(&ratios).map(|(at, ratio)| (f64::from(at), ratio.mean)).collect(),
            )
            .with_half_widths(ratios.iter().map(|ratio| ratio.half_width.unwrap_or(0.0)).collect()),
        );
    }
    Chart::lines(
        "table-2",
        "Average makespan over that of Match",
        [Axis::names("policy", names), Axis::logarithmic("average makespan / Match's")],
        series,
    )
}

fn averages_table(outcome: &Outcome) -> Table {
    let mut columns = vec![Column::new("policy", "")];
    columns.extend(
        ["average waiting", "average execution", "average makespan"].map(|name| Column::new(name, "s")),
    );
    let row = |place: usize| {
        let values: [fn(&Averages) -> f64; 3] =
            [|averages| averages.waiting, |averages| averages.execution, |averages| averages.makespan];
        let mut row = vec![Cell::text(title(&OFFLINE[place]))];
        row.extend(values.map(|value| cell(mean(&outcome.samples(place, value)))));
        row
    };
    Table::new(
        format!("table-2-{}", outcome.sizes.name()),
        format!("Sizes {}", describe(outcome.sizes)),
        columns,
        (0..OFFLINE.len()).rev().map(row).collect(),
    )
}

fn comparison(outcomes: &[Outcome], jobs: usize) -> Vec<Compared> {
    let inverted = outcomes.iter().map(|outcome| inversions_beside_reference(outcome, jobs));
    let ratios = outcomes
        .first()
        .into_iter()
        .flat_map(|uniform| (1..OFFLINE.len()).map(move |place| makespan_beside_printed(uniform, place)));
    inverted.chain(ratios).collect()
}

fn inversions_beside_reference(outcome: &Outcome, jobs: usize) -> Compared {
    let (inverted, clear) = (outcome.inversions(), outcome.clear_inversions());
    let verdict = judge_inversions(outcome.rules[0].len(), inverted, clear);
    Compared {
        printed: Some(0.0),
        reference: Some((reference_inversions(outcome.sizes), 0.0)),
        note: format!(
            "{clear} of them by more than the 95 % interval of the seeds' differences; the reference has 6 seeds of \
             200 jobs, this run {} of {jobs}",
            outcome.rules[0].len()
        ),
        ..Compared::new(
            format!("{}: pairs of policies inverted, of 45", describe(outcome.sizes)),
            inverted as f64,
            verdict,
        )
    }
}

/// Whether so many inverted pairs, so many of them clearly, are the paper's none: pairs that are inverted and not clear
/// show neither.
fn judge_inversions(seeds: usize, inverted: usize, clear: usize) -> Verdict {
    match (seeds, inverted, clear) {
        (0 | 1, ..) => Verdict::Open,
        (_, 0, _) => Verdict::Holds,
        (_, _, 0) => Verdict::Open,
        _ => Verdict::Fails,
    }
}

fn makespan_beside_printed(uniform: &Outcome, place: usize) -> Compared {
    let what =
        format!("{}: average makespan over Match's, {}", title(&OFFLINE[place]), describe(uniform.sizes));
    // Both of the printed numbers are rounded to whole seconds.
    let (printed, best) = (PRINTED[place][2], PRINTED[0][2]);
    let known = Known::drawn_alike(printed / best, 1)
        .with_rounding_before(0.5 / best * (1.0 + printed / best))
        .printed();
    Beside::mean(what, mean(&uniform.over_match(place)), known)
        .note("the printed number is of a single set of jobs, which may differ as ours do from seed to seed")
        .judged()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverted_pairs_that_are_within_the_noise_are_not_the_papers_order() {
        assert_eq!(judge_inversions(40, 0, 0), Verdict::Holds);
        assert_eq!(judge_inversions(40, 7, 2), Verdict::Fails);
        assert_eq!(judge_inversions(4, 7, 0), Verdict::Open, "few seeds make no order");
        assert_eq!(judge_inversions(1, 0, 0), Verdict::Open);
    }
}

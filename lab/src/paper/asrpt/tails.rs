//! Distributions of flow times: figures 10 to 13, and what is claimed of their tails.

use super::runs::{FLOW_MAX, Runs, SCHEDULERS, Scenario};
use crate::paper::judge::{Seen, by_case, paired};
use crate::paper::{Axis, Block, Cell, Chart, Claim, Column, Section, Series, Table};
use gristmill_scheduler::workload::asrpt::SETTINGS;

/// Flow times of the table of tails, in slots.
const TAILS: [usize; 5] = [5, 10, 20, 50, 100];

/// The flow time behind which the tails are compared, in slots.
const TAIL: usize = 20;

/// The scenarios whose distributions are drawn, as places in [`Scenario::ALL`], and their names in files.
const DRAWN: [(usize, &str); 2] = [(0, "preemptive"), (1, "non-preemptive")];

/// The fraction of the jobs of all seeds whose flow time is at most this.
fn fraction(runs: &Runs, setting: usize, scenario: usize, scheduler: usize, flow: usize) -> f64 {
    let sum = |most: usize| {
        let flows = runs.of(setting, scenario, scheduler).iter().map(|kept| &kept.flows);
        flows.map(|flows| flows[..=most].iter().sum::<u64>()).sum::<u64>() as f64
    };
    sum(flow) / sum(FLOW_MAX + 1).max(1.0)
}

/// The distributions, one figure for each setting.
pub(super) fn figures_10_to_13(runs: &Runs) -> Vec<Section> {
    (0..SETTINGS.len()).map(|setting| distributions_in(runs, setting)).collect()
}

fn distributions_in(runs: &Runs, setting: usize) -> Section {
    let (number, title) = (10 + setting, SETTINGS[setting].title);
    let charts = DRAWN.iter().map(|&(scenario, id)| {
        let distribution = |scheduler: usize| {
            let part = |flow| (flow as f64, fraction(runs, setting, scenario, scheduler, flow));
            Series::new(SCHEDULERS[scheduler].title, (0..=FLOW_MAX).map(part).collect())
        };
        Block::Chart(Chart::steps(
            format!("figure-{number}-{id}"),
            format!("Distribution of flow times, {}; {title}", Scenario::ALL[scenario].name()),
            [Axis::linear("flow time, slots"), Axis::linear("fraction of jobs")],
            (0..4).map(distribution).collect(),
        ))
    });
    Section::new(
        format!("figure-{number}"),
        format!("Figure {number}: distribution of flow times, {title}"),
        [format!(
            "The jobs of all seeds together ({}), until all have ended; flow times up to {FLOW_MAX} slots \
             are drawn, as in the paper.",
            runs.seeds_in_words()
        )],
        charts.chain([Block::Table(tails(runs, setting, number))]).collect(),
    )
}

fn tails(runs: &Runs, setting: usize, number: usize) -> Table {
    let mut columns = vec![Column::new("scheduler", ""), Column::new("scenario", "")];
    columns.extend(TAILS.iter().map(|flow| Column::new(&format!("flow > {flow}"), "% of jobs")));
    let rows = DRAWN.into_iter().flat_map(|(scenario, name)| {
        (0..4).map(move |scheduler| {
            let mut row = vec![Cell::text(SCHEDULERS[scheduler].title), Cell::text(name)];
            let longer = |flow| 100.0 * (1.0 - fraction(runs, setting, scenario, scheduler, flow));
            row.extend(TAILS.iter().map(|&flow| Cell::number(longer(flow))));
            row
        })
    });
    Table::new(format!("figure-{number}-tails"), "Jobs that take longer", columns, rows.collect())
}

/// The tails of a setting and scenario: by scheduler and seed, the part of the jobs with a longer flow time.
pub(super) struct Tails {
    pub(super) name: String,
    pub(super) longer: [Vec<f64>; 4],
    /// Part of the jobs that have ended after five slots.
    pub(super) soon: [Vec<f64>; 4],
}

/// The part of the jobs of each seed whose flow time is at most this.
fn by_seed(runs: &Runs, setting: usize, scenario: usize, scheduler: usize, flow: usize) -> Vec<f64> {
    let part = |flows: &Vec<u64>| {
        flows[..=flow].iter().sum::<u64>() as f64 / (flows.iter().sum::<u64>() as f64).max(1.0)
    };
    runs.of(setting, scenario, scheduler).iter().map(|kept| part(&kept.flows)).collect()
}

fn tails_of(runs: &Runs, setting: usize, scenario: usize) -> Tails {
    let part = |flow| [0, 1, 2, 3].map(|scheduler| by_seed(runs, setting, scenario, scheduler, flow));
    Tails {
        name: format!("{}, {}", SETTINGS[setting].name, Scenario::ALL[scenario].name()),
        longer: part(TAIL).map(|within| within.into_iter().map(|within| 1.0 - within).collect()),
        soon: part(5),
    }
}

impl Tails {
    fn in_words(&self, seen: Seen) -> String {
        let mean = |longer: &Vec<f64>| 100.0 * longer.iter().sum::<f64>() / longer.len().max(1) as f64;
        let parts = SCHEDULERS.iter().zip(&self.longer);
        let parts = parts.map(|(scheduler, longer)| format!("{} {:.2} %", scheduler.title, mean(longer)));
        format!("{} ({}): {}", self.name, seen.word(), parts.collect::<Vec<_>>().join(", "))
    }

    /// Whether the tail of one is lighter than those of others, on the same jobs.
    fn lighter(&self, one: usize, others: &[usize]) -> Seen {
        let apart = |&other: &usize| paired(&self.longer[other], &self.longer[one]);
        Seen::all(others.iter().map(|other| Seen::above(&apart(other), 0.0)))
    }

    /// Whether the tail of LRPT is heavier than all others.
    fn lrpt_is_heaviest(&self) -> Seen {
        Seen::all((0..3).map(|other| self.lighter(other, &[3])))
    }

    /// Whether more jobs have ended soon under ASRPT than under any other.
    fn ahead(&self) -> Seen {
        Seen::all((1..4).map(|other| Seen::above(&paired(&self.soon[0], &self.soon[other]), 0.0)))
    }
}

/// Section VII C in claims.
pub(super) fn claims(runs: &Runs) -> Section {
    let cases = (0..SETTINGS.len()).flat_map(|setting| DRAWN.map(|(scenario, _)| (setting, scenario)));
    let cases: Vec<Tails> = cases.map(|(setting, scenario)| tails_of(runs, setting, scenario)).collect();
    Section::new(
        "section-7-c",
        "Section VII C: what is claimed of the tails",
        [format!(
            "The same jobs; a tail is the part of the jobs with a flow time above {TAIL} slots. A case is clear where \
             the 95 % interval of the seeds' differences says so of each other scheduler."
        )],
        vec![Block::Claims(of_tails(&cases))],
    )
}

pub(super) fn of_tails(cases: &[Tails]) -> Vec<Claim> {
    let lightest: Vec<Seen> = cases.iter().map(|case| case.lighter(0, &[1, 2])).collect();
    let heaviest: Vec<Seen> = cases.iter().map(Tails::lrpt_is_heaviest).collect();
    let yes = |seen: &[Seen]| seen.iter().filter(|&&one| one == Seen::Yes).count();
    let ahead: Vec<Seen> = cases.iter().map(Tails::ahead).collect();
    let words: Vec<String> = cases.iter().zip(&lightest).map(|(case, &seen)| case.in_words(seen)).collect();
    vec![
        Claim::new(
            "Section VII C",
            "ASRPT has a lighter tail than FIFO and Fair (in the paper: a very light one, so that it is as fair).",
            by_case(lightest.iter().copied()),
            format!(
                "Lightest of the three in {} of {} cases. {}. It is far ahead at short flow times: at 5 slots the \
                 most jobs have ended under ASRPT in {} cases; the largest jobs pay for it.",
                yes(&lightest),
                cases.len(),
                words.join("; "),
                yes(&ahead)
            ),
        ),
        Claim::new(
            "Section VII C",
            "LRPT has a long tail.",
            by_case(heaviest.iter().copied()),
            format!(
                "Its tail is the heaviest in {} of {} cases (numbers above).",
                yes(&heaviest),
                cases.len()
            ),
        ),
    ]
}

//! Distributions of flow times: figures 10 to 13, and what is claimed of their tails.

use super::runs::{FLOW_MAX, Runs, SCHEDULERS, Scenario};
use crate::paper::{Axis, Block, Cell, Chart, Claim, Column, Section, Series, Table, Verdict};
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

/// The tails of a setting and scenario: by scheduler, the part of the jobs with a longer flow time.
struct Tails {
    name: String,
    longer: [f64; 4],
    /// Part of the jobs that have ended after five slots.
    soon: [f64; 4],
}

fn tails_of(runs: &Runs, setting: usize, scenario: usize) -> Tails {
    let part = |flow| [0, 1, 2, 3].map(|scheduler| fraction(runs, setting, scenario, scheduler, flow));
    Tails {
        name: format!("{}, {}", SETTINGS[setting].name, Scenario::ALL[scenario].name()),
        longer: part(TAIL).map(|within| 1.0 - within),
        soon: part(5),
    }
}

impl Tails {
    fn in_words(&self) -> String {
        let parts = SCHEDULERS.iter().zip(self.longer);
        let parts = parts.map(|(scheduler, longer)| format!("{} {:.2} %", scheduler.title, 100.0 * longer));
        format!("{}: {}", self.name, parts.collect::<Vec<_>>().join(", "))
    }
}

/// Section VII C in claims.
pub(super) fn claims(runs: &Runs) -> Section {
    let cases = (0..SETTINGS.len()).flat_map(|setting| DRAWN.map(|(scenario, _)| (setting, scenario)));
    let cases: Vec<Tails> = cases.map(|(setting, scenario)| tails_of(runs, setting, scenario)).collect();
    let lightest = |case: &Tails| case.longer[1..3].iter().all(|&other| case.longer[0] <= other);
    let heaviest = |case: &Tails| case.longer[..3].iter().all(|&other| other <= case.longer[3]);
    let ahead = cases.iter().filter(|case| case.soon[1..].iter().all(|&other| other <= case.soon[0])).count();
    let claim = |statement: &str, holds: &dyn Fn(&Tails) -> bool, words: &dyn Fn(usize) -> String| {
        let holding = cases.iter().filter(|case| holds(case)).count();
        Claim::new("Section VII C", statement, Verdict::of_all(cases.iter().map(holds)), words(holding))
    };
    let words: Vec<String> = cases.iter().map(Tails::in_words).collect();
    Section::new(
        "section-7-c",
        "Section VII C: what is claimed of the tails",
        [format!("The same jobs; a tail is the part of the jobs with a flow time above {TAIL} slots.")],
        vec![Block::Claims(vec![
            claim(
                "ASRPT has a very light tail compared to FIFO and Fair; it is as fair as they are.",
                &lightest,
                &|of| {
                    format!(
                        "Lightest of the three in {of} of {} cases. {}. It is far ahead at short flow \
                         times: at 5 slots the most jobs have ended under ASRPT in {ahead} cases; the \
                         largest jobs pay for it.",
                        cases.len(),
                        words.join("; ")
                    )
                },
            ),
            claim("LRPT has a long tail.", &heaviest, &|of| {
                format!("Its tail is the heaviest in {of} of {} cases (numbers above).", cases.len())
            }),
        ])],
    )
}

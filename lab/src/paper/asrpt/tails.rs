//! Distributions of flow times: figures 10 to 13, and what is claimed of their tails.

use super::runs::{FLOW_MAX, Runs, SCHEDULERS, Scenario};
use crate::paper::{Axis, Block, Cell, Chart, ChartKind, Claim, Column, Section, Series, Table, Verdict};
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
    let section = |setting: usize| {
        let number = 10 + setting;
        let title = SETTINGS[setting].title;
        let mut blocks: Vec<Block> = Vec::new();
        for (scenario, id) in DRAWN {
            let series = (0..4).map(|scheduler| Series {
                name: SCHEDULERS[scheduler].title.to_owned(),
                points: (0..=FLOW_MAX)
                    .map(|flow| (flow as f64, fraction(runs, setting, scenario, scheduler, flow)))
                    .collect(),
                ..Series::default()
            });
            blocks.push(Block::Chart(Chart {
                id: format!("figure-{number}-{id}"),
                caption: format!("Distribution of flow times, {}; {title}", Scenario::ALL[scenario].name()),
                x: Axis::linear("flow time, slots"),
                y: Axis::linear("fraction of jobs"),
                kind: ChartKind::Steps,
                series: series.collect(),
            }));
        }
        blocks.push(Block::Table(tails(runs, setting, number)));
        Section {
            id: format!("figure-{number}"),
            title: format!("Figure {number}: distribution of flow times, {title}"),
            text: vec![format!(
                "The jobs of all seeds together ({}), until all have ended; flow times up to {FLOW_MAX} slots are \
                 drawn, as in the paper.",
                runs.seeds_in_words()
            )],
            blocks,
        }
    };
    (0..SETTINGS.len()).map(section).collect()
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
    Table {
        id: format!("figure-{number}-tails"),
        caption: "Jobs that take longer".to_owned(),
        columns,
        rows: rows.collect(),
    }
}

/// Section VII C in claims.
pub(super) fn claims(runs: &Runs) -> Section {
    let longer = |setting: usize, scenario: usize, scheduler: usize| {
        1.0 - fraction(runs, setting, scenario, scheduler, TAIL)
    };
    let cases: Vec<(usize, usize)> = (0..SETTINGS.len())
        .flat_map(|setting| DRAWN.into_iter().map(move |(scenario, _)| (setting, scenario)))
        .collect();
    let words: Vec<String> = cases
        .iter()
        .map(|&(setting, scenario)| {
            let parts = (0..4).map(|scheduler| {
                let percent = 100.0 * longer(setting, scenario, scheduler);
                format!("{} {percent:.2} %", SCHEDULERS[scheduler].title)
            });
            let parts = parts.collect::<Vec<_>>().join(", ");
            format!("{}, {}: {parts}", SETTINGS[setting].name, Scenario::ALL[scenario].name())
        })
        .collect();
    let count = |than: &dyn Fn(usize, usize) -> bool| cases.iter().filter(|&&(a, b)| than(a, b)).count();
    let light = count(&|setting, scenario| {
        let asrpt = longer(setting, scenario, 0);
        asrpt <= longer(setting, scenario, 1) && asrpt <= longer(setting, scenario, 2)
    });
    let long = count(&|setting, scenario| {
        (0..3).all(|other| longer(setting, scenario, other) <= longer(setting, scenario, 3))
    });
    let ahead = count(&|setting, scenario| {
        (1..4).all(|other| {
            fraction(runs, setting, scenario, other, 5) <= fraction(runs, setting, scenario, 0, 5)
        })
    });
    let verdict = |holding: usize| match holding {
        0 => Verdict::Fails,
        some if some < cases.len() => Verdict::Partly,
        _ => Verdict::Holds,
    };
    let claim = |statement: &str, holding: usize, evidence: String| Claim {
        place: "Section VII C".to_owned(),
        statement: statement.to_owned(),
        verdict: verdict(holding),
        evidence,
    };
    Section {
        id: "section-7-c".to_owned(),
        title: "Section VII C: what is claimed of the tails".to_owned(),
        text: vec![format!(
            "The same jobs; a tail is the part of the jobs with a flow time above {TAIL} slots."
        )],
        blocks: vec![Block::Claims(vec![
            claim(
                "ASRPT has a very light tail compared to FIFO and Fair; it is as fair as they are.",
                light,
                format!(
                    "Lightest of the three in {light} of {} cases. {}. It is far ahead at short flow times: at 5 \
                     slots the most jobs have ended under ASRPT in {ahead} cases; the largest jobs pay for it.",
                    cases.len(),
                    words.join("; ")
                ),
            ),
            claim(
                "LRPT has a long tail.",
                long,
                format!("Its tail is the heaviest in {long} of {} cases (numbers above).", cases.len()),
            ),
        ])],
    }
}

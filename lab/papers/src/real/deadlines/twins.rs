//! Experiments two to four with sleeping twins of the paper's jobs: slots held, and goals met.

use super::super::common::{blocks, section};
use super::super::context::RealContext;
use super::WORDS;
use super::common::{WORKERS, pooled};
use super::twin_jobs::twins;
use super::{estimates, goals};
use crate::prelude::*;
use crate::workload::deadlines::{DEADLINES, NAMES, WEIGHTS};
use gristmill_lab::compare::statistics::mean;
use gristmill_lab::compare::{Comparison, Contender, JobRun};

/// Fair sharing by the paper's weights.
const WEIGHTED: &str = "fair weighted";

/// Experiments two to four of the paper: a contender, the figure of its section, and its title.
const FIGURES: [(&str, &str, &str); 4] = [
    ("min", "figure-4", "Figure 4: the min-scheduler (experiment two)"),
    ("max", "figure-5", "Figure 5: the max-scheduler (experiment three)"),
    ("fair", "figure-6", "Figure 6: fair sharing (experiment four)"),
    (WEIGHTED, "figure-7", "Figure 7: weighted fair sharing (experiment four)"),
];

/// The paper's jobs without weights under three schedulers, and with weights under fair sharing.
struct TwinComparison {
    plain: Comparison,
    weighted: Comparison,
    repetitions: u32,
}

impl TwinComparison {
    fn run(context: &RealContext<'_>, second: f64) -> anyhow::Result<Self> {
        let repetitions = context.scaled(1, 8, 8);
        // The schedulers reevaluate every second of the paper.
        let tick = (1e6 * second).round();
        let [min, max] = ["min", "max"].map(|name| format!("{name}-scheduler:tick={tick}us"));
        let compare = |directory: &str, weights, names: &[(&str, &str)]| {
            let jobs = context.draws(repetitions, |seed| twins(weights, seed));
            context.sleep(directory, &jobs, second, &pooled(WORKERS), names)
        };
        let plain = compare("deadlines-goals", [1.0; 4], &[("min", &min), ("max", &max), ("fair", "fair")])?;
        let weighted = compare("deadlines-weights", WEIGHTS, &[(WEIGHTED, "fair")])?;
        Ok(Self { plain, weighted, repetitions })
    }

    fn section(&self, context: &RealContext<'_>, second_seconds: f64, figure: (&str, &str, &str)) -> Section {
        let (name, figure, title) = figure;
        let only = only(if name == WEIGHTED { &self.weighted } else { &self.plain }, name);
        let [second, third, fourth] = [1000.0, 2000.0, 3000.0].map(|at| at * second_seconds);
        let (seed, repetitions) = (context.first_seed, self.repetitions);
        let holes = holes![figure, title, second, third, fourth, seed, repetitions];
        let mut shown = vec![who_meets(figure, &only, second_seconds)];
        shown.extend(blocks(figure, &only, &["slots-per-job"]));
        let claims = goals::goal_claims(name, &only.runs, &self.plain.runs);
        section((&WORDS, "{figure}", holes), &only, shown, claims)
    }
}

/// Experiments one to four with sleeping twins.
pub(super) fn sections(context: &RealContext<'_>, second: f64) -> anyhow::Result<Vec<Section>> {
    let compared = TwinComparison::run(context, second)?;
    let mut sections = vec![estimates::section(context, second)?];
    sections.extend(FIGURES.map(|figure| compared.section(context, second, figure)));
    Ok(sections)
}

/// Returns the runs of one contender.
fn only(comparison: &Comparison, name: &str) -> Comparison {
    let mut only = comparison.clone();
    only.contenders.retain(|contender: &Contender| contender.name == name);
    only.runs.retain(|run| run.contender.name == name);
    only
}

/// Table of the jobs that meet their goals.
fn who_meets(figure: &str, comparison: &Comparison, second: f64) -> Block {
    let row = |job: usize| {
        let runs: Vec<&JobRun> = comparison.runs.iter().filter_map(|run| run.jobs.get(job)).collect();
        let response = mean(runs.iter().map(|job| job.flow()));
        let met = runs.iter().filter(|job| job.tardiness() == Some(0.0)).count();
        let goal = DEADLINES[job] * second;
        vec![
            Cell::text(format!("J{} {}", job + 1, NAMES[job])),
            Cell::number(goal),
            response.into(),
            response.map(|response| response / goal).into(),
            Cell::text(format!("{met} of {}", runs.len())),
        ]
    };
    WORDS.table("{figure}-goals", holes![figure], (0..NAMES.len()).map(row).collect())
}

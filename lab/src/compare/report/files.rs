//! The files of a comparison: the page, a line for each job of each run, everything as JSON, each chart as SVG.
//!
//! Not here: runs themselves, which the folder has already.

use super::page::sections;
use crate::compare::record::{JobRun, Predicted, RunRecord};
use crate::compare::statistics::Difference;
use crate::compare::store::StoreError;
use crate::compare::summary::Summary;
use crate::compare::{Comparison, Store};
use crate::report::Circumstances;
use crate::report::{Colours, Document, Part, csv};
use serde::Serialize;
use std::path::PathBuf;

/// Name of the page.
pub const REPORT: &str = "report.html";

/// Version of the fields of `results.json`.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Results<'a> {
    schema: u32,
    version: &'static str,
    circumstances: &'a Circumstances,
    summaries: Vec<Summary>,
    differences: Vec<Difference>,
    verdicts: Vec<String>,
    reservations: Vec<String>,
    comparison: &'a Comparison,
}

/// Writes all files and answers where the page is.
///
/// # Errors
/// What the file system says.
pub fn write(
    comparison: &Comparison,
    circumstances: &Circumstances,
    store: &Store,
) -> Result<PathBuf, StoreError> {
    let sections = sections(comparison);
    let part = Part { name: "", title: "", about: &[], sections: &sections, folder: Some("figures") };
    let names: Vec<&str> = comparison.contenders.iter().map(|one| one.name.as_str()).collect();
    let lead = lead(comparison);
    let page = Document {
        title: &format!("{}: {} compared", comparison.workload.name, names.join(", ")),
        lead: &lead,
        parts: &[part],
        summary: false,
        footer: &circumstances.words(),
    };
    let folder = store.path();
    for (name, content) in part.files(&Colours::of(&sections)) {
        store.write(&folder.join("figures").join(name), content.as_bytes())?;
    }
    store.write(&folder.join("report.csv"), jobs_csv(comparison).as_bytes())?;
    let results = Results {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        circumstances,
        summaries: comparison.summaries(),
        differences: comparison.differences(),
        verdicts: super::verdicts(comparison),
        reservations: comparison.reservations(),
        comparison: &without_curves(comparison),
    };
    let results = serde_json::to_vec(&results).map_err(std::io::Error::other);
    let path = folder.join("results.json");
    store.write(&path, &results.map_err(StoreError::io("build", &path))?)?;
    let path = folder.join(REPORT);
    store.write(&path, page.html().as_bytes())?;
    Ok(path)
}

/// Without what only curves need; the runs' own folders have it.
fn without_curves(comparison: &Comparison) -> Comparison {
    let mut light = Comparison { runs: Vec::new(), ..comparison.clone() };
    light.runs.extend(comparison.runs.iter().map(|run| RunRecord {
        spans: Vec::new(),
        transfers: Vec::new(),
        ..run.clone()
    }));
    light
}

fn lead(comparison: &Comparison) -> Vec<String> {
    let jobs = comparison.runs.first().map_or(0, |run| run.jobs.len());
    vec![format!(
        "{jobs} jobs on real processes, {} of {} runs. The same jobs, at the same times, on fresh clusters of the same \
         shape; the order of policies changes from repetition to repetition. Version {}.",
        comparison.runs.len(),
        comparison.repetitions as usize * comparison.contenders.len(),
        env!("CARGO_PKG_VERSION")
    )]
}

/// A line for each job of each run.
fn jobs_csv(comparison: &Comparison) -> String {
    let head = [
        "policy",
        "placement",
        "repetition",
        "job",
        "kind",
        "planned_s",
        "arrived_s",
        "started_s",
        "maps_done_s",
        "shuffle_done_s",
        "ended_s",
        "flow_s",
        "waiting_s",
        "execution_s",
        "alone_s",
        "goal_s",
        "tardiness_s",
        "map_slot_s",
        "reduce_slot_s",
        "cpu_s",
        "paced_s",
        "suspended_s",
        "suspensions",
        "shuffle_bytes",
        "output_bytes",
        "predicted_flow_s",
    ];
    let mut out = csv::line(&head.map(str::to_owned));
    for run in &comparison.runs {
        let alone = comparison.alone_of(run.repetition);
        for job in &run.jobs {
            let predicted = run.predicted.iter().find(|one| one.index == job.index);
            let numbers = [
                Some(job.planned),
                Some(job.arrived),
                Some(job.started),
                Some(job.maps_done),
                Some(job.shuffle_done),
                Some(job.ended),
                Some(job.flow()),
                Some(job.waiting()),
                Some(job.execution()),
                alone.get(&job.index).copied(),
                job.goal,
                JobRun::tardiness(job),
                Some(job.slot_seconds[0]),
                Some(job.slot_seconds[1]),
                Some(job.cpu_seconds),
                Some(job.paced_seconds),
                Some(job.suspended_seconds),
                Some(f64::from(job.suspensions)),
                Some(job.shuffle_bytes as f64),
                Some(job.output_bytes as f64),
                predicted.map(Predicted::flow),
            ];
            let mut cells = vec![
                run.contender.policy.clone(),
                run.contender.placement.clone(),
                (run.repetition + 1).to_string(),
                (job.index + 1).to_string(),
                job.label.clone(),
            ];
            cells.extend(numbers.map(|number| number.map(|number| number.to_string()).unwrap_or_default()));
            out.push_str(&csv::line(&cells));
        }
    }
    out
}

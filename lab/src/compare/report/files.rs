//! Files of a comparison: the page, a CSV line for each job of each run, everything as JSON, each chart
//! as SVG.
//!
//! Not here: the runs themselves, which are already in the directory.

use super::page::sections;
use crate::compare::ComparisonStore;
use crate::compare::comparison::Comparison;
use crate::compare::record::{JobRun, RunRecord, SimulatedPhases};
use crate::compare::statistics::Difference;
use crate::compare::store::StoreError;
use crate::compare::summary::Summary;
use crate::report::Circumstances;
use crate::report::{Document, DocumentPart, csv};
use gristmill_scheduler::metrics::{JOB_COLUMNS, JobTimes};
use serde::Serialize;
use std::path::PathBuf;

/// Name of the page.
const REPORT: &str = "report.html";

/// Version of the fields of `results.json`.
pub const SCHEMA: u32 = 3;

#[derive(Serialize)]
struct Results<'a> {
    schema: u32,
    version: &'static str,
    circumstances: &'a Circumstances,
    summaries: Vec<Summary>,
    differences: Vec<Difference>,
    verdicts: Vec<String>,
    correction: Option<String>,
    reservations: Vec<String>,
    comparison: &'a Comparison,
}

/// Writes all files and returns the path of the page.
///
/// # Errors
/// A file operation failed.
pub fn write(
    comparison: &Comparison,
    circumstances: &Circumstances,
    store: &ComparisonStore,
) -> Result<PathBuf, StoreError> {
    let sections = sections(comparison);
    let part =
        DocumentPart { name: "", title: "", about: &[], sections: &sections, directory: Some("figures") };
    let names: Vec<&str> = comparison.contenders.iter().map(|one| one.name.as_str()).collect();
    let lead = lead(comparison);
    let page = Document {
        title: &format!("{}: {} compared", comparison.workload.name, names.join(", ")),
        lead: &lead,
        parts: &[part],
        summary: false,
        footer: &circumstances.words(),
    };
    let directory = store.path();
    for (name, content) in part.files() {
        store.write(&directory.join("figures").join(name), content.as_bytes())?;
    }
    store.write(&directory.join("report.csv"), jobs_csv(comparison).as_bytes())?;
    let results = Results {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        circumstances,
        summaries: comparison.summaries(),
        differences: comparison.differences(),
        verdicts: super::verdicts(comparison),
        correction: super::correction(comparison),
        reservations: comparison.reservations(),
        comparison: &without_curves(comparison),
    };
    let results = serde_json::to_vec(&results).map_err(std::io::Error::other);
    let path = directory.join("results.json");
    store.write(&path, &results.map_err(StoreError::io("build", &path))?)?;
    let path = directory.join(REPORT);
    store.write(&path, page.html().as_bytes())?;
    store.keep_look(comparison.repetitions)?;
    Ok(path)
}

/// Returns the comparison without data that only curves need, which is in the runs' own directories.
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
         shape; the order of policies is drawn from a balanced design. Version {}.",
        comparison.runs.len(),
        comparison.repetitions as usize * comparison.contenders.len(),
        env!("CARGO_PKG_VERSION")
    )]
}

/// Job of a run with related data.
struct JobCsvRow<'a> {
    run: &'a RunRecord,
    job: &'a JobRun,
    alone: Option<f64>,
    replayed: Option<&'a SimulatedPhases>,
    predicted: Option<&'a SimulatedPhases>,
}

/// Column of `report.csv`; empty where the number does not exist.
type NumberColumn = (&'static str, fn(&JobCsvRow<'_>) -> Option<f64>);

/// Columns after those that identify the job and give its times.
const NUMBERS: [NumberColumn; 20] = [
    ("planned", |row| Some(row.job.planned)),
    ("shuffle-done", |row| Some(row.job.shuffle_done)),
    ("map-slot-seconds", |row| Some(row.job.usage.slot_seconds[0])),
    ("reduce-slot-seconds", |row| Some(row.job.usage.slot_seconds[1])),
    ("cpu-seconds", |row| Some(row.job.usage.cpu_seconds)),
    ("paced-seconds", |row| Some(row.job.usage.paced_seconds)),
    ("suspended-seconds", |row| Some(row.job.usage.suspended_seconds)),
    ("suspensions", |row| Some(f64::from(row.job.usage.suspensions))),
    ("shuffle-bytes", |row| Some(row.job.shuffle_bytes as f64)),
    ("output-bytes", |row| Some(row.job.output.bytes as f64)),
    ("replayed-flow", |row| row.replayed.map(SimulatedPhases::flow)),
    ("replayed-waiting", |row| row.replayed.map(|job| job.phases[0])),
    ("replayed-maps", |row| row.replayed.map(|job| job.phases[1])),
    ("replayed-shuffle", |row| row.replayed.map(|job| job.phases[2])),
    ("replayed-reduces", |row| row.replayed.map(|job| job.phases[3])),
    ("predicted-flow", |row| row.predicted.map(SimulatedPhases::flow)),
    ("predicted-waiting", |row| row.predicted.map(|job| job.phases[0])),
    ("predicted-maps", |row| row.predicted.map(|job| job.phases[1])),
    ("predicted-shuffle", |row| row.predicted.map(|job| job.phases[2])),
    ("predicted-reduces", |row| row.predicted.map(|job| job.phases[3])),
];

impl JobCsvRow<'_> {
    fn cells(&self) -> Vec<String> {
        let contender = &self.run.contender;
        let names = [
            contender.policy.clone(),
            contender.placement.clone(),
            (self.run.repetition + 1).to_string(),
            (self.job.index + 1).to_string(),
            self.job.label.clone(),
        ];
        let times = JobTimes { alone: self.alone, ..self.job.times() };
        let times = JOB_COLUMNS.iter().map(|(_, time)| time(&times));
        let numbers = times.chain(NUMBERS.iter().map(|(_, number)| number(self)));
        names
            .into_iter()
            .chain(numbers.map(|one| one.map_or_else(String::new, |one| one.to_string())))
            .collect()
    }
}

/// Returns a CSV line for each job of each run.
fn jobs_csv(comparison: &Comparison) -> String {
    let names = ["policy", "placement", "repetition", "job", "kind"].into_iter();
    let names = names.chain(JOB_COLUMNS.iter().map(|(name, _)| *name));
    let head: Vec<String> = names.chain(NUMBERS.iter().map(|(name, _)| *name)).map(str::to_owned).collect();
    let rows = comparison.runs.iter().flat_map(|run| {
        let alone = comparison.alone_of(run.repetition);
        run.jobs.iter().map(move |job| {
            let (replayed, predicted) = (run.replayed.job(job.index), run.predicted.job(job.index));
            JobCsvRow { run, job, alone: alone.get(&job.index).copied(), replayed, predicted }.cells()
        })
    });
    csv::lines([head].into_iter().chain(rows))
}

//! One cell of the matrix: a fresh cluster, a job that stands at the phase, the fault, and the ten invariants.
//!
//! The default suite runs the first phase of each row. With `GRISTMILL_MATRIX=FOLDER` all phases are run (those in
//! `GRISTMILL_PHASE` alone, if that is set), and each leaves a line of JSON in FOLDER: `scripts/matrix` makes a page of
//! them.

use super::cluster::Cluster;
use super::facts;
use super::invariants::{Invariant, Violation, violations};
use super::phase::{PHASES, Phase};
use super::row::{Row, Scene};
use super::run::{Next, Reference, Run};
use crate::support::sandbox::Running;
use crate::support::{Finished, Sandbox, oracle, say_skipped, until_within};
use serde_json::{Value, json};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long beyond its bound a job is waited for, so that its own words are seen.
const BEYOND_BOUND: Duration = Duration::from_secs(60);

/// Letters of what went wrong that stand on a page.
const WHY_LETTERS_MAX: usize = 300;

/// What became of a cell.
enum Outcome {
    /// All held.
    Green { fired: u64, took: Duration },
    /// This machine cannot cause the fault.
    Skipped(&'static str),
    /// The fault did not happen; nothing else was wrong.
    DidNotFire(String),
    /// Something did not hold.
    Red(String),
}

/// Runs the cells of one row that are due.
pub fn run(rows: &[Row], test: &str) {
    let row = rows.iter().find(|row| row.test == test).unwrap();
    let matrix = std::env::var_os("GRISTMILL_MATRIX").map(PathBuf::from);
    let only = std::env::var("GRISTMILL_PHASE").ok();
    if let Some(only) = &only {
        assert!(
            PHASES.iter().any(|phase| phase.name() == only),
            "GRISTMILL_PHASE: there is no phase {only:?}"
        );
    }
    let due = |phase: &&Phase| only.as_ref().is_none_or(|only| only == phase.name());
    let count = if matrix.is_some() || only.is_some() { row.phases.len() } else { 1 };
    let mut wrong = Vec::new();
    for phase in row.phases[..count].iter().filter(due) {
        let outcome = catch_unwind(AssertUnwindSafe(|| cell(row, *phase)));
        let outcome = outcome.unwrap_or_else(|panic| Outcome::Red(words_of(panic.as_ref())));
        if let Some(folder) = &matrix {
            note(folder, row, *phase, &outcome);
        }
        match outcome {
            Outcome::Green { .. } => {}
            Outcome::Skipped(why) => say_skipped(test, why),
            Outcome::DidNotFire(why) | Outcome::Red(why) => wrong.push(format!("at {}: {why}", phase.name())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Adds a line to what `scripts/matrix` reads.
fn note(folder: &Path, row: &Row, phase: Phase, outcome: &Outcome) {
    let (word, fired, seconds, why) = match outcome {
        Outcome::Green { fired, took } => ("green", *fired, took.as_secs_f64(), ""),
        Outcome::Skipped(why) => ("skipped", 0, 0.0, *why),
        Outcome::DidNotFire(why) => ("did not fire", 0, 0.0, why.as_str()),
        Outcome::Red(why) => ("red", 0, 0.0, why.as_str()),
    };
    let why: String = why.chars().take(WHY_LETTERS_MAX).collect();
    let line = json!({
        "test": row.test, "phase": phase.name(), "result": word, "fired": fired, "seconds": seconds, "why": why,
    });
    let path = folder.join("cells.jsonl");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Runs one cell.
fn cell(row: &Row, phase: Phase) -> Outcome {
    let sandbox = Sandbox::new();
    let mut workers = match (row.workers)(&sandbox) {
        Ok(workers) => workers,
        Err(why) => return Outcome::Skipped(why),
    };
    for worker in &mut workers {
        worker.flags.extend(["--memory", phase.memory()].map(str::to_owned));
    }
    let mut cluster = Cluster::start(&sandbox, &["--journal", &sandbox.text(facts::JOURNAL)], &workers);
    let job = phase.job(&sandbox);
    let reference = undisturbed(&sandbox, &job);
    let mut run = disturbed(row, phase, &cluster, &job);
    cluster.restore();
    run.next = facts::next(&sandbox, &job);
    run.left = cluster.end();
    if let Some(told) = &mut run.told {
        facts::add_written(told, &sandbox, 2);
    }
    run.left.extend(facts::left(&sandbox));
    run.logs = facts::logs(&sandbox);
    let found = violations(&reference, &run);
    if !found.is_empty() {
        sandbox.clear();
    }
    outcome(&run, &found)
}

fn outcome(run: &Run, found: &[Violation]) -> Outcome {
    let words = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    match found {
        [] => Outcome::Green { fired: run.fired, took: run.took },
        [only] if only.of == Invariant::I9 && run.fired == 0 => Outcome::DidNotFire(words),
        _ => Outcome::Red(words),
    }
}

/// Runs the job while nothing is wrong, and compares what it makes with a plain program.
fn undisturbed(sandbox: &Sandbox, job: &[String]) -> Reference {
    let output = sandbox.text("undisturbed");
    let arguments = job.iter().map(String::as_str).chain(["--output", &output]);
    let report = sandbox.gristmill(arguments).finish().expect_code(0).json();
    let parts = oracle::parts(Path::new(&output));
    let text = std::fs::read(job.iter().find(|word| word.starts_with('/')).unwrap()).unwrap();
    if job[1] == "wordcount" {
        assert_eq!(oracle::counts_of_parts(&parts), oracle::word_counts(&text), "wrong without a fault");
    } else {
        let mut sorted = oracle::lines(&text);
        sorted.sort_unstable();
        if job.iter().any(|word| word == "-r") {
            sorted.reverse();
        }
        assert!(oracle::lines(&parts.concat()) == sorted, "wrong without a fault");
    }
    Reference { parts, status: report["status"].clone() }
}

/// Runs the job again, causes the fault when it stands at the phase, and gathers what came of it.
fn disturbed(row: &Row, phase: Phase, cluster: &Cluster<'_>, job: &[String]) -> Run {
    let sandbox = cluster.sandbox;
    let output = sandbox.text("out");
    let arguments = || job.iter().map(String::as_str).chain(["--output", &output]);
    let submit = || sandbox.gristmill(arguments()).start();
    let mut early = None;
    let held = phase.place().map(|place| {
        sandbox.arm(place);
        early = Some(submit());
        sandbox.stopped_at(place)
    });
    let scene = Scene { cluster, phase, held, client: early.as_ref().map(Running::pid) };
    let effect = (row.inject)(&scene);
    let start = Instant::now();
    phase.place().into_iter().for_each(|place| sandbox.go_on(place));
    // Without a place there is nobody yet whom the fault needs.
    let started = early.unwrap_or_else(submit);
    effect.heal.into_iter().for_each(|heal| heal());
    let limit = row.bound + BEYOND_BOUND;
    let took = until_within("the job to end", limit, || started.has_ended().then(|| start.elapsed()));
    let fired = (effect.fired)();
    let Finished { status, stdout, stderr, .. } = started.finish();
    Run {
        ending: effect.ending,
        code: status.code(),
        took,
        bound: row.bound,
        stderr,
        report: serde_json::from_slice::<Value>(&stdout).ok(),
        output: facts::files(Path::new(&output)),
        fired,
        wanted: effect.wanted,
        told: effect.submitted.then(|| facts::told(cluster, "job-2")),
        next: Next::default(),
        left: Vec::new(),
        logs: String::new(),
    }
}

//! One cell of the matrix: a fresh cluster, a job held at the phase, the fault, and the ten invariants.
//!
//! The default suite runs the first phase of each row. `GRISTMILL_MATRIX=DIRECTORY` runs all phases, or those in
//! `GRISTMILL_PHASE` if that is set. Each cell then writes a line of JSON to DIRECTORY, and
//! `tests/faults/matrix` builds a page of them.

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

/// Time that a job is waited for beyond its bound, so that its own message is seen.
const BEYOND_BOUND: Duration = Duration::from_secs(60);

/// Maximum number of characters of a failure's reason on a page.
const WHY_LETTERS_MAX: usize = 300;

/// Outcome of a cell.
enum Outcome {
    /// All invariants hold.
    Green { fired: u64, took: Duration },
    /// This machine cannot cause the fault.
    Skipped(&'static str),
    /// The fault did not fire; everything else was right.
    DidNotFire(String),
    /// An invariant is violated.
    Red(String),
}

/// Runs the selected cells of one row.
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
        if let Some(directory) = &matrix {
            note(directory, row, *phase, &outcome);
        }
        match outcome {
            Outcome::Green { .. } => {}
            Outcome::Skipped(why) => say_skipped(test, why),
            Outcome::DidNotFire(why) | Outcome::Red(why) => wrong.push(format!("at {}: {why}", phase.name())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Appends a line for `tests/faults/matrix`.
fn note(directory: &Path, row: &Row, phase: Phase, outcome: &Outcome) {
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
    let path = directory.join("cells.jsonl");
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
    let mut fleet = match (row.fleet)(&sandbox) {
        Ok(fleet) => fleet,
        Err(why) => return Outcome::Skipped(why),
    };
    for worker in &mut fleet.workers {
        worker.flags.extend(["--memory", phase.memory()].map(str::to_owned));
    }
    if !row.is_detached() {
        fleet.master.extend(["--journal".to_owned(), sandbox.text(facts::JOURNAL)]);
    }
    let mut cluster = Cluster::start(&sandbox, &fleet);
    let job = phase.job(&sandbox);
    let reference = undisturbed(&sandbox, &job);
    let mut run = disturbed(row, phase, &cluster, &job);
    cluster.restore();
    run.next = facts::next(&sandbox, &job);
    run.left = cluster.end();
    if let Some(told) = &mut run.told {
        facts::add_written(told, &sandbox);
    }
    run.left.extend(facts::leftovers(&sandbox));
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

/// Runs the job without a fault, and compares its output with that of a plain program.
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

/// The job under test, while it runs.
struct Struck<'a> {
    sandbox: &'a Sandbox,
    job: &'a [String],
    output: String,
    detached: bool,
}

impl Struck<'_> {
    /// Starts the program that submits it.
    fn submit(&self) -> Running {
        let arguments = self.job.iter().map(String::as_str).chain(["--output", &self.output]);
        match self.detached {
            false => self.sandbox.gristmill(arguments).start(),
            true => self.sandbox.gristmill(arguments.chain(["--detach"])).start(),
        }
    }

    /// Waits for the acknowledgement of a detached job. All other jobs are returned as they are.
    fn acknowledged(&self, submitter: Running) -> Acknowledged {
        if !self.detached {
            return Acknowledged::Attached(submitter);
        }
        let said = submitter.finish().expect_code(0).stdout_text();
        Acknowledged::Known(said.trim().to_owned())
    }

    /// Starts the program that waits for its end, unless one is already running.
    fn follow(&self, acknowledged: Acknowledged) -> Running {
        match acknowledged {
            Acknowledged::Attached(submitter) => submitter,
            Acknowledged::Known(job) => self.sandbox.gristmill(["wait", &job, "--json", "--quiet"]).start(),
        }
    }
}

/// The program that waits for the end of a job.
enum Acknowledged {
    /// Its submitter.
    Attached(Running),
    /// None yet; the job has this name.
    Known(String),
}

impl Acknowledged {
    /// Returns the name of the job. It is the second one, unless a master was killed before: then numbers are
    /// skipped.
    fn name(&self) -> String {
        match self {
            Acknowledged::Attached(_) => "job-2".to_owned(),
            Acknowledged::Known(job) => job.clone(),
        }
    }
}

/// Runs the job again, causes the fault at the phase, and collects the results.
fn disturbed(row: &Row, phase: Phase, cluster: &Cluster<'_>, job: &[String]) -> Run {
    let sandbox = cluster.sandbox;
    let struck = Struck { sandbox, job, output: sandbox.text("out"), detached: row.is_detached() };
    let (mut submitter, mut acknowledged) = (None, None);
    let held = phase.place().map(|place| {
        sandbox.arm(place);
        let early = struck.submit();
        let held = sandbox.stopped_at(place);
        match phase == Phase::Split {
            true => submitter = Some(early),
            false => acknowledged = Some(struck.acknowledged(early)),
        }
        held
    });
    let client = match (&submitter, &acknowledged) {
        (Some(running), _) | (None, Some(Acknowledged::Attached(running))) => Some(running.pid()),
        _ => None,
    };
    let scene = Scene { cluster, phase, held, client };
    let effect = (row.inject)(&scene);
    let start = Instant::now();
    phase.place().into_iter().for_each(|place| sandbox.go_on(place));
    // A phase without a place needs no running submitter.
    let acknowledged =
        acknowledged.unwrap_or_else(|| struck.acknowledged(submitter.unwrap_or_else(|| struck.submit())));
    let name = acknowledged.name();
    let started = struck.follow(acknowledged);
    effect.heal.into_iter().for_each(|heal| heal());
    let limit = row.bound + BEYOND_BOUND;
    let took = until_within("the job to end", limit, || started.has_ended().then(|| start.elapsed()));
    let fired = (effect.fired)();
    let Finished { status, stdout, stderr, .. } = started.finish();
    let report = serde_json::from_slice::<Value>(&stdout).ok();
    Run {
        ending: effect.ending,
        code: status.code(),
        took,
        bound: row.bound,
        stderr,
        report: if struck.detached { report.map(|status| json!({ "status": status })) } else { report },
        output: facts::files(Path::new(&struck.output)),
        fired,
        wanted: effect.wanted,
        told: effect.submitted.then(|| facts::told(cluster, &name)),
        next: Next::default(),
        left: Vec::new(),
        logs: String::new(),
    }
}

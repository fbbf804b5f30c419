//! Collects what is known of the disturbed job: from the master, the command line, its directories, the
//! register and the journal.

use super::cluster::Cluster;
use super::run::{Files, Next, Told, Written};
use crate::support::{Sandbox, oracle};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Name of the journal of a cluster's master in its sandbox.
pub const JOURNAL: &str = "journal";

/// Returns the files of a directory, or `None` if it does not exist. A subdirectory counts as an empty file.
pub fn files(directory: &Path) -> Option<Files> {
    let names = directory.exists().then(|| oracle::names(directory))?;
    Some(
        names
            .into_iter()
            .map(|name| (name.clone(), fs::read(directory.join(name)).unwrap_or_default()))
            .collect(),
    )
}

/// Returns what a running cluster reports of a job.
pub fn told(cluster: &Cluster<'_>, job: &str) -> Told {
    let jobs = cluster.sandbox.gristmill(["jobs"]).finish().expect_code(0).stdout_text();
    let line = jobs.lines().find(|line| line.split_whitespace().next() == Some(job));
    Told {
        status: cluster.standing.job(job),
        listed: line.unwrap_or_default().to_owned(),
        registered: String::new(),
        journal: None,
    }
}

/// Adds what the register and the journal contain of a job, once the master has ended.
pub fn add_written(told: &mut Told, sandbox: &Sandbox) {
    let number = told.status["job"].as_u64().unwrap();
    let state = |line: &Value| {
        let ended = &line["ended"];
        (ended["job"] == number).then(|| ended["state"].as_str().unwrap_or_default().to_owned())
    };
    told.registered =
        lines(&sandbox.path("state/jobs")).iter().filter_map(state).next_back().unwrap_or_default();
    let journal = sandbox.path(JOURNAL);
    told.journal = journal.exists().then(|| written(sandbox, &journal, number));
}

fn written(sandbox: &Sandbox, journal: &Path, number: u64) -> Written {
    let outcome = |line: &Value| {
        let orders = line["instant"]["orders"].as_array()?;
        orders
            .iter()
            .find_map(|order| Some(&order["job_ended"]).filter(|ended| ended["job"] == number).map(word))
    };
    let outcome = lines(journal).iter().find_map(outcome).unwrap_or_default();
    let replayed = sandbox.gristmill(["replay", &sandbox.text(JOURNAL)]).finish();
    let replay = if replayed.status.code() == Some(0) { String::new() } else { replayed.stderr };
    Written { outcome, replay }
}

/// Returns the name of an outcome, which may have a cause.
fn word(ended: &Value) -> String {
    let outcome = &ended["outcome"];
    let with_cause = || outcome.as_object().and_then(|outcome| outcome.keys().next().cloned());
    outcome.as_str().map(str::to_owned).or_else(with_cause).unwrap_or_default()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    // The JSON follows a checksum, if a line has one.
    let read = |line: &str| serde_json::from_str(line).or_else(|_| serde_json::from_str(&line[9..]));
    text.lines().map(|line| read(line).unwrap()).collect()
}

/// Runs a job once more.
pub fn next(sandbox: &Sandbox, job: &[String]) -> Next {
    let output = sandbox.text("afterwards");
    let arguments = job.iter().map(String::as_str).chain(["--output", &output]);
    let finished = sandbox.gristmill(arguments).finish();
    let code = finished.status.code();
    let parts = if code == Some(0) { oracle::parts(Path::new(&output)) } else { Vec::new() };
    Next { code, stderr: finished.stderr, parts }
}

/// Returns the leftovers of a sandbox, including tokens of faults that no process has taken.
pub fn leftovers(sandbox: &Sandbox) -> Vec<String> {
    let mut left = sandbox.leftovers();
    let tokens = oracle::names(&sandbox.path("faults"));
    left.extend(tokens.into_iter().filter(|name| name != "dumpable").map(|name| format!("token {name}")));
    if sandbox.path("state/join").exists() {
        left.push("the address of a master that has ended".to_owned());
    }
    left
}

/// Returns what all processes of a sandbox have written to stderr.
pub fn logs(sandbox: &Sandbox) -> String {
    let directory = sandbox.path("log");
    let names = oracle::names(&directory).into_iter().filter(|name| name.ends_with(".stderr"));
    names.map(|name| String::from_utf8_lossy(&fs::read(directory.join(name)).unwrap()).into_owned()).collect()
}

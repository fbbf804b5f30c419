//! `own_policy`: two jobs on one master of its own, in the order of the policy.
//!
//! Both jobs wait before the only slot joins, so the order depends only on the policy.

use crate::stage::Stage;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_own_policy");

/// Process that is killed at the end of its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Runs two jobs, the long one first, on a cluster of one slot. Returns the names of their outputs in the
/// order in which the jobs were started.
fn order_under(policy: &str) -> Vec<&'static str> {
    let stage = Stage::new();
    stage.write("long.txt", &"so many words\n".repeat(300));
    stage.write("short.txt", "few words\n");
    let master = stage.command(PROGRAM, &format!("master --policy {policy} --state state --print-join"));
    let mut master = Running({ master }.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    // The join line shows that the master is listening.
    let mut join_line = String::new();
    BufReader::new(master.0.stdout.take().unwrap()).read_line(&mut join_line).unwrap();
    let mut jobs = ["long", "short"].map(|name| {
        let options = "--detach --state state --split-size 100 --reduces 1";
        let submit = format!("submit {options} wordcount {name}.txt --output {name}");
        (name, stage.print(PROGRAM, &submit).trim().to_owned(), 0)
    });
    let worker = stage.command(PROGRAM, "worker --state state --workers 1 --slots 1 --memory 64MiB");
    let _worker = Running({ worker }.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    for (name, job, started_ns) in &mut jobs {
        let status = stage.print(PROGRAM, &format!("wait {job} --json --quiet --state state"));
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["state"], "succeeded", "{name}");
        *started_ns = status["started_ns"].as_u64().unwrap();
    }
    assert_eq!(stage.parts("long"), ["many\t300\nso\t300\nwords\t300\n"]);
    assert_eq!(stage.parts("short"), ["few\t1\nwords\t1\n"]);
    // Shown if the test fails.
    println!("started: {jobs:?}");
    jobs.sort_by_key(|(_, _, started_ns)| *started_ns);
    jobs.map(|(name, ..)| name).to_vec()
}

#[test]
fn shortest_first_starts_the_short_job_before_the_older_long_one() {
    assert_eq!(order_under("sjf"), ["short", "long"]);
}

#[test]
fn fifo_starts_the_older_long_job_first() {
    assert_eq!(order_under("fifo"), ["long", "short"]);
}

#[test]
fn own_policy_that_takes_parameters_it_does_not_know_is_refused_before_anything_starts() {
    let stage = Stage::new();
    stage.write("short.txt", "few words\n");
    let done = stage.command(PROGRAM, "run --policy sjf:k=3 wordcount short.txt").output().unwrap();
    let words = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{words}");
    assert!(words.contains("policy `sjf`: it takes no parameters, but was given `k`"), "{words}");
}

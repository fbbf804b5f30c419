//! Reduces that a policy suspends: short jobs go first, nothing of the output changes, and a worker that dies with a
//! suspended reduce costs no more than its work.
//!
//! Deliberately not here: which reduce is suspended (the scheduler's tests), and at which groups it stops (the
//! worker's).

use crate::support::data::Random;
use crate::support::sandbox::{Running, Sandbox};
use crate::support::standing::Standing;
use crate::support::{http, oracle, process, until};
use serde_json::Value;

/// With its slots of a second: what the virtual schedule gives to maps must last longer than it takes to suspend.
const PREEMPTIVE: &str = "asrpt:preemptive=yes";

/// A master with one worker of one slot.
fn standing<'a>(sandbox: &'a Sandbox, policy: &str) -> Standing<'a> {
    Standing::start_with(sandbox, 1, &["--policy", policy, "--estimator", "oracle"])
}

/// Submits a synthetic job whose reduce takes so long, and waits until it runs.
fn submit_long(sandbox: &Sandbox, standing: &Standing<'_>, seconds: f64) -> Running {
    let work = format!(r#"{{"map_seconds":[0.02],"shuffle_bytes":1000,"reduce_seconds":[{seconds}]}}"#);
    let work = sandbox.write("long.json", work);
    let out = sandbox.text("long");
    let arguments = ["submit", "synthetic", "--times", &work, "--exact", &work, "--json", "--output", &out];
    let running = sandbox.gristmill(arguments).start();
    until("a long reduce that runs", || {
        let attempts = trace(standing)["attempts"].as_array().cloned().unwrap_or_default();
        let reduces = attempts.iter().any(|attempt| attempt["attempt"]["task"]["kind"] == "Reduce");
        reduces.then_some(())
    });
    running
}

/// Submits a count of words of a text that is said to take this long.
fn submit_short(sandbox: &Sandbox, text: &str, name: &str, seconds: f64) -> Running {
    let work = format!(r#"{{"map_seconds":[0.01],"shuffle_bytes":1000,"reduce_seconds":[{seconds}]}}"#);
    let work = sandbox.write(&format!("{name}.json"), work);
    let out = sandbox.text(name);
    let arguments =
        ["submit", "wordcount", text, "--reduces", "1", "--exact", &work, "--json", "--output", &out];
    sandbox.gristmill(arguments).start()
}

/// Everything that happened to the first job; null before it is there.
fn trace(standing: &Standing<'_>) -> Value {
    let (bearer, host) = (format!("Bearer {}", standing.join.token), standing.join.address.to_string());
    let headers = [("Host", &*host), ("Authorization", &*bearer)];
    let answer = http::request(standing.join.address, "GET", "/api/v1/jobs/job-1/trace", &headers);
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

/// The report of a job that went well.
fn report(job: Running) -> Value {
    job.finish().expect_code(0).json()
}

#[test]
fn long_reduce_makes_way_for_short_jobs_and_all_outputs_are_those_of_fifo() {
    let text = Random::seeded(1301).text(20_000, &[" ", "\n"]);
    let outputs = |policy: &str| {
        let sandbox = Sandbox::new();
        let input = sandbox.write("text", &text);
        let standing = standing(&sandbox, policy);
        let long = submit_long(&sandbox, &standing, 3.0);
        let short = ["a", "b"].map(|name| submit_short(&sandbox, &input, name, 0.02));
        let ends = short.map(|job| report(job)["status"]["ended_ns"].as_u64().unwrap());
        let long = report(long);
        standing.end();
        let parts = ["long", "a", "b"].map(|name| oracle::parts(&sandbox.path(name)));
        (parts, ends, long["status"].clone())
    };
    let (expected, ends, long) = outputs("fifo");
    assert_eq!(long["totals"]["suspensions"], 0);
    assert!(ends.iter().all(|end| long["ended_ns"].as_u64().unwrap() < *end), "in the order of arrival");
    let (parts, ends, long) = outputs(PREEMPTIVE);
    assert!(0 < long["totals"]["suspensions"].as_u64().unwrap(), "nothing was suspended: {}", long["totals"]);
    assert!(0 < long["totals"]["suspended_ns"].as_u64().unwrap());
    let ended = long["ended_ns"].as_u64().unwrap();
    assert!(
        ends.iter().any(|end| *end < ended),
        "{ends:?}: no short job ended before the long one at {ended}"
    );
    assert!(parts == expected, "outputs are the same");
    assert_eq!(oracle::counts_of_parts(&parts[1]), oracle::word_counts(&text));
}

#[test]
fn suspended_reduce_whose_worker_dies_starts_again_from_its_inputs() {
    let text = Random::seeded(1302).text(20_000, &[" ", "\n"]);
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", &text);
    let standing = standing(&sandbox, PREEMPTIVE);
    let long = submit_long(&sandbox, &standing, 3.0);
    sandbox.arm("reduce");
    let short = submit_short(&sandbox, &input, "short", 0.02);
    let pid = sandbox.stopped_at("reduce");
    let suspended = trace(&standing)["attempts"].as_array().cloned().unwrap_or_default();
    let suspended = suspended.iter().filter(|attempt| attempt["suspended"] == true).count();
    assert_eq!(suspended, 1, "the long reduce is suspended while the short one runs");
    process::kill(pid);
    sandbox.go_on("reduce");
    let (short, long) = (report(short), report(long));
    assert_eq!(short["status"]["state"], "succeeded");
    assert_eq!(long["status"]["state"], "succeeded");
    assert!(1 < long["status"]["attempts"]["launched"].as_u64().unwrap(), "{}", long["status"]["attempts"]);
    standing.end();
    assert_eq!(oracle::counts_of_parts(&oracle::parts(&sandbox.path("short"))), oracle::word_counts(&text));
}

//! Reduces that a policy suspends. Short jobs go first, the output does not change, and a worker that dies
//! with a suspended reduce costs only that reduce's work.

use crate::support::data::Random;
use crate::support::sandbox::{Running, Sandbox};
use crate::support::standing::{Standing, start_worker};
use crate::support::{http, oracle, process};
use serde_json::Value;

/// With slots of a second: the virtual schedule's share for maps must last longer than a suspension takes.
const PREEMPTIVE: &str = "asrpt:preemptive=yes";

/// A master with one worker of one slot.
fn standing<'a>(sandbox: &'a Sandbox, policy: &str) -> Standing<'a> {
    Standing::start_with(sandbox, 1, &["--policy", policy, "--estimator", "oracle"])
}

/// Submits a synthetic job whose reduce takes this long, and waits until it runs.
fn submit_long(sandbox: &Sandbox, seconds: f64) -> Running {
    sandbox.arm("reduce");
    let work = format!(r#"{{"map_seconds":[0.02],"shuffle_bytes":1000,"reduce_seconds":[{seconds}]}}"#);
    let work = sandbox.write("long.json", work);
    let out = sandbox.text("long");
    let arguments = ["submit", "synthetic", "--times", &work, "--exact", &work, "--json", "--output", &out];
    let running = sandbox.gristmill(arguments).start();
    sandbox.stopped_at("reduce");
    sandbox.go_on("reduce");
    running
}

/// Submits a word count of a text with this stated duration.
fn submit_short(sandbox: &Sandbox, text: &str, name: &str, seconds: f64) -> Running {
    let work = format!(r#"{{"map_seconds":[0.01],"shuffle_bytes":1000,"reduce_seconds":[{seconds}]}}"#);
    let work = sandbox.write(&format!("{name}.json"), work);
    let out = sandbox.text(name);
    let arguments =
        ["submit", "wordcount", text, "--reduces", "1", "--exact", &work, "--json", "--output", &out];
    sandbox.gristmill(arguments).start()
}

/// Returns all events of the first job; null before it exists.
fn trace(standing: &Standing<'_>) -> Value {
    let (bearer, host) = (format!("Bearer {}", standing.join.token), standing.join.address.to_string());
    let headers = [("Host", &*host), ("Authorization", &*bearer)];
    let answer = http::request(standing.join.address, "GET", "/api/v1/jobs/job-1/trace", &headers);
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

/// Returns the report of a job that succeeded.
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
        let long = submit_long(&sandbox, 3.0);
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
    let long = submit_long(&sandbox, 3.0);
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

#[test]
fn suspended_reduce_of_a_draining_worker_starts_again_elsewhere() {
    let expected = {
        let sandbox = Sandbox::new();
        let standing = standing(&sandbox, "fifo");
        report(submit_long(&sandbox, 0.0));
        standing.end();
        oracle::parts(&sandbox.path("long"))
    };
    let text = Random::seeded(1303).text(20_000, &[" ", "\n"]);
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", &text);
    let mut standing = standing(&sandbox, PREEMPTIVE);
    let long = submit_long(&sandbox, 3.0);
    sandbox.arm("reduce");
    let short = submit_short(&sandbox, &input, "short", 0.02);
    sandbox.stopped_at("reduce");
    // The only slot is taken while the short job is stopped; a second worker joins.
    standing.workers.push(start_worker(&sandbox));
    standing.await_workers(2);
    sandbox.gristmill(["cluster", "drain", "worker-1"]).finish().expect_code(0);
    let long = report(long);
    sandbox.go_on("reduce");
    report(short);
    let attempts = trace(&standing)["attempts"].as_array().cloned().unwrap();
    let reduces: Vec<&Value> =
        attempts.iter().filter(|attempt| attempt["attempt"]["task"]["kind"] == "Reduce").collect();
    let [first, second] = reduces[..] else { panic!("two attempts, not {reduces:#?}") };
    assert!(first["end"].to_string().contains("cancelled"), "{first:#}");
    assert_ne!(first["worker"], second["worker"]);
    assert_eq!(long["status"]["state"], "succeeded");
    standing.end();
    assert!(oracle::parts(&sandbox.path("long")) == expected, "outputs are the same");
    assert_eq!(oracle::counts_of_parts(&oracle::parts(&sandbox.path("short"))), oracle::word_counts(&text));
}

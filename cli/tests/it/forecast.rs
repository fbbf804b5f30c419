//! The time left of a job has what is ahead of it in the queue, and the parts of its flow time add up.

use crate::support::sandbox::Sandbox;
use crate::support::standing::{Standing, await_join_line};
use crate::support::until;
use serde_json::Value;

/// Parts of the flow time of an ended job, and the flow time, nanoseconds.
fn parts(status: &Value) -> ([u64; 3], u64) {
    let parts = ["running_ns", "waiting_ns", "blocked_ns"];
    let number = |value: &Value| value.as_u64().unwrap();
    (
        parts.map(|part| number(&status["flow_parts"][part])),
        number(&status["ended_ns"]) - number(&status["arrived_ns"]),
    )
}

#[test]
fn time_left_counts_the_queue_and_the_parts_of_the_flow_time_add_up() {
    for estimator in ["history", "tasks"] {
        time_left_counts_the_queue(estimator);
    }
}

fn time_left_counts_the_queue(estimator: &str) {
    let sandbox = Sandbox::new();
    let master = sandbox.gristmill(["cluster", "master", "--estimator", estimator]).start();
    let join = await_join_line(&master);
    let worker = sandbox.gristmill(["cluster", "worker", "--workers", "1", "--slots", "2"]).start();
    let standing = Standing::new(&sandbox, master, vec![worker], join);
    standing.await_workers(1);
    let submit = |maps: &str, out: &str| {
        let out = sandbox.text(out);
        let job = ["submit", "synthetic", "--maps", maps, "--map-time", "200ms", "--reduces", "1"];
        let job = [&job[..], &["--reduce-time", "200ms", "--output", &out, "--detach"]].concat();
        sandbox.gristmill(job).finish().expect_code(0).stdout_text().trim().to_owned()
    };
    let (short, long) = (submit("12", "short"), submit("24", "long"));
    let [first, second] = until("forecasts for both", || {
        let left = [&short, &long].map(|job| standing.job(job)["time_left_ns"].as_u64());
        Some([left[0]?, left[1]?])
    });
    assert!(0 < first && first < second, "the longer job comes after the shorter: {first} and {second} ns");
    for job in [&short, &long] {
        sandbox.gristmill(["job", "wait", job]).finish().expect_code(0);
        let status = standing.job(job);
        let (parts, flow) = parts(&status);
        assert_eq!(parts.iter().sum::<u64>(), flow, "{status}");
        assert!(0 < parts[0], "{status}");
        assert_eq!(status["time_left_ns"], Value::Null, "it has ended");
    }
    assert!(0 < parts(&standing.job(&long)).0[1], "it waited for the slots of the other");
    standing.end();
}

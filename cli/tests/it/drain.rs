//! Workers that leave in good order, while a job goes on.

use crate::support::data::Random;
use crate::support::sandbox::Sandbox;
use crate::support::standing::Standing;
use crate::support::{oracle, process};

#[test]
fn worker_that_is_drained_ends_what_it_runs_and_nothing_runs_again() {
    let sandbox = Sandbox::new();
    let mut standing = Standing::start(&sandbox, 2);
    let text = Random::seeded(171).text(60_000, &[" ", "\n"]);
    let (input, out) = (sandbox.write("text", &text), sandbox.text("out"));
    sandbox.arm("map");
    let flags = ["--split-size", "4KiB", "--reduces", "4", "--json", "--output", &out];
    let client = sandbox.gristmill([&["submit", "wordcount", &input], &flags[..]].concat()).start();
    let held = sandbox.stopped_at("map");
    let status = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
    let mut workers = status["workers"].as_array().unwrap().iter();
    let leaving = workers.find(|worker| worker["pid"] == held).unwrap();
    let name = format!("worker-{}", leaving["worker"]);
    let parent = process::parent_of(held).unwrap();
    sandbox.gristmill(["worker", "drain", &name]).finish().expect_code(0);
    standing.await_workers(2);
    sandbox.go_on("map");
    let report = client.finish().expect_code(0).json();
    assert!(oracle::counts_of_parts(&oracle::parts(&sandbox.path("out"))) == oracle::word_counts(&text));
    let maps = report["status"]["maps"]["total"].as_u64().unwrap();
    let attempts = &report["status"]["attempts"];
    let count = |name: &str| attempts[name].as_u64().unwrap();
    assert_eq!(count("launched") - count("returned"), maps + 4, "{attempts}");
    assert_eq!(count("lost"), 0, "{attempts}");
    standing.await_workers(1);
    // Its supervisor starts no other in its place.
    let left = standing.workers.iter().position(|worker| worker.pid() == parent).unwrap();
    standing.workers.remove(left).finish().expect_code(0);
    standing.end();
}

#[test]
fn drain_of_a_worker_that_is_not_there_is_refused_by_name() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let refused = sandbox.gristmill(["worker", "drain", "worker-9"]).finish().expect_code(2);
    refused.expect_words(&["there is no worker-9", "gristmill status"]);
    standing.end();
}

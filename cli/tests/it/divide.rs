//! Running maps are divided for idle slots, and the output does not depend on it.

use crate::support::data::Random;
use crate::support::sandbox::Sandbox;
use crate::support::standing::{Standing, await_join_line};
use crate::support::{oracle, until};
use rustix::process::Signal;
use serde_json::Value;

/// Slots of these jobs are so slow that a map of [`TEXT_BYTES`] takes many times the interval of heartbeats.
const SLOW: &str = "30x";

/// Several blocks: a map gives up the end of its split between two.
const TEXT_BYTES: usize = 8 << 20;

/// Number of maps that the job had in the end.
fn maps(report: &Value) -> u64 {
    report["status"]["maps"]["total"].as_u64().unwrap()
}

/// Runs a job that has `whole` maps without and with divisions. Returns the number of maps with them.
fn compare(sandbox: &Sandbox, name: &str, job: &[&str], whole: u64) -> u64 {
    let [before, after, journal] =
        ["before", "after", "journal"].map(|what| sandbox.text(&format!("{name}-{what}")));
    let plain = sandbox.run_well([&["run"], job, &["--json", "--output", &before]].concat()).json();
    assert_eq!(maps(&plain), whole, "{name} without --divide");
    let flags =
        ["--workers", "3", "--slow", SLOW, "--divide", "--json", "--output", &after, "--journal", &journal];
    let divided = sandbox.run_well([&["run"], job, &flags[..]].concat()).json();
    assert_eq!(oracle::names(before.as_ref()), oracle::names(after.as_ref()), "{name}");
    assert!(oracle::parts(before.as_ref()) == oracle::parts(after.as_ref()), "{name}: the bytes differ");
    let counts = |report: &Value| report["status"]["totals"]["map_records_in"].as_u64().unwrap();
    assert_eq!(counts(&plain), counts(&divided), "{name}: records are read once");
    let replayed = sandbox.run_well(["lab", "replay", &journal, "--json"]).json();
    assert_eq!(replayed["agrees"], true, "{name}: {replayed}");
    maps(&divided)
}

#[test]
fn maps_of_jobs_with_reduces_are_divided_and_no_byte_changes() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(4101);
    let text = sandbox.write("text", random.text(TEXT_BYTES, &[" ", "\n", " \n"]));
    let one_split = ["--split-size", "64MiB", "--reduces", "2"];
    for (name, job) in [
        ("wordcount", &["wordcount", &text][..]),
        ("sort", &["sort", &text]),
        ("grep", &["grep", "--count-matches", "[a-c]+", &text]),
    ] {
        let divided = compare(&sandbox, name, &[job, &one_split].concat(), 1);
        assert!(1 < divided, "{name} had {divided} maps");
    }
    sandbox.assert_nothing_left();
}

#[test]
fn maps_of_commands_and_jobs_without_reduces_are_not_divided() {
    let sandbox = Sandbox::new();
    let text = sandbox.write("text", Random::seeded(4102).text(TEXT_BYTES / 2, &[" ", "\n"]));
    for (name, job) in [
        ("grep", &["grep", "a", &text, "--split-size", "64MiB"][..]),
        ("synthetic", &["synthetic", "--maps", "1", "--map-time", "1s", "--reduces", "2"]),
    ] {
        assert_eq!(compare(&sandbox, name, job, 1), 1, "{name}");
    }
}

/// Starts a slow job of one map on a cluster of three workers, waits until it was divided, lets `harm` do its work, and
/// returns the standing cluster after the job has ended with the right output.
fn divided_and_harmed(harm: impl for<'s> FnOnce(&'s Sandbox, Standing<'s>) -> Standing<'s>) {
    let sandbox = Sandbox::new();
    let text = Random::seeded(4103).text(TEXT_BYTES, &[" ", "\n"]);
    let (input, out) = (sandbox.write("text", &text), sandbox.text("out"));
    let master = sandbox.gristmill(["cluster", "master", "--divide"]).start();
    let join = await_join_line(&master);
    let worker =
        || sandbox.gristmill(["cluster", "worker", "--workers", "1", "--slots", "1", "--slow", SLOW]).start();
    let standing = Standing::new(&sandbox, master, (0..3).map(|_| worker()).collect(), join);
    standing.await_workers(3);
    let job = [
        "submit",
        "wordcount",
        &input,
        "--split-size",
        "64MiB",
        "--reduces",
        "2",
        "--output",
        &out,
        "--detach",
    ];
    let id = sandbox.gristmill(job).finish().expect_code(0).stdout_text().trim().to_owned();
    until("a division", || (2 <= standing.job(&id)["maps"]["total"].as_u64()?).then_some(()));
    let standing = harm(&sandbox, standing);
    sandbox.gristmill(["job", "wait", &id]).finish().expect_code(0);
    assert!(oracle::counts_of_parts(&oracle::parts(out.as_ref())) == oracle::word_counts(&text));
    let status = standing.job(&id);
    assert_eq!(status["totals"]["map_bytes_in"].as_u64(), Some(text.len() as u64), "{status}");
    standing.end();
}

#[test]
fn map_makes_way_for_a_short_job_and_its_job_has_the_same_output() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(4104);
    let [short, long] = [TEXT_BYTES / 256, TEXT_BYTES].map(|bytes| random.text(bytes, &[" ", "\n"]));
    let (first, rest) = (sandbox.write("in/a", &short), sandbox.write("in/b", &long));
    let master = sandbox.gristmill(["cluster", "master", "--divide"]).start();
    let join = await_join_line(&master);
    let worker =
        sandbox.gristmill(["cluster", "worker", "--workers", "1", "--slots", "1", "--slow", SLOW]).start();
    let standing = Standing::new(&sandbox, master, vec![worker], join);
    standing.await_workers(1);
    // Both files do not fit into one split.
    let split = long.len().to_string();
    let submit = |inputs: &[&str], out: &str| {
        let job =
            [&["submit", "wordcount", "--split-size", &split, "--output", out, "--detach"], inputs].concat();
        sandbox.gristmill(job).finish().expect_code(0).stdout_text().trim().to_owned()
    };
    let out = sandbox.text("long");
    let id = submit(&[&first, &rest], &out);
    until("the first map", || (standing.job(&id)["maps"]["done"] == 1).then_some(()));
    let quick = submit(&[&first], &sandbox.text("short"));
    sandbox.gristmill(["job", "wait", &quick]).finish().expect_code(0);
    let status = standing.job(&id);
    assert_eq!(status["state"], "running", "the short job did not wait for the long map: {status}");
    sandbox.gristmill(["job", "wait", &id]).finish().expect_code(0);
    let status = standing.job(&id);
    assert!(3 <= status["maps"]["total"].as_u64().unwrap(), "the long map was cut: {status}");
    assert!(
        oracle::counts_of_parts(&oracle::parts(out.as_ref())) == oracle::word_counts(&[short, long].concat())
    );
    standing.end();
}

#[test]
fn divided_job_survives_a_worker_that_is_killed() {
    divided_and_harmed(|_, mut standing| {
        standing.workers[0].kill();
        drop(standing.workers.remove(0).finish());
        standing
    });
}

#[test]
fn divided_job_survives_a_master_that_is_killed() {
    divided_and_harmed(|sandbox, standing| {
        let Standing { master, workers, .. } = standing;
        master.signal(Signal::KILL);
        master.finish();
        let master = sandbox.gristmill(["cluster", "master", "--divide"]).start();
        let join = await_join_line(&master);
        let standing = Standing::new(sandbox, master, workers, join);
        standing.await_workers(3);
        standing
    });
}

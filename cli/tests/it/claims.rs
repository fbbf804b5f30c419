//! Outputs whose job, client, master or disk fails: taken over, finished, retried, or abandoned with an
//! error.

use crate::support::standing::Standing;
use crate::support::{Sandbox, oracle, process, until};
use rustix::process::Signal;
use std::path::Path;

/// Kills all processes at once and loses the state from which the master would recover.
fn lose_power(sandbox: &Sandbox, standing: Standing<'_>) {
    for found in sandbox.processes() {
        process::kill(found.pid);
    }
    standing.master.finish();
    for worker in standing.workers {
        worker.finish();
    }
    std::fs::remove_file(sandbox.path("state/recovery")).unwrap();
}

fn check_counts(out: &Path) {
    assert_eq!(oracle::names(out), ["_SUCCESS", "part-00000"]);
    assert_eq!(std::fs::read_to_string(out.join("part-00000")).unwrap(), "a\t2\nb\t1\n");
}

#[test]
fn output_of_a_master_that_was_killed_is_taken_over_by_the_same_command() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b a\na\n");
    for (name, old, flags) in [("fresh", false, &[] as &[&str]), ("old", true, &["--overwrite"])] {
        let out = sandbox.text(name);
        if old {
            sandbox.write(&format!("{name}/part-00009"), "old");
            sandbox.write(&format!("{name}/_SUCCESS"), "");
        }
        let command = ["submit", "wordcount", &input, "--reduces", "1", "--output", &out];
        let command = [&command, flags].concat();
        let standing = Standing::start(&sandbox, 1);
        sandbox.arm("reduce");
        sandbox.gristmill([&command[..], &["--detach"]].concat()).finish().expect_code(0);
        sandbox.stopped_at("reduce");
        // It is left alone while its master is alive, although the client that made the claim has ended.
        let refused = sandbox.gristmill(command.clone()).finish().expect_code(3);
        refused.expect_words(&["another job is writing to", "claimed by process", "for job-"]);
        lose_power(&sandbox, standing);
        sandbox.go_on("reduce");
        let standing = Standing::start(&sandbox, 1);
        sandbox.gristmill(command).finish().expect_code(0);
        check_counts(&sandbox.path(name));
        standing.end();
    }
}

#[test]
fn what_a_dead_job_had_moved_aside_comes_back_when_the_next_one_fails() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b a\na\n");
    let out = sandbox.text("out");
    sandbox.write("out/part-00009", "old");
    sandbox.write("out/_SUCCESS", "");
    let standing = Standing::start(&sandbox, 1);
    sandbox.arm("reduce");
    let command = ["submit", "wordcount", &input, "--output", &out];
    sandbox.gristmill([&command[..], &["--overwrite", "--detach"]].concat()).finish().expect_code(0);
    sandbox.stopped_at("reduce");
    assert!(!sandbox.path("out/part-00009").exists(), "it lies aside");
    lose_power(&sandbox, standing);
    sandbox.go_on("reduce");
    let standing = Standing::start(&sandbox, 1);
    sandbox.gristmill(command).finish().expect_code(3).expect_words(&["is not empty"]);
    assert_eq!(oracle::names(&sandbox.path("out")), ["_SUCCESS", "part-00009"]);
    standing.end();
}

/// Kills the client of a job that has succeeded before it can close the output. Returns the job's status
/// then.
fn client_dies_at_the_end(sandbox: &Sandbox, before: impl FnOnce()) -> serde_json::Value {
    client_dies_at_the_end_before(sandbox, before, || {})
}

fn client_dies_at_the_end_before(
    sandbox: &Sandbox,
    before: impl FnOnce(),
    then: impl FnOnce(),
) -> serde_json::Value {
    let input = sandbox.write("text", "b a\na\n");
    let out = sandbox.text("out");
    let standing = Standing::start(sandbox, 1);
    sandbox.arm("reduce");
    let arguments = ["submit", "wordcount", &input, "--reduces", "1", "--output", &out];
    let client = sandbox.gristmill(arguments).start();
    sandbox.stopped_at("reduce");
    client.signal(Signal::STOP);
    sandbox.go_on("reduce");
    until("the end of its tasks", || (standing.job("job-1")["state"] == "publishing").then_some(()));
    before();
    client.signal(Signal::KILL);
    client.finish();
    until("the output to be closed", || (!sandbox.path("out/_temporary").exists()).then_some(()));
    let ended = until("the word of it", || {
        let job = standing.job("job-1");
        (job["state"] != "publishing").then_some(job)
    });
    then();
    standing.end();
    ended
}

#[test]
fn job_is_publishing_and_nothing_else_until_its_client_has_closed_the_output() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b a\na\n");
    let out = sandbox.text("out");
    let standing = Standing::start(&sandbox, 1);
    sandbox.arm("reduce");
    let client = sandbox.gristmill(["submit", "wordcount", &input, "--output", &out]).start();
    sandbox.stopped_at("reduce");
    client.signal(Signal::STOP);
    sandbox.go_on("reduce");
    until("the end of its tasks", || (standing.job("job-1")["reduces"]["done"] == 1).then_some(()));
    let said = |arguments: &[&str]| sandbox.gristmill(arguments).finish().expect_code(0).stdout_text();
    assert_eq!(standing.job("job-1")["state"], "publishing");
    for words in [said(&["jobs"]), said(&["jobs", "--json"]), said(&["explain", "job-1"])] {
        assert!(words.contains("publish") && !words.contains("succeeded"), "{words}");
    }
    client.signal(Signal::CONT);
    client.finish().expect_code(0).expect_words(&["succeeded"]);
    assert_eq!(standing.job("job-1")["state"], "succeeded");
    assert!(said(&["jobs"]).contains("succeeded"));
    check_counts(&sandbox.path("out"));
    standing.end();
}

#[test]
fn client_that_dies_when_its_job_has_ended_leaves_a_finished_output() {
    let sandbox = Sandbox::new();
    let job = client_dies_at_the_end(&sandbox, || {});
    assert_eq!(job["state"], "succeeded", "{job}");
    check_counts(&sandbox.path("out"));
}

#[test]
fn job_whose_client_died_and_whose_output_cannot_be_finished_did_not_succeed() {
    let sandbox = Sandbox::new();
    let waiting = std::cell::Cell::new(None);
    let spoil = || {
        // A wait for the job includes a wait for its output.
        let wait = sandbox.gristmill(["wait", "job-1"]).start();
        until("the wait to tell how the job stands", || wait.stderr().contains("job-1").then_some(()));
        waiting.set(Some(wait));
        let temporary = sandbox.path("out/_temporary");
        let built = oracle::names(&temporary).into_iter().find(|name| name.ends_with("-reduce-0.0")).unwrap();
        std::fs::write(temporary.join(built), "other").unwrap();
    };
    let job = client_dies_at_the_end_before(&sandbox, spoil, || {
        waiting.take().unwrap().finish().expect_code(5).expect_words(&["closed the output"]);
    });
    assert_eq!((&job["state"], &job["failure"]["code"]), (&"failed".into(), &"client_lost".into()), "{job}");
    assert!(!sandbox.path("out").exists());
}

#[test]
fn disk_error_that_passes_while_a_part_is_written_costs_an_attempt() {
    passes(&["part.write", "part.sync"]);
}

#[test]
fn disk_error_that_passes_while_the_output_is_closed_costs_nothing() {
    passes(&["output.write", "output.sync", "output.rename", "output.sync-parent"]);
}

/// Runs a job that succeeds although each of these places fails once.
fn passes(places: &[&str]) {
    for place in places {
        let sandbox = Sandbox::new();
        let input = sandbox.write("text", "b a\na\n");
        let out = sandbox.text("out");
        sandbox.arm(place);
        sandbox.run_well(["run", "wordcount", &input, "--workers", "2", "--reduces", "1", "--output", &out]);
        assert!(!sandbox.path(&format!("faults/{place}")).exists(), "{place} was not reached");
        check_counts(&sandbox.path("out"));
    }
}

#[test]
fn disk_error_that_lasts_ends_the_job_and_leaves_no_output() {
    for place in ["part.write", "output.rename", "output.sync-parent"] {
        let sandbox = Sandbox::new();
        let input = sandbox.write("text", "b a\na\n");
        let out = sandbox.text("out");
        (1..=3).for_each(|number| sandbox.arm(&format!("{place}.{number}")));
        let arguments = ["run", "wordcount", &input, "--workers", "2", "--reduces", "1", "--output", &out];
        sandbox.run(arguments).expect_code(7).expect_words(&["could not", "Input/output error"]);
        assert!(!sandbox.path("out").exists());
    }
}

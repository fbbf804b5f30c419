//! A master that ends and is started anew in the same state folder: what is known of jobs, and who comes back.
//!
//! Deliberately not here: workers that end (`crash`), clients that do (`cluster`).

use crate::support::standing::Standing;
use crate::support::{Finished, Sandbox};
use rustix::process::Signal;

/// Submits a job that comes back at once; gives its name.
fn submit_detached(sandbox: &Sandbox, input: &str, output: &str) -> String {
    let output = sandbox.text(output);
    let arguments = ["submit", "wordcount", input, "--detach", "--reduces", "1", "--output", &output];
    sandbox.gristmill(arguments).finish().expect_code(0).stdout_text().trim().to_owned()
}

fn wait(sandbox: &Sandbox, job: &str) -> Finished {
    sandbox.gristmill(["wait", job, "--quiet"]).finish()
}

#[test]
fn job_that_a_killed_master_had_is_told_as_lost_and_its_number_is_not_given_again() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    let done = submit_detached(&sandbox, &input, "done");
    wait(&sandbox, &done).expect_code(0);
    sandbox.arm("map");
    let stuck = submit_detached(&sandbox, &input, "stuck");
    sandbox.stopped_at("map");
    standing.master.signal(Signal::KILL);
    let Standing { master, workers, .. } = standing;
    master.finish();
    for worker in workers {
        worker.signal(Signal::TERM);
        worker.finish();
    }
    sandbox.go_on("map");
    let standing = Standing::start(&sandbox, 1);
    let next = submit_detached(&sandbox, &input, "next");
    assert!(next != done && next != stuck, "{next} has been given before");
    wait(&sandbox, &next).expect_code(0);
    wait(&sandbox, &done).expect_code(0);
    wait(&sandbox, &stuck).expect_code(5).expect_words(&[&stuck, "the master that ran it ended before"]);
    let jobs = sandbox.gristmill(["jobs"]).finish().expect_code(0).stdout_text();
    assert!([&done, &stuck, &next].iter().all(|job| jobs.contains(job.as_str())), "{jobs}");
    sandbox.gristmill(["logs", &done]).finish().expect_code(3).expect_words(&["an earlier master"]);
    sandbox
        .gristmill(["wait", "job-999999"])
        .finish()
        .expect_code(2)
        .expect_words(&["there is no job-999999"]);
    standing.end();
}

#[test]
fn job_numbers_go_on_without_a_gap_when_the_master_has_ended_in_order() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b a\na\n");
    for (job, output) in [("job-1", "one"), ("job-2", "two")] {
        let standing = Standing::start(&sandbox, 1);
        assert_eq!(submit_detached(&sandbox, &input, output), job);
        wait(&sandbox, job).expect_code(0);
        standing.end();
    }
}

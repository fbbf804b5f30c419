//! A master that ends and is started again in the same state directory: which jobs it knows, and which
//! processes reconnect.

use crate::support::standing::{Standing, await_join_line};
use crate::support::{Finished, Sandbox, until};
use rustix::process::Signal;
use std::net::TcpListener;
use std::time::{Duration, SystemTime};

/// Submits a job that returns at once; returns its name.
fn submit_detached(sandbox: &Sandbox, input: &str, output: &str) -> String {
    let output = sandbox.text(output);
    let arguments = ["submit", "wordcount", input, "--detach", "--reduces", "1", "--output", &output];
    sandbox.gristmill(arguments).finish().expect_code(0).stdout_text().trim().to_owned()
}

fn wait(sandbox: &Sandbox, job: &str) -> Finished {
    sandbox.gristmill(["wait", job, "--quiet"]).finish()
}

#[test]
fn job_is_told_as_lost_and_its_number_not_given_again_when_what_its_killed_master_wrote_is_gone() {
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
    std::fs::remove_file(sandbox.path("state/recovery")).unwrap();
    let standing = Standing::start(&sandbox, 1);
    let next = submit_detached(&sandbox, &input, "next");
    assert!(next != done && next != stuck, "{next} has been given before");
    wait(&sandbox, &next).expect_code(0);
    wait(&sandbox, &done).expect_code(0);
    wait(&sandbox, &stuck).expect_code(5).expect_words(&[&stuck, "the master that ran it ended before"]);
    let jobs = sandbox.gristmill(["jobs"]).finish().expect_code(0).stdout_text();
    assert!([&done, &stuck, &next].iter().all(|job| jobs.contains(job.as_str())), "{jobs}");
    // It printed nothing, and that is recorded.
    assert_eq!(sandbox.gristmill(["logs", &done]).finish().expect_code(0).stdout_text(), "");
    sandbox.gristmill(["logs", &stuck]).finish().expect_code(3).expect_words(&["an earlier master"]);
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

#[test]
fn workers_come_back_with_their_numbers_when_a_killed_master_is_started_anew() {
    let sandbox = Sandbox::new();
    let Standing { master, workers, join, .. } = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    // A worker that has just joined may still end when it loses its master, and is replaced.
    sandbox.gristmill(["submit", "wordcount", &input]).finish().expect_code(0);
    master.signal(Signal::KILL);
    master.finish();
    let master = sandbox.gristmill(["master"]).start();
    let again = await_join_line(&master);
    assert_eq!(again.text, join.text);
    let standing = Standing::new(&sandbox, master, workers, again);
    standing.await_workers(1);
    let status = sandbox.gristmill(["status"]).finish().expect_code(0).stdout_text();
    assert!(status.contains("worker-1 ") && !status.contains("worker-101"), "{status}");
    let printed = sandbox.gristmill(["submit", "wordcount", &input]).finish().expect_code(0);
    assert_eq!(printed.stdout_text(), "a\t2\nb\t1\n");
    standing.end();
}

#[test]
fn time_without_a_master_counts_and_what_ended_jobs_printed_is_told_by_the_next() {
    const AWAY: Duration = Duration::from_secs(1000);
    let sandbox = Sandbox::new();
    let faulty = crate::user_code::faulty_program();
    let command = |arguments: &[&str]| sandbox.program(&faulty, arguments).finish();
    let master = sandbox.program(&faulty, ["master"]).start();
    await_join_line(&master);
    let worker = sandbox.program(&faulty, ["worker", "--workers", "1"]).start();
    let input = sandbox.write("text", "bad\n");
    command(&["submit", "faulty", "--how", "print", &input]).expect_code(0);
    let logs = command(&["logs", "job-1"]).expect_code(0).stdout_text();
    assert!(logs.contains("line 000000 of a mapper"), "{}", logs.len());
    sandbox.arm("map");
    let out = sandbox.text("out");
    let stuck =
        ["submit", "wordcount", &input, "--detach", "--reduces", "1", "--deadline", "900s", "--output", &out];
    let stuck = command(&stuck).expect_code(0).stdout_text().trim().to_owned();
    sandbox.stopped_at("map");
    master.signal(Signal::KILL);
    master.finish();
    // As if that had been some time ago.
    let journal = std::fs::File::options().append(true).open(sandbox.path("state/recovery")).unwrap();
    journal.set_modified(SystemTime::now() - AWAY).unwrap();
    let master = sandbox.program(&faulty, ["master"]).start();
    await_join_line(&master);
    sandbox.go_on("map");
    command(&["wait", &stuck, "--quiet"]).expect_code(0);
    let status = command(&["status", &stuck, "--json"]).expect_code(0).json();
    let at = |name: &str| status[name].as_u64().unwrap();
    assert!(AWAY.as_nanos() <= u128::from(at("ended_ns") - at("arrived_ns")), "{status}");
    assert!(at("deadline_ns") < at("ended_ns"), "{status}");
    assert_eq!(command(&["logs", "job-1"]).expect_code(0).stdout_text(), logs);
    for process in [worker, master] {
        process.signal(Signal::TERM);
        process.finish();
    }
}

#[test]
fn second_master_in_a_state_directory_is_refused_naming_the_first() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let holder = format!("process {}", standing.master.pid());
    let address = standing.join.address.to_string();
    for flags in [&["master"][..], &["master", "--listen", "127.0.0.1:0"]] {
        let refused = sandbox.gristmill(flags).finish();
        refused.expect_code(3).expect_words(&[&holder, &address, &sandbox.text("state")]);
    }
    let line = std::fs::read_to_string(sandbox.path("state/join")).unwrap();
    assert_eq!(line, standing.join.text, "the first master's address");
    standing.end();
}

#[test]
fn master_whose_port_is_taken_says_so_and_what_to_do() {
    let sandbox = Sandbox::new();
    let master = sandbox.gristmill(["master"]).start();
    let address = await_join_line(&master).address;
    master.signal(Signal::TERM);
    master.finish().expect_code(0);
    let taken = TcpListener::bind(address).unwrap();
    let words = [&*address.to_string(), "another process listens", "--listen", "state/port"];
    sandbox.gristmill(["master"]).finish().expect_code(3).expect_words(&words);
    let named = address.to_string();
    let arguments = ["master", "--listen", &named];
    sandbox.gristmill(arguments).finish().expect_code(3).expect_words(&[&named, "another process listens"]);
    drop(taken);
    let master = sandbox.gristmill(["master"]).start();
    assert_eq!(await_join_line(&master).address, address);
    master.signal(Signal::TERM);
    master.finish().expect_code(0);
}

#[test]
fn job_that_is_too_old_to_be_remembered_has_the_code_of_a_cluster_and_a_sentence() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    // Its end skips numbers that were reserved, and may have been given out.
    standing.master.signal(Signal::KILL);
    let Standing { master, .. } = standing;
    master.finish();
    let standing = Standing::start(&sandbox, 0);
    let waited = sandbox.gristmill(["wait", "job-7"]).finish().expect_code(5);
    waited.expect_words(&["job-7 is too old to know how it ended", "the last 1000 jobs", "_SUCCESS"]);
    standing.end();
}

#[test]
fn state_directory_that_is_removed_under_a_master_is_noticed_and_no_job_is_taken() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    let join = sandbox.write_private("join-line", &standing.join.text);
    std::fs::remove_dir_all(sandbox.path("state")).unwrap();
    until("a word on it", || {
        standing.master.stderr().contains("state/recovery was removed or replaced").then_some(())
    });
    let refused = sandbox.gristmill(["submit", "wordcount", &input, "--join", &join]).finish();
    refused.expect_code(3).expect_words(&["takes no jobs for now", "was removed or replaced"]);
    let status = sandbox.gristmill(["status", "--join", &join]).finish().expect_code(0);
    assert!(status.stdout_text().contains("was removed or replaced"), "{}", status.stdout_text());
    for process in standing.workers.into_iter().chain([standing.master]) {
        process.signal(Signal::TERM);
        process.finish();
    }
}

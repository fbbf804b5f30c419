//! Processes that are killed at critical points: the output is the same to the byte, and nothing is left
//! behind.
//!
//! A worker stops at a fault place, so that it is killed exactly there.

use crate::support::sandbox::{ORPHAN_TIMEOUT, Running};
use crate::support::standing::Standing;
use crate::support::{Finished, Sandbox, data::Random, oracle, process, until, until_within};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

/// Arguments of a job with 12 maps and 3 reduces on 3 workers that writes to `out`.
fn arguments<'a>(input: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut arguments =
        vec!["run", "sort", input, "--workers", "3", "--reduces", "3", "--split-size", "5KiB"];
    arguments.extend(["--output", out]);
    arguments
}

/// A sandbox with an input and the parts of an undisturbed run over it.
fn undisturbed(seed: u64) -> (Sandbox, String, Vec<Vec<u8>>) {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(seed).text(60_000, &[" ", "\n"]));
    sandbox.run_well(arguments(&input, &sandbox.text("undisturbed")));
    let parts = oracle::parts(&sandbox.path("undisturbed"));
    (sandbox, input, parts)
}

/// Checks that the job succeeded and its output is the undisturbed one.
fn expect_same_output(sandbox: &Sandbox, finished: Finished, expected: &[Vec<u8>]) -> Finished {
    let finished = finished.expect_code(0);
    sandbox.assert_nothing_left();
    assert!(oracle::parts(&sandbox.path("out")) == expected, "the output differs");
    assert_eq!(oracle::names(&sandbox.path("out")), ["_SUCCESS", "part-00000", "part-00001", "part-00002"]);
    let records: u64 = expected.iter().map(|part| oracle::lines(part).len() as u64).sum();
    assert_eq!(oracle::success(&sandbox.path("out"))["records"], records, "records are counted once");
    finished
}

fn survives_a_kill_at(place: &str, seed: u64) {
    let (sandbox, input, expected) = undisturbed(seed);
    sandbox.arm(place);
    let out = sandbox.text("out");
    let running = sandbox.gristmill(arguments(&input, &out)).start();
    let pid = sandbox.kill_at(place);
    let finished = expect_same_output(&sandbox, running.finish(), &expected);
    finished.expect_words(&[&format!("(process {pid} on "), "SIGKILL", "lost with a worker", "succeeded"]);
}

#[test]
fn worker_killed_in_a_map_changes_nothing() {
    survives_a_kill_at("map", 51);
}

#[test]
fn worker_killed_in_the_shuffle_changes_nothing() {
    let (sandbox, input, expected) = undisturbed(52);
    sandbox.arm("fetch");
    let out = sandbox.text("out");
    let running = sandbox.gristmill(arguments(&input, &out)).start();
    let pid = sandbox.kill_at("fetch");
    let finished = expect_same_output(&sandbox, running.finish(), &expected);
    // A worker that only fetched ran no attempt; the data that it held is made again.
    finished.expect_words(&[&format!("(process {pid} on "), "SIGKILL", "succeeded"]);
}

#[test]
fn worker_killed_in_a_reduce_changes_nothing() {
    survives_a_kill_at("reduce", 53);
}

#[test]
fn worker_killed_before_it_publishes_a_part_changes_nothing() {
    survives_a_kill_at("commit.before", 54);
}

#[test]
fn worker_killed_between_publishing_and_telling_changes_nothing() {
    survives_a_kill_at("commit.after", 55);
}

#[test]
fn worker_killed_while_it_publishes_a_part_without_reduce_changes_nothing() {
    for place in ["commit.before", "commit.after"] {
        let sandbox = Sandbox::new();
        let text = Random::seeded(56).text(60_000, &[" ", "\n"]);
        let input = sandbox.write("text", &text);
        sandbox.arm(place);
        let running = sandbox.gristmill(["run", "grep", "", &input, "--split-size", "9KiB"]).start();
        sandbox.kill_at(place);
        let finished = running.finish().expect_code(0);
        sandbox.assert_nothing_left();
        let expected: Vec<u8> =
            oracle::lines(&text).iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
        assert!(finished.stdout == expected, "{place}");
    }
}

#[test]
fn all_workers_killed_one_after_the_other_change_nothing() {
    let (sandbox, input, expected) = undisturbed(57);
    sandbox.arm("map");
    let out = sandbox.text("out");
    let running = sandbox.gristmill([&arguments(&input, &out)[..], &["--json"]].concat()).start();
    let held = sandbox.stopped_at("map");
    let first = until("three workers", || Some(sandbox.pids_of("worker")).filter(|pids| pids.len() == 3));
    for pid in first.iter().filter(|pid| **pid != held) {
        process::kill(*pid);
        until("a new worker in the place of the old", || {
            let pids = sandbox.pids_of("worker");
            (pids.len() == 3 && !pids.contains(pid)).then_some(())
        });
    }
    process::kill(held);
    sandbox.go_on("map");
    let finished = expect_same_output(&sandbox, running.finish(), &expected);
    let incidents = finished.json()["status"]["incidents"].to_string();
    for pid in first {
        assert!(incidents.contains(&format!("(process {pid} on ")), "{pid}: {incidents}");
    }
}

#[test]
fn worker_is_replaced_though_the_file_of_the_program_is_gone() {
    let (sandbox, input, expected) = undisturbed(60);
    let program = sandbox.copy_of_program("copy");
    sandbox.arm("map");
    let running = sandbox.program(&program, arguments(&input, &sandbox.text("out"))).start();
    sandbox.stopped_at("map");
    std::fs::remove_file(&program).unwrap();
    for pid in sandbox.pids_of("worker") {
        process::kill(pid);
    }
    sandbox.go_on("map");
    expect_same_output(&sandbox, running.finish(), &expected);
}

#[test]
fn attempts_that_were_lost_are_visible_in_the_trace() {
    let (sandbox, input, expected) = undisturbed(58);
    sandbox.arm("map");
    let (out, trace) = (sandbox.text("out"), sandbox.path("trace.json"));
    let mut arguments = arguments(&input, &out);
    arguments.extend(["--trace", trace.to_str().unwrap()]);
    let running = sandbox.gristmill(arguments).start();
    sandbox.kill_at("map");
    expect_same_output(&sandbox, running.finish(), &expected);
    let trace: Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let lost: Vec<&Value> = events.iter().filter(|event| event["args"]["state"] == "lost").collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!((&lost[0]["cat"], &lost[0]["ph"]), (&Value::from("map"), &Value::from("X")));
    let (task, _) = lost[0]["args"]["attempt"].as_str().unwrap().rsplit_once('.').unwrap();
    let again = events.iter().filter(|event| {
        let attempt = event["args"]["attempt"].as_str().unwrap_or_default();
        attempt.rsplit_once('.').is_some_and(|(of, _)| of == task) && event["args"]["state"] == "succeeded"
    });
    assert_eq!(again.count(), 1, "{task} was run again once");
}

/// Starts a job and stops it in its first map, so that it cannot end.
fn held_in_a_map(sandbox: &Sandbox, output: Option<&str>) -> Running {
    let input = sandbox.write("text", Random::seeded(59).text(60_000, &[" ", "\n"]));
    sandbox.arm("map");
    let arguments = ["run", "sort", &input, "--workers", "3", "--split-size", "5KiB"];
    let output = output.into_iter().flat_map(|out| ["--output", out]);
    let running = sandbox.gristmill(arguments.into_iter().chain(output)).start();
    sandbox.stopped_at("map");
    running
}

/// Waits until the output directory of a job that was ended is removed.
fn await_gone(path: &Path) {
    until_within(&format!("{} to be removed", path.display()), ORPHAN_TIMEOUT, || {
        (!path.exists()).then_some(())
    });
}

#[test]
fn children_end_and_clean_up_when_run_is_killed() {
    let sandbox = Sandbox::new();
    let out = sandbox.text("out");
    let running = held_in_a_map(&sandbox, Some(&out));
    assert!(sandbox.path("out/_temporary").exists());
    running.signal(Signal::KILL);
    running.finish();
    sandbox.await_nothing_left(ORPHAN_TIMEOUT);
    await_gone(&sandbox.path("out"));
}

#[test]
fn printed_output_is_removed_too_when_run_is_killed() {
    let sandbox = Sandbox::new();
    let running = held_in_a_map(&sandbox, None);
    running.signal(Signal::KILL);
    running.finish();
    sandbox.await_nothing_left(ORPHAN_TIMEOUT);
}

#[test]
fn interruption_cancels_the_job_and_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = Sandbox::new();
        let out = sandbox.text("out");
        let running = held_in_a_map(&sandbox, Some(&out));
        running.signal(signal);
        running.finish().expect_code(130).expect_words(&["interrupted", "job-1 was cancelled"]);
        sandbox.assert_nothing_left();
        assert!(!sandbox.path("out").exists(), "{signal:?} left the output directory");
    }
}

#[test]
fn second_interruption_ends_run_at_once_and_its_children_follow() {
    let sandbox = Sandbox::new();
    let out = sandbox.text("out");
    let running = held_in_a_map(&sandbox, Some(&out));
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    assert_eq!(running.finish().status.code(), Some(130));
    sandbox.await_nothing_left(ORPHAN_TIMEOUT);
    await_gone(&sandbox.path("out"));
}

#[test]
fn output_of_a_cancelled_job_goes_though_its_run_is_killed_as_it_is_about_to_remove_it() {
    let sandbox = Sandbox::new();
    let running = held_in_a_map(&sandbox, Some(&sandbox.text("out")));
    sandbox.arm("output.abandon");
    running.signal(Signal::INT);
    let run = sandbox.stopped_at("output.abandon");
    assert!(process::command_line(run).contains(" run sort "), "{}", process::command_line(run));
    assert!(sandbox.path("out").exists(), "it is there until somebody removes it");
    process::kill(run);
    running.finish();
    sandbox.await_nothing_left(ORPHAN_TIMEOUT);
    await_gone(&sandbox.path("out"));
}

#[test]
fn run_ends_with_the_code_of_a_lost_cluster_when_its_master_is_killed() {
    let sandbox = Sandbox::new();
    let out = sandbox.text("out");
    let running = held_in_a_map(&sandbox, Some(&out));
    let masters = sandbox.pids_of("master");
    assert_eq!(masters.len(), 1);
    process::kill(masters[0]);
    running.finish().expect_code(5).expect_words(&["error: ", "master"]);
    sandbox.assert_nothing_left();
    assert!(!sandbox.path("out").exists());
}

/// Kills all processes in the sandbox at the same moment, like the end of a container or a power failure:
/// none can clean up.
fn kill_all_at_once(sandbox: &Sandbox) {
    let all = sandbox.processes();
    all.iter().for_each(|found| process::signal(found.pid, Signal::STOP));
    // A busy thread keeps running until the thread that receives the signal has had a core.
    until("all to stand", || all.iter().all(|found| process::is_stopped(found.pid)).then_some(()));
    all.iter().for_each(|found| process::signal(found.pid, Signal::KILL));
    until("all to be dead", || sandbox.processes().is_empty().then_some(()));
}

#[test]
fn spill_directories_of_processes_that_all_died_at_once_are_removed_by_the_next_start() {
    let sandbox = Sandbox::new();
    let running = held_in_a_map(&sandbox, None);
    kill_all_at_once(&sandbox);
    running.finish();
    let left = oracle::names(&sandbox.path("tmp"));
    assert_eq!(left.len(), 1, "nobody was there to clean up: {left:?}");
    let input = sandbox.write("small", "b\na\n");
    // This job may leave nothing, neither of its own nor of the killed one.
    sandbox.run_well(["run", "sort", &input, "--output", &sandbox.text("sorted")]);
    std::fs::remove_file(sandbox.path("faults/map.hit")).unwrap();
}

#[test]
fn spill_directories_of_the_living_are_left_to_them_by_the_next_start() {
    let sandbox = Sandbox::new();
    let out = sandbox.text("out");
    let running = held_in_a_map(&sandbox, Some(&out));
    let held = oracle::names(&sandbox.path("tmp"));
    let input = sandbox.write("small", "b\na\n");
    sandbox.gristmill(["run", "sort", &input, "--output", &sandbox.text("sorted")]).finish().expect_code(0);
    assert_eq!(oracle::names(&sandbox.path("tmp")), held, "a stranger's directory is gone");
    sandbox.go_on("map");
    running.finish().expect_code(0);
    sandbox.assert_nothing_left();
}

#[test]
fn printed_output_of_a_submit_that_was_killed_is_removed_by_the_next_one() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b\na\n");
    let before = oracle::names(&sandbox.path("tmp"));
    sandbox.arm("map");
    let client = sandbox.gristmill(["submit", "sort", &input]).start();
    sandbox.stopped_at("map");
    client.signal(Signal::KILL);
    client.finish();
    sandbox.go_on("map");
    assert_eq!(oracle::names(&sandbox.path("tmp")).len(), before.len() + 1, "it left nothing to remove");
    let printed = sandbox.gristmill(["submit", "sort", &input]).finish().expect_code(0);
    assert_eq!(printed.stdout_text(), "a\nb\n");
    assert_eq!(oracle::names(&sandbox.path("tmp")), before);
    standing.end();
}

#[test]
fn spill_directories_of_workers_that_all_died_are_removed_by_a_worker_of_another_master() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    // A worker creates its directory after the master's welcome.
    until("its directory", || (oracle::names(&sandbox.path("tmp")).len() == 1).then_some(()));
    kill_all_at_once(&sandbox);
    standing.master.finish();
    standing.workers.into_iter().for_each(|worker| drop(worker.finish()));
    let left = oracle::names(&sandbox.path("tmp"));
    assert_eq!(left.len(), 1, "nobody was there to clean up: {left:?}");
    std::fs::remove_file(sandbox.path("state/join")).unwrap();
    let standing = Standing::start(&sandbox, 1);
    assert!(!sandbox.path(&format!("tmp/{}", left[0])).exists(), "{} is still there", left[0]);
    standing.end();
}

#[test]
fn worker_processes_remove_their_directories_when_whoever_started_them_is_killed() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let workers = sandbox.gristmill(["worker", "--workers", "3", "--slots", "1"]).start();
    standing.await_workers(3);
    workers.signal(Signal::KILL);
    workers.finish();
    // The worker that removes the last directory leaves the others to notice, and to end.
    until_within("the workers to end and their directories to be removed", ORPHAN_TIMEOUT, || {
        let gone = oracle::names(&sandbox.path("tmp")).is_empty() && sandbox.pids_of("worker").is_empty();
        gone.then_some(())
    });
    standing.end();
}

#[test]
fn file_on_a_worker_that_is_killed_is_read_by_the_one_that_takes_its_place() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let file = sandbox.write("file", "b\na\n");
    sandbox.arm("map");
    let (named, out) = (format!("worker-1:{file}"), sandbox.text("out"));
    let submit = ["submit", "sort", &named, "--reduces", "1", "--output", &out];
    let running = sandbox.gristmill(submit).start();
    sandbox.kill_at("map");
    running.finish().expect_code(0).expect_words(&["lost with a worker", "succeeded"]);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"a\nb\n");
    standing.end();
}

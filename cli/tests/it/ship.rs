//! Jobs that bring their own programs: refused, shipped, correct; many at once; damaged, killed, too many of
//! them.
//!
//! The programs are copies of the example `exercise`, each with a number at its end that shows in its result.

use crate::support::sandbox::Running;
use crate::support::standing::{Standing, await_join_line, start_worker};
use crate::support::{Sandbox, oracle, process, until};
use crate::user_code::{example_program, faulty_program};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TEXT: &str = "one two three two\nthree three one\nfour four four four\n";

/// The example without debug information, since there are many copies of it.
fn small_program(sandbox: &Sandbox, program: &Path) -> PathBuf {
    let small = sandbox.path("small");
    let stripped = Command::new("strip").arg("-o").arg(&small).arg(program).status();
    if !stripped.is_ok_and(|status| status.success()) {
        copy(program, &small);
    }
    small
}

/// Another process writes it, so that no process of another test holds it open for writing when it is
/// executed.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// Returns a program with this number.
fn program_with_answer(sandbox: &Sandbox, answer: u32) -> PathBuf {
    let small = sandbox.path("small");
    if !small.exists() {
        small_program(sandbox, &example_program("exercise"));
    }
    let path = sandbox.path(&format!("exercise-{answer}"));
    let number = sandbox.write(&format!("number-{answer}"), format!("answer {answer:09}"));
    let script =
        format!("cat {} {number} > {path}; chmod 700 {path}", small.display(), path = path.display());
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    path
}

/// Returns the expected output of the job, sorted.
fn expected(answer: u32) -> Vec<String> {
    let counts = oracle::word_counts(TEXT.as_bytes()).into_iter();
    counts
        .map(|(word, count)| {
            let sum = count * u64::from(answer);
            format!("{}\t{sum} by {answer}", String::from_utf8(word).unwrap())
        })
        .collect()
}

fn sorted(text: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(text).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Submits the job of a program with several maps and reduces.
fn submit(sandbox: &Sandbox, program: &Path, more: &[&str]) -> Running {
    let input = sandbox.text("text");
    // Others may be reading it.
    if !sandbox.path("text").exists() {
        sandbox.write("text", TEXT);
    }
    let shape =
        ["submit", "exercise", &input, "--split-size", "20", "--reduces", "3", "--no-sync", "--quiet"];
    sandbox.program(program, [&shape, more].concat()).start()
}

fn programs(standing: &Standing<'_>) -> BTreeSet<String> {
    let (code, answer) = standing.ask("GET", "programs", "");
    assert_eq!(code, 200, "{answer}");
    let listed: Value = serde_json::from_str(&answer).unwrap();
    listed.as_array().unwrap().iter().map(|one| one["sum"].as_str().unwrap().to_owned()).collect()
}

fn runners(sandbox: &Sandbox) -> usize {
    sandbox.processes().iter().filter(|found| found.command.ends_with(" worker --runner")).count()
}

#[test]
fn changed_program_is_refused_then_shipped_then_right() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 2, &["--allow-ship"]);
    let cluster = sandbox.gristmill(["status", "--json"]).finish().json()["build"].clone();
    let changed = program_with_answer(&sandbox, 7);
    let refused = submit(&sandbox, &changed, &[]).finish().expect_code(3);
    refused.expect_words(&["is not the cluster's", cluster.as_str().unwrap(), "--ship"]);
    let shipped = submit(&sandbox, &changed, &["--ship"]).finish().expect_code(0);
    assert_eq!(sorted(&shipped.stdout), expected(7));
    let out = sandbox.text("out");
    let detached = submit(&sandbox, &changed, &["--ship", "--detach", "--output", &out]).finish();
    let job = detached.expect_code(0).stdout_text();
    sandbox.gristmill(["wait", job.trim()]).finish().expect_code(0);
    assert_eq!(sorted(&oracle::whole(Path::new(&out))), expected(7));
    let lines = submit(&sandbox, &changed, &["--ship", "--map-only"]).finish().expect_code(0);
    let wanted: Vec<String> = TEXT.lines().map(|line| format!("7\t{line}")).collect();
    assert_eq!(sorted(&lines.stdout), sorted(wanted.join("\n").as_bytes()));
    assert_eq!(programs(&standing).len(), 1, "it is sent once");
    until("the end of all runners", || (runners(&sandbox) == 0).then_some(()));
    // The cluster's own jobs still work.
    let input = sandbox.text("text");
    let own = sandbox.gristmill(["submit", "wordcount", &input, "--quiet"]).finish().expect_code(0);
    assert_eq!(sorted(&own.stdout), ["four\t4", "one\t2", "three\t3", "two\t2"]);
    standing.end();
}

#[test]
fn shipped_job_has_compressed_parts_and_an_output_beside_the_main_one() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 2, &["--allow-ship"]);
    let (input, out) = (sandbox.write("text", "odd one\ntwo\nodd three\n"), sandbox.text("out"));
    let job =
        ["submit", "--ship", "faulty", &input, "--how", "error", "--aside", "--reduces", "1", "--quiet"];
    let flags = ["--compress-output", "gzip", "--output", &out];
    sandbox.program(&faulty_program(), [&job[..], &flags].concat()).finish().expect_code(0);
    for (input, expected) in [(out.clone(), "two\n"), (format!("{out}/odd"), "odd one\nodd three\n")] {
        assert_eq!(oracle::part_names(Path::new(&input)), ["part-00000.gz"]);
        let read = sandbox.gristmill(["submit", "grep", "", &input, "--quiet"]).finish().expect_code(0);
        assert_eq!(read.stdout_text(), expected);
    }
    standing.end();
}

#[test]
fn master_takes_programs_only_if_it_was_told_to() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let program = program_with_answer(&sandbox, 2);
    let refused = submit(&sandbox, &program, &["--ship"]).finish().expect_code(3);
    refused.expect_words(&["--allow-ship"]);
    assert_eq!(standing.ask("GET", "programs", "").0, 403);
    assert!(!sandbox.path("state/programs").exists());
    standing.end();
}

/// Three times as many programs as slots.
#[test]
fn dozen_programs_at_once_each_get_their_own_answer() {
    run_programs_at_once(12);
}

/// Each takes 0.4 GB of disk in a debug build, since the sandbox, the master and both workers keep their own.
#[test]
#[ignore = "12 GB of disk"]
fn thirty_programs_at_once_each_get_their_own_answer() {
    run_programs_at_once(30);
}

fn run_programs_at_once(count: u32) {
    let sandbox = Sandbox::new();
    let master = sandbox.gristmill(["master", "--allow-ship"]).start();
    let join = await_join_line(&master);
    let workers = (0..2).map(|_| sandbox.gristmill(["worker", "--workers", "1", "--slots", "2"]).start());
    let standing = Standing::of(&sandbox, master, workers.collect(), join);
    standing.await_workers(2);
    let programs: Vec<PathBuf> = (1..=count).map(|answer| program_with_answer(&sandbox, answer)).collect();
    let submitted: Vec<Running> =
        programs.iter().map(|program| submit(&sandbox, program, &["--ship"])).collect();
    let mut most = 0;
    until("the end of all jobs", || {
        most = most.max(runners(&sandbox));
        submitted.iter().all(Running::has_ended).then_some(())
    });
    for (running, answer) in submitted.into_iter().zip(1..) {
        let finished = running.finish().expect_code(0);
        assert_eq!(sorted(&finished.stdout), expected(answer), "of program {answer}");
    }
    // Two slots of each worker, and the same number of idle processes.
    assert!((1..=8).contains(&most), "{most} processes of shipped programs at once");
    until("the end of all runners", || (runners(&sandbox) == 0).then_some(()));
    standing.end();
}

#[test]
fn program_used_longest_ago_goes_when_there_are_too_many() {
    let sandbox = Sandbox::new();
    let flags = ["--allow-ship", "--shipped-programs", "2"];
    let standing = Standing::start_with(&sandbox, 1, &flags);
    let [first, second, third] = [1, 2, 3].map(|answer| program_with_answer(&sandbox, answer));
    let run = |program: &Path, answer| {
        let finished = submit(&sandbox, program, &["--ship"]).finish().expect_code(0);
        assert_eq!(sorted(&finished.stdout), expected(answer));
        programs(&standing)
    };
    let one = run(&first, 1);
    let two = run(&second, 2);
    assert_eq!((one.len(), two.len()), (1, 2));
    // After another use it is no longer the oldest.
    assert_eq!(run(&first, 1), two);
    let three = run(&third, 3);
    assert!(three.len() == 2 && three.is_superset(&one), "{three:?}");
    run(&second, 2);
    standing.end();
}

#[test]
fn program_that_finds_no_room_is_refused_and_says_so() {
    let sandbox = Sandbox::new();
    let flags = ["--allow-ship", "--shipped-bytes", "1MiB"];
    let standing = Standing::start_with(&sandbox, 1, &flags);
    let program = program_with_answer(&sandbox, 2);
    let refused = submit(&sandbox, &program, &["--ship"]).finish().expect_code(7);
    refused.expect_words(&["no room", "--shipped-bytes"]);
    assert!(programs(&standing).is_empty());
    standing.end();
}

#[test]
fn program_that_is_not_what_it_was_said_to_be_is_refused_by_the_master_and_run_by_no_worker() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 1, &["--allow-ship"]);
    let (code, answer) = standing.ask("PUT", &format!("programs/{}/4", "0".repeat(64)), "ELF!");
    assert_eq!(code, 400, "{answer}");
    assert!(answer.contains("checksum") && programs(&standing).is_empty(), "{answer}");
    for route in ["programs/../../secret/4", "programs/ab/4", &format!("programs/{}/x", "0".repeat(64))] {
        assert!([400, 404].contains(&standing.ask("PUT", route, "ELF!").0), "{route}");
    }
    let program = program_with_answer(&sandbox, 2);
    submit(&sandbox, &program, &["--ship"]).finish().expect_code(0);
    let sum = programs(&standing).pop_first().unwrap();
    let kept = sandbox.path("state/programs").join(&sum);
    let mut bytes = fs::read(&kept).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&kept, bytes).unwrap();
    // A worker that has not fetched it before.
    let mut standing = standing;
    standing.workers.pop().unwrap().kill();
    standing.workers.push(start_worker(&sandbox));
    let refused = submit(&sandbox, &program, &["--ship"]).finish().expect_code(7);
    refused.expect_words(&["has checksum", "it is not run"]);
    standing.end();
}

#[test]
fn killed_process_of_a_shipped_program_costs_its_attempt_and_nothing_else() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 1, &["--allow-ship"]);
    let workers = standing.worker_pids();
    let program = program_with_answer(&sandbox, 3);
    sandbox.write("faults/runner", "");
    let running = submit(&sandbox, &program, &["--ship"]);
    let hit = sandbox.path("faults/runner.hit");
    let pid: u32 = until("a runner at its place", || fs::read_to_string(&hit).ok()?.parse().ok());
    assert!(process::command_line(pid).ends_with("worker --runner"), "{}", process::command_line(pid));
    process::kill(pid);
    fs::remove_file(&hit).unwrap();
    assert_eq!(sorted(&running.finish().expect_code(0).stdout), expected(3));
    assert_eq!(standing.worker_pids(), workers, "the worker's own process is another");
    let trace = standing.ask("GET", "jobs/job-1/trace", "").1;
    assert!(trace.contains("\"lost\"") && trace.contains("by somebody or for lack of memory"), "{trace}");
    standing.end();
}

#[test]
fn user_code_that_aborts_or_hangs_in_a_shipped_program_costs_its_process_alone() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 1, &["--allow-ship"]);
    let workers = standing.worker_pids();
    let program = small_program(&sandbox, &faulty_program());
    let input = sandbox.write("text", "good\nbad\n");
    for (how, more) in
        [("abort", &[] as &[&str]), ("exit", &[]), ("panic", &[]), ("loop", &["--hang-after", "1"])]
    {
        let token = sandbox.write("token", "");
        let words = ["submit", "--ship", "faulty", "--how", how, "--token", &token, &input];
        let done = sandbox.program(&program, [&words, more].concat()).finish().expect_code(0);
        assert_eq!(sorted(&done.stdout), ["bad", "good"], "{how}");
        assert!(!sandbox.path("token").exists(), "it did not {how}");
        assert!(done.stderr.contains("1 failed in user code"), "{how}:\n{}", done.stderr);
    }
    // Its output is captured like that of the cluster's own code.
    let words = ["submit", "--ship", "faulty", "--how", "print", &input];
    sandbox.program(&program, words).finish().expect_code(0);
    let logs = sandbox.gristmill(["logs", "job-5"]).finish().expect_code(0).stdout_text();
    assert!(logs.contains("line 000000 of a mapper"), "{}", logs.chars().take(200).collect::<String>());
    assert_eq!(standing.worker_pids(), workers, "the worker's own process is another");
    standing.end();
}

#[test]
fn process_of_a_shipped_program_that_takes_more_than_its_budget_is_ended_and_its_attempt_charged() {
    let sandbox = Sandbox::new();
    let mut standing = Standing::start_with(&sandbox, 0, &["--allow-ship"]);
    let worker = ["worker", "--workers", "1", "--slots", "1", "--memory", "64MiB"];
    standing.workers.push(sandbox.gristmill(worker).start());
    standing.await_workers(1);
    let workers = standing.worker_pids();
    let program = small_program(&sandbox, &faulty_program());
    let (input, token) = (sandbox.write("text", "good\nbad\n"), sandbox.write("token", ""));
    let words = ["submit", "--ship", "faulty", "--how", "devour", "--token", &token, &input];
    let done = sandbox.program(&program, words).finish().expect_code(0);
    done.expect_words(&["1 failed in user code", "was ended: this process took ", "a larger --memory"]);
    assert_eq!(standing.worker_pids(), workers, "the worker's own process is another");
    standing.end();
}

#[test]
fn exit_of_a_process_of_a_shipped_program_is_charged_to_the_engine_only_when_the_engine_says_so() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 2, &["--allow-ship"]);
    let program = small_program(&sandbox, &faulty_program());
    let input = sandbox.write("text", "good\nbad\n");
    let token = sandbox.write("token", "");
    // The code with which the engine ends on an internal error.
    let words = ["submit", "--ship", "faulty", "--how", "exit", "--code", "81", "--token", &token, &input];
    sandbox.program(&program, words).finish().expect_code(0).expect_words(&["1 failed in user code"]);
    let attempts = &standing.job("job-1")["attempts"];
    assert_eq!((&attempts["failed_user"], &attempts["failed_other"]), (&1.into(), &0.into()));

    sandbox.arm_panic("runner.listen");
    let words = ["submit", "--ship", "faulty", "--how", "exit", "--token", &token, &input];
    sandbox.program(&program, words).finish().expect_code(0);
    let job = standing.job("job-2");
    let attempts = &job["attempts"];
    assert_eq!((&attempts["failed_user"], &attempts["failed_other"]), (&0.into(), &1.into()), "{job}");
    let incidents = job["incidents"].to_string();
    assert!(incidents.contains("failed (engine): the process of program "), "{incidents}");
    standing.end();
}

#[test]
fn job_of_a_shipped_program_outlives_its_master_if_the_program_does() {
    for keeps in [true, false] {
        let sandbox = Sandbox::new();
        let start = || sandbox.gristmill(["master", "--allow-ship"]).start();
        let mut master = start();
        await_join_line(&master);
        let program = program_with_answer(&sandbox, 5);
        let out = sandbox.text("out");
        let detached = submit(&sandbox, &program, &["--ship", "--detach", "--output", &out]).finish();
        let job = detached.expect_code(0).stdout_text();
        master.kill();
        if !keeps {
            fs::remove_dir_all(sandbox.path("state/programs")).unwrap();
        }
        let master = start();
        let join = await_join_line(&master);
        let worker = start_worker(&sandbox);
        let standing = Standing::of(&sandbox, master, vec![worker], join);
        let waited = sandbox.gristmill(["wait", job.trim()]).finish();
        if keeps {
            waited.expect_code(0);
            assert_eq!(sorted(&oracle::whole(Path::new(&out))), expected(5));
        } else {
            waited.expect_code(2).expect_words(&["does not have program", "ship it again"]);
        }
        standing.end();
    }
}

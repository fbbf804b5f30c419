//! User code that panics, aborts, hangs, exits or prints too much: the messages for its user, and the effects
//! on others.
//!
//! The jobs are those of the example program `faulty`.

use crate::support::{Finished, Sandbox, oracle, process, until};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Returns the example program of jobs that misbehave.
pub fn faulty_program() -> PathBuf {
    example_program("faulty")
}

/// Returns an example program. Cargo builds them only with all targets of the package, so that a single test
/// would find none, or an old one. They are therefore built here, which costs nothing if they are current.
/// The whole workspace is built, with the features of this test: all dependencies would be built again with others.
pub fn example_program(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--workspace", "--examples", "--target-dir"]);
        command.arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
        command.args(if cfg!(feature = "full") { &["--features", "full"][..] } else { &[] });
        // A build script of a dependency runs again if these change, and all that depends on it is built again.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CARGO_MANIFEST_")
                || name.to_string_lossy().starts_with("CARGO_PKG_")
            {
                command.env_remove(name);
            }
        }
        assert!(command.status().unwrap().success(), "the example programs do not build");
        profile.join("examples")
    });
    built.join(name)
}

/// Runs the job over two files, one good and one bad, on two workers.
fn run_faulty(sandbox: &Sandbox, flags: &[&str]) -> Finished {
    let good = sandbox.write("good", "one\ntwo\nthree\n");
    let bad = sandbox.write("bad", "four\nbad five\n");
    let out = sandbox.text("out");
    let arguments = ["run", "faulty", &good, &bad, "--workers", "2", "--output", &out];
    let reduces: &[&str] = if flags.contains(&"--reduces") { &[] } else { &["--reduces", "1"] };
    let arguments = [&arguments, reduces, &["--split-size", "10"], flags].concat();
    let finished = sandbox.program(&faulty_program(), arguments).finish();
    sandbox.assert_nothing_left();
    finished
}

const SORTED: &str = "bad five\nfour\none\nthree\ntwo\n";

/// Checks that it failed after four attempts of the bad task and left no output.
fn expect_four_tries(sandbox: &Sandbox, finished: Finished) -> Finished {
    let finished = finished.expect_code(1).expect_words(&["4 failed in user code", "failed too often"]);
    assert!(!sandbox.path("out").exists(), "the failed job left its output directory");
    let errors: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(errors.len(), 1, "one error, not several:\n{}", finished.stderr);
    finished
}

#[test]
fn panic_fails_the_job_after_four_tries_and_is_shown_with_its_place() {
    let sandbox = Sandbox::new();
    let finished = expect_four_tries(&sandbox, run_faulty(&sandbox, &["--how", "panic"]));
    let words = ["panicked at ", "examples/faulty.rs:", "this line is bad: bad five", "job-1/map-"];
    let finished = finished.expect_words(&words);
    assert!(!finished.stderr.contains("lost with a worker"), "a panic costs no worker:\n{}", finished.stderr);
    assert!(!finished.stderr.contains("stack backtrace"), "nobody asked for it:\n{}", finished.stderr);
}

#[test]
fn panic_in_a_reducer_fails_the_job_after_four_tries() {
    let sandbox = Sandbox::new();
    let finished = expect_four_tries(&sandbox, run_faulty(&sandbox, &["--how", "panic", "--in-reduce"]));
    finished.expect_words(&["this line is bad: bad five", "job-1/reduce-0"]);
}

#[test]
fn panic_on_the_submitter_is_told_like_one_on_a_worker() {
    let sandbox = Sandbox::new();
    // The submitter runs the mapper first, to sample keys.
    let flags = ["--total-order", "--reduces", "2"];
    for (how, words) in [("panic", "this line is bad: bad five"), ("error", "no good: bad five")] {
        let flags = [&["--how", how], &flags[..]].concat();
        run_faulty(&sandbox, &flags).expect_code(1).expect_words(&["error: ", words]);
        assert!(!sandbox.path("out").exists());
    }
}

#[test]
fn error_of_user_code_fails_the_job_after_as_many_tries_as_asked() {
    let sandbox = Sandbox::new();
    let finished = run_faulty(&sandbox, &["--how", "error", "--attempts", "2"]).expect_code(1);
    finished.expect_words(&["2 failed in user code", "no good: bad five"]);
}

#[test]
fn panic_that_happens_once_is_survived_and_told() {
    let sandbox = Sandbox::new();
    let token = sandbox.write("token", "");
    let finished = run_faulty(&sandbox, &["--how", "panic", "--token", &token]).expect_code(0);
    finished.expect_words(&["1 failed in user code", "this line is bad: bad five", "succeeded"]);
    assert!(!sandbox.path("token").exists(), "it did not panic");
    assert_eq!(oracle::whole(&sandbox.path("out")), SORTED.as_bytes());
}

#[test]
fn process_that_user_code_brings_down_is_replaced_and_charged() {
    for (how, words) in [
        ("abort", "SIGABRT"),
        // The standard library turns the fault into an abort with its own message.
        ("overflow", "has overflowed its stack"),
        ("exit", "exit code 0"),
    ] {
        let sandbox = Sandbox::new();
        let finished = expect_four_tries(&sandbox, run_faulty(&sandbox, &["--how", how]));
        finished.expect_words(&["was ended", words]);
    }
}

#[test]
fn exit_with_a_code_of_the_engines_is_charged_to_the_user_code_that_called_it() {
    // The codes of a rejected worker and of an internal error.
    for code in ["78", "81"] {
        let sandbox = Sandbox::new();
        let token = sandbox.write("token", "");
        let flags = ["--how", "exit", "--code", code, "--token", &token];
        let finished = run_faulty(&sandbox, &flags).expect_code(0);
        finished.expect_words(&["1 failed in user code", &format!("was ended with exit code {code};")]);
        assert_eq!(oracle::whole(&sandbox.path("out")), SORTED.as_bytes(), "{code}");
    }
}

#[test]
fn process_brought_down_once_is_survived() {
    for flags in [&["--how", "abort"] as &[&str], &["--how", "abort", "--in-reduce"], &["--how", "exit"]] {
        let sandbox = Sandbox::new();
        let token = sandbox.write("token", "");
        let flags = [flags, &["--token", &token]].concat();
        let finished = run_faulty(&sandbox, &flags).expect_code(0);
        let finished = finished.expect_words(&["1 failed in user code", "was ended", "succeeded"]);
        assert!(!finished.stderr.contains("lost with a worker"), "counted twice:\n{}", finished.stderr);
        assert_eq!(oracle::whole(&sandbox.path("out")), SORTED.as_bytes(), "{flags:?}");
    }
}

#[test]
fn user_code_that_hangs_fails_the_job_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let finished = run_faulty(&sandbox, &["--how", "loop", "--hang-after", "0.3", "--attempts", "2"]);
    let finished = finished
        .expect_code(1)
        .expect_words(&["2 failed in user code", "no record read or written for 0.3 s"]);
    assert!(!sandbox.path("out").exists());
    assert!(finished.stderr.contains("failed (hang)"), "{}", finished.stderr);
}

#[test]
fn user_code_that_hangs_once_is_survived() {
    let sandbox = Sandbox::new();
    let token = sandbox.write("token", "");
    let flags = ["--how", "loop", "--hang-after", "0.3", "--token", &token];
    run_faulty(&sandbox, &flags).expect_code(0).expect_words(&["1 failed in user code", "succeeded"]);
    assert_eq!(oracle::whole(&sandbox.path("out")), SORTED.as_bytes());
}

#[test]
fn user_code_that_prints_without_end_harms_nobody() {
    let sandbox = Sandbox::new();
    let finished = run_faulty(&sandbox, &["--how", "print"]).expect_code(0);
    assert!(finished.stderr.len() < 10_000, "{} bytes on stderr", finished.stderr.len());
    assert!(!finished.stderr.contains('\x1b'), "control characters reached the terminal");
    assert_eq!(oracle::whole(&sandbox.path("out")), SORTED.as_bytes());
}

#[test]
fn engine_that_panics_in_a_slot_is_noticed_at_once_and_user_code_is_not_charged() {
    // In the middle of an attempt, and outside of it, where only the thread itself notices.
    for (place, words) in
        [("map", "src/fault.rs"), ("reduce", "src/fault.rs"), ("slot", "the thread of a slot has died")]
    {
        let sandbox = Sandbox::new();
        let input = sandbox.write("text", "b\na\n");
        let out = sandbox.text("out");
        sandbox.arm_panic(place);
        // A single charged failure would end the job, and a hang would be noticed after ten minutes.
        let arguments = ["run", "wordcount", &input, "--workers", "1", "--attempts", "1"];
        let finished = sandbox.run_well([&arguments[..], &["--reduces", "1", "--output", &out]].concat());
        assert!(sandbox.has_fired(place), "nobody came to {place}");
        let finished = finished.expect_words(&["failed (engine)", "a mistake of the engine", words]);
        assert!(!finished.stderr.contains("failed in user code"), "{place}:\n{}", finished.stderr);
        assert_eq!(oracle::whole(&sandbox.path("out")), b"a\t1\nb\t1\n");
    }
}

#[test]
fn mapper_that_is_not_deterministic_fails_the_job_when_reduces_would_take_from_two_outputs_of_a_map() {
    let sandbox = Sandbox::new();
    sandbox.arm("reduce");
    sandbox.arm("commit.before");
    let lines: String = (0..40).map(|line| format!("line {line}\n")).collect();
    let (input, out) = (sandbox.write("lines", lines), sandbox.text("out"));
    let arguments = ["run", "faulty", &input, "--how", "random", "--output", &out];
    let flags = ["--workers", "2", "--reduces", "2", "--split-size", "40"];
    let running = sandbox.program(&faulty_program(), [&arguments[..], &flags].concat()).start();
    // One reduce has read all that its keep has collected, including maps of the worker that is killed now.
    // The killed one's reduce starts again.
    let first = sandbox.stopped_at("reduce");
    sandbox.stopped_at("commit.before");
    process::kill(first);
    sandbox.go_on("reduce");
    sandbox.go_on("commit.before");
    let finished = running.finish().expect_code(1);
    finished.expect_words(&["is not deterministic", "job-1/map-", "hint: "]);
    assert!(!sandbox.path("out").exists(), "the failed job left its output directory");
    sandbox.assert_nothing_left();
}

#[test]
fn process_brought_down_beside_another_attempt_is_charged_to_the_one_that_did_it() {
    for how in ["abort", "overflow", "exit"] {
        let sandbox = Sandbox::new();
        let good = sandbox.write("good", "one\n");
        let bad = sandbox.write("bad", "bad five\n");
        let out = sandbox.text("out");
        let arguments = ["run", "faulty", &good, &bad, "--how", how, "--stall", "--output", &out];
        let flags = ["--workers", "1", "--slots", "2", "--reduces", "1", "--split-size", "5"];
        let finished = sandbox.program(&faulty_program(), [&arguments[..], &flags].concat()).finish();
        expect_four_tries(&sandbox, finished).expect_words(&["job-1/map-1"]);
        sandbox.assert_nothing_left();
    }
}

#[test]
fn policy_that_panics_leaves_its_decisions_to_fifo_and_the_log_says_so() {
    let sandbox = Sandbox::new();
    let finished = run_faulty(&sandbox, &["--how", "print", "--policy", "panicky"]).expect_code(0);
    finished.expect_words(&["who comes next?", "the policy panicked: fifo decided instead"]);
    assert_eq!(oracle::whole(&sandbox.path("out")), SORTED.as_bytes());
}

#[test]
fn worker_that_was_suspended_does_not_charge_user_code_with_the_time() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b\na\n");
    let out = sandbox.text("out");
    sandbox.arm("map");
    let hang_after = Duration::from_millis(1500);
    let arguments = ["run", "wordcount", &input, "--workers", "1", "--attempts", "1", "--hang-after", "1.5"];
    let running = sandbox.gristmill([&arguments[..], &["--reduces", "1", "--output", &out]].concat()).start();
    let held = sandbox.stopped_at("map");
    process::signal(held, Signal::STOP);
    // Longer than the limit of user code, and not long enough for the master to give the worker up.
    let stopped = Instant::now();
    until("the time to pass", || (hang_after + Duration::from_millis(500) < stopped.elapsed()).then_some(()));
    let before = process::pauses(held);
    process::signal(held, Signal::CONT);
    until("a look at what hangs", || (before + 3 < process::pauses(held)).then_some(()));
    sandbox.go_on("map");
    let finished = running.finish().expect_code(0);
    sandbox.assert_nothing_left();
    assert!(!finished.stderr.contains("failed in user code"), "{}", finished.stderr);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"a\t1\nb\t1\n");
}

#[test]
fn sorting_and_merging_do_not_count_as_user_code_that_hangs() {
    let sandbox = Sandbox::new();
    // The map writes ten runs and merges them, which takes far longer than user code may hang.
    let lines: String = (0..900_000u64).map(|number| format!("{:010}\n", number * 7_919 % 900_000)).collect();
    let input = sandbox.write("lines", &lines);
    let out = sandbox.text("out");
    let job = ["run", "sort", "-r", &input, "--split-size", "100MB", "--memory", "16MiB", "--reduces", "1"];
    let rest = ["--workers", "1", "--hang-after", "1", "--attempts", "1", "--output", &out, "--json"];
    let status = sandbox.run_well([&job[..], &rest].concat()).json();
    let spills = status["status"]["totals"]["spills"].as_u64().unwrap();
    assert!(6 < spills, "{spills} spills: there was nothing to merge");
}

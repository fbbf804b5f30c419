//! Jobs that are interrupted during planning: a disk, or a job's own code, may take any time then.

use crate::support::Sandbox;
use crate::support::sandbox::{PROGRAM, Running};
use crate::support::standing::Standing;
use crate::support::until;
use rustix::process::Signal;
use std::path::Path;

/// Starts a job that hangs while its input is listed.
fn planning(sandbox: &Sandbox, arguments: &[&str]) -> Running {
    sandbox.arm("split");
    let running = sandbox.gristmill(arguments).start();
    sandbox.stopped_at("split");
    running
}

/// Interrupts it once. It must end although planning has not, and leave no output.
fn interrupt(sandbox: &Sandbox, running: Running, signal: Signal) {
    running.signal(signal);
    running.finish().expect_code(130).expect_words(&["interrupted while the job was planned"]);
    sandbox.go_on("split");
    assert!(!sandbox.path("out").exists(), "an output directory of a job that never ran");
}

#[test]
fn run_that_is_interrupted_while_its_input_is_listed_ends_at_once_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let (input, out) = (sandbox.write("text", "a\n"), sandbox.text("out"));
    let trace = sandbox.text("trace");
    for signal in [Signal::INT, Signal::TERM] {
        let arguments = ["run", "wordcount", &input, "--output", &out, "--trace", &trace, "--workers", "1"];
        interrupt(&sandbox, planning(&sandbox, &arguments), signal);
        sandbox.assert_nothing_left();
        assert!(!sandbox.path("trace").exists());
    }
}

#[test]
fn run_that_is_interrupted_while_it_reads_standard_input_ends_at_once() {
    let sandbox = Sandbox::new();
    // The pipe stays open: a reader waits for data that never come.
    let pipe = sandbox.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let script = "exec \"$0\" run wordcount - --workers 1 <> \"$1\"";
    let shell = ["-c", script, PROGRAM, pipe.to_str().unwrap()];
    let running = sandbox.program(Path::new("sh"), shell).start();
    let kept = |name: &std::fs::DirEntry| name.path().join("standard-input").exists();
    until("standard input to be read", || {
        let mut directories = std::fs::read_dir(sandbox.path("tmp")).unwrap().flatten();
        directories.any(|directory| kept(&directory)).then_some(())
    });
    running.signal(Signal::INT);
    running.finish().expect_code(130);
    sandbox.assert_nothing_left();
}

#[test]
fn submission_that_is_interrupted_while_its_input_is_listed_ends_at_once_and_no_job_is_there() {
    let sandbox = Sandbox::new();
    let (input, out) = (sandbox.write("text", "a\n"), sandbox.text("out"));
    let standing = Standing::start(&sandbox, 1);
    for flags in [&[][..], &["--detach"]] {
        let arguments = [&["submit", "wordcount", &input, "--output", &out], flags].concat();
        interrupt(&sandbox, planning(&sandbox, &arguments), Signal::INT);
    }
    assert_eq!(standing.request("GET", "jobs", ""), (200, "[]".to_owned()));
    standing.end();
}

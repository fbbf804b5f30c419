//! Messages when the machine's own limits end a process: the right words, and the documented exit code.

use crate::support::data::{Random, tool};
use crate::support::memory_group::MemoryGroup;
use crate::support::standing::Standing;
use crate::support::{Finished, Sandbox, is_root, process, say_skipped};
use crate::user_code::faulty_program;
use rustix::process::Signal;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Runs the program in a shell that has run this script first.
fn prepared(sandbox: &Sandbox, script: &str, program: &Path, arguments: &[&str]) -> Finished {
    // Pages of the program that a control group reads first count there, and the kernel may read them again and again
    // for minutes before it kills a process.
    drop(fs::read(program).unwrap());
    let script = format!("{script} && exec \"$@\"");
    let all = ["-c", &script, "sh", program.to_str().unwrap()].into_iter().chain(arguments.iter().copied());
    let finished = sandbox.program(Path::new("sh"), all).finish();
    sandbox.assert_nothing_left();
    finished
}

fn gristmill() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_gristmill"))
}

#[test]
fn limit_on_the_size_of_files_is_named_when_an_output_passes_it() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(71).text(400_000, &[" ", "\n"]));
    let out = sandbox.text("out");
    let arguments = ["run", "sort", &input, "--workers", "1", "--reduces", "1", "--output", &out];
    // In blocks of 512 bytes or of 1 KiB, depending on the shell.
    let finished = prepared(&sandbox, "ulimit -f 200", gristmill(), &arguments).expect_code(7);
    let finished = finished.expect_words(&["File too large", "ulimit -f"]);
    assert!(!finished.stderr.contains("signal 25"), "a worker was ended:\n{}", finished.stderr);
    assert!(!Path::new(&out).exists(), "the output of a failed job was left");
}

#[test]
fn full_inodes_are_told_from_full_space() {
    if !(is_root("full inodes") && tool("unshare", "full inodes")) {
        return;
    }
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(72).text(60_000, &[" ", "\n"]));
    fs::create_dir(sandbox.path("disk")).unwrap();
    // One inode is left for the output's directory, one for `_temporary`, one for the probe in it: none for a
    // part.
    let mount = "mount -t tmpfs -o size=8m,nr_inodes=5 none disk && mkdir disk/here";
    let arguments = ["run", "sort", &input, "--workers", "1", "--reduces", "2", "--output", "disk/here/out"];
    let script = format!("{mount} && exec \"$@\"");
    let program = gristmill().to_str().unwrap();
    let all = ["-m", "sh", "-c", &script, "sh", program].into_iter().chain(arguments);
    let finished = sandbox.program(Path::new("unshare"), all).finish().expect_code(7);
    sandbox.assert_nothing_left();
    finished.expect_words(&["could not write", "no inodes left"]);
}

#[test]
fn spill_directory_that_is_named_twice_is_refused_by_name() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("disk")).unwrap();
    std::os::unix::fs::symlink("disk", sandbox.path("link")).unwrap();
    let input = sandbox.write("text", "a\n");
    for other in ["disk", "./disk/", "link"] {
        let arguments = ["run", "sort", &input, "--spill-dir", "disk", "--spill-dir", other];
        let finished = sandbox.run(arguments).expect_code(2);
        finished.expect_words(&["--spill-dir", other, "is the same directory", "once"]);
    }
}

#[test]
fn argument_that_is_not_text_is_named() {
    let sandbox = Sandbox::new();
    let arguments = ["run", "wordcount"].map(OsStr::new).into_iter();
    let finished = sandbox.run(arguments.chain([OsStr::from_bytes(b"caf\xe9.txt")])).expect_code(2);
    finished.expect_words(&["error: ", "argument 3", "caf\\xE9.txt", "not UTF-8"]);
}

#[test]
fn trace_that_cannot_be_written_is_no_mistake_in_the_command() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    let out = sandbox.text("out");
    let trace = sandbox.text("not/there.json");
    let finished = sandbox.run(["run", "sort", &input, "--output", &out, "--trace", &trace]).expect_code(3);
    finished.expect_words(&["could not write the trace", "not/there.json", "No such file"]);
}

#[test]
fn worker_that_falls_silent_is_lost_with_these_words() {
    let sandbox = Sandbox::new();
    sandbox.write("faults/master.silence", "1500");
    let standing = Standing::start(&sandbox, 2);
    let input = sandbox.write("text", "b a\na\n");
    sandbox.arm("map");
    let arguments = ["submit", "wordcount", &input, "--reduces", "1", "--output", &sandbox.text("out")];
    let client = sandbox.gristmill(arguments).start();
    let held = sandbox.stopped_at("map");
    process::signal(held, Signal::STOP);
    let finished = client.finish().expect_code(0);
    finished.expect_words(&[&format!("(process {held} on "), "nothing was heard of it for "]);
    sandbox.go_on("map");
    process::signal(held, Signal::CONT);
    standing.await_workers(2);
    standing.end();
}

#[test]
fn kernel_is_offered_worker_processes_before_the_master_when_memory_runs_out() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let score = |pid: u32| -> i32 {
        fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim().parse().unwrap()
    };
    let supervisor = standing.workers[0].pid();
    let worker = sandbox.pids_of("worker").into_iter().find(|pid| *pid != supervisor).unwrap();
    let own = score(std::process::id());
    assert_eq!((score(worker), score(supervisor), score(standing.master.pid())), (own.max(500), own, own));
    standing.end();
}

#[test]
fn job_that_uses_up_the_memory_fails_with_code_7_after_three_workers_and_says_why() {
    let what = "a job that uses up the memory";
    if !is_root(what) {
        return;
    }
    let Some(group) = MemoryGroup::new("memory", 400 << 20) else {
        return say_skipped(what, "no memory control group of version 1 can be made");
    };
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "bad\n");
    let out = sandbox.text("out");
    let enter = group.enter();
    // More than the limit of the group, so that the kernel ends a worker before it exceeds its own budget.
    let arguments = ["run", "faulty", &input, "--how", "devour", "--memory", "2GiB"];
    let flags = ["--workers", "2", "--reduces", "1", "--output", &out];
    let arguments = [&arguments[..], &flags].concat();
    let finished = prepared(&sandbox, &enter, &faulty_program(), &arguments).expect_code(7);
    let words = ["memory ran out on 3 workers", "for lack of memory (signal 9", "run less at once"];
    let finished = finished.expect_words(&words);
    let deaths = finished.stderr.matches("incident").count();
    assert_eq!(deaths, 3, "{}", finished.stderr);
    assert!(!finished.stderr.contains("failed in user code"), "charged to user code:\n{}", finished.stderr);
}

#[test]
fn what_ran_where_memory_ran_out_once_runs_again_alone_and_the_job_succeeds() {
    let what = "memory that runs out once";
    if !is_root(what) {
        return;
    }
    let Some(group) = MemoryGroup::new("once", 400 << 20) else {
        return say_skipped(what, "no memory control group of version 1 can be made");
    };
    let sandbox = Sandbox::new();
    let (good, bad) = (sandbox.write("good", "one\ntwo\n"), sandbox.write("bad", "bad\n"));
    let (out, token, enter) = (sandbox.text("out"), sandbox.write("token", ""), group.enter());
    let arguments = ["run", "faulty", &good, &bad, "--how", "devour", "--token", &token, "--split-size", "4"];
    let flags =
        ["--workers", "1", "--slots", "2", "--reduces", "1", "--memory", "2GiB", "--json", "--output", &out];
    let report = prepared(&sandbox, &enter, &faulty_program(), &[&arguments[..], &flags].concat());
    let status = &report.expect_code(0).json()["status"];
    assert!(!Path::new(&token).exists(), "nothing has devoured the memory");
    let incidents = status["incidents"].to_string();
    for words in ["ended by the kernel for lack of memory", "a worker process to themselves next"] {
        assert!(incidents.contains(words), "{incidents}");
    }
    assert_eq!(status["attempts"]["failed_user"], 0, "{status}");
    assert_eq!(fs::read(sandbox.path("out/part-00000")).unwrap(), b"bad\none\ntwo\n");
}

#[test]
fn memory_without_a_setting_is_a_quarter_of_the_control_group() {
    let what = "memory under the limit of a control group";
    if !is_root(what) {
        return;
    }
    let Some(group) = MemoryGroup::new("limit", 800 << 20) else {
        return say_skipped(what, "no memory control group of version 1 can be made");
    };
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a b\n");
    let enter = group.enter();
    let budget = |out: &str, script: &str| {
        let output = sandbox.text(out);
        let arguments = ["run", "wordcount", &input, "--workers", "1", "--json", "--output", &output];
        let script = format!("{script} && exec \"$@\"");
        let all = ["-c", &script, "sh", gristmill().to_str().unwrap()].into_iter().chain(arguments);
        let report = sandbox.program(Path::new("sh"), all).finish().expect_code(0).json();
        report["status"]["totals"]["worker_memory_budget_bytes"].as_u64().unwrap()
    };
    assert_eq!(budget("alone", &enter), 200 << 20);
}

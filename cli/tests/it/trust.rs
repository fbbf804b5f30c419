//! Files: which owners are trusted, and who may read what is left behind.

use crate::support::sandbox::PROGRAM;
use crate::support::standing::{Standing, await_join_line};
use crate::support::{Sandbox, is_root, process, say_skipped, until};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

/// An unprivileged user.
const OTHER_USER: u32 = 65534;

fn set_mode(path: &str, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn settings_that_others_may_write_are_refused() {
    let sandbox = Sandbox::new();
    let settings = sandbox.write("gristmill.toml", "workers = 1\n");
    let elsewhere = sandbox.write("elsewhere.toml", "workers = 1\n");
    let input = sandbox.write("text", "a\n");
    let run = |flags: &[&str]| sandbox.gristmill([&["run", "wordcount", &input], flags].concat()).finish();
    run(&[]).expect_code(0);
    for mode in [0o664, 0o646, 0o602] {
        set_mode(&settings, mode);
        run(&[]).expect_code(3).expect_words(&["gristmill.toml", &format!("{mode:04o}"), "chmod go-w"]);
        set_mode(&elsewhere, mode);
        run(&["--settings", &elsewhere]).expect_code(3).expect_words(&["elsewhere.toml", "chmod go-w"]);
    }
    set_mode(&settings, 0o644);
    run(&[]).expect_code(0);
}

#[test]
fn settings_of_another_user_are_refused_wherever_they_lie() {
    if !is_root("settings of another user") {
        return;
    }
    let sandbox = Sandbox::new();
    let refused = || {
        let finished = sandbox.gristmill(["sim", "--list"]).finish().expect_code(3);
        finished.expect_words(&["gristmill.toml", "belongs to user 65534"]);
    };
    let settings = sandbox.write("gristmill.toml", "workers = 1\n");
    chown(&settings, Some(OTHER_USER), None).unwrap();
    refused();
    // Another user's link to this user's file, and a pipe, on which a read would block for ever.
    fs::remove_file(&settings).unwrap();
    symlink(sandbox.write("ours.toml", "workers = 1\n"), &settings).unwrap();
    std::os::unix::fs::lchown(&settings, Some(OTHER_USER), None).unwrap();
    refused();
    fs::remove_file(&settings).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &*settings, mode).unwrap();
    chown(&settings, Some(OTHER_USER), None).unwrap();
    refused();
    fs::remove_file(&settings).unwrap();
    // The same from their settings directory.
    let config = sandbox.write("config/gristmill/gristmill.toml", "workers = 1\n");
    chown(&config, Some(OTHER_USER), None).unwrap();
    refused();
}

#[test]
fn join_file_that_others_can_read_is_refused() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let join = sandbox.write_private("join.txt", &standing.join.text);
    let status = || sandbox.gristmill(["status", "--join", &join]).finish();
    status().expect_code(0);
    for mode in [0o640, 0o604, 0o620] {
        set_mode(&join, mode);
        status().expect_code(3).expect_words(&["join.txt", &format!("{mode:04o}"), "chmod go-rwx"]);
        let worker = sandbox.gristmill(["worker", "--workers", "1", "--join", &join]).finish();
        worker.expect_code(3).expect_words(&["chmod go-rwx"]);
    }
    set_mode(&join, 0o400);
    status().expect_code(0);
    if is_root("a join file of another user") {
        chown(&join, Some(OTHER_USER), None).unwrap();
        status().expect_code(3).expect_words(&["belongs to user 65534"]);
    }
    standing.end();
}

#[test]
fn join_line_goes_to_no_redirected_stdout_unless_told() {
    let sandbox = Sandbox::new();
    let printed = |flags: &[&str]| {
        let master = sandbox.gristmill([&["master"], flags].concat()).start();
        let join = await_join_line(&master);
        until("the master to be ready", || master.stderr().contains("start a worker with").then_some(()));
        let said = String::from_utf8(master.stdout()).unwrap();
        assert!(!master.stderr().contains(&join.key));
        master.signal(Signal::TERM);
        master.finish().expect_code(0);
        (said, format!("{}\n", join.text))
    };
    assert_eq!(printed(&[]).0, "");
    let (said, line) = printed(&["--print-join"]);
    assert_eq!(said, line);
}

#[test]
fn join_line_is_shown_on_a_terminal() {
    let script = Path::new("/usr/bin/script");
    if !script.exists() {
        return say_skipped("a join line on a terminal", "needs the program `script`");
    }
    let sandbox = Sandbox::new();
    let command = format!("{PROGRAM} master");
    let terminal = sandbox.program(script, ["-q", "-f", "-c", &command, "/dev/null"]).start();
    let shown = || String::from_utf8_lossy(&terminal.stdout()).into_owned();
    until("the end of the greeting", || shown().contains("start a worker with").then_some(()));
    let line = fs::read_to_string(sandbox.path("state/join")).unwrap();
    assert!(shown().contains(&line), "{}", shown());
    let master = sandbox.processes().into_iter().find(|found| found.command == command).unwrap();
    process::signal(master.pid, Signal::TERM);
    terminal.finish();
}

#[test]
fn journal_and_trace_can_be_read_by_their_user_alone() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    // A file that existed before is made private too.
    let trace = sandbox.write("trace.json", "old");
    set_mode(&trace, 0o644);
    let journal = sandbox.text("journal.jsonl");
    sandbox.run_well([
        "run",
        "wordcount",
        &input,
        "--overwrite",
        "--trace",
        &trace,
        "--journal",
        &journal,
        "--workers",
        "1",
    ]);
    for path in [trace, journal] {
        let found = fs::metadata(&path).unwrap();
        assert!(found.len() > 100 && found.mode() & 0o7777 == 0o600, "{path}: {:o}", found.mode());
    }
}

/// Starts a cluster as an unprivileged user, and checks the owner of its processes' files in `/proc`. It must
/// be root if not even the user may read their memory.
#[test]
fn memory_of_processes_with_the_secret_is_private() {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !is_root("the memory of processes of another user") {
        return;
    }
    if !setpriv.exists() {
        return say_skipped("the memory of processes of another user", "needs the program `setpriv`");
    }
    let sandbox = Sandbox::new();
    sandbox.arm("map");
    let input = sandbox.write("text", "a\n");
    let all = ["", "tmp", "faults", "faults/map"];
    all.iter().for_each(|name| chown(sandbox.path(name), Some(OTHER_USER), Some(OTHER_USER)).unwrap());
    // The user must be able to execute it, wherever it was built.
    let program = sandbox.copy_of_program("tmp/../gristmill").to_str().unwrap().to_owned();
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups", &program];
    let command = ["run", "wordcount", &input, "--workers", "1"];
    let running = sandbox.program(setpriv, [&user[..], &command].concat()).start();
    sandbox.stopped_at("map");
    let processes = sandbox.processes();
    assert_eq!(processes.len(), 3, "a client, a master and a worker: {processes:#?}");
    for found in &processes {
        let owner = fs::metadata(format!("/proc/{}/environ", found.pid)).unwrap().uid();
        assert_eq!(owner, 0, "others of its user can look into {}", found.command);
        let score = fs::read_to_string(format!("/proc/{}/oom_score_adj", found.pid)).unwrap();
        assert_eq!(score.trim() != "0", found.command.contains(" worker "), "{}", found.command);
    }
    sandbox.go_on("map");
    running.finish().expect_code(0);
}

#[test]
fn plain_connections_are_warned_of_at_every_start() {
    let sandbox = Sandbox::new();
    let words = ["warning:", "--insecure-plaintext", "can read and change all data"];
    let master = sandbox.gristmill(["master", "--insecure-plaintext"]).start();
    let join = await_join_line(&master);
    let worker = sandbox.gristmill(["worker", "--workers", "1", "--insecure-plaintext"]).start();
    for command in [&["status"][..], &["jobs"]] {
        let command = [command, &["--insecure-plaintext"]].concat();
        sandbox.gristmill(command).finish().expect_code(0).expect_words(&words);
    }
    let standing = Standing::new(&sandbox, master, vec![worker], join);
    standing.await_workers(1);
    for process in [&standing.master, &standing.workers[0]] {
        let said = process.stderr();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert_eq!(said.matches("warning:").count(), 1, "once, and not for each process: {said}");
    }
    standing.end();
}

//! A master and workers that a user starts, and the commands that talk to them.

use crate::support::sandbox::{ORPHAN_TIMEOUT, PROGRAM};
use crate::support::standing::{JoinLine, Standing, await_join_line};
use crate::support::{Sandbox, TIMEOUT, data::Random, oracle, process, until, until_within};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

#[test]
fn job_that_is_submitted_runs_on_the_workers_that_are_there() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 2);
    let text = Random::seeded(111).text(50_000, &[" ", "\n"]);
    let input = sandbox.write("text", &text);
    let out = sandbox.text("out");
    let arguments = ["submit", "wordcount", &input, "--split-size", "5KiB", "--json", "--output", &out];
    let report = sandbox.gristmill(arguments).finish().expect_code(0).json();
    assert_eq!((&report["status"]["workers"], &report["status"]["reduces"]["total"]), (&2.into(), &2.into()));
    assert!(
        oracle::counts_of_parts(&oracle::parts(&sandbox.path("out"))) == oracle::word_counts(&text),
        "the counts differ"
    );
    // Without an output directory the result is printed. A second job on the same cluster works like the
    // first.
    let printed = sandbox.gristmill(["submit", "grep", "-c", "", &input]).finish().expect_code(0);
    assert_eq!(printed.stdout_text(), format!("{}\n", oracle::lines(&text).len()));
    let jobs = sandbox.gristmill(["jobs"]).finish().expect_code(0).stdout_text();
    assert!(jobs.contains("job-1") && jobs.contains("job-2") && jobs.contains("succeeded"), "{jobs}");
    let status = sandbox.gristmill(["status"]).finish().expect_code(0).stdout_text();
    assert!(status.contains("worker-1") && status.contains("worker-2"), "{status}");
    standing.end();
}

#[test]
fn detached_job_goes_on_without_its_client() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    let out = sandbox.text("out");
    sandbox.arm("map");
    let arguments = ["submit", "wordcount", &input, "--detach", "--reduces", "1", "--output", &out];
    let finished = sandbox.gristmill(arguments).finish().expect_code(0);
    assert_eq!(finished.stdout_text(), "job-1\n", "the job's name for further commands, and nothing else");
    sandbox.stopped_at("map");
    assert_eq!(standing.job("job-1")["state"], "running");
    let waiting = sandbox.gristmill(["wait", "job-1", "--json", "--quiet"]).start();
    sandbox.go_on("map");
    let status = waiting.finish().expect_code(0).json();
    assert_eq!((&status["schema"], &status["state"]), (&1.into(), &"succeeded".into()));
    assert_eq!(oracle::names(&sandbox.path("out")), ["_SUCCESS", "part-00000"]);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"a\t2\nb\t1\n");
    standing.end();
}

#[test]
fn cancelled_job_ends_with_its_own_code_and_leaves_no_output() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let out = sandbox.text("out");
    let arguments = ["submit", "synthetic", "--maps", "2", "--map-time", "600s", "--output", &out];
    let attached = sandbox.gristmill(arguments).start();
    until("a running job", || (standing_state(&sandbox) == Some("running".to_owned())).then_some(()));
    let waiting = sandbox.gristmill(["wait", "job-1"]).start();
    sandbox.gristmill(["cancel", "job-1"]).finish().expect_code(0);
    attached.finish().expect_code(8).expect_words(&["job-1 was cancelled"]);
    waiting.finish().expect_code(8).expect_words(&["job-1 was cancelled"]);
    assert_eq!(standing.job("job-1")["state"], "cancelled");
    let again = sandbox.gristmill(["cancel", "job-1"]).finish().expect_code(0);
    again.expect_words(&["job-1 had ended before: cancelled"]);
    assert!(!sandbox.path("out").exists());
    sandbox.gristmill(["cancel", "job-9"]).finish().expect_code(2).expect_words(&["job-9"]);
    // The slot is free again.
    let input = sandbox.write("text", "x\n");
    sandbox.gristmill(["submit", "grep", "x", &input]).finish().expect_code(0);
    standing.end();
}

/// Returns the state of the only job, if there is one.
fn standing_state(sandbox: &Sandbox) -> Option<String> {
    let jobs = sandbox.gristmill(["jobs", "--json"]).finish().expect_code(0).json();
    Some(jobs.get(0)?["state"].as_str()?.to_owned())
}

#[test]
fn attached_job_is_given_up_when_its_client_is_killed() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    let out = sandbox.text("out");
    sandbox.arm("map");
    let client = sandbox.gristmill(["submit", "wordcount", &input, "--output", &out]).start();
    sandbox.stopped_at("map");
    client.signal(Signal::KILL);
    client.finish();
    until_within("the output to be removed and the job to end", ORPHAN_TIMEOUT, || {
        (!sandbox.path("out").exists() && standing.job("job-1")["state"] != "running").then_some(())
    });
    assert_eq!(standing.job("job-1")["state"], "failed");
    assert_eq!(standing.job("job-1")["failure"]["code"], "client_lost");
    sandbox.go_on("map");
    standing.end();
}

#[test]
fn job_of_a_client_that_was_suspended_longer_than_its_patience_goes_on() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    // Milliseconds; the master sends every 500.
    sandbox.write("faults/client.silence", "1000");
    sandbox.arm("map");
    let client = sandbox.gristmill(["submit", "wordcount", &input]).start();
    sandbox.stopped_at("map");
    client.signal(Signal::STOP);
    let clock = || sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json()["now_ns"].as_u64();
    let stopped = clock().unwrap();
    until("twice its patience", || (stopped + 2_000_000_000 < clock()?).then_some(()));
    client.signal(Signal::CONT);
    sandbox.go_on("map");
    let finished = client.finish().expect_code(0);
    assert_eq!(finished.stdout_text(), "a\t2\nb\t1\n");
    standing.end();
}

/// Follows a job over a connection of its own, up to the start of the response. Returns `None` if it was
/// refused for lack of capacity.
fn follow(join: &JoinLine, job: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(join.address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let request = format!(
        "GET /api/v1/jobs/{job}/watch HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        join.address, join.token
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).unwrap();
    assert!(head.starts_with(b"HTTP/1.1 200") || head.starts_with(b"HTTP/1.1 503"), "{head:?}");
    head.ends_with(b" OK").then_some(stream)
}

/// Reads what a follower gets, up to the line that says that the job succeeded.
fn read_to_success(mut stream: TcpStream) {
    let (mut read, mut buffer) = (String::new(), [0; 1 << 14]);
    while !read.contains("\"state\":\"succeeded\"") {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "the response ended before the job: {read}");
        read.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
}

#[test]
fn followers_of_one_address_are_served_however_many_they_are() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    sandbox.arm("map");
    let client = sandbox.gristmill(["submit", "wordcount", &input]).start();
    sandbox.stopped_at("map");
    let followers: Vec<TcpStream> = (0..300).map(|_| follow(&standing.join, "job-1").unwrap()).collect();
    let other = sandbox.gristmill(["wait", "job-1", "--quiet"]).start();
    sandbox.go_on("map");
    client.finish().expect_code(0);
    other.finish().expect_code(0);
    followers.into_iter().for_each(read_to_success);
    standing.end();
}

#[test]
fn client_beyond_the_masters_descriptors_is_told_so() {
    let sandbox = Sandbox::new();
    let words = ["-c", "ulimit -n 96 && exec \"$0\" master", PROGRAM];
    let master = sandbox.program(Path::new("/bin/sh"), words).start();
    let join = await_join_line(&master);
    let arguments = ["submit", "synthetic", "--maps", "1"];
    let client = sandbox.gristmill(arguments).start();
    until("a job", || standing_state(&sandbox));
    let mut followers = Vec::new();
    let refused = until("a refusal", || {
        let status = sandbox.gristmill(["status"]).finish();
        if status.status.success() {
            followers.extend(follow(&join, "job-1"));
            return None;
        }
        Some(status)
    });
    refused.expect_code(3).expect_words(&["there is no room for another connection", "ulimit -n"]);
    drop(followers);
    until("room", || sandbox.gristmill(["status"]).finish().status.success().then_some(()));
    client.signal(Signal::TERM);
    client.finish().expect_code(130);
    master.signal(Signal::TERM);
    master.finish().expect_code(0);
}

#[test]
fn connection_of_a_worker_that_is_given_up_for_its_silence_is_closed() {
    let sandbox = Sandbox::new();
    // Milliseconds; workers send every 500.
    sandbox.write("faults/master.silence", "1200");
    let standing = Standing::start(&sandbox, 1);
    let worker = sandbox.pids_of("worker --from-parent")[0];
    let connections = || process::connections(standing.master.pid());
    process::signal(worker, Signal::STOP);
    standing.await_workers(0);
    until("its connection to be closed", || (connections() == 0).then_some(()));
    process::signal(worker, Signal::CONT);
    standing.await_workers(1);
    standing.end();
}

/// Returns the program as another build: the same but for its identification.
pub fn other_build(sandbox: &Sandbox) -> PathBuf {
    /// Head of the note with the build: lengths of name and content, type, name.
    const NOTE: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let mut bytes = fs::read(PROGRAM).unwrap();
    if let Some(note) = bytes.windows(NOTE.len()).position(|window| window == NOTE) {
        bytes[note + NOTE.len()] ^= 1;
    }
    // If the linker writes no note, the whole file identifies the build.
    bytes.push(0);
    let path = PathBuf::from(sandbox.write("other-build", bytes));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

#[test]
fn submission_of_another_build_is_refused_naming_both_before_anything_is_touched() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "a\n");
    let cluster = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
    let cluster = cluster["build"].as_str().unwrap();
    let (other, out) = (other_build(&sandbox), sandbox.text("out"));
    for flags in [&["--output", &out][..], &["--output", &out, "--detach"], &[]] {
        let arguments = [&["submit", "wordcount", &input], flags].concat();
        let refused = sandbox.program(&other, arguments).finish().expect_code(3).expect_words(&[cluster]);
        let is_build =
            |word: &&str| word.len() == cluster.len() && word.bytes().all(|b| b.is_ascii_hexdigit());
        let builds: Vec<&str> = refused.stderr.split([' ', ')']).filter(is_build).collect();
        assert!(builds.len() == 2 && builds[0] != builds[1], "{}", refused.stderr);
        assert!(refused.stdout.is_empty() && !sandbox.path("out").exists());
    }
    let jobs = sandbox.gristmill(["jobs", "--json"]).finish().expect_code(0).json();
    assert_eq!(jobs.as_array().unwrap().len(), 0);
    sandbox.gristmill(["submit", "wordcount", &input]).finish().expect_code(0);
    standing.end();
}

#[test]
fn logs_show_what_user_code_wrote_attempt_by_attempt() {
    let sandbox = Sandbox::new();
    let faulty = crate::user_code::faulty_program();
    let master = sandbox.program(&faulty, ["master"]).start();
    crate::support::standing::await_join_line(&master);
    let worker = sandbox.program(&faulty, ["worker", "--workers", "1"]).start();
    let input = sandbox.write("text", "bad\n");
    let command = |arguments: &[&str]| sandbox.program(&faulty, arguments).finish();
    command(&["submit", "faulty", "--how", "print", &input]).expect_code(0);
    let logs = command(&["logs", "job-1"]).expect_code(0).stdout_text();
    assert!(
        logs.starts_with("==> job-1/map-0.0 on worker-1 <==\nline 000000 of a mapper"),
        "{}",
        &logs[..200]
    );
    assert!(logs.len() < 200_000 && logs.contains("left out"), "{} bytes are not capped", logs.len());
    assert!(!logs.contains('\x1b'), "control characters reach the terminal");
    let raw = command(&["logs", "job-1", "map-0", "--raw"]).expect_code(0).stdout_text();
    assert!(raw.contains('\x1b'));
    let of_reduce = command(&["logs", "job-1", "reduce-0"]).expect_code(0).stdout_text();
    assert!(of_reduce.is_empty(), "the reduce wrote nothing, but it has {} bytes", of_reduce.len());

    let failed = command(&["submit", "faulty", "--how", "panic", &input]).expect_code(1);
    failed.expect_words(&["this line is bad: bad"]);
    let logs = command(&["logs", "job-2"]).expect_code(0).stdout_text();
    for attempt in 0..4 {
        assert!(logs.contains(&format!("==> job-2/map-0.{attempt} on ")), "{logs}");
    }
    assert_eq!(logs.matches("this line is bad: bad").count(), 4, "{logs}");
    for process in [worker, master] {
        process.signal(Signal::TERM);
        process.finish().expect_code(0);
    }
}

#[test]
fn worker_of_another_build_is_refused_with_both_builds() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let faulty = crate::user_code::faulty_program();
    let finished = sandbox.program(&faulty, ["worker", "--workers", "1"]).finish().expect_code(3);
    let master_build = sandbox.gristmill(["status", "--json"]).finish().json()["build"].clone();
    finished.expect_words(&["refused", "build", master_build.as_str().unwrap(), "same executable"]);
    standing.end();
}

#[test]
fn wrong_secret_is_told_apart_from_a_master_that_is_not_there() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let wrong = sandbox.write_private("wrong", standing.join.with_wrong_token());
    let input = sandbox.write("text", "x\n");
    for arguments in [&["status"] as &[&str], &["jobs"], &["submit", "grep", "x", &input]] {
        let arguments = [arguments, &["--join", &wrong]].concat();
        sandbox.gristmill(arguments).finish().expect_code(6).expect_words(&["error: ", "hint: "]);
    }
    sandbox.gristmill(["worker", "--workers", "1", "--join", &wrong]).finish().expect_code(6);
    let line = standing.join.text.clone();
    standing.end();
    let gone = sandbox.write_private("gone", line);
    sandbox
        .gristmill(["status", "--join", &gone])
        .finish()
        .expect_code(5)
        .expect_words(&["could not be reached"]);
    sandbox
        .gristmill(["status"])
        .finish()
        .expect_code(2)
        .expect_words(&["no master is known", "gristmill cluster master"]);
}

#[test]
fn master_that_starts_again_keeps_its_secret() {
    let sandbox = Sandbox::new();
    let first = Standing::start(&sandbox, 0);
    let token = first.join.token.clone();
    first.end();
    let second = Standing::start(&sandbox, 1);
    assert_eq!(second.join.token, token);
    second.end();
}

#[test]
fn worker_process_that_dies_is_replaced_and_the_next_job_runs() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let parent = standing.workers[0].pid();
    let child = sandbox.pids_of("worker").into_iter().find(|pid| *pid != parent).unwrap();
    process::kill(child);
    until("another worker process", || {
        let pids = sandbox.pids_of("worker");
        pids.iter().any(|pid| *pid != parent && *pid != child).then_some(())
    });
    standing.await_workers(1);
    let input = sandbox.write("text", "x\n");
    sandbox.gristmill(["submit", "grep", "x", &input]).finish().expect_code(0);
    standing.end();
}

#[test]
fn worker_that_is_killed_takes_its_processes_and_directories_along() {
    let sandbox = Sandbox::new();
    let mut standing = Standing::start(&sandbox, 1);
    let worker = standing.workers.remove(0);
    worker.signal(Signal::KILL);
    worker.finish();
    standing.await_workers(0);
    until_within("the worker's directories to be removed", ORPHAN_TIMEOUT, || {
        oracle::names(&sandbox.path("tmp")).is_empty().then_some(())
    });
    standing.end();
}

#[test]
fn worker_waits_for_a_master_that_starts_later() {
    let sandbox = Sandbox::new();
    let first = Standing::start(&sandbox, 0);
    let (address, line) = (first.join.address.to_string(), first.join.text.clone());
    first.end();
    let join = sandbox.write_private("join-line", line);
    let worker = sandbox.gristmill(["worker", "--workers", "1", "--join", &join]).start();
    until("the worker process", || (sandbox.pids_of("worker").len() == 2).then_some(()));
    let master = sandbox.gristmill(["master", "--listen", &address]).start();
    crate::support::standing::await_join_line(&master);
    until("the worker to join", || {
        let status = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
        (status["workers"].as_array().unwrap().len() == 1).then_some(())
    });
    for process in [worker, master] {
        process.signal(Signal::TERM);
        process.finish().expect_code(0);
    }
}

#[test]
fn jobs_of_several_clients_run_at_once_and_do_not_mix() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 2);
    let texts: Vec<Vec<u8>> =
        (0..4).map(|number| Random::seeded(120 + number).text(40_000, &[" ", "\n"])).collect();
    let running: Vec<_> = (0..4)
        .map(|number| {
            let input = sandbox.write(&format!("text-{number}"), &texts[number]);
            let out = sandbox.text(&format!("out-{number}"));
            sandbox
                .gristmill(["submit", "wordcount", &input, "--split-size", "4KiB", "--output", &out])
                .start()
        })
        .collect();
    for (number, running) in running.into_iter().enumerate() {
        running.finish().expect_code(0);
        let parts = oracle::parts(&sandbox.path(&format!("out-{number}")));
        assert!(oracle::counts_of_parts(&parts) == oracle::word_counts(&texts[number]), "job {number}");
    }
    standing.end();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

/// Checks that everything in a directory, down to this depth, is accessible to its owner only.
fn assert_closed(directory: &Path, depth: u32) {
    for name in oracle::names(directory) {
        let path = directory.join(name);
        let closed = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), closed, "{}", path.display());
        if path.is_dir() && 0 < depth {
            assert_closed(&path, depth - 1);
        }
    }
}

#[test]
fn state_directory_is_closed_to_others() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    assert_eq!(mode(&sandbox.path("state")), 0o700);
    for directory in ["state", "tmp"] {
        assert_closed(&sandbox.path(directory), 1);
    }
    standing.end();
    // A state directory that others can read is refused.
    let open = sandbox.path("open");
    std::fs::create_dir(&open).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let finished = sandbox.gristmill(["master", "--state", open.to_str().unwrap()]).finish().expect_code(3);
    finished.expect_words(&["0755"]);
}

/// Returns the worker processes themselves, without their supervisors.
fn worker_processes(sandbox: &Sandbox) -> Vec<u32> {
    let all = sandbox.processes().into_iter();
    all.filter(|found| found.command.contains("--from-parent")).map(|found| found.pid).collect()
}

#[test]
fn worker_process_that_somebody_ends_by_a_signal_is_replaced_and_nobody_is_charged() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    let out = sandbox.text("out");
    sandbox.arm("map");
    // A single charged failure would end the job.
    let arguments = ["submit", "wordcount", &input, "--attempts", "1", "--reduces", "1", "--output", &out];
    let client = sandbox.gristmill(arguments).start();
    let held = sandbox.stopped_at("map");
    assert_eq!(worker_processes(&sandbox), [held]);
    // The second signal ends it at once.
    process::signal(held, Signal::TERM);
    process::signal(held, Signal::INT);
    client.finish().expect_code(0).expect_words(&["1 lost with a worker", "succeeded"]);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"a\t2\nb\t1\n");
    let replaced = worker_processes(&sandbox);
    assert!(replaced.len() == 1 && replaced != [held], "{held} was followed by {replaced:?}");
    sandbox.go_on("map");
    // The same signal to the supervisor is a user's request for all of them.
    let mut standing = standing;
    let worker = standing.workers.remove(0);
    worker.signal(Signal::TERM);
    worker.finish().expect_code(0);
    assert_eq!(worker_processes(&sandbox), [0; 0], "the worker outlives whoever started it");
    assert!(oracle::names(&sandbox.path("tmp")).is_empty(), "it left its spill directory");
    standing.end();
}

#[test]
fn worker_whose_spill_directory_was_cleared_away_is_replaced_in_a_new_one() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b\na\n");
    // A worker that has just joined may still be creating files in its directory.
    sandbox.gristmill(["submit", "sort", &input]).finish().expect_code(0);
    let directories = oracle::names(&sandbox.path("tmp"));
    assert_eq!(directories.len(), 1);
    // Systems do this to temporary directories that were not used for long.
    std::fs::remove_dir_all(sandbox.path("tmp").join(&directories[0])).unwrap();
    let before = worker_processes(&sandbox);
    process::kill(before[0]);
    until("another worker process", || {
        let now = worker_processes(&sandbox);
        (now.len() == 1 && now != before).then_some(())
    });
    let printed = sandbox.gristmill(["submit", "sort", &input]).finish().expect_code(0);
    assert_eq!(printed.stdout_text(), "a\nb\n");
    assert_eq!(oracle::names(&sandbox.path("tmp")), directories);
    standing.end();
}

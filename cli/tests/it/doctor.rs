//! Findings of `gristmill cluster doctor` about faults in real processes, one at a time: each is named, with a
//! remedy.
//!
//! Cut routes between hosts are in `cuts`.

use crate::cluster::other_build;
use crate::faults::shim;
use crate::support::sandbox::{Finished, PROGRAM};
use crate::support::standing::{Standing, await_join_line, start_worker};
use crate::support::{Sandbox, process, until};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time of the doctor with a worker that hangs. It waits 3 s for the worker, and a busy machine adds
/// to that. The 30 s timeout of other requests would exceed it.
const STANDS_STILL_TIME_MAX: Duration = Duration::from_secs(20);

/// Checks the findings of the doctor: this many, each with a remedy, and these words among them.
fn finds(finished: Finished, findings: usize, words: &str) {
    let said = finished.expect_code(1).stdout_text();
    assert_eq!(said.matches("wrong: ").count(), findings, "{said}");
    assert_eq!(said.matches("\n  do:  ").count(), findings, "{said}");
    assert!(said.contains(words), "{words}: {said}");
}

fn doctor(sandbox: &Sandbox, flags: &[&str]) -> Finished {
    sandbox.gristmill([&["doctor"], flags].concat()).finish()
}

fn is_healthy(sandbox: &Sandbox, words: &str) {
    let said = doctor(sandbox, &["--workers", "1"]).expect_code(0).stdout_text();
    assert!(said.starts_with("nothing is wrong: ") && said.contains(words), "{said}");
}

#[test]
fn doctor_names_each_fault_of_a_machine_that_is_put_into_it_and_none_of_a_healthy_one() {
    let sandbox = Sandbox::new();
    is_healthy(&sandbox, "no master is known here");
    let missing = sandbox.text("nowhere");
    for (flags, words) in [
        (["--memory", "900TiB"], "--memory is 900"),
        (["--disk-reserve", "900TiB"], "less than the 900"),
        (["--spill-dir", missing.as_str()], "nothing can be written to the spill directory"),
    ] {
        finds(doctor(&sandbox, &flags), 1, words);
    }
    let script = "ulimit -n 256; exec \"$0\" doctor --workers 1";
    let few = sandbox.program(Path::new("sh"), ["-c", script, PROGRAM]).finish();
    finds(few, 1, "may have 256 files");
}

#[test]
fn doctor_names_each_fault_of_a_cluster_that_is_put_into_it_and_none_of_a_healthy_one() {
    let sandbox = Sandbox::new();
    // The master must not give up the worker stopped below before the doctor has run.
    sandbox.write("faults/master.silence", "600000");
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    finds(doctor(&sandbox, &[]), 1, "the master has no workers");
    let workers = vec![start_worker(&sandbox), start_worker(&sandbox)];
    let standing = Standing::new(&sandbox, master, workers, join);
    standing.await_workers(2);
    is_healthy(&sandbox, "the master and 2 workers");
    finds(sandbox.program(&other_build(&sandbox), ["doctor"]).finish(), 1, "this program is build ");

    // It still accepts connections but sends no responses, neither to clients nor to the other worker.
    let pid = standing.worker_pids()[0];
    process::signal(pid, Signal::STOP);
    until("a worker to stand still", || process::is_stopped(pid).then_some(()));
    let asked = Instant::now();
    let looked = doctor(&sandbox, &[]);
    assert!(asked.elapsed() < STANDS_STILL_TIME_MAX, "took {:?}", asked.elapsed());
    finds(looked, 1, &format!(" hangs: its process {pid} accepts connections"));
    process::signal(pid, Signal::CONT);
    until("the worker to answer", || (doctor(&sandbox, &[]).status.code() == Some(0)).then_some(()));

    let line = sandbox.write_private("old-join", &standing.join.text);
    standing.end();
    finds(doctor(&sandbox, &["--join", &line]), 1, "could not be reached");
}

#[test]
fn doctor_names_a_worker_that_was_given_up_until_its_process_has_ended() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 2);
    let pid = standing.worker_pids()[0];
    process::signal(pid, Signal::STOP);
    standing.await_workers(1);
    finds(
        doctor(&sandbox, &[]),
        1,
        &format!(", as it sent nothing; the end of its process {pid} was not reported"),
    );
    // Its supervisor reports its end and starts another.
    process::kill(pid);
    standing.await_workers(2);
    is_healthy(&sandbox, "the master and 2 workers");
    standing.end();
}

#[test]
fn doctor_names_a_worker_whose_clock_is_another() {
    let sandbox = Sandbox::new();
    let Some((name, library)) = shim::environment(&sandbox) else { return };
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    let worker = sandbox.gristmill(["worker", "--workers", "1", "--slots", "1"]).env(&name, library).start();
    let standing = Standing::new(&sandbox, master, vec![worker], join);
    standing.await_workers(1);
    is_healthy(&sandbox, "the master and 1 worker,");
    fs::write(sandbox.path("faults/shim.clock"), "100").unwrap();
    finds(doctor(&sandbox, &[]), 1, "the clock of worker-1 on ");
    standing.end();
}

#[test]
fn doctor_tells_a_token_that_opens_nothing_and_a_file_that_is_no_join_line_from_a_master_that_is_gone() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let line = fs::read_to_string(sandbox.path("state/join")).unwrap();
    let (place, token) = line.trim().rsplit_once(':').unwrap();
    let other = format!("{}{}", if token.starts_with('A') { 'B' } else { 'A' }, &token[1..]);
    let wrong = sandbox.write_private("wrong", format!("{place}:{other}\n"));
    let garbage = sandbox.write_private("garbage", "no line of ours\n");
    for (file, words) in
        [(&wrong, "do:  use a join line of this master"), (&garbage, "do:  fix the file with the join line")]
    {
        finds(doctor(&sandbox, &["--join", file, "--workers", "1"]), 1, words);
    }
    standing.end();
}

//! A master that is killed and started again in its state directory. Its workers reconnect, its jobs
//! continue, and no finished work is repeated.

use crate::support::data::Random;
use crate::support::oracle::{self, counts_of_parts, parts, word_counts};
use crate::support::sandbox::Running;
use crate::support::standing::{Standing, await_join_line};
use crate::support::{Sandbox, process, until};
use rustix::process::Signal;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Bytes of input of a map.
const SPLIT_BYTES: usize = 8 << 10;

/// A job that counts words with several maps and reduces, submitted to a running cluster.
struct Counting<'a> {
    sandbox: &'a Sandbox,
    text: Vec<u8>,
    job: String,
}

impl<'a> Counting<'a> {
    const MAPS: u64 = 8;
    const REDUCES: u64 = 3;

    fn submit(sandbox: &'a Sandbox) -> Self {
        let mut text = Random::seeded(16).text(Self::MAPS as usize * SPLIT_BYTES, &[" ", "\n"]);
        text.truncate(Self::MAPS as usize * SPLIT_BYTES);
        let input = sandbox.write("text", &text);
        let output = sandbox.text("out");
        let arguments = ["submit", "wordcount", &input, "--detach", "--split-size", "8KiB", "--reduces", "3"];
        let submitted = sandbox.gristmill([&arguments[..], &["--output", &output]].concat()).finish();
        let job = submitted.expect_code(0).stdout_text().trim().to_owned();
        Self { sandbox, text, job }
    }

    /// Starts the job on a cluster of two workers. One of them is stopped in a map while the other does the
    /// rest.
    fn held_in_its_last_map(sandbox: &'a Sandbox) -> (Standing<'a>, Self) {
        let standing = Standing::start(sandbox, 2);
        sandbox.arm("map");
        let counting = Self::submit(sandbox);
        sandbox.stopped_at("map");
        counting.await_maps(&standing, Self::MAPS - 1);
        (standing, counting)
    }

    /// Waits for its end: it must succeed with exactly the right output. Returns its status then.
    fn ends_well(&self) -> Value {
        self.sandbox.gristmill(["wait", &self.job, "--quiet"]).finish().expect_code(0);
        let status = self.sandbox.gristmill(["status", &self.job, "--json"]).finish().expect_code(0).json();
        assert_eq!(counts_of_parts(&parts(&self.sandbox.path("out"))), word_counts(&self.text));
        status
    }

    /// Waits until this many of its maps are done.
    fn await_maps(&self, standing: &Standing<'_>, count: u64) {
        until(&format!("{count} maps to be done"), || {
            let done = standing.job(&self.job)["maps"]["done"].as_u64().unwrap();
            (count <= done).then_some(())
        });
    }
}

/// Signals that end a master before its replacement: without notice, and as a service manager, a terminal and
/// a user end it.
const DEATHS: [Signal; 4] = [Signal::KILL, Signal::TERM, Signal::HUP, Signal::INT];

/// Ends the master with this signal; its workers keep running.
fn end_master(standing: Standing<'_>, death: Signal) -> Vec<Running> {
    let Standing { master, workers, .. } = standing;
    master.signal(death);
    let ended = master.finish();
    if matches!(death, Signal::TERM | Signal::INT) {
        ended.expect_code(0);
    }
    workers
}

/// Kills the master; its workers keep running.
fn kill_master(standing: Standing<'_>) -> Vec<Running> {
    end_master(standing, Signal::KILL)
}

/// Ends the master and starts another in its place, while its workers keep running.
fn replace_master<'a>(sandbox: &'a Sandbox, standing: Standing<'a>, death: Signal) -> Standing<'a> {
    let workers = end_master(standing, death);
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    let standing = Standing::new(sandbox, master, workers, join);
    standing.await_workers(standing.workers.len());
    standing
}

/// Checks that no task ran twice and no map output was lost.
fn assert_nothing_twice(status: &Value) {
    let attempts = &status["attempts"];
    assert_eq!(attempts["launched"], Counting::MAPS + Counting::REDUCES, "{attempts}");
    assert_eq!(attempts["maps_rerun"], 0, "{attempts}");
}

#[test]
fn job_goes_on_and_nothing_is_done_twice_however_its_master_ends_between_maps() {
    for death in DEATHS {
        let sandbox = Sandbox::new();
        let (standing, counting) = Counting::held_in_its_last_map(&sandbox);
        let standing = replace_master(&sandbox, standing, death);
        let done = &standing.job(&counting.job)["maps"]["done"];
        assert_eq!(*done, Counting::MAPS - 1, "known to the next master after {death:?}");
        sandbox.go_on("map");
        assert_nothing_twice(&counting.ends_well());
        standing.end();
    }
}

#[test]
fn what_workers_did_while_no_master_was_there_is_entered_by_the_next() {
    for death in DEATHS {
        let sandbox = Sandbox::new();
        let (standing, counting) = Counting::held_in_its_last_map(&sandbox);
        let workers = end_master(standing, death);
        // It ends now, and its worker has no master to report to.
        sandbox.go_on("map");
        let master = sandbox.gristmill(["master"]).start();
        let join = await_join_line(&master);
        let standing = Standing::new(&sandbox, master, workers, join);
        assert_nothing_twice(&counting.ends_well());
        standing.end();
    }
}

/// Stops a worker at this place, replaces the master, and lets the worker continue.
fn master_is_replaced_while_a_worker_is_at(place: &str) {
    for death in [Signal::KILL, Signal::TERM] {
        let sandbox = Sandbox::new();
        let standing = Standing::start(&sandbox, 2);
        sandbox.arm(place);
        let counting = Counting::submit(&sandbox);
        sandbox.stopped_at(place);
        let standing = replace_master(&sandbox, standing, death);
        sandbox.go_on(place);
        assert_nothing_twice(&counting.ends_well());
        standing.end();
    }
}

#[test]
fn nothing_is_done_twice_when_the_master_is_killed_during_the_shuffle() {
    master_is_replaced_while_a_worker_is_at("fetch");
}

#[test]
fn nothing_is_done_twice_when_the_master_is_killed_during_a_reduce() {
    master_is_replaced_while_a_worker_is_at("reduce");
}

#[test]
fn attempt_that_may_hand_in_its_part_does_so_under_the_next_master() {
    master_is_replaced_while_a_worker_is_at("commit.before");
}

#[test]
fn part_that_was_handed_in_and_not_reported_counts_under_the_next_master() {
    master_is_replaced_while_a_worker_is_at("commit.after");
}

/// Kills the master at this place while it closes the output; the next master must finish that.
fn master_is_killed_while_it_closes_the_output_at(place: &str) {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 2);
    sandbox.arm(place);
    let counting = Counting::submit(&sandbox);
    let Standing { master, workers, .. } = standing;
    assert_eq!(sandbox.kill_at(place), master.pid());
    master.finish();
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    let standing = Standing::new(&sandbox, master, workers, join);
    assert_nothing_twice(&counting.ends_well());
    let left = oracle::names(&sandbox.path("out"));
    assert_eq!(left, ["_SUCCESS", "part-00000", "part-00001", "part-00002"]);
    standing.await_workers(2);
    standing.end();
}

#[test]
fn output_is_completed_by_the_next_master_when_one_is_killed_between_two_parts() {
    master_is_killed_while_it_closes_the_output_at("output.renamed");
}

#[test]
fn output_is_completed_by_the_next_master_when_one_is_killed_between_the_last_part_and_success() {
    master_is_killed_while_it_closes_the_output_at("output.all-renamed");
}

#[test]
fn complete_output_is_found_by_the_next_master_when_one_is_killed_before_it_says_so() {
    master_is_killed_while_it_closes_the_output_at("output.complete");
}

#[test]
fn complete_output_is_found_by_the_next_master_when_one_is_killed_after_it_cleared_up() {
    master_is_killed_while_it_closes_the_output_at("output.cleared");
}

#[test]
fn worker_that_died_while_no_master_was_there_is_given_up_and_its_work_done_by_others() {
    let sandbox = Sandbox::new();
    let mut standing = Standing::start(&sandbox, 2);
    sandbox.arm("map");
    let counting = Counting::submit(&sandbox);
    sandbox.stopped_at("map");
    counting.await_maps(&standing, Counting::MAPS - 1);
    standing.master.signal(Signal::KILL);
    let Standing { master, workers, .. } = standing;
    master.finish();
    sandbox.kill_at("map");
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    standing = Standing::new(&sandbox, master, workers, join);
    let status = counting.ends_well();
    assert!(Counting::MAPS + Counting::REDUCES < status["attempts"]["launched"].as_u64().unwrap());
    standing.end();
}

#[test]
fn job_goes_on_with_new_workers_when_all_processes_are_killed_at_once() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 2);
    sandbox.arm("reduce");
    let counting = Counting::submit(&sandbox);
    sandbox.stopped_at("reduce");
    sandbox.processes().iter().for_each(|found| process::signal(found.pid, Signal::STOP));
    sandbox.processes().iter().for_each(|found| process::signal(found.pid, Signal::KILL));
    standing.master.finish();
    standing.workers.into_iter().for_each(|worker| drop(worker.finish()));
    sandbox.go_on("reduce");
    std::fs::remove_file(sandbox.path("state/join")).unwrap();
    let standing = Standing::start(&sandbox, 2);
    counting.ends_well();
    standing.end();
}

#[test]
fn job_that_was_done_is_told_as_done_and_not_run_again() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let counting = Counting::submit(&sandbox);
    assert_nothing_twice(&counting.ends_well());
    let standing = replace_master(&sandbox, standing, Signal::KILL);
    assert_nothing_twice(&counting.ends_well());
    standing.end();
}

#[test]
fn worker_whose_master_does_not_come_back_gives_up_in_the_end() {
    let sandbox = Sandbox::new();
    sandbox.write("faults/worker.orphaned", "300");
    let Standing { master, workers, .. } = Standing::start(&sandbox, 1);
    master.signal(Signal::KILL);
    master.finish();
    for worker in workers {
        // Its process has started again, found no master, and waits for one like any new worker.
        until("a worker that waits", || worker.stderr().contains("not reachable yet").then_some(()));
        worker.signal(Signal::TERM);
        worker.finish();
    }
}

#[test]
fn last_line_that_was_not_written_to_its_end_is_cut_off_and_the_job_goes_on() {
    let sandbox = Sandbox::new();
    let (standing, counting) = Counting::held_in_its_last_map(&sandbox);
    let workers = kill_master(standing);
    let journal = sandbox.path("state/recovery");
    let mut written = std::fs::read(&journal).unwrap();
    written.extend_from_slice(b"01234567 j {\"instant\":");
    std::fs::write(&journal, written).unwrap();
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    assert!(master.stderr().contains("was not written to its end"), "{}", master.stderr());
    let standing = Standing::new(&sandbox, master, workers, join);
    sandbox.go_on("map");
    assert_nothing_twice(&counting.ends_well());
    standing.end();
}

#[test]
fn damaged_journal_is_refused_with_its_place_and_not_touched() {
    let sandbox = Sandbox::new();
    let Standing { master, workers, .. } = Standing::start(&sandbox, 1);
    master.signal(Signal::KILL);
    master.finish();
    for worker in workers {
        worker.signal(Signal::TERM);
        worker.finish();
    }
    let journal = sandbox.path("state/recovery");
    let mut written = std::fs::read(&journal).unwrap();
    let second = 1 + written.iter().position(|byte| *byte == b'\n').unwrap();
    written[second + 20] ^= 1;
    std::fs::write(&journal, &written).unwrap();
    let refused = sandbox.gristmill(["master"]).finish();
    refused
        .expect_code(3)
        .expect_words(&[&format!("the line at byte {second} is damaged"), "state/recovery"]);
    assert_eq!(std::fs::read(&journal).unwrap(), written);
}

#[test]
fn worker_that_is_killed_while_its_master_is_away_is_replaced_by_one_that_waits_as_long_as_the_others() {
    const USUAL: Duration = Duration::from_millis(300);
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let killed = standing.worker_pids()[0];
    let workers = kill_master(standing);
    sandbox.write("faults/worker.join", USUAL.as_millis().to_string());
    // A process that has lived for two seconds counts as working.
    let start = Instant::now();
    until("a worker that has worked", || (Duration::from_secs(2) < start.elapsed()).then_some(()));
    process::kill(killed);
    let another = || process::children(workers[0].pid()).into_iter().find(|pid| *pid != killed);
    let replaced = until("a worker in its place", another);
    let start = Instant::now();
    until("the end of the usual patience", || (4 * USUAL < start.elapsed()).then_some(()));
    assert!(process::is_alive(replaced), "{}", workers[0].stderr());
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    let standing = Standing::new(&sandbox, master, workers, join);
    standing.await_workers(1);
    assert_eq!(standing.worker_pids(), [replaced]);
    standing.end();
}

/// A job whose client stays attached, on a cluster of two workers one of which is stopped in a map.
fn attached_and_held(sandbox: &Sandbox) -> (Standing<'_>, Running, Vec<u8>) {
    let standing = Standing::start(sandbox, 2);
    sandbox.arm("map");
    let text = Random::seeded(17).text(4 * SPLIT_BYTES, &[" ", "\n"]);
    let (input, output) = (sandbox.write("text", &text), sandbox.text("out"));
    let arguments = ["submit", "wordcount", &input, "--split-size", "8KiB", "--output", &output];
    let submit = sandbox.gristmill(arguments).start();
    sandbox.stopped_at("map");
    // It knows the number of its job.
    until("the first word of the job", || submit.stderr().contains("job-1").then_some(()));
    (standing, submit, text)
}

#[test]
fn attached_submit_follows_its_job_to_the_end_when_the_master_ends_and_is_started_anew() {
    for death in DEATHS {
        let sandbox = Sandbox::new();
        let (standing, submit, text) = attached_and_held(&sandbox);
        let standing = replace_master(&sandbox, standing, death);
        sandbox.go_on("map");
        let said = submit.finish().expect_code(0);
        said.expect_words(&["looking for it, or for the one that comes in its place"]);
        assert_eq!(counts_of_parts(&parts(&sandbox.path("out"))), word_counts(&text));
        assert_eq!(standing.job("job-1")["attempts"]["maps_rerun"], 0);
        standing.end();
    }
}

#[test]
fn submission_whose_answer_is_lost_with_the_master_is_asked_again_and_taken_once() {
    for (place, detach) in
        [("submit.read", false), ("submit.read", true), ("submit.taken", false), ("submit.taken", true)]
    {
        let sandbox = Sandbox::new();
        let Standing { master, workers, .. } = Standing::start(&sandbox, 1);
        let (input, output) = (sandbox.write("text", "b a\na\n"), sandbox.text("out"));
        sandbox.arm(place);
        let arguments = ["submit", "wordcount", &input, "--reduces", "1", "--output", &output];
        let flags: &[&str] = if detach { &["--detach"] } else { &[] };
        let submit = sandbox.gristmill([&arguments[..], flags].concat()).start();
        assert_eq!(sandbox.kill_at(place), master.pid());
        master.finish();
        let master = sandbox.gristmill(["master"]).start();
        let join = await_join_line(&master);
        submit.finish().expect_code(0).expect_words(&["is asked again for 60 s"]);
        let standing = Standing::new(&sandbox, master, workers, join);
        let jobs = sandbox.gristmill(["jobs", "--json"]).finish().expect_code(0).json();
        assert_eq!(jobs.as_array().unwrap().len(), 1, "{place}, {detach}: {jobs}");
        sandbox.gristmill(["wait", &jobs[0]["job"].to_string(), "--quiet"]).finish().expect_code(0);
        assert_eq!(oracle::names(&sandbox.path("out")), ["_SUCCESS", "part-00000"]);
        standing.await_workers(1);
        standing.end();
    }
}

#[test]
fn submission_waits_for_a_master_that_is_about_to_start_again() {
    let sandbox = Sandbox::new();
    let workers = end_master(Standing::start(&sandbox, 1), Signal::TERM);
    let (input, output) = (sandbox.write("text", "b a\na\n"), sandbox.text("out"));
    let submit = sandbox.gristmill(["submit", "wordcount", &input, "--output", &output]).start();
    until("a word that it waits", || submit.stderr().contains("is asked again for 60 s").then_some(()));
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    submit.finish().expect_code(0);
    Standing::new(&sandbox, master, workers, join).end();
}

#[test]
fn second_signal_abandons_jobs_and_says_how_many() {
    let sandbox = Sandbox::new();
    let (standing, counting) = Counting::held_in_its_last_map(&sandbox);
    let Standing { master, workers, .. } = standing;
    master.signal(Signal::INT);
    until("a word on the first signal", || {
        master.stderr().contains("keeps 1 job for the next").then_some(())
    });
    master.signal(Signal::INT);
    until("a word on the second", || {
        master.stderr().contains("ends for good: 1 job abandoned").then_some(())
    });
    sandbox.go_on("map");
    master.finish().expect_code(0);
    workers.into_iter().for_each(|worker| drop(worker.finish().expect_code(0)));
    assert!(!sandbox.path("out").exists() && !sandbox.path("state/join").exists());
    let standing = Standing::start(&sandbox, 0);
    sandbox.gristmill(["wait", &counting.job]).finish().expect_code(5).expect_words(&["was lost"]);
    standing.end();
}

/// Starts another master for the only worker of a cluster, and waits until the master has published the output of its job.
fn next_master_publishes(sandbox: &Sandbox, workers: Vec<Running>) {
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    sandbox.gristmill(["wait", "job-1", "--quiet"]).finish().expect_code(0);
    assert_eq!(oracle::names(&sandbox.path("out")), ["_SUCCESS", "part-00000"]);
    let standing = Standing::new(sandbox, master, workers, join);
    standing.await_workers(1);
    standing.end();
}

#[test]
fn job_whose_client_died_while_it_published_ends_under_the_third_master_in_order() {
    for place in ["output.renamed", "output.all-renamed"] {
        let sandbox = Sandbox::new();
        let standing = Standing::start(&sandbox, 1);
        sandbox.arm(place);
        let (input, output) = (sandbox.write("text", "b a\na\n"), sandbox.text("out"));
        let submit = sandbox.gristmill(["submit", "wordcount", &input, "--output", &output]).start();
        assert_eq!(sandbox.kill_at(place), submit.pid());
        submit.finish();
        let standing = replace_master(&sandbox, standing, Signal::KILL);
        assert_eq!(standing.job("job-1")["state"], "publishing");
        let workers = end_master(standing, Signal::TERM);
        // The limit has passed by now: it counts from when the master first noticed the client's absence.
        sandbox.write("faults/master.client", "1");
        next_master_publishes(&sandbox, workers);
    }
}

#[test]
fn job_whose_client_and_then_whose_master_died_while_they_published_ends_under_the_next_master() {
    let sandbox = Sandbox::new();
    sandbox.write("faults/master.client", "1");
    let standing = Standing::start(&sandbox, 1);
    sandbox.arm("output.renamed");
    let (input, output) = (sandbox.write("text", "b a\na\n"), sandbox.text("out"));
    let submit = sandbox.gristmill(["submit", "wordcount", &input, "--output", &output]).start();
    sandbox.stopped_at("output.renamed");
    sandbox.arm("output.all-renamed");
    assert_eq!(sandbox.kill_at("output.renamed"), submit.pid());
    submit.finish();
    let Standing { master, workers, .. } = standing;
    assert_eq!(sandbox.kill_at("output.all-renamed"), master.pid(), "it publishes in the client's place");
    master.finish();
    next_master_publishes(&sandbox, workers);
}

#[test]
fn attached_submit_gives_up_with_the_code_of_a_lost_cluster_when_no_master_comes() {
    let sandbox = Sandbox::new();
    sandbox.write("faults/client.patience", "500");
    sandbox.write("faults/worker.orphaned", "500");
    let (standing, submit, _) = attached_and_held(&sandbox);
    let workers = kill_master(standing);
    let said = submit.finish().expect_code(5);
    assert!(said.stderr.contains("lost sight of job-1: the master at 127.0.0.1:"), "{}", said.stderr);
    assert!(!sandbox.path("out").exists(), "the claim on the output is given back");
    sandbox.go_on("map");
    for worker in workers {
        worker.signal(Signal::TERM);
        worker.finish();
    }
}

#[test]
fn client_that_does_not_come_back_costs_its_job_under_the_next_master_too() {
    let sandbox = Sandbox::new();
    let (standing, submit, _) = attached_and_held(&sandbox);
    let workers = kill_master(standing);
    submit.signal(Signal::KILL);
    submit.finish();
    sandbox.write("faults/master.client", "300");
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    let standing = Standing::new(&sandbox, master, workers, join);
    let waited = sandbox.gristmill(["wait", "job-1", "--quiet"]).finish().expect_code(5);
    sandbox.go_on("map");
    assert!(waited.stderr.contains("client"), "{}", waited.stderr);
    standing.end();
}

//! Workers that leave in good order while a job is running.

use crate::support::data::Random;
use crate::support::sandbox::{Running, Sandbox};
use crate::support::standing::Standing;
use crate::support::{oracle, process, until};
use rustix::process::Signal;

/// A job on two workers, one of which is stopped in the middle of a map.
struct Held<'a> {
    standing: Standing<'a>,
    client: Running,
    text: Vec<u8>,
    /// The stopped worker process.
    held: u32,
}

impl<'a> Held<'a> {
    fn start(sandbox: &'a Sandbox, seed: u64) -> Self {
        let standing = Standing::start(sandbox, 2);
        let text = Random::seeded(seed).text(60_000, &[" ", "\n"]);
        let (input, out) = (sandbox.write("text", &text), sandbox.text("out"));
        sandbox.arm("map");
        let flags = ["--split-size", "4KiB", "--reduces", "4", "--json", "--output", &out];
        let client = sandbox.gristmill([&["submit", "wordcount", &input], &flags[..]].concat()).start();
        let held = sandbox.stopped_at("map");
        Self { standing, client, text, held }
    }

    /// Removes the supervisor of the stopped process from the running cluster.
    fn take_parent(&mut self) -> Running {
        let parent = process::parent_of(self.held).unwrap();
        let of_it = self.standing.workers.iter().position(|worker| worker.pid() == parent).unwrap();
        self.standing.workers.remove(of_it)
    }

    /// Returns when the master has received a worker's request to leave.
    fn await_asked(&self) {
        until("a worker that is to leave", || {
            self.standing.master.stderr().contains("is to leave").then_some(())
        });
    }

    /// Lets the job end. Returns the number of extra launches, the number of lost attempts, and the cluster.
    fn finish(self, sandbox: &Sandbox) -> (u64, u64, Standing<'a>) {
        let report = self.client.finish().expect_code(0).json();
        assert!(
            oracle::counts_of_parts(&oracle::parts(&sandbox.path("out"))) == oracle::word_counts(&self.text)
        );
        let maps = report["status"]["maps"]["total"].as_u64().unwrap();
        let count = |name: &str| report["status"]["attempts"][name].as_u64().unwrap();
        (count("launched") - count("returned") - maps - 4, count("lost"), self.standing)
    }
}

#[test]
fn worker_that_is_drained_ends_what_it_runs_and_nothing_runs_again() {
    let sandbox = Sandbox::new();
    let mut held = Held::start(&sandbox, 171);
    let status = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
    let mut workers = status["workers"].as_array().unwrap().iter();
    let leaving = workers.find(|worker| worker["pid"] == held.held).unwrap();
    let name = format!("worker-{}", leaving["worker"]);
    let parent = held.take_parent();
    let drained = sandbox.gristmill(["drain", &name]).finish().expect_code(0);
    drained.expect_words(&[&format!("{name} leaves once its tasks have ended")]);
    held.standing.await_workers(2);
    sandbox.go_on("map");
    let (again, lost, standing) = held.finish(&sandbox);
    assert_eq!((again, lost), (0, 0));
    standing.await_workers(1);
    // Its supervisor starts no replacement.
    parent.finish().expect_code(0);
    let said = standing.master.stderr();
    assert!(
        said.contains("is to leave") && !said.contains("set aside"),
        "nothing is wrong with its ways: {said}"
    );
    standing.end();
}

#[test]
fn worker_that_is_told_to_end_by_a_signal_ends_what_it_runs_and_nothing_runs_again() {
    for (seed, signal) in [(172, Signal::TERM), (173, Signal::INT)] {
        let sandbox = Sandbox::new();
        let mut held = Held::start(&sandbox, seed);
        let parent = held.take_parent();
        parent.signal(signal);
        held.await_asked();
        sandbox.go_on("map");
        let (again, lost, standing) = held.finish(&sandbox);
        assert_eq!((again, lost), (0, 0), "{signal:?}");
        parent.finish().expect_code(0).expect_words(&["leaving", "a second signal ends it at once"]);
        standing.await_workers(1);
        standing.end();
    }
}

#[test]
fn worker_process_that_gets_the_signal_itself_leaves_in_good_order_and_is_replaced() {
    let sandbox = Sandbox::new();
    let held = Held::start(&sandbox, 174);
    process::signal(held.held, Signal::TERM);
    held.await_asked();
    sandbox.go_on("map");
    let left = held.held;
    let (again, lost, standing) = held.finish(&sandbox);
    assert_eq!((again, lost), (0, 0));
    until("another process in its place", || {
        let now = standing.worker_pids();
        (now.len() == 2 && !now.contains(&left)).then_some(())
    });
    standing.end();
}

#[test]
fn second_signal_ends_a_worker_at_once_and_its_work_runs_elsewhere() {
    let sandbox = Sandbox::new();
    let mut held = Held::start(&sandbox, 175);
    let parent = held.take_parent();
    parent.signal(Signal::TERM);
    held.await_asked();
    parent.signal(Signal::TERM);
    parent.finish().expect_code(0).expect_words(&["ending at once"]);
    sandbox.go_on("map");
    let (again, lost, standing) = held.finish(&sandbox);
    assert!(1 <= again && lost == 1, "{again} again, {lost} lost");
    standing.end();
}

#[test]
fn worker_that_does_not_come_to_leave_in_good_order_ends_after_a_while_all_the_same() {
    let sandbox = Sandbox::new();
    sandbox.write("faults/worker.leave", "300");
    let mut held = Held::start(&sandbox, 176);
    let parent = held.take_parent();
    parent.signal(Signal::TERM);
    parent.finish().expect_code(0).expect_words(&["not left in good order in time"]);
    sandbox.go_on("map");
    let (again, lost, standing) = held.finish(&sandbox);
    assert!(1 <= again && lost == 1, "{again} again, {lost} lost");
    standing.end();
}

#[test]
fn drain_of_a_worker_that_is_not_there_is_refused_by_name() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let refused = sandbox.gristmill(["drain", "worker-9"]).finish().expect_code(2);
    refused.expect_words(&["there is no worker-9", "gristmill cluster status"]);
    standing.end();
}

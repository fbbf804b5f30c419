//! Routes between hosts that are cut while the master reaches all hosts: jobs must find a detour in time.
//!
//! Hosts are network namespaces, so this needs root; otherwise the tests report that they are skipped.
//! Nothing is refused or reset: data sent over a cut route does not arrive.

use crate::support::data::{Random, tool};
use crate::support::namespace::Network;
use crate::support::sandbox::{Running, Sandbox};
use crate::support::standing::await_join_line;
use crate::support::{is_root, oracle, until};
use rustix::process::Signal;
use serde_json::Value;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Number of the master's host.
const MASTER: u8 = 1;
const WORKERS: [u8; 3] = [2, 3, 4];
const SUBMITTER: u8 = 5;

/// Timeout of a connection to a host that is known to exist.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum time of a job of a second or two when a route is cut. The cut is known within 5 s, and the job
/// must end at most 10 s later.
const JOB_TIME_MAX: Duration = Duration::from_secs(15);

fn possible(what: &str) -> bool {
    is_root(what) && tool("ip", what) && tool("unshare", what)
}

/// A master and three workers, each on a host of its own.
struct Hosts<'a> {
    sandbox: &'a Sandbox,
    network: Network,
    processes: Vec<Running>,
    join: String,
}

impl<'a> Hosts<'a> {
    fn start(sandbox: &'a Sandbox) -> Self {
        let network = Network::new(SUBMITTER);
        let listen = SocketAddr::new(network.address(MASTER), 0).to_string();
        let master =
            network.gristmill(sandbox, MASTER, "", &["master", "--listen", &listen, "--allow-root"]).start();
        let join = sandbox.write_private("join-line", &await_join_line(&master).text);
        let mut hosts = Self { sandbox, network, processes: vec![master], join };
        for host in WORKERS {
            let flags = ["worker", "--workers", "1", "--slots", "2", "--join", &hosts.join, "--allow-root"];
            let worker = hosts.network.gristmill(sandbox, host, "", &flags).start();
            hosts.processes.push(worker);
            // In sequence, so that the first is worker-1.
            until("a worker", || {
                let status = hosts.command(&["status", "--json"]);
                (status["workers"].as_array()?.len() + 1 == hosts.processes.len()).then_some(())
            });
        }
        hosts
    }

    fn command(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--join", &self.join]].concat();
        let command = self.network.gristmill(self.sandbox, SUBMITTER, "", &arguments);
        command.finish().expect_code(0).json()
    }

    /// Cuts the routes between two hosts, and proves it.
    fn cut(&self, one: u8, other: u8) {
        self.network.cut(one, other);
        self.network.cut(other, one);
        let door = self.network.on(other, || TcpListener::bind("0.0.0.0:0").unwrap());
        let target = SocketAddr::new(self.network.address(other), door.local_addr().unwrap().port());
        let reached = self.network.on(one, || TcpStream::connect_timeout(&target, CONNECT_TIMEOUT).is_ok());
        assert!(!reached, "host {one} still reaches host {other}");
    }

    /// Counts words in this many maps and compares the counts. Returns the report and the time that it took.
    fn count_words(&self, name: &str) -> (Value, Duration) {
        let text = Random::seeded(161).text(400_000, &[" ", "\n"]);
        let (input, out) = (self.sandbox.write("text", &text), self.sandbox.text(name));
        let begun = Instant::now();
        let fixed = ["submit", "wordcount", &input, "--allow-root", "--json", "--output", &out];
        let report = self.command(&[&fixed[..], &["--split-size", "16KiB", "--reduces", "6"]].concat());
        let took = begun.elapsed();
        let parts = oracle::parts(&self.sandbox.path(name));
        assert!(oracle::counts_of_parts(&parts) == oracle::word_counts(&text), "wrong counts");
        (report, took)
    }

    fn end(mut self) {
        // Workers first: otherwise they wait for the next master.
        self.processes.reverse();
        for process in self.processes {
            process.signal(Signal::TERM);
            process.finish().expect_code(0);
        }
        self.sandbox.assert_nothing_left();
    }
}

/// Returns the names of the workers that the master knows.
fn workers(hosts: &Hosts<'_>) -> Vec<String> {
    let status = hosts.command(&["status", "--json"]);
    let workers = status["workers"].as_array().unwrap().iter();
    workers.map(|worker| worker["worker"].to_string()).collect()
}

/// Checks that a job reported cut routes and ended in time.
fn found_a_way_round((report, took): &(Value, Duration)) {
    let said = report.to_string();
    assert!(said.contains("could not fetch"), "no fetch failed: {said}");
    assert!(said.contains("is set aside"), "nobody was set aside: {said}");
    assert!(*took < JOB_TIME_MAX, "took {took:?}");
}

#[test]
fn job_goes_round_two_workers_that_do_not_reach_each_other() {
    if !possible("a cut between two hosts") {
        return;
    }
    let sandbox = Sandbox::new();
    let hosts = Hosts::start(&sandbox);
    hosts.cut(WORKERS[0], WORKERS[1]);
    found_a_way_round(&hosts.count_words("first"));
    // The next job knows the cut.
    let (report, took) = hosts.count_words("second");
    assert!(!report.to_string().contains("could not fetch"), "{report}");
    assert!(took < JOB_TIME_MAX, "took {took:?}");
    hosts.end();
}

#[test]
fn job_goes_on_without_a_worker_that_is_cut_off_from_all_others() {
    if !possible("a host that is cut off from others") {
        return;
    }
    let sandbox = Sandbox::new();
    let hosts = Hosts::start(&sandbox);
    hosts.cut(WORKERS[1], WORKERS[0]);
    hosts.cut(WORKERS[1], WORKERS[2]);
    found_a_way_round(&hosts.count_words("out"));
    hosts.end();
}

#[test]
fn job_does_not_wait_for_a_worker_behind_a_slow_link() {
    if !possible("a slow link") || !tool("tc", "a slow link") {
        return;
    }
    let sandbox = Sandbox::new();
    let mut hosts = Hosts::start(&sandbox);
    hosts.network.throttle(WORKERS[1], "1mbit");
    let (out, begun) = (sandbox.text("out"), Instant::now());
    // A third of 48 MiB would take minutes over that link.
    let maps = ["--maps", "24", "--map-bytes", "2MiB", "--map-time", "50ms"];
    let fixed = ["submit", "synthetic", "--reduces", "6", "--allow-root", "--json", "--output", &out];
    let report = hosts.command(&[&fixed[..], &maps].concat());
    let took = begun.elapsed();
    assert!(report.to_string().contains("is set aside"), "{report}");
    assert!(took < JOB_TIME_MAX, "took {took:?}");
    assert!(100 < hosts.network.throttled(WORKERS[1]), "the link was not slow");
    // Packets queued there are retransmitted at growing intervals, and the notice of the master's end would
    // be lost behind them. So this worker leaves while its master is running.
    hosts.network.free(WORKERS[1]);
    let slow = hosts.processes.remove(2);
    slow.signal(Signal::TERM);
    slow.finish().expect_code(0);
    hosts.end();
}

#[test]
fn worker_that_hears_nothing_of_its_master_joins_anew_once_the_way_is_back() {
    if !possible("a master whose host vanishes") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("faults/worker.master_silence", "2000");
    let hosts = Hosts::start(&sandbox);
    let before = workers(&hosts);
    hosts.cut(MASTER, WORKERS[2]);
    until("the loss of the worker", || (workers(&hosts).len() == 2).then_some(()));
    for (from, to) in [(MASTER, WORKERS[2]), (WORKERS[2], MASTER)] {
        hosts.network.mend(from, to);
    }
    let now = until("its return", || Some(workers(&hosts)).filter(|now| now.len() == 3));
    assert!(now != before, "it has the old name: {now:?}");
    hosts.count_words("out");
    hosts.end();
}

#[test]
fn doctor_names_a_way_between_two_workers_that_is_cut_from_both_its_ends() {
    if !possible("ways that are cut, as the doctor sees them") {
        return;
    }
    let sandbox = Sandbox::new();
    let hosts = Hosts::start(&sandbox);
    let doctor =
        || hosts.network.gristmill(&sandbox, SUBMITTER, "", &["doctor", "--join", &hosts.join]).finish();
    doctor().expect_code(0);
    hosts.cut(WORKERS[0], WORKERS[1]);
    let said = doctor().expect_code(1).stdout_text();
    assert_eq!(said.matches("wrong: ").count(), 2, "{said}");
    for (one, other) in [(1, 2), (2, 1)] {
        let line = said.lines().find(|line| line.contains(&format!(" does not reach worker-{other} at ")));
        assert!(line.is_some_and(|line| line.starts_with(&format!("wrong: worker-{one} on "))), "{said}");
    }
    hosts.end();
}

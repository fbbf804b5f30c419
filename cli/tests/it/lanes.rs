//! Shares of the network: on a paced network the bytes follow the policy's decisions about the shuffle.
//!
//! All values are read from the traces of two jobs, in the master's clock.

use crate::support::http::request;
use crate::support::sandbox::Running;
use crate::support::standing::Standing;
use crate::support::{Sandbox, until};
use serde_json::Value;

/// Seconds after the first and before the last bytes of a job that are ignored.
const EDGE: f64 = 0.2;

/// Minimum bytes of a job for a judgement of its share: requests have 64 KiB each.
const BYTES_MIN: f64 = 4e5;

/// Returns a time of a trace in seconds.
fn seconds(record: &Value, name: &str) -> f64 {
    record[name].as_f64().unwrap() / 1e9
}

/// HTTP fetches of one worker: start, end and bytes.
struct Fetches(Vec<(f64, f64, f64)>);

impl Fetches {
    fn first(&self) -> f64 {
        self.0.iter().map(|fetch| fetch.0).fold(f64::INFINITY, f64::min)
    }

    fn last(&self) -> f64 {
        self.0.iter().map(|fetch| fetch.1).fold(0.0, f64::max)
    }

    /// Bytes between two moments, if those of each request arrived at a constant rate.
    fn bytes(&self, from: f64, to: f64) -> f64 {
        let part = |&(begin, end, bytes): &(f64, f64, f64)| {
            bytes * ((end.min(to) - begin.max(from)).max(0.0) / (end - begin).max(1e-9)).min(1.0)
        };
        self.0.iter().map(part).sum()
    }

    /// Bytes of the requests that started and ended between two moments.
    fn bytes_within(&self, from: f64, to: f64) -> f64 {
        self.0.iter().filter(|fetch| from < fetch.0 && fetch.1 < to).map(|fetch| fetch.2).sum()
    }
}

struct Trace(Value);

impl Trace {
    fn fetch(standing: &Standing<'_>, job: &str) -> Self {
        let host = standing.join.address.to_string();
        let token = format!("Bearer {}", standing.join.token);
        let headers = [("Host", host.as_str()), ("Authorization", token.as_str())];
        let path = format!("/api/v1/jobs/{job}/trace");
        let answer = request(standing.join.address, "GET", &path, &headers);
        assert_eq!(answer.status, 200);
        Self(serde_json::from_slice(&answer.body).unwrap())
    }

    fn list(&self, name: &str) -> &Vec<Value> {
        self.0[name].as_array().unwrap()
    }

    /// Returns the workers that fetched anything.
    fn homes(&self) -> Vec<u64> {
        let mut homes: Vec<u64> =
            self.list("fetches").iter().map(|fetch| fetch["to"].as_u64().unwrap()).collect();
        homes.sort_unstable();
        homes.dedup();
        homes
    }

    fn fetches(&self, home: u64) -> Fetches {
        let over_http = |fetch: &&Value| fetch["to"] == home && fetch["bytes"] != 0;
        let fetch = |fetch: &Value| {
            let bytes = fetch["bytes"].as_f64().unwrap();
            (seconds(fetch, "started_ns"), seconds(fetch, "ended_ns"), bytes)
        };
        Fetches(self.list("fetches").iter().filter(over_http).map(fetch).collect())
    }

    /// Start and end times of the attempts of this kind.
    fn attempts(&self, kind: &str) -> Vec<(f64, f64)> {
        let of_kind =
            self.list("attempts").iter().filter(|attempt| attempt["attempt"]["task"]["kind"] == kind);
        of_kind.map(|attempt| (seconds(attempt, "started_ns"), seconds(attempt, "ended_ns"))).collect()
    }

    fn status(&self, name: &str) -> f64 {
        self.0["status"][name].as_f64().unwrap()
    }

    fn maps_done(&self) -> f64 {
        self.status("maps_done_ns") / 1e9
    }
}

/// Two workers of one slot with this rate, under this policy.
fn paced<'a>(sandbox: &'a Sandbox, policy: &str, rate: &str) -> Standing<'a> {
    let mut standing = Standing::start_with(sandbox, 0, &["--policy", policy]);
    for _ in 0..2 {
        let worker = ["worker", "--workers", "1", "--slots", "1", "--nic-rate", rate];
        standing.workers.push(sandbox.gristmill(worker).start());
    }
    standing.await_workers(2);
    standing
}

/// A job of this many maps with this much output each, and one keep on each worker.
fn shuffling(sandbox: &Sandbox, name: &str, maps: &str, bytes: &str, flags: &[&str]) -> Running {
    let out = sandbox.text(name);
    let shape =
        ["--maps", maps, "--map-time", "1ms", "--map-bytes", bytes, "--reduces", "2", "--reduce-time", "1ms"];
    let names = ["--label", name, "--output", &out];
    sandbox.gristmill([&["submit", "synthetic"], &shape[..], &names, flags].concat()).start()
}

/// Waits until all maps of the first job, this many, are done.
fn await_maps(sandbox: &Sandbox, maps: u64) {
    until("a job whose maps are done", || {
        let asked = sandbox.gristmill(["status", "job-1", "--json"]).finish();
        let known = asked.status.success();
        (known && asked.json()["maps"]["done"] == maps).then_some(())
    });
}

#[test]
fn bytes_of_the_smaller_job_come_first_under_max_srpt_and_fetches_hold_no_slot() {
    let sandbox = Sandbox::new();
    let standing = paced(&sandbox, "max-srpt", "1MB/s");
    let large = shuffling(&sandbox, "large", "48", "256KiB", &[]);
    await_maps(&sandbox, 48);
    let small = shuffling(&sandbox, "small", "8", "256KiB", &[]);
    small.finish().expect_code(0);
    large.finish().expect_code(0);
    let (large, small) = (Trace::fetch(&standing, "job-1"), Trace::fetch(&standing, "job-2"));
    let mut judged = 0.0;
    for home in small.homes() {
        let (behind, ahead) = (large.fetches(home), small.fetches(home));
        let (from, to) = (ahead.first(), ahead.last());
        if behind.last() <= to {
            continue;
        }
        // Requests in flight may still end in between; otherwise it only gets the gaps between two requests.
        let (behind, ahead) = (behind.bytes_within(from, to), ahead.bytes(from, to));
        eprintln!("home {home}: {behind} bytes of the large job, {ahead} of the small one");
        assert!(behind * 3.0 <= ahead, "{behind} bytes of the large job beside {ahead} of the small one");
        judged += ahead;
    }
    assert!(4e5 < judged, "the two jobs did not meet: {judged} bytes");
    // With one slot each, the small job's maps ran while the large one fetched.
    let fetching = large.homes().into_iter().map(|home| large.fetches(home).last()).fold(0.0, f64::max);
    let maps = small.attempts("Map");
    assert_eq!(maps.len(), 8);
    assert!(maps.iter().all(|&(begin, end)| large.maps_done() <= begin && end < fetching), "{maps:?}");
    standing.end();
}

#[test]
fn bytes_flow_by_weight_under_fair_while_both_jobs_have_something_to_fetch() {
    let sandbox = Sandbox::new();
    let standing = paced(&sandbox, "fair", "1MB/s");
    let light = shuffling(&sandbox, "light", "128", "128KiB", &["--weight", "1"]);
    await_maps(&sandbox, 128);
    let heavy = shuffling(&sandbox, "heavy", "32", "128KiB", &["--weight", "2"]);
    heavy.finish().expect_code(0);
    light.finish().expect_code(0);
    let (light, heavy) = (Trace::fetch(&standing, "job-1"), Trace::fetch(&standing, "job-2"));
    assert_eq!((heavy.status("weight"), light.status("weight")), (2.0, 1.0));
    let (mut of_heavy, mut of_light) = (0.0, 0.0);
    for home in heavy.homes() {
        let (one, other) = (heavy.fetches(home), light.fetches(home));
        // Without the first and the last requests of the heavy job, when it may have had less than two in
        // flight.
        let (from, to) = (one.first() + EDGE, one.last().min(other.last()) - EDGE);
        let bytes = (one.bytes(from, to), other.bytes(from, to));
        eprintln!("home {home}: {bytes:?} in {:.3} s", to - from);
        // A keep on the worker of nearly all maps of the heavy job has too little to fetch for a share.
        if BYTES_MIN < bytes.0 {
            of_heavy += bytes.0;
            of_light += bytes.1;
        }
    }
    assert!(2.0 * BYTES_MIN < of_heavy + of_light, "too few bytes to judge by: {of_heavy} and {of_light}");
    let share = of_heavy / of_light;
    // A pause of the machine costs one of the two some bytes. Equal shares and strict priority (4 and more)
    // are far off.
    assert!((1.6..2.5).contains(&share), "{of_heavy} to {of_light} bytes: {share:.3} to 1, not 2 to 1");
    standing.end();
}

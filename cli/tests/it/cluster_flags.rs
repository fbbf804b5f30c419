//! Effects of the flags of a cluster and of a job on processes: slots in pools, slower slots, slower
//! networks, deadlines.
//!
//! All values are read from traces and reports, whose times are those of the attempts themselves.

use crate::support::sandbox::Finished;
use crate::support::standing::{Standing, await_join_line};
use crate::support::{Sandbox, until};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;

/// Relative error allowed for times of sleeping tasks.
const TOLERANCE: f64 = 0.1;

/// Seconds by which an interval in a trace may be too short: the master knows the clocks of workers only to
/// the latency of a message.
const CLOCKS: f64 = 0.01;

/// Runs a synthetic job with these flags; returns its output and the events of its trace.
fn traced(sandbox: &Sandbox, flags: &[&str]) -> (Finished, Vec<Value>) {
    let trace = sandbox.text("trace.json");
    let finished =
        sandbox.run_well([&["run", "synthetic", "--json", "--overwrite", "--trace", &trace], flags].concat());
    let trace: Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    (finished, trace["traceEvents"].as_array().unwrap().clone())
}

/// Start, end (seconds) and worker of each event of this kind.
fn stretches(events: &[Value], kind: &str) -> Vec<(f64, f64, u64)> {
    let of_kind = events.iter().filter(|event| event["cat"] == kind);
    let number = |event: &Value, name: &str| event[name].as_f64().unwrap() / 1e6;
    of_kind
        .map(|event| {
            let from = number(event, "ts");
            (from, from + number(event, "dur"), event["pid"].as_u64().unwrap())
        })
        .collect()
}

/// Maximum number of overlapping intervals on one worker.
fn most_at_once(stretches: &[(f64, f64, u64)]) -> usize {
    let at = |moment: f64, worker: u64| {
        stretches.iter().filter(|other| other.2 == worker && other.0 <= moment && moment < other.1).count()
    };
    stretches.iter().map(|stretch| at(stretch.0, stretch.2)).max().unwrap_or(0)
}

#[test]
fn flags_that_make_no_cluster_or_job_are_refused_before_anything_starts() {
    let sandbox = Sandbox::new();
    let journal = sandbox.write_private("journal", "already here");
    let no_json = sandbox.write("no-json", "maps = 3");
    let few = sandbox.write("few", r#"{"map_seconds":[1],"shuffle_bytes":0,"reduce_seconds":[]}"#);
    let negative = sandbox.write("negative", r#"{"map_seconds":[-1],"shuffle_bytes":0,"reduce_seconds":[]}"#);
    let mistakes: [(&[&str], &str); 26] = [
        (&["--map-slots", "2"], "--map-slots needs --reduce-slots"),
        (&["--reduce-slots", "2"], "--reduce-slots needs --map-slots"),
        (&["--slots", "1", "--map-slots", "2", "--reduce-slots", "2"], "slots are either shared"),
        (&["--map-slots", "0", "--reduce-slots", "2"], "--map-slots 0"),
        (&["--slots", "0"], "--slots 0"),
        (&["--speed", "0"], "--speed 0"),
        (&["--speed", "2"], "--speed 2"),
        (&["--speed", "1,fast"], "`fast`"),
        (&["--nic-rate", "0B"], "--nic-rate"),
        (&["--nic-rate", "100"], "write 100MB/s or 100Mbit/s"),
        (&["--nic-rate", "50MB/h"], "50MB/h is not a rate"),
        (&["--estimator", "histroy"], "did you mean `history`"),
        (&["--journal", &journal], "exists already"),
        (&["--journal", "not-there/journal"], "its parent directory does not exist"),
        (&["--policy", "srpt"], "can only be simulated"),
        (&["--deadline", "0s"], "--deadline 0s"),
        (&["--deadline", "-5s"], "in the past"),
        (&["--deadline", "soon"], "--deadline soon"),
        (&["--priority", "high"], "--priority"),
        (&["--weight", "0"], "--weight"),
        (&["--exact", "not-there"], "--exact not-there"),
        (&["--exact", &no_json], "--exact"),
        (&["--exact", &negative], "map_seconds holds -1"),
        (&["--times", &few, "--maps", "3"], "--maps"),
        (&["--times", &no_json], "--times"),
        (&["--map-time", "delayed:10ms"], "delayed:10ms,40ms"),
    ];
    for (flags, words) in mistakes {
        let finished = sandbox.run([&["run", "synthetic"], flags].concat()).expect_code(2);
        assert!(!finished.stderr.contains("job-1"), "{flags:?} got as far as a job");
        finished.expect_words(&[words]);
    }
    sandbox.run(["run", "synthetic", "--exact", &few]).expect_code(2).expect_words(&["1 map and", "32"]);
    assert_eq!(std::fs::read(&journal).unwrap(), b"already here");
    for (flags, words) in [
        (["--pools", "a"], "`a` is not NAME=WEIGHT"),
        (["--pools", "a=0"], "weight above 0"),
        (["--pools", "a=1,a=2"], "twice"),
        (["--estimator", "magic"], "`magic`"),
        (["--journal", &journal], "exists already"),
    ] {
        sandbox.run([&["master"], &flags[..]].concat()).expect_code(2).expect_words(&[words]);
    }
    for flags in [["--speed", "1.5"], ["--nic-rate", "slow"], ["--map-slots", "1"]] {
        sandbox.run([&["worker", "--join", &journal], &flags[..]].concat()).expect_code(2);
    }
}

#[test]
fn slots_of_half_the_speed_take_twice_the_time() {
    let sandbox = Sandbox::new();
    let flags =
        ["--maps", "4", "--map-time", "150ms", "--reduce-time", "300ms", "--reduces", "1", "--workers", "1"];
    let times = |speed: &str| {
        let (finished, events) = traced(&sandbox, &[&flags[..], &["--speed", speed]].concat());
        let totals = finished.json()["status"]["totals"].clone();
        let least = |kind: &str| {
            let stretches = stretches(&events, kind);
            stretches.iter().map(|(from, to, _)| to - from).fold(f64::INFINITY, f64::min)
        };
        (least("map"), least("reduce"), totals, finished.stderr)
    };
    let (map, reduce, totals, words) = times("1");
    assert!(0.15 - CLOCKS <= map && 0.3 - CLOCKS <= reduce, "a map took {map} s, the reduce {reduce} s");
    assert_eq!(totals["paced_ns"], 0);
    assert!(words.contains("waiting (asleep") && !words.contains("paced"), "{words}");
    // A busy machine makes times, and waits paced by them, longer; never shorter.
    let (map, reduce, totals, words) = times("0.5");
    assert!(0.3 - CLOCKS <= map && 0.6 - CLOCKS <= reduce, "a map took {map} s, the reduce {reduce} s");
    assert!(words.contains("% paced"), "{words}");
    let paced = totals["paced_ns"].as_f64().unwrap() / totals["slot_ns"].as_f64().unwrap();
    assert!((paced - 0.5).abs() < TOLERANCE, "{paced} of the time was paced");
}

#[test]
fn listed_speeds_are_for_the_workers_in_turn() {
    let sandbox = Sandbox::new();
    let cluster = ["--workers", "2", "--speed", "1,0.5"];
    let flags = ["--maps", "8", "--map-time", "100ms", "--reduce-time", "0ms", "--reduces", "1"];
    let (_, events) = traced(&sandbox, &[&cluster[..], &flags].concat());
    let mut shortest: BTreeMap<u64, f64> = BTreeMap::new();
    for (from, to, worker) in stretches(&events, "map") {
        let shortest = shortest.entry(worker).or_insert(f64::INFINITY);
        *shortest = shortest.min(to - from);
    }
    let mut shortest: Vec<f64> = shortest.into_values().collect();
    shortest.sort_by(f64::total_cmp);
    assert_eq!(shortest.len(), 2, "both workers ran maps");
    let (slow, quick) = (0.2 - CLOCKS, 0.1 - CLOCKS);
    assert!((quick..slow).contains(&shortest[0]) && slow <= shortest[1], "{shortest:?}");
}

#[test]
fn pools_keep_reduces_out_of_the_slots_of_maps() {
    let sandbox = Sandbox::new();
    let flags =
        ["--maps", "8", "--map-time", "60ms", "--reduces", "6", "--reduce-time", "60ms", "--workers", "1"];
    let at_once = |cluster: &[&str]| {
        let (_, events) = traced(&sandbox, &[&flags[..], cluster].concat());
        (most_at_once(&stretches(&events, "map")), most_at_once(&stretches(&events, "reduce")))
    };
    assert_eq!(at_once(&["--map-slots", "3", "--reduce-slots", "1"]), (3, 1));
    assert_eq!(at_once(&["--map-slots", "1", "--reduce-slots", "2"]), (1, 2));
    assert_eq!(at_once(&["--slots", "3"]), (3, 3));
}

#[test]
fn shuffle_of_a_worker_keeps_to_the_rate_of_its_network() {
    /// Bytes that may pass before pacing starts.
    const BURST_BYTES: f64 = 128e3;
    const RATE: f64 = 2e6;
    let sandbox = Sandbox::new();
    let job = [
        "--maps",
        "8",
        "--map-time",
        "0ms",
        "--map-bytes",
        "500000",
        "--reduces",
        "2",
        "--reduce-time",
        "0ms",
    ];
    // Over HTTP a keep receives the segments of all maps, on whichever worker they ran. How many ran on the
    // same worker is chance. Local reads are not paced, and may be nearly all.
    let cluster = ["--workers", "2", "--nic-rate", "2MB/s", "--shuffle", "http"];
    let (_, events) = traced(&sandbox, &[&job[..], &cluster].concat());
    let mut by_worker: BTreeMap<u64, (f64, f64, f64)> = BTreeMap::new();
    for event in events.iter().filter(|event| event["cat"] == "fetch") {
        let (from, length) = (event["ts"].as_f64().unwrap() / 1e6, event["dur"].as_f64().unwrap() / 1e6);
        let bytes = event["args"]["bytes"].as_f64().unwrap();
        let seen = by_worker.entry(event["pid"].as_u64().unwrap()).or_insert((f64::INFINITY, 0.0, 0.0));
        *seen = (seen.0.min(from), seen.1.max(from + length), seen.2 + bytes);
    }
    // Both keeps may be on one worker, but a keep has collected 8 times 250,000 bytes.
    let enough = by_worker.into_iter().filter(|(_, (_, _, bytes))| RATE * 0.9 < *bytes);
    let judged: Vec<_> = enough.collect();
    assert!(!judged.is_empty(), "no worker fetched a partition");
    for (worker, (from, to, bytes)) in judged {
        let rate = (bytes - BURST_BYTES) / (to - from);
        assert!(rate < RATE * (1.0 + TOLERANCE), "worker-{worker} fetched {rate} bytes in a second");
    }
}

#[test]
fn reduce_without_pairs_and_job_without_reduces_take_their_measured_times() {
    let sandbox = Sandbox::new();
    let times = sandbox
        .write("times", r#"{"map_seconds":[0.05,0.2],"shuffle_bytes":1001,"reduce_seconds":[0.1,0.3,0.0]}"#);
    let (finished, events) =
        traced(&sandbox, &["--times", &times, "--exact", &times, "--workers", "1", "--estimator", "oracle"]);
    let status = &finished.json()["status"];
    assert_eq!((&status["maps"]["done"], &status["reduces"]["done"]), (&2.into(), &3.into()));
    for (kind, expected) in [("map", 0.25), ("reduce", 0.4)] {
        let sum: f64 = stretches(&events, kind).iter().map(|(from, to, _)| to - from).sum();
        // A busy machine makes them longer, never shorter.
        assert!(expected - 3.0 * CLOCKS <= sum, "{kind}s took {sum} s instead of {expected}");
    }
    let out = sandbox.text("out");
    let maps_only = sandbox
        .write("maps-only", r#"{"map_seconds":[0.01,0.01,0.02],"shuffle_bytes":0,"reduce_seconds":[]}"#);
    let finished = sandbox.run_well(["run", "synthetic", "--times", &maps_only, "--json", "--output", &out]);
    assert_eq!(finished.json()["status"]["maps"]["done"], 3);
}

#[test]
fn report_says_whether_the_deadline_was_met_and_by_how_much() {
    let sandbox = Sandbox::new();
    let job =
        ["run", "synthetic", "--maps", "2", "--map-time", "100ms", "--reduce-time", "1ms", "--workers", "1"];
    let finished = sandbox.run_well([&job[..], &["--deadline", "50s", "--json"]].concat());
    finished.expect_words(&["deadline", "met", "to spare"]);
    let missed = sandbox.run_well([&job[..], &["--deadline", "50ms", "--json"]].concat());
    let report = missed.json();
    let late_ns = report["tardiness_ns"].as_u64().unwrap();
    let status = &report["status"];
    let flow_ns = status["ended_ns"].as_u64().unwrap() - status["arrived_ns"].as_u64().unwrap();
    assert_eq!(late_ns, flow_ns - 50_000_000);
    missed.expect_words(&["missed, tardiness"]);
}

#[test]
fn workers_and_jobs_are_listed_with_what_they_were_made_to_be() {
    let sandbox = Sandbox::new();
    let flags = ["master", "--estimator", "tasks", "--pools", "reports=2", "--divided-slots"];
    let master = sandbox.gristmill(flags).start();
    await_join_line(&master);
    let shape = ["--map-slots", "2", "--reduce-slots", "1", "--speed", "1,0.5", "--nic-rate", "8Mbit/s"];
    let worker = sandbox.gristmill([&["worker", "--workers", "2"], &shape[..]].concat()).start();
    let status = |flag: &[&str]| sandbox.gristmill([&["status"], flag].concat()).finish().expect_code(0);
    let workers = until("two workers", || {
        let workers = status(&["--json"]).json()["workers"].as_array().unwrap().clone();
        (workers.len() == 2).then_some(workers)
    });
    let mut speeds: Vec<f64> = workers.iter().map(|worker| worker["speed"].as_f64().unwrap()).collect();
    speeds.sort_by(f64::total_cmp);
    assert_eq!(speeds, [0.5, 1.0]);
    for worker in &workers {
        assert_eq!(worker["slot_counts"]["pools"], serde_json::json!({"map": 2, "reduce": 1}));
        assert_eq!(worker["nic_bytes_per_second"], 1_000_000);
    }
    let text = status(&[]).stdout_text();
    // Flags of pools must show in the output.
    for words in ["policy fair", "estimator tasks", "2 map + 1 reduce", "976.6 KiB/s", "0.5"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let job = ["submit", "synthetic", "--maps", "1", "--map-time", "1ms", "--reduce-time", "1ms"];
    let rights = ["--pool", "reports", "--weight", "3", "--priority", "-4", "--deadline", "90s", "--quiet"];
    sandbox.gristmill([&job[..], &rights].concat()).finish().expect_code(0);
    let unknown = sandbox.gristmill([&job[..], &["--pool", "report"]].concat()).finish().expect_code(2);
    unknown.expect_words(&["there is no pool `report`", "did you mean `reports`"]);
    let text = sandbox.gristmill(["jobs"]).finish().expect_code(0).stdout_text();
    for words in ["reports", "PRIORITY", "-4", "90.00 s, met"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    for process in [worker, master] {
        process.signal(Signal::TERM);
        process.finish().expect_code(0);
    }
}

#[test]
fn pools_of_the_settings_that_were_named_hold_on_an_embedded_cluster() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    let settings = sandbox.write("elsewhere.toml", "[pools]\nreports = 2.0\n");
    // The master would find this file in its working directory, but must use what its parent has read.
    sandbox.write("gristmill.toml", "a mistake");
    let run = |pool: &str| {
        let job = ["run", "wordcount", &input, "--workers", "1", "--policy", "fair", "--pool", pool];
        sandbox.run([&job[..], &["--settings", &settings]].concat())
    };
    run("report").expect_code(2).expect_words(&["there is no pool `report`", "did you mean `reports`"]);
    run("reports").expect_code(0);
}

#[test]
fn policy_of_a_running_master_is_shown_and_changed() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let policy = |flags: &[&str]| sandbox.gristmill([&["policy"], flags].concat()).finish();
    let shown = policy(&[]).expect_code(0).stdout_text();
    let free = "no task waits for a slot\n";
    assert_eq!(shown, format!("policy gristmill, placement pull, estimator history\n{free}"));
    let changed = policy(&["--policy", "fifo", "--json"]).expect_code(0).json();
    assert_eq!((&changed["policy"], &changed["placement"]), (&"fifo".into(), &"pull".into()));
    let shown = policy(&[]).expect_code(0).stdout_text();
    assert_eq!(shown, format!("policy fifo, placement pull, estimator history\n{free}"));
    let pooled = ["submit", "synthetic", "--maps", "2", "--map-time", "1ms", "--pool", "a"];
    let pooled = sandbox.gristmill(pooled).finish().expect_code(0);
    pooled.expect_words(&["the policy `fifo` does not look at pools; `fair` does"]);
    policy(&["--policy", "srpt"]).expect_code(2).expect_words(&["can only be simulated"]);
    policy(&["--placement", "pul"]).expect_code(2).expect_words(&["did you mean `pull`"]);
    sandbox.gristmill(["submit", "synthetic", "--maps", "2", "--map-time", "1ms"]).finish().expect_code(0);
    standing.end();
}

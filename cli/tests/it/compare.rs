//! `gristmill lab compare`: real clusters in sequence, and the page about them.

use crate::support::standing::Standing;
use crate::support::{Sandbox, TIMEOUT, until};
use gristmill_scheduler::{placement, policy};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// Six jobs that mostly sleep.
const WORKLOAD: &str = r#"
name = "tiny"
seed = 5
[cluster]
workers = 2
slots = 2
[arrivals]
kind = "poisson"
mean-interval = "60ms"
[[job]]
name = "synthetic"
label = "long"
args = ["--maps", "4", "--map-time", "exp:80ms", "--reduce-time", "50ms", "--map-bytes", "2KiB", "--seed", "{seed}"]
count = 2
reduces = 2
deadline = "5s"
[[job]]
name = "synthetic"
label = "short"
args = ["--maps", "2", "--map-time", "30ms", "--reduce-time", "20ms", "--map-bytes", "200", "--seed", "{seed}"]
count = 4
reduces = 1
"#;

const RUNS: [&str; 4] = ["fifo-1", "fair-1", "fair-2", "fifo-2"];

fn results(sandbox: &Sandbox, run: &str) -> Value {
    let path = sandbox.path(&format!("out/runs/{run}/results.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn two_policies_on_real_processes_give_equal_outputs_and_a_whole_report() {
    let sandbox = Sandbox::new();
    let workload = sandbox.write("tiny.toml", WORKLOAD);
    let out = sandbox.text("out");
    let arguments = ["compare", &workload, "--policy", "fifo,fair", "--repeat", "2", "--out", &out];
    // It measures the cost of tasks first, which takes its time on a busy machine.
    let finished = sandbox.gristmill(arguments).start().finish_within(2 * TIMEOUT).expect_code(0);
    let table = finished.stdout_text();
    for words in ["flow, s", "deadlines-met", "fifo", "fair", "between fair and fifo"] {
        assert!(table.contains(words) || table.contains("than fifo by"), "{words} is missing:\n{table}");
    }
    let runs: Vec<Value> = RUNS.iter().map(|run| results(&sandbox, run)).collect();
    // The second repetition starts with the second policy.
    let places: Vec<u64> = runs.iter().map(|run| run["place"].as_u64().unwrap()).collect();
    assert_eq!(places, [0, 1, 2, 3]);
    let digests = |run: &Value| -> Vec<u64> {
        run["jobs"].as_array().unwrap().iter().map(|job| job["output_digest"].as_u64().unwrap()).collect()
    };
    assert_eq!(digests(&runs[0]).len(), 6);
    for run in &runs {
        assert_eq!(digests(run), digests(&runs[0]), "seed 5");
        assert_eq!(run["workers"].as_array().unwrap().len(), 2);
        // Sleeping tasks hold slots and use no processor.
        let spans = run["spans"].as_array().unwrap();
        assert_eq!(spans.len(), 2 * (4 + 2) + 4 * (2 + 1));
        assert!(spans.iter().filter(|span| span["busy"].as_f64().unwrap() < 0.25).count() * 2 > spans.len());
    }
    let page = fs::read_to_string(sandbox.path("out/report.html")).unwrap();
    for section in
        ["result", "flow-time", "simulated", "stations", "slots-per-job", "slots-and-lanes", "workload"]
    {
        assert!(page.contains(&format!("<h2 id=\"{section}\">")), "no section {section}");
    }
    let lines = fs::read_to_string(sandbox.path("out/report.csv")).unwrap();
    assert_eq!(lines.lines().count(), 1 + RUNS.len() * 6);
    for run in RUNS {
        let directory = sandbox.path(&format!("out/runs/{run}"));
        let mut files: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, ["journal.jsonl", "results.json"], "outputs are removed, the rest is kept");
    }
}

#[test]
fn interrupted_comparison_goes_on_and_repeats_nothing() {
    let sandbox = Sandbox::new();
    let workload = sandbox.write("tiny.toml", WORKLOAD);
    let out = sandbox.text("out");
    let arguments = [
        "compare",
        &workload,
        "--policy",
        "fifo,fair",
        "--repeat",
        "2",
        "--no-warm-up",
        "--no-calibration",
        "--out",
        &out,
    ];
    let running = sandbox.gristmill(arguments).start();
    let first = sandbox.path("out/runs/fifo-1/results.json");
    until("the first run to end", || first.exists().then_some(()));
    // During the second run, whose directory is created with it.
    until("the second run to begin", || sandbox.path("out/runs/fair-1").exists().then_some(()));
    running.signal(Signal::INT);
    running.finish().expect_code(130).expect_words(&["--resume continues"]);
    sandbox.assert_nothing_left();
    let kept = fs::read(&first).unwrap();
    assert!(!sandbox.path("out/runs/fifo-2").exists(), "it did not stop");
    let page = fs::read_to_string(sandbox.path("out/report.html")).unwrap();
    let unpredicted = "could not be predicted: what the system takes for tasks was not measured beforehand";
    assert!(page.contains(unpredicted), "the page does not say what --no-calibration costs");
    // Another cluster is refused, and so is a new start.
    let other = arguments.iter().copied().chain(["--resume", "--workers", "3"]);
    sandbox.run(other).expect_code(2).expect_words(&["clusters or workloads that differ", "workers was 2"]);
    let planned = arguments.iter().copied().chain(["--resume", "--against", "fair"]);
    sandbox.run(planned).expect_code(2).expect_words(&["planned once there are results"]);
    sandbox.run(arguments).expect_code(3).expect_words(&["exists and is not empty"]);
    let finished = sandbox.run_well(arguments.iter().copied().chain(["--resume"]));
    assert!(finished.stderr.contains("fifo was done before"), "{}", finished.stderr);
    assert_eq!(fs::read(&first).unwrap(), kept, "the first run was repeated");
    for run in RUNS {
        assert_eq!(results(&sandbox, run)["jobs"].as_array().unwrap().len(), 6);
    }
}

#[test]
fn mistakes_are_told_before_anything_starts() {
    let sandbox = Sandbox::new();
    let out = sandbox.text("out");
    let refused = |text: &str, policy: &str, code: i32, words: &[&str]| {
        let workload = sandbox.write("w.toml", text);
        let arguments = ["compare", &workload, "--policy", policy, "--out", &out];
        sandbox.run(arguments).expect_code(code).expect_words(words);
        assert!(!sandbox.path("out").exists());
    };
    refused(&WORKLOAD.replace("slots =", "slotss ="), "fifo", 2, &["line 6", "did you mean `slots`?"]);
    refused(
        &WORKLOAD.replace("count = 4", "weight = 0"),
        "fifo",
        2,
        &["line ", "`0` is not a number above 0"],
    );
    refused(&WORKLOAD.replace("\"5s\"", "\"-5s\""), "fifo", 2, &["line ", "is not a time above 0"]);
    refused(WORKLOAD, "fifo,fiar", 2, &["did you mean `fair`?"]);
    refused(WORKLOAD, "srpt", 2, &["can only be simulated"]);
    refused(&WORKLOAD.replace("--map-time", "--map-tine"), "fifo", 2, &["--map-tine"]);
    refused(
        "[[job]]\nname = \"wordcuont\"\n",
        "fifo",
        2,
        &["w.toml, line 2, column 8", "did you mean `wordcount`?"],
    );
    let missing = "[[job]]\nname = \"wordcount\"\ninputs = [\"none.txt\"]\n";
    refused(missing, "fifo", 4, &["none.txt: does not exist", "w.toml, line 3, column 10"]);
    let workload = sandbox.write("tiny.toml", WORKLOAD);
    let planned = ["compare", &workload, "--policy", "fifo,fair", "--against", "max-srpt", "--out", &out];
    sandbox.run(planned).expect_code(2).expect_words(&["`max-srpt`, which is not compared", "fifo, fair"]);
    let checked = sandbox.run_well(["compare", &workload, "--policy", "fifo", "--check"]).stdout_text();
    assert_eq!(checked.lines().count(), 1 + 6, "{checked}");
}

/// All orders of these.
fn orders(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let starting_with = |&first: &usize| {
        let rest: Vec<usize> = items.iter().copied().filter(|&item| item != first).collect();
        orders(&rest).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    items.iter().flat_map(starting_with).collect()
}

#[test]
fn first_start_of_a_batch_follows_the_policy_for_every_order_of_its_list() {
    const HEAD: &str = "[cluster]\nworkers = 1\nslots = 1\nnic-rate = \"50MB/s\"\nestimator = \"oracle\"\n";
    let sandbox = Sandbox::new();
    for (number, order) in orders(&[0, 1, 2, 3]).into_iter().enumerate() {
        let job = |&size: &usize| {
            let kib = [10, 400, 100, 200][size];
            format!(
                "[[job]]\nname = \"synthetic\"\nlabel = \"{kib} KiB\"\nreduces = 1\n\
                 args = [\"--maps\", \"1\", \"--map-time\", \"5ms\", \"--reduce-time\", \"1ms\", \"--map-bytes\", \"{kib}KiB\"]\n"
            )
        };
        let jobs: String = order.iter().map(job).collect();
        let workload = sandbox.write(&format!("{number}.toml"), format!("{HEAD}{jobs}"));
        let out = sandbox.text(&format!("out-{number}"));
        let arguments = ["compare", &workload, "--policy", "max-shuffle", "--repeat", "1", "--out", &out];
        sandbox.run_well(arguments.into_iter().chain(["--no-warm-up", "--no-calibration"]));
        let path = sandbox.path(&format!("out-{number}/runs/max-shuffle-1/results.json"));
        let run: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let jobs = run["jobs"].as_array().unwrap();
        let arrivals: Vec<f64> = jobs.iter().map(|job| job["arrived"].as_f64().unwrap()).collect();
        assert_eq!(arrivals, [0.0; 4], "one instant: {order:?}");
        let started = |job: &&Value| job["started"].as_f64().unwrap();
        let first = jobs.iter().min_by(|one, other| started(one).total_cmp(&started(other))).unwrap();
        assert_eq!(first["label"], "400 KiB", "{order:?}");
    }
}

#[test]
fn contender_with_divide_divides_tasks_and_the_others_do_not() {
    let sandbox = Sandbox::new();
    let workload = sandbox.write("tiny.toml", WORKLOAD);
    let out = sandbox.text("out");
    let arguments = ["compare", &workload, "--policy", "fifo,fifo+divide", "--repeat", "1", "--no-warm-up"];
    sandbox.run_well(arguments.into_iter().chain(["--no-calibration", "--out", &out]));
    let divides = |run: &str| {
        assert_eq!(results(&sandbox, run)["contender"]["policy"], "fifo");
        let journal = fs::read_to_string(sandbox.path(&format!("out/runs/{run}/journal.jsonl"))).unwrap();
        let header: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
        header["core"]["dividing"].is_object()
    };
    assert_eq!([divides("fifo-1"), divides("fifo-divide-1")], [false, true]);
    let given = ["compare", &workload, "--policy", "fifo+divide", "--master", "127.0.0.1:1"];
    sandbox.run(given).expect_code(2).expect_words(&["`fifo+divide` is for fresh clusters"]);
}

#[test]
fn jobs_alone_run_three_times_and_the_median_counts() {
    let sandbox = Sandbox::new();
    let workload = sandbox.write("tiny.toml", WORKLOAD);
    let out = sandbox.text("out");
    let arguments = [
        "compare",
        &workload,
        "--policy",
        "fifo",
        "--repeat",
        "1",
        "--isolated",
        "--no-warm-up",
        "--no-calibration",
    ];
    sandbox.run_well(arguments.into_iter().chain(["--out", &out]));
    let text = fs::read(sandbox.path("out/isolated.json")).unwrap();
    let alone: Vec<Value> = serde_json::from_slice(&text).unwrap();
    assert_eq!(alone.len(), 6, "six jobs with seeds of their own");
    for one in &alone {
        let mut flows: Vec<f64> =
            one["flows"].as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect();
        flows.sort_by(f64::total_cmp);
        assert_eq!((flows.len(), one["flow"].as_f64().unwrap()), (3, flows[1]), "{one}");
    }
}

#[test]
fn given_cluster_gets_each_policy_and_then_its_own_back() {
    let sandbox = Sandbox::new();
    let journal = sandbox.text("journal");
    let standing = Standing::start_with(&sandbox, 2, &["--journal", &journal]);
    // It has learned from jobs like those that follow.
    let past = ["--label", "long", "--maps", "2", "--map-time", "1ms", "--output", &sandbox.text("past")];
    sandbox.gristmill(["submit", "synthetic"].into_iter().chain(past)).finish().expect_code(0);
    let known = || standing.request("GET", "estimator", "").1;
    let knowledge = known();
    assert!(knowledge.contains("\"long\""), "{knowledge}");
    let policy = || sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json()["policy"].clone();
    let before = policy();
    let workload = sandbox.write("tiny.toml", WORKLOAD.replace("slots = 2", ""));
    let (out, join) = (sandbox.text("out"), sandbox.text("state/join"));
    let arguments = [
        "compare",
        &workload,
        "--policy",
        "fifo,max-srpt",
        "--repeat",
        "1",
        "--no-warm-up",
        "--no-calibration",
    ];
    let given = ["--join", &join, "--out", &out];
    let finished = sandbox.gristmill(arguments.iter().copied().chain(given)).finish().expect_code(0);
    assert!(finished.stdout_text().contains("one repetition has no interval"), "{}", finished.stdout_text());
    assert_eq!(results(&sandbox, "fifo-1")["contender"]["policy"], "fifo");
    assert_eq!(results(&sandbox, "max-srpt-1")["jobs"].as_array().unwrap().len(), 6);
    assert_eq!(policy(), before);
    assert_eq!(known(), knowledge, "what was learned from the experiment stays with it");
    let first_estimate = |run: &str| results(&sandbox, run)["jobs"][0]["estimates"][0][2].clone();
    assert!(first_estimate("fifo-1").is_array());
    assert_eq!(
        first_estimate("fifo-1"),
        first_estimate("max-srpt-1"),
        "one began with what the other had taught"
    );
    standing.end();
    sandbox.gristmill(["replay", &journal]).finish().expect_code(0);
}

/// Twenty-two jobs of five kinds: reduces that can be suspended, goals, weights, pools of slots and a paced
/// network, so that every policy has data to decide by.
const MANY: &str = r#"
name = "many"
seed = 9
[cluster]
workers = 3
map-slots = 2
reduce-slots = 1
nic-rate = "20MB/s"
[arrivals]
kind = "poisson"
mean-interval = "30ms"
[[data]]
name = "text"
kind = "text"
size = "256KiB"
[[data]]
name = "records"
kind = "records"
size = "256KiB"
[[data]]
name = "tables"
kind = "tables"
size = "64KiB"
[[job]]
name = "wordcount"
inputs = ["{data}/text"]
split-size = "64KiB"
reduces = 2
count = 3
[[job]]
name = "grep"
args = ["-c", "ab+a"]
inputs = ["{data}/text"]
split-size = "64KiB"
count = 3
[[job]]
name = "sort"
inputs = ["{data}/records"]
split-size = "64KiB"
reduces = 2
count = 3
weight = 2
[[job]]
name = "join"
args = ["--left", "{data}/tables/visits.csv", "--right", "{data}/tables/users.csv", "--on", "user"]
split-size = "16KiB"
reduces = 2
count = 3
[[job]]
name = "synthetic"
label = "long"
args = ["--maps", "6", "--map-time", "exp:40ms", "--reduce-time", "100ms", "--map-bytes", "50KiB", "--seed", "{seed}"]
count = 4
reduces = 2
deadline = "2s"
[[job]]
name = "synthetic"
label = "short"
args = ["--maps", "2", "--map-time", "20ms", "--reduce-time", "10ms", "--map-bytes", "1KiB", "--seed", "{seed}"]
count = 6
reduces = 1
"#;

/// Maximum time of one run of [`MANY`]; alone it takes about a second.
const RUN_TIMEOUT: Duration = Duration::from_secs(15);

/// Runs [`MANY`] under each contender. Every run must be complete, the outputs equal, and every journal must
/// replay to the same orders.
fn runs_alike_and_replays(policies: &[String], placements: &[&str]) {
    let sandbox = Sandbox::new();
    let workload = sandbox.write("many.toml", MANY);
    let out = sandbox.text("out");
    let limit = RUN_TIMEOUT * (policies.len() * placements.len()) as u32;
    let (policies, placements) = (policies.join(","), placements.join(","));
    let contenders = ["--policy", &policies, "--placement", &placements];
    let arguments =
        ["compare", &workload, "--repeat", "1", "--no-warm-up", "--no-calibration", "--out", &out];
    let arguments = arguments.iter().copied().chain(contenders);
    sandbox.gristmill(arguments).start().finish_within(limit).expect_code(0);
    sandbox.assert_nothing_left();
    let runs = fs::read_dir(sandbox.path("out/runs")).unwrap();
    let runs: Vec<String> = runs.map(|run| run.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(runs.len(), policies.split(',').count() * placements.split(',').count(), "{runs:?}");
    let mut digests = Vec::new();
    for run in &runs {
        let of_run: Vec<Option<u64>> = results(&sandbox, run)["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["output_digest"].as_u64())
            .collect();
        assert_eq!(of_run.len(), 22, "{run}");
        assert_eq!(results(&sandbox, run)["omitted"], 0, "{run}: the master has forgotten tasks");
        assert!(of_run.iter().all(Option::is_some), "{run}: a job without an output");
        digests.push(of_run);
        sandbox.run_well(["replay", &sandbox.text(&format!("out/runs/{run}/journal.jsonl"))]);
    }
    for (run, of_run) in runs.iter().zip(&digests) {
        assert_eq!(of_run, &digests[0], "outputs of {run} differ from those of {}", runs[0]);
    }
}

#[test]
fn every_feasible_policy_gives_the_same_outputs_and_a_journal_that_replays() {
    let mut all = Vec::new();
    for entry in policy::catalogue().into_iter().filter(|entry| entry.only_simulated.is_none()) {
        all.push(entry.name.to_owned());
        if let Some(preemptive) = entry.parameters.iter().find(|parameter| parameter.name == "preemptive") {
            let other = if preemptive.default == "yes" { "no" } else { "yes" };
            all.push(format!("{}:preemptive={other}", entry.name));
        }
    }
    for both in ["asrpt:preemptive=yes", "gristmill:preemptive=no"] {
        assert!(all.iter().any(|name| name == both), "{all:?}");
    }
    runs_alike_and_replays(&all, &["pull"]);
}

#[test]
fn every_feasible_placement_gives_the_same_outputs_and_a_journal_that_replays() {
    let feasible = placement::catalogue().into_iter().filter(|entry| entry.only_simulated.is_none());
    let names: Vec<&str> = feasible.map(|entry| entry.name).collect();
    runs_alike_and_replays(&["fair".to_owned()], &names);
}

#[test]
fn comparison_of_a_policy_program_that_fails_ends_with_its_reason() {
    let sandbox = Sandbox::new();
    let workload = sandbox.write("tiny.toml", WORKLOAD);
    let policy = format!("program:path={}", sandbox.write("ends.py", "raise SystemExit"));
    let out = sandbox.text("out");
    let arguments =
        ["compare", &workload, "--policy", &policy, "--repeat", "1", "--no-warm-up", "--out", &out];
    let ended = sandbox.run(arguments.into_iter().chain(["--no-calibration"]));
    ended.expect_code(1).expect_words(&["did not decide alone", "ends.py: it ended"]);
}

//! The scheduler on a running master: policies are switched, all facts are journalled, history is kept, and
//! the master gives its reasons.

use crate::support::data::Random;
use crate::support::standing::Standing;
use crate::support::{Sandbox, oracle, until};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The lines of a journal after its header.
fn records(journal: &Path) -> Vec<Value> {
    let text = fs::read_to_string(journal).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// True if the journal has a fact of this kind.
fn has_fact(records: &[Value], kind: &str) -> bool {
    let facts = records.iter().filter_map(|record| record["instant"]["facts"].as_array());
    facts.flatten().any(|fact| fact.as_str() == Some(kind) || fact.get(kind).is_some())
}

/// Checks that a replay of the journal through the scheduler gives the orders that the master gave.
fn assert_replays(sandbox: &Sandbox, journal: &str) {
    sandbox.gristmill(["replay", journal]).finish().expect_code(0);
}

#[test]
fn others_decide_from_now_on_while_jobs_run_and_the_journal_says_so() {
    let sandbox = Sandbox::new();
    let journal = sandbox.text("journal");
    let standing = Standing::start_with(&sandbox, 2, &["--policy", "fifo", "--journal", &journal]);
    let submit = |name: &str| {
        let out = sandbox.text(name);
        let shape = ["--maps", "12", "--reduces", "2", "--map-time", "30ms", "--reduce-time", "5ms"];
        let arguments = [&["submit", "synthetic"], &shape[..], &["--output", &out]].concat();
        sandbox.gristmill(arguments).start()
    };
    let jobs = [submit("first"), submit("second")];
    until("two jobs that run", || {
        let status = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
        (status["jobs_live"] == 2).then_some(())
    });
    let change = ["policy", "--policy", "max-srpt", "--placement", "pull", "--json"];
    let status = sandbox.gristmill(change).finish().expect_code(0).json();
    assert_eq!(status["policy"], "max-srpt");
    for job in jobs {
        job.finish().expect_code(0);
    }
    for refused in [["policy", "--policy", "srpt"], ["policy", "--placement", "pul"]] {
        sandbox.gristmill(refused).finish().expect_code(2);
    }
    let status = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
    assert_eq!((&status["policy"], &status["placement"]), (&"max-srpt".into(), &"pull".into()));
    assert_eq!(oracle::names(&sandbox.path("first")), oracle::names(&sandbox.path("second")));
    standing.end();
    let records = records(Path::new(&journal));
    let changes: Vec<&Value> = records.iter().filter_map(|record| record.get("decide_by")).collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["policy"], "max-srpt");
    let names: Vec<&Value> = records.iter().filter_map(|record| record.get("job")).collect();
    assert_eq!((names.len(), &names[0]["name"]), (2, &"synthetic".into()));
    assert_replays(&sandbox, &journal);
}

#[test]
fn change_that_the_master_cannot_carry_out_is_refused_by_the_master_too() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 0, &["--policy", "fifo"]);
    let put = |body: &str| standing.request("PUT", "policy", body);
    for (body, status, words) in [
        (r#"{"policy":"srpt"}"#, 400, "can only be simulated"),
        (r#"{"policy":"fiffo"}"#, 400, "did you mean `fifo`?"),
        (r#"{"placement":"pul"}"#, 400, "did you mean `pull`?"),
        ("{", 400, "EOF"),
    ] {
        let (got, answer) = put(body);
        assert_eq!(got, status, "{body}: {answer}");
        assert!(answer.contains(words), "{body}: {answer}");
    }
    let (got, answer) = put(r#"{"policy":"fair"}"#);
    assert_eq!(got, 200, "{answer}");
    let status: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&status["policy"], &status["placement"]), (&"fair".into(), &"pull".into()));
    standing.end();
}

#[test]
fn what_the_estimator_has_learned_can_be_put_back_and_nothing_else() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 0, &["--policy", "fifo"]);
    let put = |body: &str| standing.request("PUT", "estimator", body);
    let past = r#"{"learned":1,"maps":2.0,"map_seconds":3.0,"input_bytes":0.0,"output_bytes":0.0,"reduces":0.0,"reduce_seconds":0.0}"#;
    let memory =
        |past: &str| format!(r#"{{"estimator":"history","memory":{{"schema":1,"past":{{"a":{past}}}}}}}"#);
    let (status, answer) = put(&memory(past));
    assert_eq!((status, standing.request("GET", "estimator", "").1), (200, answer.clone()));
    assert!(answer.contains("\"map_seconds\":3.0"), "{answer}");
    let worse = past.replace("3.0", "-3.0");
    for (body, words) in [
        (memory(&worse), "what it remembers of `a` is impossible"),
        (memory(past).replace("history", "oracle"), "is that of the estimator `oracle`"),
        ("{".to_owned(), "EOF"),
    ] {
        let (status, refused) = put(&body);
        assert_eq!(status, 400, "{refused}");
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(standing.request("GET", "estimator", "").1, answer, "what was refused has changed nothing");
    // No worker runs it, so it stays live.
    let waiting = ["submit", "synthetic", "--detach", "--maps", "1", "--output", &sandbox.text("out")];
    sandbox.gristmill(waiting).finish().expect_code(0);
    let (status, refused) = put(&memory(past));
    assert_eq!(status, 400);
    assert!(refused.contains("jobs that have not ended: 1"), "{refused}");
    sandbox.gristmill(["cancel", "job-1"]).finish().expect_code(0);
    standing.end();
}

#[test]
fn journal_of_a_run_in_which_a_worker_is_killed_replays() {
    let sandbox = Sandbox::new();
    let journal = sandbox.text("journal");
    let text = Random::seeded(707).text(40_000, &[" ", "\n"]);
    let (input, out) = (sandbox.write("text", &text), sandbox.text("out"));
    let standing = Standing::start_with(&sandbox, 2, &["--journal", &journal]);
    sandbox.arm("map");
    // Holds the job until the killed process is replaced, however long that takes.
    sandbox.arm("reduce");
    let submit = ["submit", "wordcount", &input, "--split-size", "4KiB", "--reduces", "3", "--output", &out];
    let job = sandbox.gristmill(submit).start();
    sandbox.kill_at("map");
    sandbox.stopped_at("reduce");
    until("the worker that replaces the killed one", || {
        let status = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
        let mut workers = status["workers"].as_array().unwrap().iter();
        workers.any(|worker| worker["worker"] == 3).then_some(())
    });
    sandbox.go_on("reduce");
    job.finish().expect_code(0);
    standing.end();
    assert!(oracle::counts_of_parts(&oracle::parts(&sandbox.path("out"))) == oracle::word_counts(&text));
    let records = records(Path::new(&journal));
    assert!(has_fact(&records, "worker_lost"), "nobody was killed");
    assert_eq!(records.iter().filter(|record| record.get("worker").is_some()).count(), 3, "one was replaced");
    assert_replays(&sandbox, &journal);
    // A journal is never overwritten.
    let again = ["run", "grep", "x", &input, "--journal", &journal];
    sandbox.run(again).expect_code(2).expect_words(&["exists already"]);
}

#[test]
fn what_is_learned_of_jobs_survives_a_restart_of_the_master() {
    let sandbox = Sandbox::new();
    let job = |standing: &Standing<'_>, number: &str| {
        let shape = ["--maps", "3", "--reduces", "1", "--map-time", "20ms"];
        let out = sandbox.text(&format!("out-{number}"));
        let arguments = [&["submit", "synthetic"], &shape[..], &["--deadline", "300s", "--output", &out]];
        sandbox.gristmill(arguments.concat()).finish().expect_code(0);
        standing.job(&format!("job-{number}"))["deadline_outlook"].clone()
    };
    let first = Standing::start_with(&sandbox, 1, &["--estimator", "history"]);
    assert_eq!(job(&first, "1")["feasible"], Value::Null, "nothing can be known yet");
    first.end();
    let journal = sandbox.text("journal");
    let flags = ["--estimator", "history", "--policy", "max-srpt", "--journal", &journal];
    let second = Standing::start_with(&sandbox, 1, &flags);
    let outlook = job(&second, "2");
    assert_eq!(outlook["feasible"], true, "{outlook}");
    assert!(0.0 < outlook["map_slots"].as_f64().unwrap(), "{outlook}");
    let (got, trace) = second.request("GET", "jobs/job-2/trace", "");
    assert_eq!(got, 200, "{trace}");
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let done: Vec<u64> = trace["estimates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|seen| seen["maps_done"].as_u64().unwrap())
        .collect();
    assert_eq!((done[0], done.last()), (0, Some(&3)), "from its arrival to its last map");
    let left = |at: usize| trace["estimates"][at]["left"][0].as_f64().unwrap();
    assert!(0.0 < left(0) && left(done.len() - 1) == 0.0, "{}", trace["estimates"]);
    second.end();
    // The estimator's previous knowledge is at the head of the journal.
    assert_replays(&sandbox, &journal);
}

#[test]
fn job_for_a_pool_that_is_not_there_is_refused_with_the_nearest() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 1, &["--pools", "reports=2,adhoc=1"]);
    let input = sandbox.write("text", "x\n");
    let submit = |pool: &str| sandbox.gristmill(["submit", "grep", "x", &input, "--pool", pool]).finish();
    submit("report").expect_code(2).expect_words(&["no pool `report`", "did you mean `reports`?", "adhoc"]);
    let jobs = sandbox.gristmill(["jobs", "--json"]).finish().expect_code(0).json();
    assert_eq!(jobs.as_array().unwrap().len(), 0, "a job that was refused began");
    submit("reports").expect_code(0);
    assert_eq!(standing.job("job-1")["pool"], "reports");
    standing.end();
}

#[test]
fn explain_says_why_a_job_waits_and_why_a_task_ran_where_it_did() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 1, &["--policy", "fifo"]);
    let input = sandbox.write("text", "x\n");
    let submit = |out: &str| {
        let out = sandbox.text(out);
        sandbox.gristmill(["submit", "wordcount", &input, "--reduces", "1", "--output", &out]).start()
    };
    sandbox.arm("map");
    let first = submit("first");
    sandbox.stopped_at("map");
    let second = submit("second");
    let explain = |what: &str| sandbox.gristmill(["explain", what]).finish().expect_code(0).stdout_text();
    until("the second job", || {
        let jobs = sandbox.gristmill(["jobs", "--json"]).finish().expect_code(0).json();
        (jobs.as_array().unwrap().len() == 2).then_some(())
    });
    let next = sandbox.gristmill(["policy"]).finish().expect_code(0).stdout_text();
    let turn = "the next slots go to\n  1 map of job-2: its job is the oldest that could use the slot\n";
    assert!(next.ends_with(turn), "{next}");
    let waits = explain("job-2");
    assert!(waits.contains("job-1 holds 1") && waits.contains("policy `fifo`"), "{waits}");
    assert!(waits.contains("nothing of it has been launched"), "{waits}");
    let runs = explain("job-1/map-0");
    assert!(runs.starts_with("job-1/map-0.0 runs on worker-1") && runs.contains("reason: "), "{runs}");
    let not_yet = explain("job-2/map-0");
    assert!(not_yet.starts_with("job-2/map-0 has not been launched\n"), "{not_yet}");
    sandbox.go_on("map");
    first.finish().expect_code(0);
    second.finish().expect_code(0);
    let ran = explain("job-1/map-0");
    assert!(ran.contains("and succeeded") && ran.contains("after the job's arrival"), "{ran}");
    let told = explain("job-2");
    assert!(told.contains("job-2 succeeded") && told.contains("what its time went into"), "{told}");
    assert!(told.contains("  map-0 on worker-1\n") && told.contains("  reduce-0 on worker-1\n"), "{told}");
    assert!(told.ends_with("  the output is published\n"), "{told}");
    assert_eq!(explain("2"), told, "a number is a job");
    for unknown in ["job-9", "job-1/map-7", "job-1/reduce-99"] {
        sandbox.gristmill(["explain", unknown]).finish().expect_code(2);
    }
    standing.end();
}

/// Writes a policy program with this order of the numbers of jobs, as a Python expression.
fn policy_program(sandbox: &Sandbox, name: &str, order: &str) -> String {
    let text = format!(
        "import json, sys\nseqs = set()\nfor line in sys.stdin:\n    question = json.loads(line)\n    seqs |= {{job['seq'] \
         for job in question['jobs']}}\n    seqs -= set(question['left'])\n    print(json.dumps({{'order': {order}}}), \
         flush=True)\n"
    );
    format!("program:path={}", sandbox.write(name, text))
}

#[test]
fn a_policy_program_decides_and_its_journal_replays_to_the_same_orders() {
    let sandbox = Sandbox::new();
    let (journal, youngest) =
        (sandbox.text("journal"), policy_program(&sandbox, "policy.py", "sorted(seqs, reverse=True)"));
    let standing = Standing::start_with(&sandbox, 1, &["--policy", &youngest, "--journal", &journal]);
    let submit = |name: &str| {
        let out = sandbox.text(name);
        let job = [
            "submit",
            "synthetic",
            "--maps",
            "12",
            "--map-time",
            "100ms",
            "--reduces",
            "1",
            "--output",
            &out,
            "--detach",
        ];
        sandbox.gristmill(job).finish().expect_code(0).stdout_text().trim().to_owned()
    };
    let [first, second] = ["first", "second"].map(submit);
    for job in [&second, &first] {
        sandbox.gristmill(["job", "wait", job]).finish().expect_code(0);
    }
    let ended = [&first, &second].map(|job| standing.job(job)["ended_ns"].as_u64().unwrap());
    assert!(ended[1] < ended[0], "the younger job goes first");
    standing.end();
    assert_replays(&sandbox, &journal);
}

#[test]
fn a_policy_program_that_fails_costs_no_job_and_is_named() {
    for (name, order, reason) in [
        ("ends.py", "sys.exit(1)", "it ended"),
        ("nonsense.py", "[99]", "it named job 99, which is not there"),
        ("hangs.py", "sys.stdin.read() and list(seqs)", "it did not answer with a line"),
    ] {
        let sandbox = Sandbox::new();
        let policy = policy_program(
            &sandbox,
            name,
            &format!("{order} if 'asked' in globals() else globals().__setitem__('asked', 1) or list(seqs)"),
        );
        let standing = Standing::start_with(&sandbox, 1, &["--policy", &policy]);
        let out = sandbox.text("out");
        let job =
            ["submit", "synthetic", "--maps", "6", "--map-time", "20ms", "--reduces", "1", "--output", &out];
        sandbox.gristmill(job).finish().expect_code(0);
        let status = sandbox.gristmill(["status", "--json"]).finish().expect_code(0).json();
        assert_eq!(status["policy_panics"], 1, "{status}");
        assert!(status["policy_panic"].as_str().unwrap().contains(reason), "{name}: {status}");
        standing.end();
    }
}

/// Returns how many short jobs end before a long one on the only slot, `most` if it has not ended by then. Eight short jobs
/// are there all the time.
fn short_jobs_before_a_long_one(policy: &str, most: usize) -> usize {
    const PRESENT: usize = 8;
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 1, &["--policy", policy]);
    let submit = |name: &str, maps: &str| {
        let out = sandbox.text(name);
        let job = ["submit", "synthetic", "--maps", maps, "--map-time", "100ms", "--reduce-time", "0ms"];
        let job = [&job[..], &["--output", &out, "--detach"]].concat();
        sandbox.gristmill(job).finish().expect_code(0).stdout_text().trim().to_owned()
    };
    let get = |route: &str| -> Value { serde_json::from_str(&standing.request("GET", route, "").1).unwrap() };
    for short in 0..PRESENT {
        submit(&format!("first-{short}"), "1");
    }
    let long = submit("long", "3");
    let mut ended = 0;
    while ended < most {
        let there_are_fewer = || (get("status")["jobs_live"].as_u64()? <= PRESENT as u64).then_some(());
        until("a job that ends", there_are_fewer);
        if get(&format!("jobs/{long}"))["state"] == "succeeded" {
            break;
        }
        ended += 1;
        submit(&format!("short-{ended}"), "1");
    }
    until("all jobs to end", || (get("status")["jobs_live"] == 0).then_some(()));
    standing.end();
    ended
}

#[test]
fn a_long_job_ends_under_a_stream_of_short_ones_that_starves_it_without_aging() {
    const MOST: usize = 75;
    let starving = short_jobs_before_a_long_one("gristmill:aging=no", MOST);
    assert_eq!(starving, MOST, "it is not starved: nothing is tested");
    // A ninth of the slot would end it after 2.7 s, or 27 short jobs. It waits as long, and then has a ninth.
    let bounded = short_jobs_before_a_long_one("gristmill:stretch=1", MOST);
    assert!(bounded < 65, "{bounded} short jobs ended before it");
}

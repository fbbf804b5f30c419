//! `job list --ended`, `trace` and `report` of ended jobs, requested from the next master in the same state directory.

use crate::support::Sandbox;
use crate::support::sandbox::PROGRAM;
use crate::support::standing::{Standing, await_join_line};
use crate::support::until;
use crate::user_code::faulty_program;
use serde_json::Value;
use std::path::Path;

#[test]
fn jobs_of_a_master_that_has_ended_are_told_with_their_attempts_by_the_next_one() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b a\na\n");
    let standing = Standing::start(&sandbox, 1);
    let output = sandbox.text("<i>out");
    let submit = ["submit", "wordcount", &input, "--detach", "--reduces", "2", "--output", &output];
    let job = sandbox.gristmill(submit).finish().expect_code(0).stdout_text().trim().to_owned();
    sandbox.gristmill(["wait", &job, "--quiet"]).finish().expect_code(0);
    let live = trace(&sandbox, &job);
    let told = [job.clone(), format!("{job}/map-0"), format!("{job}/reduce-1")].map(|what| {
        let words = sandbox.gristmill(["explain", &what]).finish().expect_code(0).stdout_text();
        (what, words)
    });
    let kept = sandbox.path(&format!("state/ended-jobs/{job}.json"));
    until("the job to be kept", || kept.exists().then_some(()));
    standing.end();
    let standing = Standing::start(&sandbox, 0);
    let jobs = sandbox.gristmill(["jobs", "--ended"]).finish().expect_code(0).stdout_text();
    assert!(
        jobs.lines().any(|line| line.trim_start().starts_with(&job) && line.contains("succeeded")),
        "{jobs}"
    );
    let again = trace(&sandbox, &job);
    for (what, words) in told {
        let now = sandbox.gristmill(["explain", &what]).finish().expect_code(0).stdout_text();
        // The next master does not know which worker a number belonged to.
        assert_eq!(now, without_hosts(&words), "{what}");
    }
    let beyond = sandbox.gristmill(["explain", &format!("{job}/map-7")]).finish().expect_code(2);
    beyond.expect_words(&["has no task `map-7`"]);
    assert_eq!(again["traceEvents"], live["traceEvents"]);
    let attempts = again["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    assert!(3 <= attempts.count(), "a map and two reduces: {again}");
    let page = sandbox.text("report.html");
    sandbox.gristmill(["report", &job, "--output", &page]).finish().expect_code(0);
    let page = std::fs::read_to_string(page).unwrap();
    let printed = sandbox.gristmill(["report", &job, "--output", "-"]).finish().expect_code(0).stdout_text();
    assert_eq!(printed.trim_end(), page.trim_end());
    assert!(!sandbox.path("-").exists());
    assert!(page.contains("reduce-1.0") && page.contains("&lt;i&gt;out"), "{page}");
    assert!(page.contains("Critical path") && page.contains("the output is published"), "{page}");
    assert!(
        !page.contains("<i>out") && !page.contains("<script") && !page.contains(" src="),
        "it stands alone"
    );
    sandbox.gristmill(["trace", "job-77"]).finish().expect_code(2).expect_words(&["there is no job-77"]);
    standing.end();
}

#[test]
fn history_says_that_its_register_is_gone_or_damaged_instead_of_listing_nothing() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    let standing = Standing::start(&sandbox, 1);
    sandbox.gristmill(["submit", "wordcount", &input, "--quiet"]).finish().expect_code(0);
    standing.end();
    let register = sandbox.path("state/jobs");
    std::fs::remove_file(&register).unwrap();
    for words in ["was gone when this master began", "1 line of the register of jobs "] {
        let standing = Standing::start(&sandbox, 0);
        let said = sandbox.gristmill(["jobs", "--ended"]).finish().expect_code(3);
        assert!(said.stdout.is_empty(), "{}", said.stdout_text());
        said.expect_words(&["could not list all ended jobs: ", words]);
        let json = sandbox.gristmill(["jobs", "--ended", "--json"]).finish().expect_code(3);
        assert_eq!(json.expect_words(&[words]).json(), serde_json::json!([]));
        standing.end();
        std::fs::write(&register, "what is this?\n").unwrap();
    }
}

#[test]
fn what_the_code_of_a_job_printed_is_told_by_the_next_master() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "good\nbad\n");
    let program = faulty_program();
    let gristmill = |arguments: &[&str]| sandbox.program(&program, arguments);
    let start = || {
        let master = gristmill(&["master"]).start();
        let join = await_join_line(&master);
        let worker = gristmill(&["worker", "--workers", "1", "--slots", "1"]).start();
        let standing = Standing::new(&sandbox, master, vec![worker], join);
        standing.await_workers(1);
        standing
    };
    let standing = start();
    let out = sandbox.text("out");
    let submit = ["submit", "faulty", &input, "--how", "print", "--output", &out, "--quiet"];
    gristmill(&submit).finish().expect_code(0);
    let logs = || gristmill(&["logs", "job-1"]).finish().expect_code(0).stdout_text();
    let live = logs();
    assert!(live.contains("of a mapper that talks too much"), "{live}");
    let kept = sandbox.path("state/ended-jobs/job-1.json");
    until("the job to be kept", || kept.exists().then_some(()));
    standing.end();
    let standing = start();
    assert_eq!(logs(), live);
    standing.end();
}

#[test]
fn trace_and_report_replace_a_file_only_when_told() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b a\na\n");
    let standing = Standing::start(&sandbox, 1);
    sandbox.gristmill(["submit", "wordcount", &input, "--quiet"]).finish().expect_code(0);
    for (command, first) in [("trace", "{"), ("report", "<!DOCTYPE html>")] {
        let file = sandbox.write("there", "precious");
        let write = |more: &[&str]| {
            sandbox.gristmill([&[command, "job-1", "--output", &file], more].concat()).finish()
        };
        let refused = write(&[]).expect_code(3);
        let words = format!("could not write the {command} {file}: the file exists already");
        refused.expect_words(&[&words, "hint: choose another file, or add --overwrite"]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        write(&["--overwrite"]).expect_code(0);
        assert!(std::fs::read_to_string(&file).unwrap().starts_with(first), "{command}");
        std::fs::remove_file(&file).unwrap();
        write(&[]).expect_code(0);
        assert!(std::fs::read_to_string(&file).unwrap().starts_with(first), "{command}");
    }
    // A pipe has no file that could be replaced.
    let script = "\"$0\" trace job-1 --output /dev/stdout | cat";
    let piped = sandbox.program(Path::new("sh"), ["-c", script, PROGRAM]).finish();
    assert!(piped.expect_code(0).stdout_text().starts_with('{'));
    standing.end();
}

/// Removes the brackets after the names of workers from sentences.
fn without_hosts(words: &str) -> String {
    regex::Regex::new(r"(worker-\d+) \([^)]*\)").unwrap().replace_all(words, "$1").into_owned()
}

#[test]
fn what_stands_in_the_place_of_a_history_is_named_and_the_master_goes_on_and_ends_when_asked() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b a\na\n");
    let standing = Standing::start(&sandbox, 1);
    for job in ["job-1", "job-2"] {
        sandbox
            .gristmill(["submit", "wordcount", &input, "--output", &sandbox.text(job)])
            .finish()
            .expect_code(0);
        let kept = sandbox.path(&format!("state/ended-jobs/{job}.json"));
        until("the job to be kept", || kept.exists().then_some(()));
    }
    standing.end();
    let kept = |job: &str| sandbox.path(&format!("state/ended-jobs/{job}.json"));
    std::fs::write(kept("job-1"), "{\"status\":").unwrap();
    std::fs::remove_file(kept("job-2")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, kept("job-2"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let standing = Standing::start(&sandbox, 0);
    for (job, words) in [("job-1", "it is damaged"), ("job-2", "it is a pipe, not a regular file")] {
        let told = sandbox.gristmill(["trace", job]).finish().expect_code(3);
        told.expect_words(&[words, &format!("ended-jobs/{job}.json"), "hint:"]);
    }
    sandbox.gristmill(["jobs", "--ended"]).finish().expect_code(0);
    standing.end();
}

/// Returns the output of `trace` for a job.
fn trace(sandbox: &Sandbox, job: &str) -> Value {
    serde_json::from_str(&sandbox.gristmill(["trace", job]).finish().expect_code(0).stdout_text()).unwrap()
}

#[test]
fn jobs_have_times_on_the_wall_and_parameters_that_are_an_object_under_the_next_master_too() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let input = sandbox.write("text", "b a\na\n");
    sandbox.gristmill(["submit", "wordcount", &input]).finish().expect_code(0);
    let look = || {
        let job = sandbox.gristmill(["status", "job-1", "--json"]).finish().expect_code(0).json();
        assert!(job["parameters"].is_object(), "{job}");
        ["submitted_at", "started_at", "ended_at"].map(|name| job[name].as_str().unwrap().to_owned())
    };
    let times = look();
    assert!(
        times.is_sorted() && times.iter().all(|time| time.len() == 24 && time.ends_with('Z')),
        "{times:?}"
    );
    let said = sandbox.gristmill(["status", "job-1"]).finish().expect_code(0).stdout_text();
    assert!(
        said.contains(&format!("submitted {}, started {}, ended {}", times[0], times[1], times[2])),
        "{said}"
    );
    for flags in [&["jobs"][..], &["jobs", "--ended"]] {
        let listed = sandbox.gristmill(flags).finish().expect_code(0).stdout_text();
        assert!(listed.contains(&times[0]) && listed.contains(&times[2]), "{listed}");
    }
    standing.end();
    let standing = Standing::start(&sandbox, 0);
    assert_eq!(look(), times, "from the register");
    standing.end();
}

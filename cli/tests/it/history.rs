//! `history`, `trace` and `report` of jobs that a master has ended, asked of the next one in its state folder.

use crate::support::Sandbox;
use crate::support::standing::Standing;
use crate::support::until;
use serde_json::Value;

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
    let kept = sandbox.path(&format!("state/ended-jobs/{job}.json"));
    until("the job to be kept", || kept.exists().then_some(()));
    standing.end();
    let standing = Standing::start(&sandbox, 0);
    let jobs = sandbox.gristmill(["history"]).finish().expect_code(0).stdout_text();
    assert!(
        jobs.lines().any(|line| line.trim_start().starts_with(&job) && line.contains("succeeded")),
        "{jobs}"
    );
    let again = trace(&sandbox, &job);
    assert_eq!(again["traceEvents"], live["traceEvents"]);
    let attempts = again["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    assert!(3 <= attempts.count(), "a map and two reduces: {again}");
    let page = sandbox.text("report.html");
    sandbox.gristmill(["report", &job, "--output", &page]).finish().expect_code(0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("reduce-1.0") && page.contains("&lt;i&gt;out"), "{page}");
    assert!(
        !page.contains("<i>out") && !page.contains("<script") && !page.contains(" src="),
        "it stands alone"
    );
    sandbox.gristmill(["trace", "job-77"]).finish().expect_code(2).expect_words(&["there is no job-77"]);
    standing.end();
}

/// What `trace` writes of a job.
fn trace(sandbox: &Sandbox, job: &str) -> Value {
    serde_json::from_str(&sandbox.gristmill(["trace", job]).finish().expect_code(0).stdout_text()).unwrap()
}

//! Quotas of tokens: of jobs, of slots at once, of bytes of disk. Each limits only its own token.

use crate::support::Sandbox;
use crate::support::standing::Standing;
use serde_json::Value;

/// Returns the join line of a token of the role `submit`, with these limits.
fn token(sandbox: &Sandbox, label: &str, limits: &[&str]) -> String {
    let file = sandbox.text(&format!("{label}-{}.join", limits.join("")));
    let words = ["token", "new", "submit", "--label", label, "--output", &file];
    sandbox.gristmill([&words, limits].concat()).finish().expect_code(0);
    file
}

#[test]
fn token_with_a_quota_of_jobs_submits_so_many_at_once_and_others_as_they_like() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let ada = token(&sandbox, "ada", &["--jobs", "1"]);
    let input = sandbox.write("text", "a b a\n");
    let submit = |join: &str, output: &str| {
        let output = sandbox.text(output);
        let words = ["submit", "wordcount", &input, "--detach", "--output", &output, "--join", join];
        sandbox.gristmill(words).finish()
    };
    let first = submit(&ada, "one").expect_code(0).stdout_text();
    let refused = submit(&ada, "two").expect_code(8);
    refused.expect_words(&["submit-ada", "its quota is 1", "hint: "]);
    assert!(!sandbox.path("two").exists(), "what was refused has left something");
    let own = sandbox.text("state/join");
    submit(&own, "three").expect_code(0);
    sandbox.gristmill(["cancel", first.trim(), "--join", &ada]).finish().expect_code(0);
    submit(&ada, "two").expect_code(0);
    // The same token with another limit.
    let again = token(&sandbox, "ada", &["--jobs", "2"]);
    submit(&again, "four").expect_code(0);
    submit(&ada, "five").expect_code(8);
    token(&sandbox, "ada", &["--no-quota"]);
    submit(&ada, "five").expect_code(0);
    let view = sandbox.gristmill(["token", "new", "view", "--jobs", "1", "--print-join"]).finish();
    view.expect_code(3).expect_words(&["role submit"]);
    standing.end();
}

/// Maximum number of attempts of these jobs that held slots at once.
fn at_once(standing: &Standing<'_>, jobs: &[&str]) -> usize {
    let mut moments = Vec::new();
    for job in jobs {
        let (code, answer) = standing.request("GET", &format!("jobs/{job}/trace"), "");
        assert_eq!(code, 200, "{answer}");
        let trace: Value = serde_json::from_str(&answer).unwrap();
        for attempt in trace["attempts"].as_array().unwrap() {
            let at = |key: &str| attempt[key].as_u64().unwrap_or_else(|| panic!("{key} of {attempt}"));
            moments.extend([(at("started_ns"), 1_i64), (at("ended_ns"), -1)]);
        }
    }
    moments.sort_unstable();
    let sums = moments.iter().scan(0, |sum, (_, change)| {
        *sum += change;
        Some(*sum)
    });
    sums.max().unwrap() as usize
}

#[test]
fn token_with_a_quota_of_slots_holds_no_more_though_others_are_free() {
    let sandbox = Sandbox::new();
    let master = sandbox.gristmill(["master"]).start();
    let join = crate::support::standing::await_join_line(&master);
    let worker = sandbox.gristmill(["worker", "--workers", "1", "--slots", "4"]).start();
    let standing = Standing::new(&sandbox, master, vec![worker], join);
    standing.await_workers(1);
    let submit = |join: &str, output: &str| {
        let output = sandbox.text(output);
        let words =
            ["submit", "synthetic", "--maps", "6", "--map-time", "60ms", "--reduces", "2", "--no-sync"];
        let more = ["--detach", "--output", &output, "--join", join];
        let job = sandbox.gristmill([&words[..], &more].concat()).finish().expect_code(0).stdout_text();
        job.trim().to_owned()
    };
    let wait = |job: &str| drop(sandbox.gristmill(["wait", job]).finish().expect_code(0));
    let ada = token(&sandbox, "ada", &["--slots", "1"]);
    let (first, second) = (submit(&ada, "one"), submit(&ada, "two"));
    [&first, &second].into_iter().for_each(|job| wait(job));
    assert_eq!(at_once(&standing, &[&first, &second]), 1);
    let own = submit(&sandbox.text("state/join"), "three");
    wait(&own);
    assert!(1 < at_once(&standing, &[&own]), "nobody has limited this one");
    standing.end();
}

#[test]
fn token_with_a_quota_of_disk_loses_the_job_that_passes_it() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let lines: String = (0..5000).map(|number| format!("line {number:06}\n")).collect();
    let input = sandbox.write("text", lines);
    let submit = |join: &str| {
        let words =
            ["submit", "sort", &input, "--split-size", "10KiB", "--no-sync", "--quiet", "--join", join];
        sandbox.gristmill(words).finish()
    };
    let ada = token(&sandbox, "ada", &["--disk", "20KiB"]);
    let refused = submit(&ada).expect_code(8);
    refused.expect_words(&["passed the quota of its token", "submit-ada", "its quota is 20480"]);
    let more = token(&sandbox, "ada", &["--disk", "1GiB"]);
    submit(&more).expect_code(0);
    token(&sandbox, "ada", &["--disk", "0"]);
    submit(&ada).expect_code(8).expect_words(&["its quota is 0"]);
    standing.end();
}

//! Holders of tokens who exceed their rights: they ask for secrets of the cluster, or for jobs and uploads of
//! other users.

use crate::support::http::{request, request_with};
use crate::support::standing::{JoinLine, Standing, await_join_line};
use crate::support::{Sandbox, until};
use serde_json::Value;
use std::fs;

/// Returns the join file of a new token.
fn token(sandbox: &Sandbox, role: &str, label: &str, more: &[&str]) -> String {
    let file = sandbox.text(&format!("{role}-{label}.join"));
    let words = ["token", "new", role, "--label", label, "--output", &file];
    sandbox.gristmill([&words, more].concat()).finish().expect_code(0);
    file
}

#[test]
fn submit_token_reads_no_secret_of_the_cluster_as_input_of_a_worker() {
    let sandbox = Sandbox::new();
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    let (work, submit) = (token(&sandbox, "work", "one", &[]), token(&sandbox, "submit", "ada", &[]));
    let input = sandbox.write("inputs/text", "a line\n");
    let outside = sandbox.write("outside", "a line\n");
    let inputs = sandbox.text("inputs");
    let start = |more: &[&str]| {
        let words = ["worker", "--workers", "1", "--slots", "1", "--join", &work];
        sandbox.gristmill([&words, more].concat()).start()
    };
    let workers = vec![start(&[])];
    let mut standing = Standing::new(&sandbox, master, workers, join);
    standing.await_workers(1);
    let read = |worker: &str, path: &str| {
        let path = format!("{worker}{path}");
        sandbox.gristmill(["submit", "grep", ".", &path, "--join", &submit, "--no-sync"]).finish()
    };
    read("worker-1:", &outside).expect_code(0).expect_words(&["succeeded"]);
    let state = sandbox.text("state");
    let link = sandbox.text("link");
    std::os::unix::fs::symlink(&state, &link).unwrap();
    // The name of a job's claim would let its holder publish in the job's place.
    sandbox.write("out/_temporary/probe-0123456789abcdef", "");
    let claims = sandbox.text("out/_temporary");
    for secret in [
        claims,
        state.clone(),
        format!("{state}/join"),
        format!("{state}/jo*"),
        format!("{link}/secret"),
        work.clone(),
    ] {
        read("worker-1:", &secret).expect_code(4).expect_words(&["never input"]);
    }
    standing.workers.push(start(&["--input-dir", &inputs]));
    standing.await_workers(2);
    read("worker-2:", &input).expect_code(0).expect_words(&["succeeded"]);
    read("worker-2:", &outside).expect_code(4).expect_words(&["outside of --input-dir"]);
    standing.end();
}

/// Sends a `POST` with a token, `NAME:KEY`; returns the status and the body.
fn post(standing: &Standing<'_>, token: &str, path: &str, body: &str) -> (u16, String) {
    let (host, bearer) = (standing.join.address.to_string(), format!("Bearer {token}"));
    let form = [("Host", host.as_str()), ("Authorization", &bearer), ("Content-Type", "application/json")];
    let answer = request_with(standing.join.address, "POST", path, &form, body.as_bytes());
    (answer.status, answer.text())
}

#[test]
fn job_is_cancelled_by_the_token_that_submitted_it_or_an_admin_and_by_no_other() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let [ada, bob] = ["ada", "bob"].map(|label| token(&sandbox, "submit", label, &[]));
    let input = sandbox.write("text", "a\n");
    let submit = |join: &str, output: &str| {
        let output = sandbox.text(output);
        let words = ["submit", "wordcount", &input, "--detach", "--output", &output, "--join", join];
        sandbox.gristmill(words).finish().expect_code(0).stdout_text().trim().to_owned()
    };
    let cancel = |job: &str, join: &str| sandbox.gristmill(["cancel", job, "--join", join]).finish();
    let (first, second) = (submit(&ada, "one"), submit(&ada, "two"));
    let third = submit(&sandbox.text("state/join"), "three");
    cancel(&first, &bob)
        .expect_code(6)
        .expect_words(&["submit-ada", "submit-bob cancels its own jobs alone"]);
    cancel(&third, &ada).expect_code(6).expect_words(&["with admin"]);
    // A page has the rights of the token that requested it.
    let page = |join: &str| {
        let key = JoinLine::read(&fs::read_to_string(join).unwrap()).token;
        let (_, code) = post(&standing, &key, "/api/v1/page/submit", "null");
        let code: Value = serde_json::from_str(&code).unwrap();
        let host = standing.join.address.to_string();
        let form = [("Host", host.as_str()), ("Content-Type", "application/json")];
        let body = serde_json::json!({ "code": code["code"] }).to_string();
        let entered = request_with(standing.join.address, "POST", "/page/enter", &form, body.as_bytes());
        let entered: Value = serde_json::from_slice(&entered.body).unwrap();
        entered["token"].as_str().unwrap().to_owned()
    };
    let path = format!("/api/v1/jobs/{first}/cancel");
    assert_eq!(post(&standing, &page(&bob), &path, "").0, 403);
    // It does not show either how another user's job ended.
    let bobs = JoinLine::read(&fs::read_to_string(&bob).unwrap()).token;
    let closed = format!("/api/v1/jobs/{first}/closed");
    assert_eq!(post(&standing, &bobs, &closed, r#"{"failed":"bob was here"}"#).0, 403);
    assert_eq!(standing.job(&first)["state"], "waiting");
    assert_eq!(post(&standing, &page(&sandbox.text("state/join")), &path, "").0, 204);
    cancel(&second, &ada).expect_code(0);
    cancel(&third, &sandbox.text("state/join")).expect_code(0);
    for list in [&["jobs"][..], &["jobs", "--ended"]] {
        // An ended job is archived a moment after its end.
        let (of_ada, of_admin) = until("both jobs to be listed", || {
            let listed = sandbox.gristmill(list).finish().expect_code(0).stdout_text();
            let row = |job: &str| {
                listed.lines().find(|line| line.split_whitespace().next() == Some(job)).map(str::to_owned)
            };
            row(&first).zip(row(&third))
        });
        assert!(of_ada.contains("submit-ada") && of_admin.contains("admin"), "{of_ada}\n{of_admin}");
    }
    assert_eq!(standing.job(&second)["owner"], "submit-ada");
    standing.end();
}

#[test]
fn tokens_that_were_made_used_or_revoked_are_listed() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 0);
    let ada = token(&sandbox, "submit", "ada", &["--jobs", "2"]);
    token(&sandbox, "view", "screen", &[]);
    sandbox.gristmill(["token", "revoke", "view-screen@0"]).finish().expect_code(0);
    let listed = sandbox.gristmill(["token", "list"]).finish().expect_code(0).stdout_text();
    let words = |name: &str| -> Vec<String> {
        let line = listed
            .lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap_or_else(|| panic!("{name}: {listed}"));
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(words("submit-ada@0"), ["submit-ada@0", "valid", "-", "2", "-", "-"]);
    assert_eq!(words("view-screen@0")[1], "ended");
    assert_eq!(words("admin@0")[..2], ["admin@0", "valid"]);
    // A route without a token records no use.
    let address = standing.join.address;
    let form = [("Host", address.to_string()), ("Authorization", "Bearer admin-stolen@0:x".to_owned())];
    let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(request(address, "GET", "/healthz", &form).status, 204);
    let listed = sandbox.gristmill(["token", "list"]).finish().expect_code(0).stdout_text();
    assert!(!listed.contains("stolen"), "{listed}");
    sandbox.gristmill(["token", "list", "--join", &ada]).finish().expect_code(6);
    standing.end();
}

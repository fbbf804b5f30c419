//! Those who hold a token and reach beyond it: for secrets of the cluster, for jobs and uploads of others.

use crate::support::Sandbox;
use crate::support::standing::{JoinLine, Standing, await_join_line};
use std::fs;

/// The join file of a new token.
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
    let mut standing = Standing::of(&sandbox, master, workers, join);
    standing.await_workers(1);
    let read = |worker: &str, path: &str| {
        let path = format!("{worker}{path}");
        sandbox.gristmill(["submit", "grep", ".", &path, "--join", &submit, "--no-sync"]).finish()
    };
    read("worker-1:", &outside).expect_code(0).expect_words(&["succeeded"]);
    let state = sandbox.text("state");
    let link = sandbox.text("link");
    std::os::unix::fs::symlink(&state, &link).unwrap();
    for secret in [
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

//! `top` in a pseudo-terminal: what it shows of a live cluster, and the state in which it leaves the
//! terminal, however it ends.
//!
//! The layout at each size is tested next to the code, on a terminal in memory.

use crate::support::sandbox::{PROGRAM, Running};
use crate::support::standing::{Standing, await_join_line};
use crate::support::{Sandbox, until};
use serde_json::{Value, json};
use std::path::Path;

const PTY: &str = include_str!("support/pty.py");

/// Starts `top` in a terminal of this size, in which these steps are executed.
fn start(sandbox: &Sandbox, (rows, columns): (u32, u32), flags: &[&str], steps: &Value) -> Running {
    let (rows, columns, steps) = (rows.to_string(), columns.to_string(), steps.to_string());
    let bridge = ["-c", PTY, &rows, &columns, &steps, PROGRAM, "top"];
    sandbox.program(Path::new("python3"), bridge.iter().chain(flags)).start()
}

/// Returns its result; the terminal must be restored.
fn finish(running: Running, code: i32) -> Value {
    let finished = running.finish().expect_code(0);
    let text = finished.stdout_text();
    let end: Value = serde_json::from_str(text.trim().lines().last().unwrap()).unwrap();
    let kept = json!({"code": code, "as_before": true, "alternate": false, "cursor": true});
    for (what, expected) in kept.as_object().unwrap() {
        assert_eq!(&end[what], expected, "{what}: {end}");
    }
    end
}

/// Returns a value once the steps have printed these words.
fn says(running: &Running, words: &str) -> Option<()> {
    String::from_utf8(running.stdout()).unwrap().contains(words).then_some(())
}

fn play(sandbox: &Sandbox, steps: &Value, code: i32) -> Value {
    finish(start(sandbox, (24, 80), &[], steps), code)
}

#[test]
fn top_says_what_to_do_where_there_is_no_terminal() {
    let sandbox = Sandbox::new();
    let finished = sandbox.run(["top"]).expect_code(2);
    finished.expect_words(&["draws on a terminal", "`gristmill job list`", "--json"]);
}

#[test]
fn top_leaves_the_terminal_as_it_was_at_q_ctrl_c_a_signal_and_a_panic() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let seen = json!(["see", "1 worker"]);
    play(&sandbox, &json!([seen, ["see", "1 slot 0"], ["send", "q"], ["end"]]), 0);
    play(&sandbox, &json!([seen, ["send", "\u{3}"], ["end"]]), 0);
    play(&sandbox, &json!([seen, ["signal", "TERM"], ["end"]]), 130);
    play(&sandbox, &json!([seen, ["signal", "INT"], ["end"]]), 130);
    sandbox.write("faults/top.draw", "panic");
    let end = play(&sandbox, &json!([["end"]]), 101);
    assert!(end["left"].as_str().unwrap().contains("a test wants the engine to panic at top.draw"), "{end}");
    standing.end();
}

#[test]
fn top_leaves_the_terminal_as_it_was_when_its_master_is_lost() {
    let sandbox = Sandbox::new();
    // It retries its master until the loss has been observed, on slow machines too, and then no longer.
    sandbox.write("faults/top.patience", "600000");
    let mut standing = Standing::start(&sandbox, 1);
    let steps =
        json!([["see", "1 worker"], ["say", "kill it"], ["see", "trying again"], ["say", "enough"], ["end"]]);
    let running = start(&sandbox, (24, 80), &[], &steps);
    until("top shows the cluster", || says(&running, "kill it"));
    standing.master.kill();
    until("top misses its master", || says(&running, "enough"));
    sandbox.write("faults/top.patience", "0");
    let end = finish(running, 5);
    let left = end["left"].as_str().unwrap();
    // Its workers wait for another.
    sandbox.clear();
    assert!(left.contains("error: the master at") && left.contains("could not be reached"), "{left}");
}

#[test]
fn top_goes_on_when_another_master_comes_in_the_place_of_its_own() {
    let sandbox = Sandbox::new();
    let mut standing = Standing::start(&sandbox, 1);
    let steps = json!([
        ["see", "1 worker"],
        ["say", "kill it"],
        ["see", "trying again"],
        ["say", "start another"],
        ["see", "healthy"],
        ["see", "1 slot 0"],
        ["send", "q"],
        ["end"]
    ]);
    let running = start(&sandbox, (24, 80), &[], &steps);
    until("top shows the cluster", || says(&running, "kill it"));
    standing.master.kill();
    until("top misses its master", || says(&running, "start another"));
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    finish(running, 0);
    let standing = Standing::of(&sandbox, master, standing.workers, join);
    standing.await_workers(1);
    standing.end();
}

#[test]
fn top_cancels_a_job_after_a_question_and_not_with_a_key_that_may_only_look() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let output = sandbox.text("out");
    let flags = ["submit", "synthetic", "--maps", "2", "--map-time", "600s", "--detach", "--output", &output];
    sandbox.gristmill(flags).finish().expect_code(0);
    let view = sandbox.text("view.join");
    sandbox.gristmill(["token", "new", "view", "--output", &view]).finish().expect_code(0);
    let looks = json!([["see", "job-1"], ["send", "c"], ["see", "is read-only"], ["send", "q"], ["end"]]);
    finish(start(&sandbox, (24, 100), &["--join", &view], &looks), 0);
    assert_eq!(standing.job("job-1")["state"], "running");
    let cancels = json!([
        ["see", "running"],
        ["send", "c"],
        ["see", "Cancel job-1 synthetic?"],
        ["send", "n"],
        ["see", "continues"],
        ["send", "c"],
        ["see", "Cancel job-1 synthetic?"],
        ["send", "y"],
        ["see", "cancelled"],
        ["send", "q"],
        ["end"]
    ]);
    play(&sandbox, &cancels, 0);
    assert_eq!(standing.job("job-1")["state"], "cancelled");
    standing.end();
}

#[test]
fn top_fits_a_terminal_of_40_by_10() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let steps = json!([
        ["see", "1 worker"],
        ["see", "none yet"],
        ["see", "1 slot 0"],
        ["see", "q quit"],
        ["send", "q"],
        ["end"]
    ]);
    finish(start(&sandbox, (10, 40), &[], &steps), 0);
    standing.end();
}

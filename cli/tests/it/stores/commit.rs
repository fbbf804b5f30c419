//! When an output in a store becomes complete: processes are killed at each step towards `_SUCCESS`, and two
//! writers collide.

use super::server::{Deed, Rule, StoreServer, kill_all};
use super::{assert_whole_and_alone, command, part_names, run, success, whole};
use crate::support::sandbox::ORPHAN_TIMEOUT;
use crate::support::{Sandbox, until};
use hyper::Method;

const OUT: &str = "s3://data/out";

/// Expected output of the jobs in this file.
const EXPECTED: &[u8] = b"a\t2\nb\t2\nc\t1\n";

/// A job with two parts, and its sorted output.
fn job(server: &StoreServer) -> Vec<String> {
    let input = server.put("text", "a b\nc b\na\n");
    let words = ["run", "wordcount", &input, "--reduces", "2", "--workers", "1", "--quiet", "--output", OUT];
    words.map(str::to_owned).to_vec()
}

fn sorted(bytes: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines.concat()
}

/// Runs the job again; it takes over what the killed job has left.
fn runs_well_again(sandbox: &Sandbox, server: &StoreServer, flags: &[&str]) {
    let mut words = job(server);
    words.extend(flags.iter().map(|flag| (*flag).to_owned()));
    run(sandbox, server, words).expect_code(0);
    let there = whole(server, "out");
    assert!(sorted(&there) == EXPECTED);
    assert_whole_and_alone(server, "out", &there);
}

#[test]
fn output_is_whole_or_absent_whichever_step_of_the_commit_its_processes_are_killed_at() {
    // The place, and true if the output is complete when all processes die at it.
    for (place, complete) in [
        ("store.claimed", false),
        ("commit.before", false),
        ("store.uploaded", false),
        ("commit.after", false),
        ("store.closing", false),
        ("store.checked", false),
        ("store.complete", true),
        ("store.cleared", true),
    ] {
        let (sandbox, server) = (Sandbox::new(), StoreServer::start());
        sandbox.arm(place);
        let mut running = command(&sandbox, &server, job(&server)).start();
        sandbox.stopped_at(place);
        kill_all(&sandbox);
        running.kill();
        sandbox.go_on(place);
        sandbox.await_nothing_left_but_temporary(ORPHAN_TIMEOUT);
        assert_eq!(success(&server, "out").is_some(), complete, "killed at {place}");
        if complete {
            assert!(sorted(&whole(&server, "out")) == EXPECTED, "killed at {place}");
        }
        runs_well_again(&sandbox, &server, if complete { &["--overwrite"] } else { &[] });
    }
}

#[test]
fn output_is_whole_or_absent_whichever_step_of_the_commit_only_its_submitter_is_killed_at() {
    for (place, complete) in [
        ("store.claimed", false),
        ("store.closing", false),
        ("store.checked", false),
        ("store.complete", true),
        ("store.cleared", true),
    ] {
        let (sandbox, server) = (Sandbox::new(), StoreServer::start());
        sandbox.arm(place);
        let mut running = command(&sandbox, &server, job(&server)).start();
        assert_eq!(sandbox.stopped_at(place), running.pid(), "{place}");
        running.kill();
        sandbox.go_on(place);
        // Its master notices, and abandons or leaves the output.
        sandbox.await_nothing_left(ORPHAN_TIMEOUT);
        assert_eq!(success(&server, "out").is_some(), complete, "killed at {place}");
        if complete {
            assert!(sorted(&whole(&server, "out")) == EXPECTED, "killed at {place}");
        }
        runs_well_again(&sandbox, &server, if complete { &["--overwrite"] } else { &[] });
    }
}

#[test]
fn output_that_replaces_another_is_the_old_or_the_new_one_at_each_step() {
    for (place, is_new) in [("store.checked", false), ("store.complete", true)] {
        let (sandbox, server) = (Sandbox::new(), StoreServer::start());
        let old = server.put("old", "old\n");
        run(&sandbox, &server, ["run", "wordcount", &old, "--reduces", "1", "--output", OUT]).expect_code(0);
        sandbox.arm(place);
        let mut words = job(&server);
        words.push("--overwrite".to_owned());
        let mut running = command(&sandbox, &server, words).start();
        sandbox.stopped_at(place);
        kill_all(&sandbox);
        running.kill();
        sandbox.go_on(place);
        sandbox.await_nothing_left_but_temporary(ORPHAN_TIMEOUT);
        let expected: &[u8] = if is_new { EXPECTED } else { b"old\t1\n" };
        assert!(sorted(&whole(&server, "out")) == expected, "killed at {place}");
        runs_well_again(&sandbox, &server, &["--overwrite"]);
    }
}

#[test]
fn worker_that_is_killed_with_its_part_uploaded_leaves_no_second_one() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    sandbox.arm("store.uploaded");
    let running = command(&sandbox, &server, job(&server)).start();
    sandbox.kill_at("store.uploaded");
    running.finish().expect_code(0);
    sandbox.assert_nothing_left();
    let there = whole(&server, "out");
    assert!(sorted(&there) == EXPECTED);
    assert_whole_and_alone(&server, "out", &there);
    let uploaded = server.asked().iter().filter(|asked| asked.path.contains("/out/part-")).count();
    assert!(3 <= uploaded, "one part was uploaded twice: {uploaded}");
}

#[test]
fn second_job_with_the_same_prefix_is_refused_while_the_first_one_runs() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    sandbox.arm("store.claimed");
    let first = command(&sandbox, &server, job(&server)).start();
    sandbox.stopped_at("store.claimed");
    let second = command(&sandbox, &server, job(&server)).finish().expect_code(3);
    second.expect_words(&[
        "another job is writing to s3://data/out",
        "claimed by process",
        "delete that object",
    ]);
    sandbox.go_on("store.claimed");
    first.finish().expect_code(0);
    sandbox.assert_nothing_left();
    assert!(sorted(&whole(&server, "out")) == EXPECTED);
}

#[test]
fn writer_that_is_too_late_is_told_and_takes_nothing_away_from_the_other() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    sandbox.arm("store.checked");
    let late = command(&sandbox, &server, job(&server)).start();
    sandbox.stopped_at("store.checked");
    // A writer that ignores claims, or has deleted this one.
    std::fs::remove_file(server.path("out/_temporary")).unwrap();
    let other = Sandbox::new();
    let input = server.put("other", "z\n");
    let elsewhere = ["run", "wordcount", &input, "--reduces", "1", "--output", "s3://data/elsewhere"];
    run(&other, &server, elsewhere).expect_code(0);
    for key in server.keys("elsewhere") {
        server.put(&format!("out/{key}"), server.get(&format!("elsewhere/{key}")));
    }
    sandbox.go_on("store.checked");
    let finished = late.finish().expect_code(7);
    finished.expect_words(&["another writer has written s3://data/out/_SUCCESS", "is deleted"]);
    sandbox.assert_nothing_left();
    assert_whole_and_alone(&server, "out", b"z\t1\n");
}

#[test]
fn of_two_writers_that_finish_at_once_one_wins_and_the_other_is_told() {
    let (one, two, server) = (Sandbox::new(), Sandbox::new(), StoreServer::start());
    let mut running = Vec::new();
    for sandbox in [&one, &two] {
        sandbox.arm("store.checked");
        let mut words = job(&server);
        // The second one finds what the first one has uploaded.
        words.push("--overwrite".to_owned());
        running.push(command(sandbox, &server, words).start());
        sandbox.stopped_at("store.checked");
        // So that the other one does not see it.
        std::fs::remove_file(server.path("out/_temporary")).unwrap();
    }
    for sandbox in [&one, &two] {
        sandbox.go_on("store.checked");
    }
    let mut codes: Vec<i32> = running.into_iter().map(|run| run.finish().status.code().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 7]);
    one.assert_nothing_left();
    two.assert_nothing_left();
    let there = whole(&server, "out");
    assert!(sorted(&there) == EXPECTED);
    until("the loser's objects are gone", || {
        (server.keys("out").len() == super::part_names(&server, "out").len() + 1).then_some(())
    });
}

#[test]
fn output_stays_when_the_request_for_success_went_well_without_an_answer_and_the_next_one_is_refused() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let lost = server.rule(Rule::once(Method::PUT, "/out/_SUCCESS", Deed::LoseAnswer));
    let deed = Deed::refuse(400, "ExpiredToken");
    let refused = server.rule(Rule { skip: 1, ..Rule::always(Method::PUT, "/out/_SUCCESS", deed) });
    run(&sandbox, &server, job(&server)).expect_code(0);
    assert_eq!((server.done(lost), server.done(refused)), (1, 1));
    let there = whole(&server, "out");
    assert!(sorted(&there) == EXPECTED);
    assert_whole_and_alone(&server, "out", &there);
}

#[test]
fn nothing_is_deleted_while_nobody_can_tell_whether_success_was_written() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let lost = server.rule(Rule::once(Method::PUT, "/out/_SUCCESS", Deed::LoseAnswer));
    // It is read once before it is written.
    let expired = [Method::PUT, Method::GET].map(|method| {
        let deed = Deed::refuse(400, "ExpiredToken");
        server.rule(Rule { skip: 1, ..Rule::always(method, "/out/_SUCCESS", deed) })
    });
    let finished = run(&sandbox, &server, job(&server)).expect_code(7);
    finished
        .expect_words(&["it is not known whether s3://data/out/_SUCCESS was written", "these credentials"]);
    assert_eq!(server.done(lost), 1);
    assert_eq!(expired.map(|rule| server.done(rule)), [1, 1]);
    assert!(sorted(&whole(&server, "out")) == EXPECTED);
}

#[test]
fn finished_output_stays_when_the_one_who_takes_its_claim_over_cannot_see_at_once_that_it_is_finished() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    sandbox.arm("store.complete");
    let mut running = command(&sandbox, &server, job(&server)).start();
    sandbox.stopped_at("store.complete");
    kill_all(&sandbox);
    running.kill();
    sandbox.go_on("store.complete");
    sandbox.await_nothing_left_but_temporary(ORPHAN_TIMEOUT);
    let deed = Deed::refuse(403, "AccessDenied");
    let refused = server.rule(Rule::once(Method::GET, "/out/_SUCCESS", deed));
    run(&sandbox, &server, job(&server)).expect_code(3);
    assert_eq!(server.done(refused), 1);
    let there = whole(&server, "out");
    assert!(sorted(&there) == EXPECTED);
    assert_whole_and_alone(&server, "out", &there);
}

#[test]
fn writer_whose_claim_a_person_has_deleted_leaves_what_the_next_one_has_there() {
    let (late, next, server) = (Sandbox::new(), Sandbox::new(), StoreServer::start());
    let mut running = Vec::new();
    for sandbox in [&late, &next] {
        sandbox.arm("store.checked");
        let mut words = job(&server);
        // It finds what the other one has uploaded.
        words.push("--overwrite".to_owned());
        running.push(command(sandbox, &server, words).start());
        sandbox.stopped_at("store.checked");
        if running.len() == 1 {
            std::fs::remove_file(server.path("out/_temporary")).unwrap();
        }
    }
    let (claim, before) = (server.get("out/_temporary"), server.keys("out"));
    late.go_on("store.checked");
    running.remove(0).finish().expect_code(0);
    late.assert_nothing_left();
    assert_eq!(server.get("out/_temporary"), claim, "the claim of the next one");
    let missing: Vec<String> = before.into_iter().filter(|key| !server.keys("out").contains(key)).collect();
    assert_eq!(missing, [""; 0], "the parts of the next one");
    next.go_on("store.checked");
    running.remove(0).finish().expect_code(7).expect_words(&["another writer has written"]);
    next.assert_nothing_left();
    let there = whole(&server, "out");
    assert!(sorted(&there) == EXPECTED);
    assert_whole_and_alone(&server, "out", &there);
}

#[test]
fn output_that_came_to_be_below_one_that_is_overwritten_stays() {
    let (upper, lower, server) = (Sandbox::new(), Sandbox::new(), StoreServer::start());
    upper.arm("store.checked");
    let mut words = job(&server);
    words.push("--overwrite".to_owned());
    let running = command(&upper, &server, words).start();
    upper.stopped_at("store.checked");
    let input = server.put("other", "z\n");
    let below = ["run", "wordcount", &input, "--reduces", "1", "--output", "s3://data/out/daily"];
    run(&lower, &server, below).expect_code(0);
    upper.go_on("store.checked");
    running.finish().expect_code(0);
    upper.assert_nothing_left();
    assert_whole_and_alone(&server, "out/daily", b"z\t1\n");
    assert_eq!(part_names(&server, "out").len(), 2);
}

#[test]
fn store_that_writes_whatever_the_condition_is_refused_before_the_job_runs() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let claim = server.path("out/_temporary");
    // A store without conditional writes behaves like this: the second create succeeds.
    let deed = Deed::After(std::sync::Arc::new(move || std::fs::remove_file(&claim).unwrap()));
    let ignored = server.rule(Rule { skip: 1, ..Rule::once(Method::PUT, "/out/_temporary", deed) });
    let refused = run(&sandbox, &server, job(&server)).expect_code(3);
    refused.expect_words(&["does not keep to conditions", "s3://data/out", "another store"]);
    assert_eq!(server.done(ignored), 1);
    assert_eq!(server.keys("out"), [""; 0]);
}

//! Made-up runs: one that violates nothing, and for each invariant some that violate it alone.

use super::Invariant::{self, *};
use super::violations;
use crate::faults::run::{Ending, Files, Next, Reference, Run, Told, Written};
use serde_json::{Value, json};
use std::time::Duration;

const PARTS: [&str; 2] = ["a\t1\nb\t2\n", "c\t3\n"];

fn status() -> Value {
    let totals = json!({
        "map_records_in": 6, "map_bytes_in": 12, "map_records_out": 6, "records_out": 3, "bytes_out": 12,
    });
    let attempts = json!({ "failed_user": 0, "failed_other": 0, "lost": 0, "maps_rerun": 0 });
    json!({ "state": "succeeded", "totals": totals, "attempts": attempts, "counters": { "long words": 2 },
        "parts": 2, "ended_ns": 99 })
}

fn reference() -> Reference {
    Reference { parts: PARTS.map(|part| part.into()).to_vec(), status: status() }
}

/// Files that a job leaves in its output directory.
fn output() -> Files {
    let part = |number: usize, text: &str| {
        json!({ "name": format!("part-{number:05}"), "bytes": text.len(), "records": text.lines().count(),
            "crc32c": crc32c::crc32c(text.as_bytes()) })
    };
    let parts: Vec<Value> = PARTS.iter().enumerate().map(|(number, text)| part(number, text)).collect();
    let success = json!({ "parts": parts }).to_string();
    let files =
        PARTS.iter().enumerate().map(|(number, text)| (format!("part-{number:05}"), text.to_string()));
    let all = files.chain([("_SUCCESS".to_owned(), success)]);
    all.map(|(name, text)| (name, text.into_bytes())).collect()
}

fn told(state: &str, status: Value) -> Told {
    let word = || state.to_owned();
    Told {
        status,
        listed: format!(" job-2 sort {state} 2/2"),
        registered: word(),
        journal: Some(Written { outcome: word(), replay: String::new() }),
    }
}

/// A job that a fault has cost nothing.
fn unharmed() -> Run {
    Run {
        ending: Ending::SAME_OUTPUT,
        code: Some(0),
        took: Duration::from_secs(1),
        bound: Duration::from_secs(2),
        stderr: "job-2 sort succeeded".to_owned(),
        report: Some(json!({ "status": status() })),
        output: Some(output()),
        fired: 1,
        wanted: 1..=1,
        told: Some(told("succeeded", status())),
        next: Next { code: Some(0), stderr: String::new(), parts: reference().parts },
        left: Vec::new(),
        logs: "worker-1 was lost".to_owned(),
    }
}

/// A job that was cancelled, as expected.
fn cancelled() -> Run {
    let mut status = status();
    status["state"] = "cancelled".into();
    Run {
        ending: Ending::CANCELLED,
        code: Some(130),
        stderr: "error: interrupted: job-2 was cancelled".to_owned(),
        report: None,
        output: None,
        told: Some(told("cancelled", status)),
        ..unharmed()
    }
}

/// Returns the invariants that a run violates after a change.
fn broken(mut run: Run, change: impl FnOnce(&mut Run)) -> Vec<Invariant> {
    change(&mut run);
    let mut found: Vec<Invariant> = violations(&reference(), &run).iter().map(|broken| broken.of).collect();
    found.dedup();
    found
}

fn status_of(run: &mut Run) -> &mut Value {
    &mut run.told.as_mut().unwrap().status
}

/// Changes the status and the report of a job alike.
fn change_told(run: &mut Run, change: impl Fn(&mut Value)) {
    change(status_of(run));
    change(&mut run.report.as_mut().unwrap()["status"]);
}

#[test]
fn runs_as_they_should_be_break_nothing() {
    assert_eq!(violations(&reference(), &unharmed()), []);
    assert_eq!(violations(&reference(), &cancelled()), []);
}

#[test]
fn output_that_differs_is_missing_or_should_not_be_breaks_the_first() {
    let change = |run: &mut Run| {
        // `_SUCCESS` agrees with the files: only the reference differs.
        let files = run.output.as_mut().unwrap();
        let text = b"x\t1\nb\t2\n".to_vec();
        let success = String::from_utf8(files["_SUCCESS"].clone()).unwrap();
        let [old, new] = [&files["part-00000"], &text].map(|bytes| crc32c::crc32c(bytes).to_string());
        files.insert("_SUCCESS".to_owned(), success.replace(&old, &new).into_bytes());
        files.insert("part-00000".to_owned(), text);
    };
    assert_eq!(broken(unharmed(), change), [I1]);
    assert_eq!(broken(unharmed(), |run| run.output = None), [I1]);
    assert_eq!(broken(cancelled(), |run| run.output = Some(output())), [I1]);
    assert_eq!(broken(cancelled(), |run| run.output = Some(Files::new())), [I1]);
}

#[test]
fn manifest_that_is_missing_or_says_something_else_breaks_the_second() {
    let change = |change: fn(&mut Files)| broken(unharmed(), |run| change(run.output.as_mut().unwrap()));
    assert_eq!(change(|files| drop(files.remove("_SUCCESS"))), [I2]);
    assert_eq!(change(|files| drop(files.insert("_temporary".to_owned(), Vec::new()))), [I2]);
    for (from, to) in
        [("\"records\":2", "\"records\":3"), ("\"bytes\":8", "\"bytes\":9"), ("\"crc32c\":", "\"crc32c\":1")]
    {
        let changed = broken(unharmed(), |run| {
            let files = run.output.as_mut().unwrap();
            let text = String::from_utf8(files["_SUCCESS"].clone()).unwrap();
            files.insert("_SUCCESS".to_owned(), text.replacen(from, to, 1).into_bytes());
        });
        assert_eq!(changed, [I2], "{from} became {to}");
    }
}

#[test]
fn end_that_is_late_or_has_another_code_breaks_the_third() {
    assert_eq!(broken(unharmed(), |run| run.took = run.bound + Duration::from_nanos(1)), [I3]);
    assert_eq!(broken(unharmed(), |run| run.code = Some(1)), [I3]);
    assert_eq!(broken(unharmed(), |run| run.code = None), [I3]);
    assert_eq!(broken(cancelled(), |run| run.code = Some(0)), [I3]);
}

#[test]
fn leftovers_break_the_fourth() {
    assert_eq!(broken(unharmed(), |run| run.left.push("process 7: gristmill worker".to_owned())), [I4]);
}

#[test]
fn records_and_counters_that_count_twice_break_the_fifth() {
    for name in ["map_records_in", "map_bytes_in", "map_records_out", "records_out", "bytes_out"] {
        let twice = |status: &mut Value| status["totals"][name] = json!(1000);
        assert_eq!(broken(unharmed(), |run| change_told(run, twice)), [I5], "{name}");
    }
    let twice = |status: &mut Value| status["counters"]["long words"] = json!(4);
    assert_eq!(broken(unharmed(), |run| change_told(run, twice)), [I5]);
}

#[test]
fn attempts_charged_to_user_code_or_lost_without_need_break_the_sixth() {
    let charge = |status: &mut Value| status["attempts"]["failed_user"] = json!(1);
    assert_eq!(broken(unharmed(), |run| change_told(run, charge)), [I6]);
    assert_eq!(broken(cancelled(), |run| charge(status_of(run))), [I6]);
    for name in ["lost", "failed_other", "maps_rerun"] {
        let lose = |status: &mut Value| status["attempts"][name] = json!(1);
        assert_eq!(broken(unharmed(), |run| change_told(run, lose)), [], "{name}");
        let untouched = Run { ending: Ending { untouched: true, ..Ending::SAME_OUTPUT }, ..unharmed() };
        assert_eq!(broken(untouched, |run| change_told(run, lose)), [I6], "{name}");
    }
}

#[test]
fn unclear_message_or_text_of_a_panic_breaks_the_seventh() {
    assert_eq!(broken(cancelled(), |run| run.stderr = "error: stopped".to_owned()), [I7]);
    assert_eq!(broken(cancelled(), |run| run.stderr = "interrupted".to_owned()), [I7]);
    assert_eq!(broken(cancelled(), |run| run.stderr += "\nerror: and another"), [I7]);
    assert_eq!(broken(unharmed(), |run| run.stderr += "\nerror: but it succeeded"), [I7]);
    assert_eq!(broken(unharmed(), |run| run.logs += "thread 'slot' panicked at src/x.rs"), [I7]);
    assert_eq!(broken(cancelled(), |run| run.logs += "note: run with RUST_BACKTRACE=1"), [I7]);
}

#[test]
fn anybody_who_tells_something_else_breaks_the_eighth() {
    let change = |run: Run, change: fn(&mut Told)| broken(run, |run| change(run.told.as_mut().unwrap()));
    assert_eq!(change(unharmed(), |told| told.status["state"] = "failed".into()), [I8]);
    assert_eq!(change(unharmed(), |told| told.listed = " job-2 sort running 2/2".to_owned()), [I8]);
    assert_eq!(change(cancelled(), |told| told.registered = "failed".to_owned()), [I8]);
    assert_eq!(change(cancelled(), |told| told.journal = Some(Written::default())), [I8]);
    assert_eq!(
        change(cancelled(), |told| told.journal.as_mut().unwrap().replay = "line 7 differs".to_owned()),
        [I8]
    );
    assert_eq!(change(cancelled(), |told| told.status["state"] = "succeeded".into()), [I8]);
    for key in ["totals", "parts", "counters", "attempts", "ended_ns"] {
        assert_eq!(
            broken(unharmed(), |run| run.report.as_mut().unwrap()["status"][key] = json!(7)),
            [I8],
            "{key}"
        );
    }
}

#[test]
fn fault_that_fired_too_rarely_or_too_often_breaks_the_ninth() {
    assert_eq!(broken(unharmed(), |run| run.fired = 0), [I9]);
    assert_eq!(broken(unharmed(), |run| run.fired = 2), [I9]);
}

#[test]
fn next_job_that_fails_or_has_another_output_breaks_the_tenth() {
    assert_eq!(broken(unharmed(), |run| run.next.code = Some(5)), [I10]);
    assert_eq!(broken(cancelled(), |run| run.next.parts[1].push(b'x')), [I10]);
}

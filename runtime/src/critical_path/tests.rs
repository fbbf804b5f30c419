//! Tests of the critical path on traces written by hand, and on random ones.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

/// Kind and index, worker, and times of launch, start and end, milliseconds.
type RanTuple = (&'static str, u32, u32, [u64; 3]);

/// Map, source and destination worker, bytes, and time of the end, milliseconds.
type FetchTuple = (u32, u32, u32, u64, u64);

fn attempt(&(kind, index, worker, [launched, began, ended]): &RanTuple) -> Value {
    tried((kind, index, 0), worker, [launched, began, ended], &json!("succeeded"))
}

/// An attempt with its number, counted from 0, and its outcome.
fn tried(
    (kind, index, epoch): (&str, u32, u32),
    worker: u32,
    [launched, began, ended]: [u64; 3],
    end: &Value,
) -> Value {
    let ended = (*end != "running").then_some(ended * MS);
    json!({"attempt": {"task": {"job": 1, "kind": kind, "index": index}, "epoch": epoch}, "worker": worker,
        "launched_ns": launched * MS, "started_ns": began * MS, "ended_ns": ended, "end": end, "reason": "",
        "report": null})
}

fn fetch((map, epoch): (u32, u32), from: u32, to: u32, bytes: u64, ended: u64) -> Value {
    json!({"map": {"task": {"job": 1, "kind": "Map", "index": map}, "epoch": epoch}, "from": from, "to": to,
        "partitions": 1, "bytes": bytes, "started_ns": 0, "ended_ns": ended * MS})
}

fn failed(class: &str) -> Value {
    json!({"failed": [class, "words"]})
}

/// Trace of a job that arrived at 100 ms and ended in this state; if it failed, with this code.
fn trace(
    (state, code): (&str, Option<&str>),
    ended: u64,
    reduces: u32,
    attempts: &[Value],
    fetches: &[Value],
) -> JobTrace {
    let tasks = |total| json!({"total": total, "running": 0, "done": total});
    let failure = code.map(|code| json!({"code": code, "message": "", "detail": null}));
    let status = json!({"schema": 1, "job": 1, "name": "x", "parameters": "", "state": state, "maps": tasks(1),
        "reduces": tasks(reduces), "segments_total": 0, "input_bytes": 0, "input_bytes_read": 0, "now_ns": 0,
        "arrived_ns": 100 * MS, "started_ns": null, "maps_done_ns": null, "shuffle_done_ns": null,
        "ended_ns": ended * MS, "totals": crate::api::JobTotals::default(),
        "attempts": crate::api::AttemptCounts::default(), "counters": {}, "parts": [], "incidents": [],
        "incidents_omitted": 0, "failure": failure, "remarks": [], "workers": 1, "slots": 1, "output": "/out"});
    let trace = json!({"status": status, "attempts": attempts, "fetches": fetches, "omitted": 0});
    serde_json::from_value(trace).unwrap()
}

/// The steps: start, end and description, milliseconds after the arrival.
fn path_steps(trace: &JobTrace) -> Vec<String> {
    let told = critical_path(trace);
    assert!(told.windows(2).all(|pair| pair[0].until_ns == pair[1].from_ns), "gaps: {told:?}");
    told.iter().map(|step| format!("{}..{} {}", step.from_ns / MS, step.until_ns / MS, step.what)).collect()
}

/// The steps of a successful job.
fn steps(ended: u64, reduces: u32, ran: &[RanTuple], fetches: &[FetchTuple]) -> Vec<String> {
    let attempts: Vec<Value> = ran.iter().map(attempt).collect();
    let fetches =
        fetches.iter().map(|&(map, from, to, bytes, ended)| fetch((map, 0), from, to, bytes, ended));
    let fetches: Vec<Value> = fetches.collect();
    path_steps(&trace(("succeeded", None), ended, reduces, &attempts, &fetches))
}

#[test]
fn path_goes_back_over_the_last_reduce_its_last_transfer_and_the_maps_of_one_slot() {
    let ran = [
        ("Map", 0, 1, [110, 110, 200]),
        ("Map", 1, 2, [110, 110, 150]),
        ("Map", 2, 1, [200, 205, 300]),
        ("Reduce", 0, 2, [340, 340, 400]),
        ("Reduce", 1, 1, [310, 310, 330]),
    ];
    let fetches = [(0, 1, 2, 5, 230), (2, 1, 2, 5, 320), (1, 2, 1, 5, 160)];
    let expected = [
        "0..10 no task of it is launched yet",
        "10..100 map-0 on worker-1",
        "100..105 map-2 waits for a slot on worker-1",
        "105..200 map-2 on worker-1",
        "200..220 what map-2 made comes from worker-1 to worker-2",
        "220..240 reduce-0 waits for a slot on worker-2",
        "240..300 reduce-0 on worker-2",
        "300..310 the output is published",
    ];
    assert_eq!(steps(410, 2, &ran, &fetches), expected);
}

#[test]
fn job_whose_first_map_ran_elsewhere_waited_for_a_slot_after_it() {
    let ran = [("Map", 0, 1, [110, 110, 130]), ("Map", 1, 2, [190, 190, 300])];
    let expected = [
        "0..10 no task of it is launched yet",
        "10..90 the next task of it waits for a slot",
        "90..200 map-1 on worker-2",
    ];
    assert_eq!(steps(300, 0, &ran, &[]), expected);
}

#[test]
fn path_of_a_job_without_reduces_ends_with_its_last_map_and_a_long_one_is_told_from_its_end() {
    let ran = [("Map", 0, 1, [100, 100, 200]), ("Map", 1, 2, [100, 100, 150])];
    assert_eq!(steps(200, 0, &ran, &[]), ["0..100 map-0 on worker-1"]);
    let one = |index: u32| {
        let at = 100 + 10 * u64::from(index);
        ("Map", index, 1, [at, at, at + 10])
    };
    let many: Vec<RanTuple> = (0..100).map(one).collect();
    let told = steps(1100, 0, &many, &[]);
    assert_eq!(told.len(), STEPS_MAX);
    assert_eq!(
        (&*told[0], &*told[39]),
        ("0..610 61 earlier steps, one after another", "990..1000 map-99 on worker-1")
    );
}

#[test]
fn path_of_a_failed_job_ends_with_the_attempt_that_failed_last_and_goes_back_over_its_tries() {
    let attempts = [
        tried(("Map", 0, 0), 1, [100, 110, 150], &json!("succeeded")),
        tried(("Map", 1, 0), 2, [100, 105, 120], &failed("user")),
        tried(("Map", 1, 1), 1, [150, 150, 160], &failed("user")),
        tried(("Map", 1, 2), 2, [160, 170, 180], &failed("user")),
        // It was cancelled when the job had failed.
        tried(("Map", 2, 0), 3, [120, 121, 190], &failed("cancelled")),
    ];
    let expected = [
        "0..5 no task of it is launched yet",
        "5..10 the next task of it waits for a slot",
        "10..50 map-0 on worker-1",
        "50..60 map-1, try 2 on worker-1: failed (user)",
        "60..70 map-1, try 3 waits for a slot on worker-2",
        "70..80 map-1, try 3 on worker-2: failed (user)",
        "80..85 what it has written is removed",
    ];
    assert_eq!(path_steps(&trace(("failed", Some("user_code")), 185, 1, &attempts, &[])), expected);
}

#[test]
fn path_of_a_failed_job_goes_over_what_was_lost_with_a_worker_and_made_again() {
    let attempts = [
        tried(("Map", 0, 0), 1, [100, 100, 200], &json!("succeeded")),
        tried(("Reduce", 0, 0), 1, [210, 210, 250], &json!("lost")),
        tried(("Map", 0, 1), 2, [250, 260, 340], &json!("succeeded")),
        tried(("Reduce", 0, 1), 2, [350, 350, 400], &failed("output")),
    ];
    let fetches = [fetch((0, 0), 1, 1, 0, 210), fetch((0, 1), 2, 2, 0, 350)];
    let expected = [
        "0..100 map-0 on worker-1",
        "100..110 what map-0 made is taken over on worker-1",
        "110..150 reduce-0 on worker-1: lost with its worker",
        "150..160 map-0, try 2 waits for a slot on worker-2",
        "160..240 map-0, try 2 on worker-2",
        "240..250 what map-0, try 2 made is taken over on worker-2",
        "250..300 reduce-0, try 2 on worker-2: failed (output)",
    ];
    assert_eq!(path_steps(&trace(("failed", Some("output")), 400, 1, &attempts, &fetches)), expected);
    // If no attempt ran on the lost worker, only the loss of its output is reported.
    let alone = [attempts[0].clone(), attempts[2].clone()];
    let expected =
        ["0..100 map-0 on worker-1", "100..160 what map-0 made is lost", "160..240 map-0, try 2 on worker-2"];
    assert_eq!(path_steps(&trace(("succeeded", None), 340, 0, &alone, &[])), expected);
}

#[test]
fn path_of_a_job_that_lost_its_client_ends_with_what_ran_though_something_failed_before() {
    let attempts = [
        tried(("Map", 0, 0), 1, [100, 100, 110], &failed("worker")),
        tried(("Map", 0, 1), 2, [110, 110, 0], &json!("running")),
    ];
    let expected = [
        "0..10 map-0 on worker-1: failed (worker)",
        "10..100 map-0, try 2 on worker-2: ran when the job was stopped",
    ];
    assert_eq!(path_steps(&trace(("failed", Some("client_lost")), 200, 1, &attempts, &[])), expected);
}

#[test]
fn path_of_a_cancelled_job_ends_with_what_had_run_longest_then() {
    let attempts = [
        tried(("Map", 0, 0), 1, [100, 100, 130], &json!("succeeded")),
        // The slower of two attempts of a map, which was cancelled when the other had ended.
        tried(("Map", 0, 1), 2, [110, 110, 131], &failed("cancelled")),
        tried(("Map", 1, 0), 1, [130, 140, 210], &failed("cancelled")),
        tried(("Map", 2, 0), 2, [150, 150, 0], &json!("running")),
    ];
    let expected = [
        "0..30 map-0 on worker-1",
        "30..40 map-1 waits for a slot on worker-1",
        "40..100 map-1 on worker-1: ran when the job was stopped, as did 1 other",
    ];
    assert_eq!(path_steps(&trace(("cancelled", None), 200, 1, &attempts, &[])), expected);
    // The master of a detached job reports its end when its output is removed.
    let stopped = tried(("Map", 0, 0), 1, [100, 100, 180], &failed("cancelled"));
    let expected =
        ["0..80 map-0 on worker-1: ran when the job was stopped", "80..100 what it has written is removed"];
    assert_eq!(path_steps(&trace(("cancelled", None), 200, 1, &[stopped], &[])), expected);
}

#[test]
fn path_of_a_job_that_was_cancelled_while_nothing_of_it_ran_ends_with_that() {
    let cancelled = ("cancelled", None);
    let expected = ["0..100 no task of it is launched yet"];
    assert_eq!(path_steps(&trace(cancelled, 200, 1, &[], &[])), expected);
    let map = tried(("Map", 0, 0), 1, [100, 100, 150], &json!("succeeded"));
    let returned = tried(("Map", 1, 0), 1, [140, 140, 190], &failed("returned"));
    let expected =
        ["0..50 map-0 on worker-1", "50..80 segments are brought together", "80..100 nothing of it runs"];
    let fetches = [fetch((0, 0), 1, 2, 5, 180)];
    assert_eq!(path_steps(&trace(cancelled, 200, 1, &[map, returned], &fetches)), expected);
}

#[test]
fn path_names_an_attempt_whose_clock_told_no_time_between_its_moments() {
    let attempts = [
        tried(("Map", 0, 0), 1, [200, 200, 200], &json!("succeeded")),
        tried(("Reduce", 0, 0), 1, [207, 207, 212], &json!("succeeded")),
    ];
    let expected = [
        "0..100 no task of it is launched yet",
        "100..100 map-0 on worker-1",
        "100..107 segments are brought together",
        "107..112 reduce-0 on worker-1",
        "112..115 the output is published",
    ];
    assert_eq!(path_steps(&trace(("succeeded", None), 215, 1, &attempts, &[])), expected);
}

#[test]
fn path_is_told_of_no_job_that_has_not_ended_and_of_no_trace_that_is_not_whole() {
    let map = [tried(("Map", 0, 0), 1, [100, 100, 150], &json!("succeeded"))];
    for state in ["waiting", "running", "publishing"] {
        assert_eq!(critical_path(&trace((state, None), 200, 0, &map, &[])), [], "{state}");
    }
    let cut = JobTrace { omitted: 1, ..trace(("cancelled", None), 200, 0, &map, &[]) };
    assert_eq!(critical_path(&cut), []);
}

proptest! {
    #[test]
    fn path_has_no_gaps_from_arrival_to_end_whatever_the_times_say(
        ran in prop::collection::vec((0..2_usize, 0..3_u32, 0..3_u32, 1..3_u32, 90..220_u64, 90..220_u64, 90..220_u64, 0..6_usize), 0..12),
        carried in prop::collection::vec((0..4_u32, 0..3_u32, 1..3_u32, 1..3_u32, 90..220_u64), 0..6),
        (state, code) in prop::sample::select(vec![
            ("succeeded", None), ("cancelled", None), ("failed", None), ("failed", Some("user_code")), ("failed", Some("limit")),
        ]),
        ended in 100..210_u64,
    ) {
        let ends = ["running", "succeeded", "lost", "user", "cancelled", "returned"];
        let end = |at: usize| if at < 3 { json!(ends[at]) } else { failed(ends[at]) };
        let attempts: Vec<Value> = ran
            .iter()
            .map(|&(kind, index, epoch, worker, launched, began, ended, at)| {
                tried((["Map", "Reduce"][kind], index, epoch), worker, [launched, began, ended], &end(at))
            })
            .collect();
        let fetches: Vec<Value> =
            carried.iter().map(|&(map, epoch, from, to, at)| fetch((map, epoch), from, to, 5, at)).collect();
        let path = critical_path(&trace((state, code), ended, 1, &attempts, &fetches));
        prop_assert!(path.windows(2).all(|pair| pair[0].until_ns == pair[1].from_ns), "{:?}", path);
        prop_assert!(path.iter().all(|step| step.from_ns <= step.until_ns), "{:?}", path);
        prop_assert!(path.len() <= STEPS_MAX);
        if let (Some(first), Some(last)) = (path.first(), path.last()) {
            prop_assert_eq!((first.from_ns, last.until_ns), (0, (ended - 100) * MS));
        } else {
            prop_assert!(state == "succeeded" || ended == 100);
        }
    }
}

//! The shuffle overlaps with the maps, as the arrival times in a trace show.

use crate::support::{Sandbox, data::Random};
use serde_json::Value;

/// Minimum share of the bytes sent over HTTP that must have arrived when the last map ends.
const OVERLAP_MIN: f64 = 0.8;

/// Returns the trace of a sort of this file on two workers.
fn trace_of_sort(sandbox: &Sandbox, input: &str, slots: &str, split_size: &str) -> Value {
    let (out, trace) = (sandbox.text("out"), sandbox.text("trace.json"));
    let cluster = ["run", "sort", input, "--workers", "2", "--slots", slots, "--shuffle", "http"];
    sandbox.run_well(
        [&cluster[..], &["--split-size", split_size, "--output", &out, "--trace", &trace]].concat(),
    );
    serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap()
}

#[test]
fn most_bytes_have_arrived_when_the_last_map_ends() {
    let sandbox = Sandbox::new();
    // Lines of one length, so that 32 splits of one size contain the same number of lines.
    let mut random = Random::seeded(91);
    let line = |random: &mut Random| format!("{:063}\n", random.below(1 << 40));
    let text: String = (0..32 * 8 * 1024).map(|_| line(&mut random)).collect();
    let input = sandbox.write("text", &text);
    let trace = trace_of_sort(&sandbox, &input, "1", "512KiB");
    let events = trace["traceEvents"].as_array().unwrap();
    let of =
        |category: &str| -> Vec<&Value> { events.iter().filter(|event| event["cat"] == category).collect() };
    assert_eq!(of("map").len(), 32);
    let maps_done_us = trace["otherData"]["maps_done_us"].as_f64().unwrap();
    let (mut in_time, mut all) = (0, 0);
    for fetch in of("fetch") {
        let bytes = fetch["args"]["bytes"].as_u64().unwrap();
        all += bytes;
        if fetch["ts"].as_f64().unwrap() + fetch["dur"].as_f64().unwrap() <= maps_done_us {
            in_time += bytes;
        }
    }
    assert!(all as f64 > text.len() as f64 * 0.3, "{all} of {} bytes went over HTTP", text.len());
    let share = in_time as f64 / all as f64;
    assert!(share >= OVERLAP_MIN, "only {share:.2} of {all} bytes had arrived when the last map ended");
}

#[test]
fn workers_that_see_the_input_are_sent_the_order_of_a_sort_and_not_its_bytes() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(97).text(400_000, &[" ", "\n"]));
    let run = |shuffle: &str| {
        let out = sandbox.text(shuffle);
        let flags =
            ["--workers", "2", "--reduces", "3", "--split-size", "300KiB", "--shuffle", shuffle, "--json"];
        let status =
            sandbox.run_well([&["run", "sort", &input, "--output", &out][..], &flags].concat()).json();
        let sent = status["status"]["totals"]["shuffle_bytes"].as_u64().unwrap();
        (crate::support::oracle::parts(std::path::Path::new(&out)), sent)
    };
    let (in_place, order_bytes) = run("auto");
    let (over_http, all_bytes) = run("http");
    assert!(in_place == over_http, "other bytes where pairs were read in the input");
    assert!(0 < order_bytes, "nothing was sent between the workers");
    assert!(order_bytes < all_bytes / 2, "{order_bytes} of {all_bytes} bytes were sent");
}

#[test]
fn shuffle_over_http_brings_the_same_bytes_as_reading_in_place() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(93).text(300_000, &[" ", "\n"]));
    for job in ["wordcount", "sort"] {
        let run = |shuffle: &str| {
            let out = sandbox.text(&format!("{job}-{shuffle}"));
            let flags = [
                "--workers",
                "1",
                "--reduces",
                "2",
                "--split-size",
                "100KiB",
                "--shuffle",
                shuffle,
                "--json",
            ];
            let status =
                sandbox.run_well([&["run", job, &input, "--output", &out][..], &flags].concat()).json();
            let total = |name: &str| status["status"]["totals"][name].as_u64().unwrap();
            let parts = crate::support::oracle::parts(std::path::Path::new(&out));
            (parts, total("shuffle_bytes"), total("map_bytes_out"))
        };
        let (in_place, none, _) = run("auto");
        let (over_http, sent, all) = run("http");
        assert_eq!(none, 0, "the only worker fetched from itself");
        assert!(0 < all);
        assert_eq!(sent, all, "{job}: not all segments went over HTTP");
        assert!(in_place == over_http, "{job}: other bytes over HTTP");
    }
}

#[test]
fn trace_has_a_row_for_each_slot_and_lane_and_none_overlaps() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(92).text(100_000, &[" ", "\n"]));
    let trace = trace_of_sort(&sandbox, &input, "2", "5KiB");
    let mut rows = std::collections::BTreeMap::<(u64, u64), Vec<(f64, f64)>>::new();
    for event in trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X") {
        let row = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let start = event["ts"].as_f64().unwrap();
        rows.entry(row).or_default().push((start, start + event["dur"].as_f64().unwrap()));
    }
    for (row, mut spans) in rows {
        spans.sort_by(|a, b| a.partial_cmp(b).unwrap());
        // Times are whole nanoseconds, printed as microseconds.
        let apart = spans.windows(2).all(|two| two[0].1 <= two[1].0 + 0.001);
        assert!(apart, "events overlap in row {row:?}: {spans:?}");
    }
}

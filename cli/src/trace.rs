//! The trace of a job, or of several in sequence, in the format of Chrome and Perfetto: a row for each slot
//! and lane of each worker.
//!
//! Times are microseconds of the master's clock since the (first) job arrived. Rows are assigned by first
//! fit: an attempt is in the lowest row of its worker that is free for its whole length, which on real slots
//! is the slot.

use gristmill_runtime::api::{AttemptEnd, AttemptRecord, FetchRecord, JobTrace};
use gristmill_scheduler::ids::WorkerId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Row number of the first shuffle lane.
pub const LANES_FROM: usize = 1000;

/// The trace as JSON.
pub fn chrome(trace: &JobTrace) -> Value {
    let clock = Clock { arrived_ns: trace.status.arrived_ns };
    let mut rows = Rows::default();
    let events = events(trace, clock, &mut rows);
    whole(events, &rows, &about(trace, clock))
}

/// The traces of jobs in sequence on one master, as one; the names of their tasks start with their jobs.
pub fn chrome_of_rounds(traces: &[JobTrace]) -> Value {
    let arrived_ns = traces.iter().map(|trace| trace.status.arrived_ns).min().unwrap_or(0);
    let clock = Clock { arrived_ns };
    let mut rows = Rows::default();
    let mut all = Vec::new();
    for trace in traces {
        let mut events = events(trace, clock, &mut rows);
        for event in &mut events {
            let name = event["name"].as_str().unwrap_or_default();
            event["name"] = json!(format!("{} {name}", trace.status.job));
        }
        all.append(&mut events);
    }
    let rounds: Vec<Value> = traces.iter().map(|trace| about(trace, clock)).collect();
    whole(all, &rows, &json!({ "rounds": rounds }))
}

fn whole(mut events: Vec<Value>, rows: &Rows, about: &Value) -> Value {
    events.extend(rows.names());
    json!({ "displayTimeUnit": "ms", "otherData": about, "traceEvents": events })
}

/// Metadata of a job as a whole.
fn about(trace: &JobTrace, clock: Clock) -> Value {
    json!({
        "job": trace.status.job.to_string(),
        "name": trace.status.name,
        "omitted": trace.omitted,
        "arrived_us": clock.us(trace.status.arrived_ns),
        "maps_done_us": trace.status.maps_done_ns.map(|ns| clock.us(ns)),
        "ended_us": trace.status.ended_ns.map(|ns| clock.us(ns)),
        "counters": trace.status.counters,
    })
}

/// Its attempts and fetches.
fn events(trace: &JobTrace, clock: Clock, rows: &mut Rows) -> Vec<Value> {
    let end_ns = trace.status.ended_ns.unwrap_or(trace.status.now_ns);
    let mut events: Vec<Value> =
        trace.attempts.iter().map(|record| attempt_event(record, end_ns, clock, rows)).collect();
    events.extend(trace.fetches.iter().map(|fetch| fetch_event(fetch, clock, rows)));
    events
}

/// The trace's clock, which starts when the job arrives.
#[derive(Clone, Copy)]
struct Clock {
    arrived_ns: u64,
}

impl Clock {
    /// An instant of the master's clock, microseconds.
    fn us(self, ns: u64) -> f64 {
        ns.saturating_sub(self.arrived_ns) as f64 / 1e3
    }
}

/// An attempt on its slot; one that still runs lasts until `end_ns`.
fn attempt_event(record: &AttemptRecord, end_ns: u64, clock: Clock, rows: &mut Rows) -> Value {
    let from = record.started_ns.unwrap_or(record.launched_ns);
    let to = record.ended_ns.unwrap_or(end_ns).max(from);
    let (state, words) = end_words(&record.end);
    let report = record.report.as_ref();
    json!({
        "name": record.attempt.file_name(),
        "cat": record.attempt.task.kind.to_string(),
        "ph": "X",
        "ts": clock.us(from),
        "dur": (to - from) as f64 / 1e3,
        "pid": record.worker.0,
        "tid": rows.place(record.worker, 0, from, to),
        "args": {
            "attempt": record.attempt.to_string(),
            "state": state,
            "words": words,
            "launched_us": clock.us(record.launched_ns),
            "reason": record.reason,
            "bytes_in": report.map(|report| report.bytes_in),
            "records_in": report.map(|report| report.records_in),
            "bytes_out": report.map(|report| report.bytes_out),
            "counters": report.map(|report| report.counters.iter().cloned().collect::<BTreeMap<_, _>>()),
            "cpu_us": report.map(|report| report.cpu_ns as f64 / 1e3),
            "paced_us": report.map(|report| report.paced_ns as f64 / 1e3),
            "suspended_us": report.map(|report| report.suspended_ns as f64 / 1e3),
        },
    })
}

/// End of an attempt: one word and its message.
fn end_words(end: &AttemptEnd) -> (&'static str, String) {
    match end {
        AttemptEnd::Running => ("running", String::new()),
        AttemptEnd::Succeeded => ("succeeded", String::new()),
        AttemptEnd::Failed(..) => {
            let (class, message) = end.shown().unwrap_or_default();
            ("failed", format!("{class}: {message}"))
        }
        AttemptEnd::Lost => ("lost", "its worker was lost".to_owned()),
    }
}

/// A fetch on a lane of the worker that fetches.
fn fetch_event(fetch: &FetchRecord, clock: Clock, rows: &mut Rows) -> Value {
    let to = fetch.ended_ns.max(fetch.started_ns);
    json!({
        "name": format!("map-{} from {}", fetch.map.task.index, fetch.from),
        "cat": if fetch.bytes == 0 { "in place" } else { "fetch" },
        "ph": "X",
        "ts": clock.us(fetch.started_ns),
        "dur": (to - fetch.started_ns) as f64 / 1e3,
        "pid": fetch.to.0,
        "tid": rows.place(fetch.to, LANES_FROM, fetch.started_ns, to),
        "args": {
            "map": fetch.map.to_string(),
            "from": fetch.from.to_string(),
            "partitions": fetch.partitions,
            "bytes": fetch.bytes,
        },
    })
}

/// Time at which each row of each worker is free again.
#[derive(Default)]
pub struct Rows(BTreeMap<(WorkerId, usize), Vec<u64>>);

impl Rows {
    /// Returns the lowest row of a worker that is free from then on, of slots (`kind` 0) or lanes
    /// ([`LANES_FROM`]).
    pub fn place(&mut self, worker: WorkerId, kind: usize, from: u64, to: u64) -> usize {
        let rows = self.0.entry((worker, kind)).or_default();
        let row = match rows.iter().position(|free| *free <= from) {
            Some(row) => row,
            None => {
                rows.push(0);
                rows.len() - 1
            }
        };
        rows[row] = to;
        kind + row
    }

    fn names(&self) -> Vec<Value> {
        let mut names = Vec::new();
        for ((worker, kind), rows) in &self.0 {
            let meta = |what: &str, tid: usize, args: Value| json!({"name": what, "ph": "M", "pid": worker.0, "tid": tid, "args": args});
            names.push(meta("process_name", 0, json!({"name": worker.to_string()})));
            for row in 0..rows.len() {
                let name = if *kind == 0 { format!("slot {row}") } else { format!("lane {row}") };
                names.push(meta("thread_name", kind + row, json!({"name": name})));
                names.push(meta("thread_sort_index", kind + row, json!({"sort_index": kind + row})));
            }
        }
        names
    }
}

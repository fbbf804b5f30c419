//! A job's trace in the format of Chrome and Perfetto: a row for each slot and lane of each worker.
//!
//! Times are microseconds of the master's clock since the job arrived. Rows are assigned by first fit: an attempt
//! sits in the lowest row of its worker that is free for its whole length, which on real slots is the slot.

use gristmill_runtime::api::{AttemptEnd, JobTrace};
use gristmill_scheduler::ids::WorkerId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Row number of the first shuffle lane.
const LANES_FROM: usize = 1000;

/// The trace as JSON.
pub fn chrome(trace: &JobTrace) -> Value {
    let arrived = trace.status.arrived_ns;
    let end = trace.status.ended_ns.unwrap_or(trace.status.now_ns);
    let us = |ns: u64| ns.saturating_sub(arrived) as f64 / 1e3;
    let mut rows = Rows::default();
    let mut events = Vec::new();
    for record in &trace.attempts {
        let from = record.started_ns.unwrap_or(record.launched_ns);
        let to = record.ended_ns.unwrap_or(end).max(from);
        let slot = rows.place(record.worker, 0, from, to);
        let (state, words) = match &record.end {
            AttemptEnd::Running => ("running", String::new()),
            AttemptEnd::Succeeded => ("succeeded", String::new()),
            end @ (AttemptEnd::HandedOver | AttemptEnd::Returned | AttemptEnd::Failed { .. }) => {
                let (class, message) = end.shown().unwrap_or_default();
                ("failed", format!("{class}: {message}"))
            }
            AttemptEnd::Lost => ("lost", "its worker was lost".to_owned()),
        };
        let mut event = json!({
            "name": record.attempt.file_name(),
            "cat": record.attempt.task.kind.to_string(),
            "ph": "X",
            "ts": us(from),
            "dur": (to - from) as f64 / 1e3,
            "pid": record.worker.0,
            "tid": slot,
            "args": {
                "attempt": record.attempt.to_string(),
                "state": state,
                "words": words,
                "launched_us": us(record.launched_ns),
                "reason": record.reason,
                "bytes_in": record.report.as_ref().map(|report| report.bytes_in),
                "records_in": record.report.as_ref().map(|report| report.records_in),
                "bytes_out": record.report.as_ref().map(|report| report.bytes_out),
                "cpu_us": record.report.as_ref().map(|report| report.cpu_ns as f64 / 1e3),
                "paced_us": record.report.as_ref().map(|report| report.paced_ns as f64 / 1e3),
                "suspended_us": record.report.as_ref().map(|report| report.suspended_ns as f64 / 1e3),
            },
        });
        // Reserved colour names of the trace viewer.
        match record.end {
            AttemptEnd::HandedOver | AttemptEnd::Returned | AttemptEnd::Failed { .. } => {
                event["cname"] = json!("terrible");
            }
            AttemptEnd::Lost => event["cname"] = json!("black"),
            AttemptEnd::Running | AttemptEnd::Succeeded => {}
        }
        events.push(event);
    }
    for fetch in &trace.fetches {
        let to = fetch.ended_ns.max(fetch.started_ns);
        let lane = rows.place(fetch.to, LANES_FROM, fetch.started_ns, to);
        events.push(json!({
            "name": format!("map-{} from {}", fetch.map.task.index, fetch.from),
            "cat": if fetch.bytes == 0 { "in place" } else { "fetch" },
            "ph": "X",
            "ts": us(fetch.started_ns),
            "dur": (to - fetch.started_ns) as f64 / 1e3,
            "pid": fetch.to.0,
            "tid": lane,
            "args": {
                "map": fetch.map.to_string(),
                "from": fetch.from.to_string(),
                "partitions": fetch.partitions,
                "bytes": fetch.bytes,
            },
        }));
    }
    events.extend(rows.names());
    json!({
        "displayTimeUnit": "ms",
        "otherData": {
            "job": trace.status.job.to_string(),
            "name": trace.status.name,
            "omitted": trace.omitted,
            "maps_done_us": trace.status.maps_done_ns.map(us),
            "ended_us": trace.status.ended_ns.map(us),
        },
        "traceEvents": events,
    })
}

/// When each row of each worker is free again.
#[derive(Default)]
struct Rows(BTreeMap<(WorkerId, usize), Vec<u64>>);

impl Rows {
    fn place(&mut self, worker: WorkerId, kind: usize, from: u64, to: u64) -> usize {
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

//! A simulated run in the format of Chrome and Perfetto: a row for each slot, and one for each transfer of a worker at
//! a time.
//!
//! Times are microseconds of virtual time.

use gristmill_scheduler::sim::cluster::{Observer, TaskRun, TransferRun};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Events that are kept, some 300 bytes each; what comes after is counted.
const EVENTS_MAX: usize = 2_000_000;

/// Row number of the first transfer of a worker.
const LANES_FROM: usize = 100_000;

/// Keeps what ran where.
#[derive(Default)]
pub struct Recorder {
    events: Vec<Value>,
    /// Slots of each worker that were used.
    slots: BTreeMap<u32, u32>,
    /// When each lane of each worker is free again.
    lanes: BTreeMap<u32, Vec<f64>>,
    omitted: u64,
}

impl Recorder {
    fn keep(&mut self, event: impl FnOnce() -> Value) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event());
        } else {
            self.omitted += 1;
        }
    }

    /// The trace as JSON.
    pub fn events(mut self, policy: &str, workload: &str) -> Value {
        let meta = |what: &str, worker: u32, row: usize, name: String| json!({"name": what, "ph": "M", "pid": worker, "tid": row, "args": {"name": name}});
        for (&worker, &slots) in &self.slots {
            self.events.push(meta("process_name", worker, 0, format!("worker-{}", worker + 1)));
            for slot in 0..slots {
                self.events.push(meta("thread_name", worker, slot as usize, format!("slot {slot}")));
            }
        }
        for (&worker, lanes) in &self.lanes {
            for lane in 0..lanes.len() {
                self.events.push(meta("thread_name", worker, LANES_FROM + lane, format!("lane {lane}")));
            }
        }
        json!({
            "displayTimeUnit": "ms",
            "otherData": {"policy": policy, "workload": workload, "omitted": self.omitted},
            "traceEvents": self.events,
        })
    }
}

fn microseconds(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e3
}

impl Observer for Recorder {
    fn task(&mut self, run: &TaskRun) {
        let slots = self.slots.entry(run.worker).or_default();
        *slots = (*slots).max(run.slot + 1);
        self.keep(|| {
            json!({
                "name": format!("job {} {}-{}", run.seq, run.task.kind, run.task.index),
                "cat": run.task.kind.to_string(),
                "ph": "X",
                "ts": microseconds(run.start),
                "dur": microseconds(run.end - run.start),
                "pid": run.worker,
                "tid": run.slot,
                "args": {"job": run.seq},
            })
        });
    }

    fn transfer(&mut self, run: &TransferRun) {
        let lanes = self.lanes.entry(run.to).or_default();
        let lane = match lanes.iter().position(|free| *free <= run.start) {
            Some(lane) => lane,
            None => {
                lanes.push(0.0);
                lanes.len() - 1
            }
        };
        lanes[lane] = run.end;
        self.keep(|| {
            json!({
                "name": format!("job {} from worker-{}", run.seq, run.from + 1),
                "cat": "fetch",
                "ph": "X",
                "ts": microseconds(run.start),
                "dur": microseconds(run.end - run.start),
                "pid": run.to,
                "tid": LANES_FROM + lane,
                "args": {"job": run.seq, "maps": run.maps, "bytes": run.bytes},
            })
        });
    }
}

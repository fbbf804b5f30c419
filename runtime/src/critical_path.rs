//! What the flow time of a job went into: the chain of tasks, transfers and waits that ends with its last task.
//!
//! A pure function of the job's trace, read backwards: the last reduce began when the last transfer to its worker was in;
//! that carried the output of a map; and that map began when its slot was free. What a worker gathers for several reduces
//! comes together, so the transfer may have been for another reduce there. Where nothing of the job held a slot before,
//! the chain ends at its arrival.

use crate::api::{AttemptEnd, AttemptRecord, JobState, JobTrace, PathStep};
use gristmill_scheduler::ids::{TaskKind, WorkerId};
use std::collections::BTreeMap;

/// Steps that are told; what lies before those is one step.
const STEPS_MAX: usize = 40;

/// An attempt may begin so long before the one before it is known to have ended, nanoseconds.
const OVERLAP_NS: u64 = 200_000;

/// The steps in the order of time, without gaps from arrival to end; none if the job did not succeed, or if its trace is
/// not whole.
#[must_use]
pub fn critical_path(trace: &JobTrace) -> Vec<PathStep> {
    let status = &trace.status;
    let kind = if status.reduces.total == 0 { TaskKind::Map } else { TaskKind::Reduce };
    let ended = |kind| {
        let well = trace.attempts.iter().filter(|record| matches!(record.end, AttemptEnd::Succeeded));
        well.filter(move |record| record.attempt.task.kind == kind).max_by_key(|record| record.ended_ns)
    };
    let (JobState::Succeeded, 0, Some(ended_ns), Some(last)) =
        (status.state, trace.omitted, status.ended_ns, ended(kind))
    else {
        return Vec::new();
    };
    let mut walk = Walk { arrived_ns: status.arrived_ns, at_ns: ended_ns, steps: Vec::new() };
    walk.back_to(last.ended_ns.unwrap_or(ended_ns), "the output is published");
    if kind == TaskKind::Map {
        walk.slots(trace, last);
    } else if let Some(map) = walk.shuffle(trace, last) {
        walk.slots(trace, map);
    } else if let Some(map) = ended(TaskKind::Map) {
        walk.back_to(map.ended_ns.unwrap_or(0), "segments are brought together");
        walk.slots(trace, map);
    }
    walk.back_to(status.arrived_ns, "no task of it is launched yet");
    walk.into_steps()
}

/// A way back in time.
struct Walk {
    arrived_ns: u64,
    at_ns: u64,
    /// The last one first.
    steps: Vec<PathStep>,
}

impl Walk {
    /// Goes back to that time; what was between is this.
    fn back_to(&mut self, ns: u64, what: impl Into<String>) {
        let ns = ns.max(self.arrived_ns);
        if self.at_ns <= ns {
            return;
        }
        let since = |ns: u64| ns - self.arrived_ns;
        self.steps.push(PathStep { from_ns: since(ns), until_ns: since(self.at_ns), what: what.into() });
        self.at_ns = ns;
    }

    fn attempt(&mut self, record: &AttemptRecord) {
        self.back_to(began(record), format!("{} on {}", name(record), record.worker));
    }

    /// Back over a reduce and the transfer that it waited for, to the map that made what was carried.
    fn shuffle<'a>(&mut self, trace: &'a JobTrace, reduce: &AttemptRecord) -> Option<&'a AttemptRecord> {
        self.attempt(reduce);
        let here = trace.fetches.iter().filter(|fetch| fetch.to == reduce.worker);
        let last = here.filter(|fetch| fetch.ended_ns <= began(reduce)).max_by_key(|fetch| fetch.ended_ns)?;
        let map = trace.attempts.iter().find(|record| record.attempt == last.map)?;
        self.back_to(last.ended_ns, format!("{} waits for a slot on {}", name(reduce), reduce.worker));
        let comes = match last.bytes {
            0 => format!("what {} made is taken over on {}", name(map), reduce.worker),
            _ => format!("what {} made comes from {} to {}", name(map), last.from, reduce.worker),
        };
        self.back_to(map.ended_ns?, comes);
        Some(map)
    }

    /// Back from a map over those that held slots of its worker before it.
    fn slots(&mut self, trace: &JobTrace, last: &AttemptRecord) {
        let mut by_worker: BTreeMap<WorkerId, Vec<(u64, &AttemptRecord)>> = BTreeMap::new();
        for record in &trace.attempts {
            if let Some(ended) = record.ended_ns {
                by_worker.entry(record.worker).or_default().push((ended, record));
            }
        }
        let mut there = by_worker.remove(&last.worker).unwrap_or_default();
        there.sort_by_key(|(ended, record)| (*ended, record.attempt));
        let mut record = last;
        loop {
            self.attempt(record);
            let begun = began(record);
            there.truncate(there.partition_point(|(ended, _)| *ended <= begun + OVERLAP_NS));
            // One that was told to have ended a moment too late has begun before all the same.
            let before = loop {
                match there.pop() {
                    Some((_, before)) if began(before) < begun => break Some(before),
                    Some(_) => {}
                    None => break None,
                }
            };
            let Some(before) = before else { return };
            let waits = format!("{} waits for a slot on {}", name(record), record.worker);
            self.back_to(before.ended_ns.unwrap_or(begun).min(begun), waits);
            record = before;
        }
    }

    fn into_steps(mut self) -> Vec<PathStep> {
        self.steps.reverse();
        let over = self.steps.len().saturating_sub(STEPS_MAX);
        if 0 < over {
            let until_ns = self.steps[over].until_ns;
            let what = format!("{} earlier steps, one after another", over + 1);
            self.steps.splice(..=over, [PathStep { from_ns: 0, until_ns, what }]);
        }
        self.steps
    }
}

fn began(record: &AttemptRecord) -> u64 {
    record.started_ns.unwrap_or(record.launched_ns)
}

/// A task as people name it, with its try if there were several.
fn name(record: &AttemptRecord) -> String {
    let task = record.attempt.task;
    match record.attempt.epoch {
        0 => format!("{}-{}", task.kind, task.index),
        earlier => format!("{}-{}, try {}", task.kind, task.index, earlier + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const MS: u64 = 1_000_000;

    /// Kind and index, worker, and when it was launched, began and ended, milliseconds.
    type Ran = (&'static str, u32, u32, [u64; 3]);

    fn attempt((kind, index, worker, [launched, began, ended]): &Ran) -> Value {
        json!({"attempt": {"task": {"job": 1, "kind": kind, "index": index}, "epoch": 0}, "worker": worker,
            "launched_ns": launched * MS, "started_ns": began * MS, "ended_ns": ended * MS, "end": "succeeded",
            "reason": "", "report": null})
    }

    /// The steps of a job that arrived at 100 ms: from, until and what, milliseconds.
    fn steps(ended: u64, reduces: u32, ran: &[Ran], fetches: &[(u32, u32, u32, u64, u64)]) -> Vec<String> {
        let tasks = |total| json!({"total": total, "running": 0, "done": total});
        let status = json!({"schema": 1, "job": 1, "name": "x", "parameters": "", "state": "succeeded", "maps": tasks(1),
            "reduces": tasks(reduces), "segments_total": 0, "input_bytes": 0, "input_bytes_read": 0, "now_ns": 0,
            "arrived_ns": 100 * MS, "started_ns": null, "maps_done_ns": null, "shuffle_done_ns": null,
            "ended_ns": ended * MS, "totals": crate::api::JobTotals::default(),
            "attempts": crate::api::AttemptCounts::default(), "counters": {}, "parts": [], "incidents": [],
            "incidents_omitted": 0, "failure": null, "remarks": [], "workers": 1, "slots": 1, "output": "/out"});
        let fetch = |&(map, from, to, bytes, ended): &(u32, u32, u32, u64, u64)| {
            json!({"map": {"task": {"job": 1, "kind": "Map", "index": map}, "epoch": 0}, "from": from, "to": to,
                "partitions": 1, "bytes": bytes, "started_ns": 0, "ended_ns": ended * MS})
        };
        let trace = json!({"status": status, "attempts": ran.iter().map(attempt).collect::<Vec<_>>(),
            "fetches": fetches.iter().map(fetch).collect::<Vec<_>>(), "omitted": 0});
        let trace: JobTrace = serde_json::from_value(trace).unwrap();
        let told = critical_path(&trace);
        assert!(told.windows(2).all(|pair| pair[0].until_ns == pair[1].from_ns), "gaps: {told:?}");
        told.iter()
            .map(|step| format!("{}..{} {}", step.from_ns / MS, step.until_ns / MS, step.what))
            .collect()
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
    fn path_of_a_job_without_reduces_ends_with_its_last_map_and_a_long_one_is_told_from_its_end() {
        let ran = [("Map", 0, 1, [100, 100, 200]), ("Map", 1, 2, [100, 100, 150])];
        assert_eq!(steps(200, 0, &ran, &[]), ["0..100 map-0 on worker-1"]);
        let one = |index: u32| {
            let at = 100 + 10 * u64::from(index);
            ("Map", index, 1, [at, at, at + 10])
        };
        let many: Vec<Ran> = (0..100).map(one).collect();
        let told = steps(1100, 0, &many, &[]);
        assert_eq!(told.len(), STEPS_MAX);
        assert_eq!(
            (&*told[0], &*told[39]),
            ("0..610 61 earlier steps, one after another", "990..1000 map-99 on worker-1")
        );
    }
}

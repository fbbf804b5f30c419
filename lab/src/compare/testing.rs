//! Runs of jobs that are written down by hand, for tests of statistics and pages of comparisons.

use super::comparison::Comparison;
use super::record::{
    Contender, JobRun, OutputDigest, RunRecord, SCHEMA, SimulatedRun, SlotSpan, SlotUsage, WorkerRecord,
};
use super::workload::{JobKind, Workload};
use std::collections::BTreeSet;

pub fn contender(name: &str) -> Contender {
    Contender::new(name, name, "pull")
}

/// Returns a job from arrival to end, half of which are maps.
pub fn job(index: usize, arrived: f64, ended: f64) -> JobRun {
    let flow = ended - arrived;
    JobRun {
        index,
        label: "made".to_owned(),
        job: index as u32 + 1,
        planned: arrived,
        arrived,
        started: arrived + 0.1 * flow,
        maps_done: arrived + 0.6 * flow,
        shuffle_done: arrived + 0.7 * flow,
        ended,
        deadline: None,
        outlook: None,
        usage: SlotUsage {
            slot_seconds: [0.5 * flow, 0.3 * flow],
            work_seconds: [0.5 * flow, 0.3 * flow],
            cpu_seconds: 0.1,
            ..SlotUsage::default()
        },
        shuffle_bytes: 1000,
        known_shuffle_bytes: None,
        output: OutputDigest { digest: 7, bytes: 70 },
        estimates: Vec::new(),
    }
}

/// Returns a map in a slot.
pub fn span(job: u32, worker: u32, from: f64, to: f64) -> SlotSpan {
    SlotSpan { job, map: true, worker, from, to, busy: 0.0, paced: 0.0 }
}

/// Returns a run on two workers of two slots, in which each job holds a slot for a map and then for a reduce.
pub fn run(name: &str, repetition: u32, jobs: Vec<JobRun>) -> RunRecord {
    let worker = |worker| WorkerRecord {
        worker,
        slots: 2,
        map_slots: 2,
        reduce_slots: 2,
        speed: 1.0,
        nic_bytes_per_second: None,
    };
    let spans = jobs.iter().flat_map(|job| {
        let place = job.index as u32;
        let map = span(place, place % 2 + 1, job.started, job.maps_done);
        [map, SlotSpan { map: false, from: job.shuffle_done, to: job.ended, ..map }]
    });
    RunRecord {
        schema: SCHEMA,
        contender: contender(name),
        repetition,
        place: 0,
        cores: Some(2),
        others_busy: None,
        workers: vec![worker(1), worker(2)],
        spans: spans.collect(),
        jobs,
        transfers: Vec::new(),
        omitted: 0,
        replayed: SimulatedRun::default(),
        predicted: SimulatedRun::default(),
    }
}

/// Returns a comparison of these runs, contenders in the order of their first run.
pub fn comparison(runs: Vec<RunRecord>) -> Comparison {
    let mut contenders: Vec<Contender> = Vec::new();
    for run in &runs {
        if !contenders.contains(&run.contender) {
            contenders.push(run.contender.clone());
        }
    }
    Comparison {
        workload: Workload::batch("made", vec![JobKind::new("synthetic", &[])]),
        setting: serde_json::Value::Null,
        contenders,
        against: None,
        repetitions: runs.iter().map(|run| run.repetition + 1).max().unwrap_or(0),
        looks: BTreeSet::new(),
        runs,
        alone: Vec::new(),
        costs: None,
        interrupted: false,
    }
}

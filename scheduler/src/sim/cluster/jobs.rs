//! Conversion of workload jobs for the core, and the simulator's state of live jobs.

use crate::ids::WorkerId;
use crate::job::{Exact, JobSpec, MapSpec};
use crate::sim::cluster::tasks::{SimulatedTasks, cut, shuffled_bytes};
use crate::sim::cluster::{Config, SECONDS_MAX};
use crate::sim::{SimError, check_job, check_number};
use crate::station::{PerStation, Station};
use crate::units::{Bytes, Time};
use crate::workload::Job;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of bytes of one job: integers up to this are exact in a double.
const BYTES_MAX: f64 = 9e15;

/// Input per second of a map of unknown input, if progress is reported.
const BYTES_PER_SECOND: f64 = 1e6;

/// Job in the simulation.
pub(super) struct LiveJob {
    pub(super) seq: u64,
    pub(super) arrival: Time,
    pub(super) start: Option<Time>,
    pub(super) maps_done: Option<Time>,
    /// Maps that have not ended.
    pub(super) maps_left: usize,
    /// Maps that have ended, if tasks may have two attempts.
    pub(super) ended: BTreeSet<u32>,
    /// Maps that divisions added.
    pub(super) added: usize,
    pub(super) maps: Arc<[f64]>,
    pub(super) reduces: Arc<[f64]>,
    /// Bytes of one segment of a map that was not divided.
    pub(super) segment: f64,
    pub(super) partitions: usize,
    pub(super) map_shares: TaskShares,
    pub(super) reduce_shares: TaskShares,
    pub(super) work: PerStation<f64>,
    pub(super) deadline: Option<Time>,
    pub(super) weight: f64,
    /// Slots held for maps and for reduces.
    pub(super) held: [u32; 2],
    /// Partitions by home.
    pub(super) homes: BTreeMap<WorkerId, Vec<u32>>,
}

/// Fractions of an undivided task's bytes that the tasks of divisions have; that of others is 1.
#[derive(Default)]
pub(super) struct TaskShares(BTreeMap<u32, f64>);

impl TaskShares {
    fn share(&self, task: u32) -> f64 {
        self.0.get(&task).copied().unwrap_or(1.0)
    }

    /// Splits the share of a task in the ratio of the lengths that it and its rest have now.
    fn divide(&mut self, task: u32, rest: u32, lengths: &[f64]) {
        let [kept, given] = [task, rest].map(|task| lengths[task as usize]);
        let share = self.share(task);
        let front = if 0.0 < kept + given { share * kept / (kept + given) } else { share };
        self.0.insert(task, front);
        self.0.insert(rest, share - front);
    }
}

impl LiveJob {
    /// Returns the bytes of one segment of this map.
    pub(super) fn segment(&self, map: u32) -> f64 {
        self.segment * self.map_shares.share(map)
    }

    /// Returns the output bytes of this map.
    pub(super) fn output(&self, map: u32) -> Bytes {
        Bytes((self.segment(map) * self.partitions as f64).ceil() as u64)
    }

    /// Returns the input bytes of a reduce.
    pub(super) fn input_of_reduce(&self, reduce: u32) -> f64 {
        self.segment * (self.maps.len() - self.added) as f64 * self.reduce_shares.share(reduce)
    }

    /// Enters that the end of a map is the map `rest` from now on, with the lengths of all maps.
    pub(super) fn divide(&mut self, map: u32, rest: u32, lengths: &Arc<[f64]>) {
        self.map_shares.divide(map, rest, lengths);
        self.maps = Arc::clone(lengths);
        self.maps_left += 1;
        self.added += 1;
    }

    /// Enters that the end of a reduce is the reduce `rest` from now on, with the lengths of all reduces.
    pub(super) fn divide_reduce(&mut self, reduce: u32, rest: u32, lengths: &Arc<[f64]>) {
        self.reduce_shares.divide(reduce, rest, lengths);
        self.reduces = Arc::clone(lengths);
    }
}

/// Converts seconds to the nearest time.
pub(super) fn time_of(seconds: f64) -> Time {
    Time((seconds * 1e9).round() as u64)
}

/// Checks a job and converts it for the core.
pub(super) fn prepare(
    config: &Config,
    index: u64,
    job: Job,
    before: f64,
) -> Result<(LiveJob, JobSpec), SimError> {
    check(index, &job, before)?;
    let rate = config.network.in_rate.min(config.network.out_rate) * config.workers.len() as f64;
    let bytes = shuffled_bytes(config, &job);
    let counts = SimulatedTasks::count(config, &job);
    if 0.0 < bytes && counts.maps == 0.0 {
        let wanted = "0 for a job without maps to put it out";
        return Err(SimError::Job { index, field: "shuffle_bytes", value: bytes, wanted });
    }
    let maps = cut(index, "maps", job.maps, job.work[Station::Map], counts.maps)?;
    let reduces = cut(index, "reduces", job.reduces, job.work[Station::Reduce], counts.reduces)?;
    let segments = maps.len() as f64 * reduces.len() as f64;
    let segment = if 0.0 < segments { bytes / segments } else { 0.0 };
    let seconds = if rate.is_finite() { bytes / rate } else { job.work[Station::Shuffle] };
    let sum = |lengths: &[f64]| lengths.iter().sum::<f64>();
    let weight = if job.weight == 0.0 { 1.0 } else { job.weight };
    // Without a size there is no progress that a slow attempt could be known by.
    let whole = match (job.input_bytes, &config.core.backups) {
        (0.0, Some(_)) => sum(&maps) * BYTES_PER_SECOND,
        (bytes, _) => bytes,
    };
    let input = Bytes((whole / maps.len().max(1) as f64).round() as u64);
    let live = LiveJob {
        seq: index,
        arrival: time_of(job.arrival),
        start: None,
        maps_done: None,
        maps_left: maps.len(),
        ended: BTreeSet::new(),
        added: 0,
        segment,
        partitions: reduces.len(),
        map_shares: TaskShares::default(),
        reduce_shares: TaskShares::default(),
        work: PerStation::new(sum(&maps), seconds, sum(&reduces)),
        deadline: job.deadline.map(time_of),
        weight,
        held: [0; 2],
        homes: BTreeMap::new(),
        maps: maps.into(),
        reduces: reduces.into(),
    };
    let splits = vec![MapSpec::anywhere(input); live.maps.len()];
    let exact = Exact {
        maps: Arc::clone(&live.maps),
        shuffle_bytes: if 0.0 < segments { bytes } else { 0.0 },
        reduces: Arc::clone(&live.reduces),
    };
    let spec = JobSpec {
        weight,
        pool: job.pool,
        pool_weight: job.pool_weight,
        priority: job.priority,
        deadline: live.deadline,
        name: job.name,
        exact: Some(exact),
        ..JobSpec::new(splits, live.reduces.len() as u32)
    };
    match spec.check() {
        Ok(()) => Ok((live, spec)),
        // All other errors were checked before.
        Err(_) => Err(SimError::Job {
            index,
            field: "maps",
            value: segments,
            wanted: "a job of at most 2^32 segments",
        }),
    }
}

fn check(index: u64, job: &Job, before: f64) -> Result<(), SimError> {
    const SECONDS: &str = "a number of seconds from 0 to 1e9";
    const BYTES: &str = "a number of bytes from 0 to 9e15";
    check_job(index, job, before, SECONDS_MAX, SECONDS)?;
    let fields = ["work of maps", "work of the shuffle", "work of reduces"];
    for (field, work) in fields.into_iter().zip(job.work) {
        check_number(index, field, work, f64::MAX, "a finite number, at least 0")?;
    }
    let seconds = |field, value: &f64| check_number(index, field, *value, SECONDS_MAX, SECONDS);
    job.maps.iter().try_for_each(|length| seconds("maps", length))?;
    job.reduces.iter().try_for_each(|length| seconds("reduces", length))?;
    job.deadline.iter().try_for_each(|deadline| seconds("deadline", deadline))?;
    check_number(index, "input_bytes", job.input_bytes, BYTES_MAX, BYTES)?;
    check_number(index, "shuffle_bytes", job.shuffle_bytes, BYTES_MAX, BYTES)
}

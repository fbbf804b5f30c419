//! Measurements of one job while the journal of its run is read: times of its phases, seconds of its tasks, and bytes
//! of its map outputs.

use super::super::{JobTerms, MeasuredJob};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::job::JobSpec;
use gristmill_scheduler::units::{Bytes, Time};

/// Measurements of the job so far.
pub(super) struct JobBook {
    pub(super) measured: MeasuredJob,
    pub(super) arrived: Time,
    pub(super) deadline: Option<Time>,
    pub(super) started: Option<Time>,
    pub(super) map_seconds: Vec<Option<f64>>,
    pub(super) reduce_seconds: Vec<Option<f64>>,
    pub(super) maps_done: Option<Time>,
    pub(super) fetched: Option<Time>,
    pub(super) ended: Option<Time>,
}

impl JobBook {
    pub(super) fn new(job: JobId, name: String, arrived: Time, spec: &JobSpec) -> Self {
        Self {
            measured: unmeasured(job, name, spec),
            arrived,
            deadline: spec.deadline,
            started: None,
            map_seconds: vec![None; spec.maps.len()],
            reduce_seconds: vec![None; spec.reduces as usize],
            maps_done: None,
            fetched: None,
            ended: None,
        }
    }

    /// Records a successful map, with the system's time for it and its end.
    pub(super) fn map_done(
        &mut self,
        index: usize,
        seconds: f64,
        output_bytes: Bytes,
        (overhead, now): (Option<f64>, Time),
    ) {
        if let Some(place) = self.map_seconds.get_mut(index) {
            *place = Some(seconds);
            self.measured.map_overheads[index] = overhead;
            self.measured.output_bytes[index] = output_bytes.0 as f64;
            self.maps_done = Some(now);
        }
    }

    /// Adds a map that a division made.
    pub(super) fn map_added(&mut self) {
        self.map_seconds.push(None);
        self.measured.map_overheads.push(None);
        self.measured.output_bytes.push(0.0);
    }

    pub(super) fn reduce_done(&mut self, index: usize, seconds: f64, overhead: Option<f64>) {
        if let Some(place) = self.reduce_seconds.get_mut(index) {
            *place = Some(seconds);
            self.measured.reduce_overheads[index] = overhead;
        }
    }

    pub(super) fn close(self, seconds: impl Fn(Time) -> f64) -> MeasuredJob {
        let whole = self.map_seconds.iter().all(Option::is_some);
        let maps_done = self.maps_done.filter(|_| whole);
        let shuffle_done = maps_done.map(|done| self.fetched.map_or(done, |fetched| fetched.max(done)));
        MeasuredJob {
            arrived: seconds(self.arrived),
            map_seconds: filled(&self.map_seconds),
            reduce_seconds: filled(&self.reduce_seconds),
            terms: JobTerms { deadline: self.deadline.map(&seconds), ..self.measured.terms },
            started: self.started.map(&seconds),
            maps_done: maps_done.map(&seconds),
            shuffle_done: shuffle_done.map(&seconds),
            ended: self.ended.map(&seconds),
            ..self.measured
        }
    }
}

/// Returns a job without measurements, with only its submitted terms.
fn unmeasured(job: JobId, name: String, spec: &JobSpec) -> MeasuredJob {
    MeasuredJob {
        job,
        name,
        arrived: 0.0,
        map_seconds: Vec::new(),
        output_bytes: vec![0.0; spec.maps.len()],
        reduce_seconds: Vec::new(),
        map_overheads: vec![None; spec.maps.len()],
        reduce_overheads: vec![None; spec.reduces as usize],
        input_bytes: spec.maps.iter().map(|map| map.bytes.0 as f64).sum(),
        terms: JobTerms {
            deadline: None,
            weight: spec.weight,
            pool: spec.pool,
            pool_weight: spec.pool_weight,
            priority: spec.priority,
        },
        started: None,
        maps_done: None,
        shuffle_done: None,
        ended: None,
        succeeded: false,
    }
}

/// Replaces unknown values by the mean of the known ones.
fn filled(seconds: &[Option<f64>]) -> Vec<f64> {
    let known: Vec<f64> = seconds.iter().copied().flatten().collect();
    let mean = if known.is_empty() { 0.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    seconds.iter().map(|seconds| seconds.unwrap_or(mean)).collect()
}

//! Fits the costs of tiny tasks and of requests, so that the simulator takes as long for a job as the
//! cluster did.
//!
//! Not here: the jobs, and costs that follow from their times alone (`trials`).

use super::trials::{CalibrationTrial, ClusterShape, Which};
use crate::simulate::{
    KnownJob, MeasuredJob, RunMeasurements, SimulateError, SizeSource, SystemCosts, simulate,
};
use gristmill_runtime::api::ExactWork;
use gristmill_runtime::registry::Registry;
use std::collections::BTreeMap;

/// Bounds of a cost, in seconds.
const BOUNDS: [f64; 2] = [1e-6, 1e-2];

/// Halvings of the bounds on a scale of factors: the last one is 2 % wide.
const HALVINGS: u32 = 9;

/// Context of a fit, in which a trial is a job of the simulator.
pub(super) struct FitContext<'a> {
    pub registry: &'a Registry,
    pub estimator: &'a str,
    pub shape: ClusterShape,
    /// Measurements of the calibration run, for the shape of the cluster.
    pub measured: &'a RunMeasurements,
}

/// Part of a job's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum JobSpan {
    Flow,
    /// Time after the last segment.
    Reduces,
}

impl JobSpan {
    /// Returns the length of the span, from these instants of the job.
    pub fn length(self, arrived: f64, shuffle_done: f64, ended: f64) -> f64 {
        match self {
            Self::Flow => ended - arrived,
            Self::Reduces => ended - shuffle_done,
        }
    }
}

/// Trial of tiny tasks, with the measured length of a span.
#[derive(Clone, Copy)]
pub(super) struct TinyTrial<'a> {
    pub which: Which,
    pub span: JobSpan,
    /// Job as it was submitted.
    pub job: &'a MeasuredJob,
    pub seconds: f64,
}

/// All trials of tiny tasks.
pub(super) struct Tiny<'a> {
    pub maps: Option<TinyTrial<'a>>,
    pub reduces: Option<TinyTrial<'a>>,
    pub outputs: Option<TinyTrial<'a>>,
}

impl FitContext<'_> {
    /// Returns costs with which the simulator takes as long for these trials as the cluster did. They are
    /// fitted one after the other: of a map, of a request, of a reduce.
    ///
    /// # Errors
    /// The errors of the simulator.
    pub fn fitted(&self, mut costs: SystemCosts, tiny: &Tiny<'_>) -> Result<SystemCosts, SimulateError> {
        if let Some(trial) = tiny.maps {
            costs.work[0] = self.cost(trial, |cost| with(costs, |it| it.work[0] = cost))?;
        }
        if let Some(trial) = tiny.outputs {
            costs.request_work = self.cost(trial, |cost| with(costs, |it| it.request_work = cost))?;
        }
        if let Some(trial) = tiny.reduces {
            costs.work[1] = self.cost(trial, |cost| with(costs, |it| it.work[1] = cost))?;
        }
        Ok(costs)
    }

    /// Returns the cost with which the simulator takes as long for this trial as the cluster did. The
    /// simulated time never falls with the cost, except for noise of the schedule.
    fn cost(&self, trial: TinyTrial<'_>, costs: impl Fn(f64) -> SystemCosts) -> Result<f64, SimulateError> {
        let [mut low, mut high] = BOUNDS;
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            match self.seconds(trial, &costs(middle))? < trial.seconds {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok((low * high).sqrt())
    }

    /// Returns the simulated time of this trial.
    fn seconds(&self, trial: TinyTrial<'_>, costs: &SystemCosts) -> Result<f64, SimulateError> {
        let work = self.shape.trial(trial.which).work();
        let known = KnownJob { arrival: 0.0, deadline: None, work, source: SizeSource::Told };
        let alone = RunMeasurements { jobs: vec![trial.job.clone()], ..self.measured.clone() };
        let scenario = alone.predicted(&BTreeMap::from([(trial.job.job, known)]), costs)?;
        let jobs = simulate(self.registry, &scenario, "fifo", "pull", self.estimator)?;
        Ok(jobs.first().map_or(0.0, |job| trial.span.length(job.arrived, job.shuffle_done, job.ended)))
    }
}

fn with(mut costs: SystemCosts, change: impl FnOnce(&mut SystemCosts)) -> SystemCosts {
    change(&mut costs);
    costs
}

impl CalibrationTrial {
    /// Returns the task times and output of the trial.
    pub fn work(self) -> ExactWork {
        ExactWork {
            map_seconds: vec![self.seconds; self.maps as usize],
            shuffle_bytes: f64::from(self.bytes) * f64::from(self.maps),
            reduce_seconds: vec![self.seconds; self.reduces as usize],
        }
    }
}

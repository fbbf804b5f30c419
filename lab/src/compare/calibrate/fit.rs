//! The costs of tiny tasks and of requests: those with which the simulator takes as long for a job as the cluster did.
//!
//! Not here: the jobs, and costs that follow from their times alone (`trials`).

use super::trials::{Shape, Trial, Which};
use crate::simulate::{KnownJob, Measured, MeasuredJob, SimulateError, SizeSource, SystemCosts, simulate};
use gristmill_runtime::api::ExactWork;
use gristmill_runtime::registry::Registry;
use std::collections::BTreeMap;

/// Bounds of a cost, seconds.
const BOUNDS: [f64; 2] = [1e-6, 1e-2];

/// Halvings of the bounds on a scale of factors: the last one is 2 % wide.
const HALVINGS: u32 = 9;

/// A trial as a job of the simulator.
pub(super) struct Fit<'a> {
    pub registry: &'a Registry,
    pub estimator: &'a str,
    pub shape: Shape,
    /// The calibration's own run, for the shape of the cluster.
    pub measured: &'a Measured,
}

/// A part of a job's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Span {
    Flow,
    /// From the last segment on.
    Reduces,
}

impl Span {
    /// How long it is, by these instants of the job.
    pub fn of(self, arrived: f64, shuffle_done: f64, ended: f64) -> f64 {
        match self {
            Self::Flow => ended - arrived,
            Self::Reduces => ended - shuffle_done,
        }
    }
}

/// A trial of tiny tasks and how long a span of it took.
#[derive(Clone, Copy)]
pub(super) struct TinyTrial<'a> {
    pub which: Which,
    pub span: Span,
    /// As it was submitted.
    pub job: &'a MeasuredJob,
    pub seconds: f64,
}

/// All trials of tiny tasks.
pub(super) struct Tiny<'a> {
    pub maps: Option<TinyTrial<'a>>,
    pub reduces: Option<TinyTrial<'a>>,
    pub outputs: Option<TinyTrial<'a>>,
}

impl Fit<'_> {
    /// Costs with which these trials take as long as they did, one after the other: of a map, of a request, of a reduce.
    ///
    /// # Errors
    /// What the simulator says.
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

    /// The cost with which this trial takes as long as it did. Its time never falls with the cost, but for noise of the
    /// schedule.
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

    /// How long this trial takes in the simulator.
    fn seconds(&self, trial: TinyTrial<'_>, costs: &SystemCosts) -> Result<f64, SimulateError> {
        let work = self.shape.trial(trial.which).work();
        let known = KnownJob { arrival: 0.0, deadline: None, work, source: SizeSource::Told };
        let alone = Measured { jobs: vec![trial.job.clone()], ..self.measured.clone() };
        let scenario = alone.predicted(&BTreeMap::from([(trial.job.job, known)]), costs)?;
        let jobs = simulate(self.registry, &scenario, "fifo", "pull", self.estimator)?;
        Ok(jobs.first().map_or(0.0, |job| trial.span.of(job.arrived, job.shuffle_done, job.ended)))
    }
}

fn with(mut costs: SystemCosts, change: impl FnOnce(&mut SystemCosts)) -> SystemCosts {
    change(&mut costs);
    costs
}

impl Trial {
    /// What its tasks pass and put out.
    pub fn work(self) -> ExactWork {
        ExactWork {
            map_seconds: vec![self.seconds; self.maps as usize],
            shuffle_bytes: f64::from(self.bytes) * f64::from(self.maps),
            reduce_seconds: vec![self.seconds; self.reduces as usize],
        }
    }
}

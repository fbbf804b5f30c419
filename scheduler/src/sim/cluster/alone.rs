//! Durations of jobs without any other job: the same simulator, one job after the other, under `fifo` and `pull`.

use crate::ids::{JobId, WorkerId};
use crate::metrics::JobRecord;
use crate::placement::{Choice, HomeRequest, Offer, Placement, Pull};
use crate::policy::Fifo;
use crate::sim::SimError;
use crate::sim::cluster::{Config, Deciders, check, engine};
use crate::station::PerStation;
use crate::workload::Job;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::iter;

/// Maximum number of shapes remembered. Later shapes are simulated each time.
const SHAPES_MAX: usize = 100_000;

/// Virtual seconds after which the simulation restarts, so that times stay exact to a nanosecond.
const STRETCH_MAX: f64 = 1e6;

/// Returns the seconds that each of these jobs takes from arrival to end on this otherwise empty cluster, in their
/// order.
///
/// Jobs of the same tasks and bytes are simulated once, unless service times are drawn at random: then each job has the
/// same times as in the full simulation. The cost is therefore at most about that of one simulation of all jobs.
///
/// # Errors
/// As [`run`](super::run).
pub fn alone(config: &Config, jobs: impl IntoIterator<Item = Job>) -> Result<Vec<f64>, SimError> {
    let drawn = config.workers.iter().any(|worker| worker.service.is_some());
    let mut jobs = jobs.into_iter();
    let mut shapes = Shapes { merges: !drawn, ..Shapes::default() };
    let mut times: Vec<f64> = Vec::new();
    let mut exhausted = false;
    while !exhausted {
        let now = Cell::new(0.0);
        let seq = times.len() as u64;
        let placement = Box::new(PullForEach::default());
        let deciders = Deciders { placement, ..Deciders::with_policy(Box::new(Fifo::new())) };
        let core = check::core_of(config, deciders)?;
        let mut sink = |record: &JobRecord| {
            now.set(record.completion);
            times.push(record.flow());
        };
        let mut next = iter::from_fn(|| {
            if STRETCH_MAX < now.get() {
                return None;
            }
            let job = jobs.by_ref().find(|job| shapes.is_new(job));
            exhausted = job.is_none();
            job
        });
        engine::Engine::new(config, core, &mut (), &mut sink)
            .one_by_one(seq)
            .run(&mut next, &mut |_| {})
            .map_err(|error| shapes.blame(error))?;
    }
    Ok(shapes.of_job.into_iter().map(|shape| times[shape as usize]).collect())
}

/// Pull placement that restarts with each job, so that its duration does not depend on the homes of others.
#[derive(Default)]
struct PullForEach {
    pull: Pull,
    job: Option<JobId>,
}

impl Placement for PullForEach {
    fn name(&self) -> &'static str {
        self.pull.name()
    }

    fn choose(&mut self, offer: Offer<'_>) -> Option<Choice> {
        self.pull.choose(offer)
    }

    fn choose_ahead(&mut self, offer: Offer<'_>, depth: u32) -> Option<Choice> {
        self.pull.choose_ahead(offer, depth)
    }

    fn home(&mut self, request: HomeRequest<'_>) -> WorkerId {
        let job = Some(request.job.id());
        if self.job != job {
            *self = Self { pull: Pull::new(), job };
        }
        self.pull.home(request)
    }
}

/// Key of equal work: the bits of the job's sizes, with runs of equal task lengths merged.
type Shape = Vec<u64>;

/// Groups of jobs with equal work.
#[derive(Default)]
struct Shapes {
    /// True if jobs of one shape have the same duration.
    merges: bool,
    seen: BTreeMap<Shape, u32>,
    /// Index of each job's shape among the simulated jobs.
    of_job: Vec<u32>,
    /// First job of each shape.
    first: Vec<u64>,
}

impl Shapes {
    /// Adds the next job. Returns true if it is to be simulated.
    fn is_new(&mut self, job: &Job) -> bool {
        let new = self.first.len() as u32;
        let known = self.merges.then(|| shape(job)).and_then(|shape| match self.seen.get(&shape) {
            Some(&place) => Some(place),
            None => {
                if self.seen.len() < SHAPES_MAX {
                    self.seen.insert(shape, new);
                }
                None
            }
        });
        if known.is_none() {
            self.first.push(self.of_job.len() as u64);
        }
        self.of_job.push(known.unwrap_or(new));
        known.is_none()
    }

    /// Names a job in an error by its index among all jobs, instead of among those simulated.
    fn blame(&self, error: SimError) -> SimError {
        match error {
            SimError::Job { index, field, value, wanted } => {
                let index = self.first.get(index as usize).copied().unwrap_or(index);
                SimError::Job { index, field, value, wanted }
            }
            other => other,
        }
    }
}

fn shape(job: &Job) -> Shape {
    let PerStation(work) = job.work;
    let mut shape: Shape = work.into_iter().chain([job.shuffle_bytes]).map(f64::to_bits).collect();
    for lengths in [&job.maps, &job.reduces] {
        let from = shape.len();
        shape.push(0);
        for equals in lengths.chunk_by(|one, other| one.to_bits() == other.to_bits()) {
            shape.extend([equals[0].to_bits(), equals.len() as u64]);
        }
        // The length prefix distinguishes lists of maps from lists of reduces.
        shape[from] = (shape.len() - from) as u64;
    }
    shape
}

//! Progress of a run over time, compared with the overlapping and the traditional tandem queue.

use super::WORDS;
use crate::overlap::{ModelProgress, overlapping, traditional};
use crate::prelude::*;
use gristmill_lab::compare::RunRecord;
use gristmill_lab::compare::series::makespan;

/// Number of workers of the three jobs, with one slot each.
pub(super) const WORKERS: u32 = 8;

/// Number of jobs before those three, which are left out.
pub(super) const WARM_UP: usize = 1;

/// Number of points at which two curves are compared.
const PLACES: usize = 200;

/// Run, and both models of it.
pub(super) struct ModelledRun<'a> {
    run: &'a RunRecord,
    /// Arrival of the three jobs, seconds after the start of the run.
    start: f64,
    /// Bytes per second that all workers together may send.
    network: f64,
    /// Seconds of all slots and of the whole network, by job.
    pub(super) sizes: Vec<[f64; 2]>,
    overlapping: ModelProgress,
    traditional: ModelProgress,
}

fn times(end: f64) -> impl Iterator<Item = f64> {
    (0..=PLACES).map(move |place| end * place as f64 / PLACES as f64)
}

impl<'a> ModelledRun<'a> {
    pub(super) fn new(run: &'a RunRecord, network: f64) -> anyhow::Result<Self> {
        let size = |job: &gristmill_lab::compare::JobRun| {
            [job.usage.slot_seconds[0] / f64::from(WORKERS), job.shuffle_bytes as f64 / network]
        };
        let jobs = run.jobs.get(WARM_UP..).unwrap_or_default();
        let start = jobs.first().map_or(0.0, |job| job.arrived);
        let sizes: Vec<[f64; 2]> = jobs.iter().map(size).collect();
        let overlapping = overlapping("map-fifo-shuffle-ps", &sizes)?;
        let traditional = traditional("ps", &sizes)?;
        Ok(Self { run, start, network, sizes, overlapping, traditional })
    }

    /// Returns the seconds of the whole map station that a job has received at a time after the arrival.
    fn mapped(&self, job: usize, time: f64) -> f64 {
        let time = self.start + time;
        let spans = self.run.spans.iter().filter(|span| span.map && span.job as usize == WARM_UP + job);
        spans.map(|span| (time.min(span.to) - span.from).max(0.0)).sum::<f64>() / f64::from(WORKERS)
    }

    /// Returns the seconds of the whole network that a job has received at a time.
    fn shuffled(&self, job: usize, time: f64) -> f64 {
        let time = self.start + time;
        let transfers = self.run.transfers.iter().filter(|transfer| transfer.job as usize == WARM_UP + job);
        let bytes = transfers.map(|transfer| {
            let length = (transfer.to - transfer.from).max(1e-9);
            let part = ((time - transfer.from) / length).clamp(0.0, 1.0);
            transfer.bytes as f64 * part
        });
        bytes.sum::<f64>() / self.network
    }

    pub(super) fn charts(&self) -> Vec<Block> {
        vec![self.work_left(0, "figure-4-map"), self.work_left(1, "figure-4-shuffle")]
    }

    fn work_left(&self, station: usize, key: &str) -> Block {
        let end = makespan(self.run) - self.start;
        let jobs = || 0..self.sizes.len();
        let all = self.sizes.iter().map(|size| size[station]).sum::<f64>();
        let real = |time: f64| match station {
            0 => jobs().map(|job| self.mapped(job, time)).sum::<f64>(),
            _ => jobs().map(|job| self.shuffled(job, time)).sum::<f64>(),
        };
        let model = |progress: &ModelProgress, time: f64| {
            jobs().map(|job| progress.at(time, job)[station]).sum::<f64>()
        };
        let series = |name: &str, done: &dyn Fn(f64) -> f64| {
            Series::new(name, times(end).map(|time| (time, (all - done(time)).max(0.0))).collect())
        };
        let overlapping = series("overlapping tandem queue", &|time| model(&self.overlapping, time));
        let traditional = series("traditional tandem queue", &|time| model(&self.traditional, time));
        let series = vec![series("measured", &real), overlapping.as_reference(), traditional.as_reference()];
        WORDS.chart(key, holes![], series)
    }

    /// Returns the mean distance between measured and modelled shuffle work over time, as a share of all
    /// shuffle work.
    fn distance(&self, model: &ModelProgress) -> f64 {
        let end = makespan(self.run) - self.start;
        let all: f64 = self.sizes.iter().map(|size| size[1]).sum();
        let gaps = times(end).map(|time| {
            let jobs = 0..self.sizes.len();
            let gap: f64 = jobs.map(|job| self.shuffled(job, time) - model.at(time, job)[1]).sum();
            gap.abs()
        });
        gaps.sum::<f64>() / (PLACES + 1) as f64 / all.max(1e-9)
    }

    /// Compares the run with both models.
    pub(super) fn compare_models(&self) -> ModelDistances {
        ModelDistances {
            distances: [&self.overlapping, &self.traditional].map(|model| self.distance(model)),
            end: self.run.jobs.iter().map(|job| job.shuffle_done).fold(0.0, f64::max) - self.start,
            predicted: [self.overlapping.end(), self.traditional.end()],
        }
    }
}

/// Comparison of a run with the overlapping and the traditional model, in this order.
pub(crate) struct ModelDistances {
    /// Mean distance of completed shuffle work over time, as a share of all of it.
    pub(crate) distances: [f64; 2],
    /// Time at which the last segment arrived, in seconds.
    pub(crate) end: f64,
    /// The same time in each model.
    pub(crate) predicted: [f64; 2],
}

/// Share of distance below which a run is "as in the model", and relative error of an end below which the
/// end is as predicted.
const NEAR: f64 = 0.05;
const TOLD: f64 = 0.1;

/// Judges the runs, unless there is a reason not to.
pub(crate) fn claims(runs: &[ModelDistances], incomparable: Option<String>) -> Vec<Claim> {
    let claims = vec![overlaps(runs), ends_as_predicted(runs)];
    let Some(reason) = incomparable else { return claims };
    let open = |claim: Claim| Claim { verdict: Verdict::Open, evidence: reason.clone(), ..claim };
    claims.into_iter().map(open).collect()
}

fn overlaps(runs: &[ModelDistances]) -> Claim {
    let [near, far] = [0, 1].map(|model| runs.iter().map(|run| run.distances[model]).collect::<Vec<f64>>());
    let twice: Vec<f64> = near.iter().map(|near| 2.0 * near).collect();
    let (distance, further) = (mean_of(&near), paired(&far, &twice));
    let seen = [CaseVerdict::below(&distance, NEAR), CaseVerdict::above(&further, 0.0)];
    let [near, far, limit] = [distance.mean, mean_of(&far).mean, NEAR].map(|part| 100.0 * part);
    WORDS.claim("overlaps", every(seen), holes![runs = runs.len(), near, far, limit])
}

/// Judges the end of the runs: the overlapping model must be near, and nearer than the traditional one.
fn ends_as_predicted(runs: &[ModelDistances]) -> Claim {
    let off =
        |model: usize| runs.iter().map(|run| (run.end / run.predicted[model]).ln()).collect::<Vec<f64>>();
    let sizes = |model: usize| off(model).into_iter().map(f64::abs).collect::<Vec<f64>>();
    let (distance, closer) = (mean_of(&off(0)), paired(&sizes(1), &sizes(0)));
    let (near, nearer) = (CaseVerdict::alike(&distance, TOLD), CaseVerdict::above(&closer, 0.0));
    let mean = |value: fn(&ModelDistances) -> f64| mean_by(runs, value).mean;
    let holes = holes![
        runs = runs.len(),
        end = mean(|run| run.end),
        overlapping = mean(|run| run.predicted[0]),
        off = percent(&distance),
        traditional = mean(|run| run.predicted[1]),
        far_off = percent(&mean_of(&off(1))),
        limit = 100.0 * TOLD,
        near = near.word(),
        nearer = nearer.word(),
    ];
    WORDS.claim("ends-as-predicted", every([near, nearer]), holes)
}

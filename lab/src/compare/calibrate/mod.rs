//! Measures the costs of the system itself for tasks on a cluster of this shape. A few jobs whose tasks
//! do almost nothing run before the first run: on an idle cluster, and with every slot in use.
//!
//! With all slots in use, the time of a job beyond that of a job of few tasks is work of as many
//! processors as its slots can use. Not here: the use of the costs in a simulation (`simulate`).

mod fit;
mod trials;

use super::CompareError;
use super::comparison::Site;
use super::run::{JOURNAL, Runner};
use super::statistics::median;
use super::store::ComparisonStore;
use super::workload::{DrawnJob, JobKind, Workload};
use crate::simulate::{MeasuredJob, RunMeasurements, SystemCosts};
use fit::{FitContext, JobSpan, Tiny, TinyTrial};
use gristmill_runtime::registry::Registry;
use std::path::Path;
use std::time::Duration;
use trials::{CalibrationTrial, ClusterShape, IDLE_SECONDS, TrialTimes, Which, costs};

/// File of the store with the costs that were found.
const FILE: &str = "calibration.json";

/// Number of jobs on an idle cluster.
const IDLE_JOBS: usize = 12;

/// Pause before each of them. A job that follows another at once finds processors awake and warm caches,
/// so its tasks take less time than those of a job that arrives alone.
const IDLE_PAUSE: Duration = Duration::from_millis(500);

/// Number of runs of each job with all slots in use. The shortest counts, since other programs only
/// lengthen it. The cost of many bytes comes from the first run, which finds no recently used memory.
const ROUNDS: usize = 3;

/// Measures the costs; `None` if interrupted. Measurements of an earlier call are read from the directory.
pub(super) fn measure(
    runner: &Runner<'_>,
    store: &ComparisonStore,
) -> Result<Option<SystemCosts>, CompareError> {
    if let Some(known) = store.read_json(FILE)? {
        return Ok(Some(known));
    }
    let Site::Embedded(config) = runner.site else { return Ok(None) };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let workers = config.workers.count;
    let slots = workers * config.workers.each.slots.total();
    let paced = config.workers.each.nic_bytes_per_second.is_some();
    let shape = ClusterShape { workers, slots, cores, paced, bytes: most_bytes(runner.workload) };
    let kinds = Which::ALL.map(|which| kind(&shape.trial(which)));
    let workload = Workload::batch("calibration", kinds.to_vec());
    let of = |kind: usize, index: usize| DrawnJob {
        index,
        kind,
        arrival: 0.0,
        arguments: workload.kinds[kind].arguments.clone(),
    };
    let jobs: Vec<DrawnJob> = order().enumerate().map(|(index, which)| of(which as usize, index)).collect();
    let calibrates = Runner {
        workload: &workload,
        interrupted: runner.interrupted.clone(),
        runtime: runner.runtime.clone(),
        data: runner.data.clone(),
        knowledge: runner.knowledge.clone(),
        ..*runner
    };
    let read = |_, directory: &Path| {
        RunMeasurements::read(&directory.join(JOURNAL), config.workers.each.shuffle)
            .map_err(|source| CompareError::Calibration { source })
    };
    let Some(measured) = calibrates.run_apart(store, "calibration", &jobs, &pauses(), read)? else {
        return Ok(None);
    };
    let found = found(runner.registry, &config.deciders.estimator, shape, &measured)?;
    store.write_json(FILE, &found)?;
    Ok(Some(found))
}

/// Returns the output bytes of the job with the largest output, as far as they are known beforehand.
fn most_bytes(workload: &Workload) -> f64 {
    workload.kinds.iter().filter_map(|kind| Some(kind.exact.as_ref()?.shuffle_bytes)).fold(0.0, f64::max)
}

/// Returns the trial of each job, in their order.
fn order() -> impl Iterator<Item = Which> {
    let tried = (0..ROUNDS).flat_map(|_| Which::ALL.into_iter().filter(|which| *which != Which::Idle));
    (0..IDLE_JOBS).map(|_| Which::Idle).chain(tried)
}

/// Returns the pause of each job after the previous one, in their order.
fn pauses() -> Vec<Duration> {
    order().map(|which| if which == Which::Idle { IDLE_PAUSE } else { Duration::ZERO }).collect()
}

/// Returns the costs that the journal of the calibration shows.
fn found(
    registry: &Registry,
    estimator: &str,
    shape: ClusterShape,
    measured: &RunMeasurements,
) -> Result<SystemCosts, CompareError> {
    let seen = CalibrationJobs { jobs: order().zip(&measured.jobs).collect() };
    let found = costs(shape, &seen.times());
    let fit = FitContext { registry, estimator, shape, measured };
    let tiny = Tiny {
        maps: seen.tiny(Which::TinyMaps, JobSpan::Flow),
        reduces: seen.tiny(Which::TinyReduces, JobSpan::Reduces),
        outputs: seen.tiny(Which::TinyOutputs, JobSpan::Flow),
    };
    fit.fitted(found, &tiny).map_err(|source| CompareError::Fit { source })
}

fn kind(trial: &CalibrationTrial) -> JobKind {
    let seconds = format!("{}us", (trial.seconds * 1e6).round());
    let [maps, bytes] = [trial.maps, trial.bytes].map(|number| number.to_string());
    let arguments =
        ["--maps", &maps, "--map-time", &seconds, "--reduce-time", &seconds, "--map-bytes", &bytes];
    JobKind {
        reduces: Some(trial.reduces),
        exact: Some(trial.work()),
        ..JobKind::new("synthetic", &arguments)
    }
}

/// Measurements of the jobs.
struct CalibrationJobs<'a> {
    jobs: Vec<(Which, &'a MeasuredJob)>,
}

impl<'a> CalibrationJobs<'a> {
    fn all(&self, which: Which) -> impl Iterator<Item = &'a MeasuredJob> {
        self.jobs.iter().filter(move |(one, _)| *one == which).map(|(_, job)| *job)
    }

    /// Returns a trial of tiny tasks, with the measured length of this span.
    fn tiny(&self, which: Which, span: JobSpan) -> Option<TinyTrial<'a>> {
        let job = self.all(which).next()?;
        let measured = self.all(which).filter_map(|job| {
            let ended = job.ended?;
            Some(span.length(job.arrived, job.shuffle_done?, ended))
        });
        Some(TinyTrial { which, span, job, seconds: measured.reduce(f64::min)? })
    }

    /// Returns the time of this trial's jobs between two of their instants: the median on an idle
    /// cluster, else the shortest.
    fn time(
        &self,
        which: Which,
        from: fn(&MeasuredJob) -> Option<f64>,
        to: fn(&MeasuredJob) -> Option<f64>,
    ) -> f64 {
        let seconds = self.all(which).filter_map(|job| Some(to(job)? - from(job)?));
        match which {
            Which::Idle => median(seconds).unwrap_or(0.0),
            _ => seconds.reduce(f64::min).unwrap_or(0.0),
        }
    }

    /// Returns the time of this trial's first job between two of its instants.
    fn first_time(
        &self,
        which: Which,
        from: fn(&MeasuredJob) -> Option<f64>,
        to: fn(&MeasuredJob) -> Option<f64>,
    ) -> f64 {
        self.all(which).next().and_then(|job| Some(to(job)? - from(job)?)).unwrap_or(0.0)
    }

    fn times(&self) -> TrialTimes {
        let flow = |which| self.time(which, |job| Some(job.arrived), |job| job.ended);
        let gathering = |which| self.time(which, |job| Some(job.arrived), |job| job.shuffle_done);
        let beyond_all =
            |of: fn(&MeasuredJob) -> Vec<f64>| median(self.all(Which::Idle).flat_map(of)).unwrap_or(0.0);
        TrialTimes {
            idle_task: [
                beyond_all(|job| beyond(&job.map_seconds, &job.map_overheads)),
                beyond_all(|job| beyond(&job.reduce_seconds, &job.reduce_overheads)),
            ],
            idle_fetch: self.time(Which::Idle, |job| job.maps_done, |job| job.shuffle_done),
            idle_flow: (flow(Which::Idle) - 2.0 * IDLE_SECONDS).max(0.0),
            idle_gathering: (gathering(Which::Idle) - IDLE_SECONDS).max(0.0),
            many: [Which::Maps, Which::Reduces].map(flow),
            gathering: [Which::Outputs, Which::Segments, Which::Reduces].map(gathering),
            bytes: [
                self.first_time(Which::Bytes, |job| job.started, |job| job.maps_done),
                self.time(Which::Bytes, |job| job.maps_done, |job| job.shuffle_done),
                self.first_time(Which::Bytes, |job| job.shuffle_done, |job| job.ended),
            ],
        }
    }
}

/// Returns the time of tasks on an idle cluster from order to event, beyond their sleep.
fn beyond(tasks: &[f64], overheads: &[Option<f64>]) -> Vec<f64> {
    let of = |(took, overhead): (&f64, &Option<f64>)| Some((took + (*overhead)? - IDLE_SECONDS).max(0.0));
    tasks.iter().zip(overheads).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_runtime::api::ExactWork;

    #[test]
    fn most_bytes_are_those_of_the_largest_job_that_says_its_own() {
        let mut workload = Workload::batch("sizes", vec![JobKind::new("synthetic", &[]); 3]);
        assert_eq!(most_bytes(&workload), 0.0);
        for (kind, bytes) in workload.kinds.iter_mut().zip([7.0, 9e7]) {
            let (map_seconds, reduce_seconds) = (vec![0.0], Vec::new());
            kind.exact = Some(ExactWork { map_seconds, shuffle_bytes: bytes, reduce_seconds });
        }
        assert_eq!(most_bytes(&workload), 9e7);
    }

    #[test]
    fn jobs_on_an_idle_cluster_come_after_a_pause_and_no_others() {
        let paused = order().zip(pauses()).filter(|(_, pause)| !pause.is_zero());
        let paused: Vec<Which> = paused.map(|(which, _)| which).collect();
        assert_eq!(paused, [Which::Idle; IDLE_JOBS]);
    }
}

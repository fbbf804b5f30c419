//! The rounds of a comparison: a warm-up, jobs alone, and in every repetition a run of each contender.

use super::comparison::{CompareProgress, Comparison, Options, Site};
use super::follow::processors;
use super::gather::{Gathering, cpu_seconds};
use super::record::{Alone, JobRun};
use super::run::{RunArrivals, RunOrder, RunResult, Runner};
use super::statistics::order;
use super::store::{self, ComparisonStore};
use super::workload::{DrawnJob, Workload};
use super::{CompareError, Contender, RunRecord, alone, calibrate, simulated};
use gristmill_runtime::api::ExactWork;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// Number of jobs of the run that is discarded before all others.
const WARM_UP_JOBS: usize = 4;

/// Time over which the share of the processors' time that other programs use is taken, and maximum number of looks.
const QUIET_LOOK: Duration = Duration::from_secs(1);
const QUIET_LOOKS_MAX: usize = 60;

/// True if policies receive sizes that must be measured first.
fn needs_sizes(workload: &Workload, options: &Options) -> bool {
    let oracle = match &options.site {
        Site::Embedded(config) => config.deciders.estimator.starts_with("oracle"),
        Site::Given(_) => false,
    };
    oracle && workload.kinds.iter().any(|kind| kind.exact.is_none())
}

/// Returns the cores that all workers share, if all workers are on this machine.
fn cores(site: &Site) -> Option<u32> {
    match site {
        Site::Embedded(_) => std::thread::available_parallelism().ok().map(|cores| cores.get() as u32),
        Site::Given(_) => None,
    }
}

/// Comparison in progress.
struct CompareRounds<'a> {
    runner: &'a Runner<'a>,
    options: &'a Options,
    store: &'a ComparisonStore,
    comparison: &'a mut Comparison,
    told: &'a mut dyn FnMut(CompareProgress<'_>),
    /// True if caches are warm, or need not be.
    warm: bool,
}

/// Jobs of a repetition.
struct CompareRound {
    repetition: u32,
    jobs: Vec<DrawnJob>,
    /// Work of each job, where it is known.
    exact: Vec<Option<ExactWork>>,
}

pub(super) fn run_all(
    runner: &Runner<'_>,
    options: &Options,
    store: &ComparisonStore,
    comparison: &mut Comparison,
    told: &mut dyn FnMut(CompareProgress<'_>),
) -> Result<(), CompareError> {
    let mut rounds = CompareRounds { runner, options, store, comparison, told, warm: !options.warm_up };
    rounds.calibration()?;
    rounds.isolated()?;
    let mut all = Vec::new();
    for repetition in 0..options.repetitions {
        let jobs = runner.workload.draw(repetition)?;
        let known = |job| alone::known(runner.workload, job, &rounds.comparison.alone);
        all.push(CompareRound { repetition, exact: jobs.iter().map(known).collect(), jobs });
    }
    let planned = all.iter().flat_map(|round| {
        let order = order::order(options.contenders.len(), round.repetition, runner.workload.seed);
        order.into_iter().map(move |contender| (&options.contenders[contender], round))
    });
    let planned: Vec<PlannedRun<'_>> = (0..)
        .zip(planned)
        .map(|(place, (contender, round))| PlannedRun { contender, round, place })
        .collect();
    for together in planned.chunks(options.at_once.get() as usize) {
        if rounds.comparison.interrupted {
            return Ok(());
        }
        rounds.together(together)?;
    }
    Ok(())
}

/// A run of the comparison.
#[derive(Clone, Copy)]
struct PlannedRun<'a> {
    contender: &'a Contender,
    round: &'a CompareRound,
    /// Number of the run among all, from 0.
    place: u32,
}

impl CompareRounds<'_> {
    /// Measures the system's cost of tasks, unless an earlier call did.
    fn calibration(&mut self) -> Result<(), CompareError> {
        let can = self.runner.registry.find_job("synthetic").is_some();
        if !can || !self.options.calibrate || matches!(self.options.site, Site::Given(_)) {
            return Ok(());
        }
        (self.told)(CompareProgress::Step("measuring the overheads of tasks"));
        match calibrate::measure(self.runner, self.store)? {
            Some(costs) => self.comparison.costs = Some(costs),
            None => self.comparison.interrupted = true,
        }
        Ok(())
    }

    /// Runs jobs alone, if requested or if policies need the sizes.
    fn isolated(&mut self) -> Result<(), CompareError> {
        let workload = self.runner.workload;
        if !self.options.isolated && !needs_sizes(workload, self.options) {
            return Ok(());
        }
        if !self.warm && self.store.read_json::<Vec<Alone>>(alone::FILE)?.is_none() {
            let jobs = workload.draw(0)?;
            let exact = jobs.iter().map(|job| workload.kinds[job.kind].exact.clone()).collect();
            self.warm_up(&self.options.contenders[0], &CompareRound { repetition: 0, jobs, exact })?;
        }
        (self.told)(CompareProgress::Step("running each job alone"));
        match alone::measure(self.runner, self.options, self.store)? {
            Some(alone) => self.comparison.alone = alone,
            None => self.comparison.interrupted = true,
        }
        Ok(())
    }

    /// Carries out runs at the same time, without those that an earlier call carried out.
    fn together(&mut self, planned: &[PlannedRun<'_>]) -> Result<(), CompareError> {
        let mut fresh = Vec::new();
        for run in planned {
            match self.store.finished(run.contender, run.round.repetition)? {
                Some(kept) => {
                    (self.told)(CompareProgress::Kept(&kept, run.place));
                    self.comparison.runs.push(kept);
                }
                None => fresh.push(*run),
            }
        }
        let Some(first) = fresh.first() else { return Ok(()) };
        self.await_quiet()?;
        if !self.warm {
            self.warm_up(first.contender, first.round)?;
        }
        let mut directories = Vec::new();
        for run in &fresh {
            (self.told)(CompareProgress::Begins(run.contender, run.round.repetition, run.place));
            directories.push(self.store.start_run(run.contender, run.round.repetition)?);
        }
        let runner = self.runner;
        let results = at_once(fresh.iter().zip(&directories), |(run, directory)| {
            let (contender, jobs, exact) = (run.contender, &run.round.jobs[..], &run.round.exact[..]);
            runner.run(&RunOrder { contender, jobs, exact, directory, arrivals: RunArrivals::Drawn })
        });
        let used = results.iter().filter_map(|ran| ran.as_ref().ok()?.as_ref());
        let used: f64 = used.map(|ran| cpu_seconds(&ran.traces)).sum();
        // Runs that ended well are kept before the error of another one is returned.
        let ends = fresh.iter().zip(&directories).zip(results);
        let ends: Vec<Result<(), CompareError>> =
            ends.map(|((run, directory), ran)| self.end(run, directory, ran?, used)).collect();
        ends.into_iter().collect()
    }

    /// Keeps a run that has ended; `None` if it was interrupted. `used` is the processor seconds of all runs of its time.
    fn end(
        &mut self,
        run: &PlannedRun<'_>,
        directory: &Path,
        ran: Option<RunResult>,
        used: f64,
    ) -> Result<(), CompareError> {
        let Some(mut ran) = ran else {
            store::remove_tree(directory)?;
            self.comparison.interrupted = true;
            return Ok(());
        };
        let of_siblings = used - cpu_seconds(&ran.traces);
        ran.busy = ran.busy.map(|(busy, all)| (busy - of_siblings, all));
        let record = self.record(run, (&ran, directory));
        same_output(&self.comparison.runs, &record)?;
        self.store.keep(&record)?;
        (self.told)(CompareProgress::Ended(&record, run.place));
        self.comparison.runs.push(record);
        Ok(())
    }

    /// Waits until other programs leave the processors to the runs.
    fn await_quiet(&mut self) -> Result<(), CompareError> {
        let Some(limit) = self.options.others_max else { return Ok(()) };
        let (runner, told) = (self.runner, &mut *self.told);
        let mut again = false;
        let looks = std::iter::from_fn(|| {
            if std::mem::replace(&mut again, true) {
                told(CompareProgress::Step("waiting until other programs leave the processors"));
            }
            (!runner.is_interrupted()).then(busy_share).flatten()
        });
        match quiet(looks, limit) {
            Err(share) if !runner.is_interrupted() => Err(CompareError::Loaded { share, limit }),
            _ => Ok(()),
        }
    }

    fn record(
        &self,
        &PlannedRun { contender, round, place }: &PlannedRun<'_>,
        (ran, directory): (&RunResult, &Path),
    ) -> RunRecord {
        let cores = cores(&self.options.site);
        let gathering = Gathering {
            contender,
            repetition: round.repetition,
            place,
            cores,
            busy: ran.busy.filter(|_| cores.is_some()),
            workload: self.runner.workload,
            drawn: &round.jobs,
            master: &ran.master,
            traces: &ran.traces,
        };
        let mut record = gathering.record();
        let known = simulated::Foreknowledge {
            registry: self.runner.registry,
            workload: self.runner.workload,
            drawn: &round.jobs,
            alone: &self.comparison.alone,
            costs: self.comparison.costs.as_ref(),
        };
        known.simulate(&self.options.site, directory, &mut record);
        record
    }

    /// Runs a few jobs at once, to warm file caches and raise the processor clock. The result is discarded.
    fn warm_up(&mut self, contender: &Contender, round: &CompareRound) -> Result<(), CompareError> {
        (self.told)(CompareProgress::Step("warming up"));
        let few = round.jobs.iter().take(WARM_UP_JOBS);
        let few: Vec<DrawnJob> = few.map(|job| DrawnJob { arrival: 0.0, ..job.clone() }).collect();
        let directory = self.store.path().join("warm-up");
        store::remove_tree(&directory)?;
        let order = RunOrder {
            contender,
            jobs: &few,
            exact: &round.exact,
            directory: &directory,
            arrivals: RunArrivals::Drawn,
        };
        let ran = self.runner.run(&order).map(drop);
        store::remove_tree(&directory)?;
        self.warm = true;
        ran
    }
}

/// Returns the share of the processors' time that is used now; `None` where the system does not report it.
fn busy_share() -> Option<f64> {
    let before = processors()?;
    thread::sleep(QUIET_LOOK);
    let now = processors()?;
    Some((now.0 - before.0) / (now.1 - before.1).max(f64::EPSILON))
}

/// Takes shares until one is at most the limit.
///
/// # Errors
/// The last of [`QUIET_LOOKS_MAX`] that are all above it.
fn quiet(looks: impl Iterator<Item = f64>, limit: f64) -> Result<(), f64> {
    let mut last = Ok(());
    for share in looks.take(QUIET_LOOKS_MAX) {
        if share <= limit {
            return Ok(());
        }
        last = Err(share);
    }
    last
}

/// Calls `run` for all items at the same time, each on its own thread, and returns the results in their order. A panic
/// in one of them continues in the caller.
fn at_once<T: Send, R: Send>(items: impl Iterator<Item = T>, run: impl Fn(T) -> R + Sync) -> Vec<R> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = items.map(|item| scope.spawn(move || run(item))).collect();
        let join =
            |thread: ScopedJoinHandle<'_, R>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        threads.into_iter().map(join).collect()
    })
}

/// Refuses a run whose jobs produced other bytes than in the same repetition under another policy.
pub(super) fn same_output(runs: &[RunRecord], record: &RunRecord) -> Result<(), CompareError> {
    let Some(other) = runs.iter().find(|run| run.repetition == record.repetition) else { return Ok(()) };
    let differs = |(one, two): &(&JobRun, &JobRun)| {
        (one.output.digest, one.output.bytes) != (two.output.digest, two.output.bytes)
    };
    match record.jobs.iter().zip(&other.jobs).find(differs) {
        None => Ok(()),
        Some((job, _)) => Err(CompareError::Output {
            job: job.label.clone(),
            index: job.index,
            contender: record.contender.name.clone(),
            other: other.contender.name.clone(),
            repetition: record.repetition + 1,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{QUIET_LOOKS_MAX, at_once, quiet};
    use std::sync::Barrier;

    #[test]
    fn runs_start_only_beside_little_other_load() {
        let busy = vec![0.9; QUIET_LOOKS_MAX - 1];
        assert_eq!(quiet([&busy[..], &[0.21]].concat().into_iter(), 0.2), Err(0.21));
        assert_eq!(quiet([&busy[..], &[0.2]].concat().into_iter(), 0.2), Ok(()));
        assert_eq!(quiet([&busy[..], &[0.9, 0.1]].concat().into_iter(), 0.2), Err(0.9), "too late");
        assert_eq!(quiet(std::iter::empty(), 0.2), Ok(()), "the system reports no load");
    }

    #[test]
    fn runs_at_once_overlap_and_their_results_keep_their_order() {
        let all = Barrier::new(3);
        let results = at_once(0..3, |item| {
            all.wait();
            item
        });
        assert_eq!(results, [0, 1, 2]);
    }
}

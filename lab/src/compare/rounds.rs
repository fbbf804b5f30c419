//! The rounds of a comparison: a warm-up, jobs alone, and in every repetition a run of each contender.

use super::comparison::{CompareProgress, Comparison, Options, Site};
use super::gather::Gathering;
use super::record::{Alone, JobRun};
use super::run::{RunArrivals, RunOrder, RunResult, Runner};
use super::statistics::order;
use super::store::{self, ComparisonStore};
use super::workload::{DrawnJob, Workload};
use super::{CompareError, Contender, RunRecord, alone, calibrate, simulated};
use gristmill_runtime::api::ExactWork;
use std::path::Path;

/// Number of jobs of the run that is discarded before all others.
const WARM_UP_JOBS: usize = 4;

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
    let mut place = 0;
    for repetition in 0..options.repetitions {
        let jobs = runner.workload.draw(repetition)?;
        let known = |job| alone::known(runner.workload, job, &rounds.comparison.alone);
        let round = CompareRound { repetition, exact: jobs.iter().map(known).collect(), jobs };
        for contender in order::order(options.contenders.len(), repetition, runner.workload.seed) {
            if rounds.comparison.interrupted {
                return Ok(());
            }
            rounds.one(&options.contenders[contender], &round, place)?;
            place += 1;
        }
    }
    Ok(())
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

    /// Runs a contender, unless an earlier call did.
    fn one(&mut self, contender: &Contender, round: &CompareRound, place: u32) -> Result<(), CompareError> {
        if let Some(kept) = self.store.finished(contender, round.repetition)? {
            (self.told)(CompareProgress::Kept(&kept, place));
            self.comparison.runs.push(kept);
            return Ok(());
        }
        if !self.warm {
            self.warm_up(contender, round)?;
        }
        (self.told)(CompareProgress::Begins(contender, round.repetition, place));
        let directory = self.store.start_run(contender, round.repetition)?;
        let (jobs, exact) = (&round.jobs, &round.exact);
        let order = RunOrder { contender, jobs, exact, directory: &directory, arrivals: RunArrivals::Drawn };
        let Some(ran) = self.runner.run(&order)? else {
            store::remove_tree(&directory)?;
            self.comparison.interrupted = true;
            return Ok(());
        };
        let record = self.record(contender, round, place, (&ran, &directory));
        same_output(&self.comparison.runs, &record)?;
        self.store.keep(&record)?;
        (self.told)(CompareProgress::Ended(&record, place));
        self.comparison.runs.push(record);
        Ok(())
    }

    fn record(
        &self,
        contender: &Contender,
        round: &CompareRound,
        place: u32,
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

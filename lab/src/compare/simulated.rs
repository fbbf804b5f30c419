//! Simulations of a run compared with its measurements: replayed from the run's own measurements, and
//! predicted from what was known before it.
//!
//! Not here: reading journals and simulating (`simulate`), and the errors of the simulations
//! (`simulation_error`).

use super::alone;
use super::comparison::Site;
use super::record::{Alone, RunRecord, SimulatedPhases, SimulatedRun, phases};
use super::run::JOURNAL;
use super::workload::{DrawnJob, JobKind, Workload};
use crate::simulate::{
    KnownJob, RunMeasurements, Scenario, SimulateError, SizeSource, SystemCosts, simulate,
};
use clap::{Args, Command, FromArgMatches};
use gristmill_runtime::api::ExactWork;
use gristmill_runtime::jobs::Synthetic;
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::ids::JobId;
use std::collections::BTreeMap;
use std::path::Path;

/// Knowledge before a run.
pub(super) struct Foreknowledge<'a> {
    pub registry: &'a Registry,
    pub workload: &'a Workload,
    pub drawn: &'a [DrawnJob],
    pub alone: &'a [Alone],
    pub costs: Option<&'a SystemCosts>,
}

/// Returns the size of a job as known before it runs, and its source.
pub(super) fn size(workload: &Workload, job: &DrawnJob, alone: &[Alone]) -> Option<(ExactWork, SizeSource)> {
    let kind = &workload.kinds[job.kind];
    let told = kind.exact.clone().filter(|_| kind.plays_exact);
    if let Some(told) = told.or_else(|| drawn_times(kind, job)) {
        return Some((told, SizeSource::Told));
    }
    alone::known(workload, job, alone).map(|work| (work, SizeSource::Alone))
}

/// Returns the times that a sleeping job will draw from its distribution and seed.
fn drawn_times(kind: &JobKind, job: &DrawnJob) -> Option<ExactWork> {
    if kind.job != "synthetic" {
        return None;
    }
    let command = Synthetic::augment_args(Command::new("synthetic").no_binary_name(true));
    let flags = command.try_get_matches_from(&job.arguments).ok()?;
    let job = Synthetic::from_arg_matches(&flags).ok()?;
    job.work(kind.reduces?)
}

impl Foreknowledge<'_> {
    /// Adds both simulations to a run that has ended, or the reason why one is missing.
    pub fn simulate(&self, site: &Site, directory: &Path, record: &mut RunRecord) {
        let Site::Embedded(config) = site else {
            let missing = Some("the journal of a given master is its own affair".to_owned());
            record.replayed = SimulatedRun { missing, ..SimulatedRun::default() };
            record.predicted = record.replayed.clone();
            return;
        };
        let estimator = &config.deciders.estimator;
        match RunMeasurements::read(&directory.join(JOURNAL), config.workers.each.shuffle) {
            Err(error) => {
                let missing = Some(gristmill_runtime::chain(&error));
                record.replayed = SimulatedRun { missing, ..SimulatedRun::default() };
                record.predicted = record.replayed.clone();
            }
            Ok(measured) => {
                record.replayed = self.run(measured.replayed(), estimator, record);
                record.predicted = match self.costs {
                    None => {
                        SimulatedRun::missing("what the system takes for tasks was not measured beforehand")
                    }
                    Some(costs) => {
                        let scenario = measured.predicted(&self.known(record), costs);
                        self.run(scenario, estimator, record)
                    }
                };
            }
        }
    }

    /// Returns what is known of each job, by its number at the master.
    fn known(&self, record: &RunRecord) -> BTreeMap<JobId, KnownJob> {
        let first = self.drawn.first().map_or(0.0, |job| job.arrival);
        let known = self.drawn.iter().zip(&record.jobs).filter_map(|(drawn, run)| {
            let (work, source) = size(self.workload, drawn, self.alone)?;
            let arrival = drawn.arrival - first;
            let deadline = self.workload.kinds[drawn.kind].deadline.map(|deadline| arrival + deadline);
            Some((JobId(run.job), KnownJob { arrival, deadline, work, source }))
        });
        known.collect()
    }

    fn run(
        &self,
        scenario: Result<Scenario, SimulateError>,
        estimator: &str,
        record: &RunRecord,
    ) -> SimulatedRun {
        let contender = &record.contender;
        let found = scenario.and_then(|scenario| {
            simulate(self.registry, &scenario, &contender.policy, &contender.placement, estimator)
        });
        match found {
            Err(error) => SimulatedRun::missing(&gristmill_runtime::chain(&error)),
            Ok(jobs) => {
                let index = |job: u32| record.jobs.iter().find(|known| known.job == job).map(|job| job.index);
                let jobs = jobs.into_iter().filter_map(|job| {
                    let phases = phases(job.arrived, job.started, job.maps_done, job.shuffle_done, job.ended);
                    Some(SimulatedPhases { index: index(job.job.0)?, phases })
                });
                SimulatedRun { jobs: jobs.collect(), missing: None }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::workload::SEED_MARK;

    fn size_of(kind: JobKind, alone: &[Alone]) -> Option<(ExactWork, SizeSource)> {
        let workload = Workload::batch("one", vec![kind]);
        size(&workload, &workload.draw(0).unwrap()[0], alone)
    }

    #[test]
    fn size_of_a_job_that_only_takes_time_is_told_by_its_law_and_seed() {
        let arguments =
            ["--maps", "4", "--map-time", "exp:100ms", "--reduce-time", "60ms", "--seed", SEED_MARK];
        let kind = JobKind { reduces: Some(2), ..JobKind::new("synthetic", &arguments) };
        let (work, source) = size_of(kind.clone(), &[]).unwrap();
        assert_eq!((work.map_seconds.len(), &work.reduce_seconds[..]), (4, &[0.06, 0.06][..]));
        assert_eq!(source, SizeSource::Told);
        assert_eq!(
            size_of(JobKind { reduces: None, ..kind }, &[]),
            None,
            "the number of reduces is not known"
        );
    }

    #[test]
    fn size_of_a_job_that_works_is_known_from_its_run_alone_or_not_at_all() {
        let kind = JobKind::new("wordcount", &["file"]);
        assert_eq!(size_of(kind.clone(), &[]), None);
        let workload = Workload::batch("one", vec![kind.clone()]);
        let exact = ExactWork { map_seconds: vec![2.0], shuffle_bytes: 7.0, reduce_seconds: vec![1.0] };
        let key = alone::key(&workload, &workload.draw(0).unwrap()[0]);
        let found = size_of(kind, &[Alone { key, flow: 3.0, flows: vec![3.0], exact: exact.clone() }]);
        assert_eq!(found, Some((exact, SizeSource::Alone)));
    }

    #[test]
    fn size_of_a_job_that_plays_times_is_these_times() {
        let exact = ExactWork { map_seconds: vec![2.0], shuffle_bytes: 7.0, reduce_seconds: vec![1.0] };
        let kind =
            JobKind { exact: Some(exact.clone()), plays_exact: true, ..JobKind::new("synthetic", &[]) };
        assert_eq!(size_of(kind, &[]), Some((exact, SizeSource::Told)));
    }
}

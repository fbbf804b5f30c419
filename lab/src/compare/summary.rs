//! Numbers of runs over the repetitions of a policy.
//!
//! Not here: the metrics of a run (`metrics`), and their presentation (`report`).

use super::comparison::Comparison;
use super::metrics::metrics;
use super::record::{Contender, JobRun, RunRecord};
use super::simulation_error::SimulationError;
use super::statistics::{self, Difference, FALSE_MAX, FlowTimes, Scope, mean};
use gristmill_scheduler::metrics::comparable::{LATENESS_MAX_MS, OTHERS_BUSY_MAX, OVERCOMMITTED_MAX};
use gristmill_scheduler::metrics::{Interval, Metric};
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum share by which a job may move other bytes than its size for policies, and the bytes that it always may: 60 bytes
/// of header for each segment, and keys that show the progress of reduces. They are 8 ms of a network of 32 MB/s.
const MOVED_MAX: f64 = 0.03;
const MOVED_SLACK: f64 = 262_144.0;

/// All runs of a policy.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Contender of the runs.
    pub contender: Contender,
    /// Means of metrics over repetitions.
    pub metrics: BTreeMap<Metric, Interval>,
    /// Metrics of each run, in the order of repetitions.
    pub by_run: Vec<BTreeMap<Metric, f64>>,
    /// Mean seconds of waiting, maps, shuffle after them and reduces after that.
    pub phases: [f64; 4],
    /// Error of the simulation from measurements of the run; `None` if a run has none.
    pub replayed: Option<SimulationError>,
    /// Error of the simulation from prior knowledge; `None` if a run has none.
    pub predicted: Option<SimulationError>,
}

impl Summary {
    /// Returns the mean of a metric.
    #[must_use]
    pub fn mean(&self, metric: Metric) -> Option<f64> {
        self.metrics.get(&metric).map(|interval| interval.mean)
    }
}

impl Comparison {
    /// Returns the runs of a contender, by repetition.
    #[must_use]
    pub fn runs_of(&self, contender: &Contender) -> Vec<&RunRecord> {
        let mut runs: Vec<&RunRecord> = self.runs.iter().filter(|run| run.contender == *contender).collect();
        runs.sort_by_key(|run| run.repetition);
        runs
    }

    /// Returns the flow times alone of the jobs of a repetition, by index.
    #[must_use]
    pub(crate) fn alone_of(&self, repetition: u32) -> BTreeMap<usize, f64> {
        let Ok(jobs) = self.workload.draw(repetition) else { return BTreeMap::new() };
        let flow = |job: &super::workload::DrawnJob| {
            let key = super::alone::key(&self.workload, job);
            self.alone.iter().find(|one| one.key == key).map(|one| one.flow)
        };
        jobs.iter().filter_map(|job| Some((job.index, flow(job)?))).collect()
    }

    /// Returns summaries of all contenders that have ended a run, in their order.
    #[must_use]
    pub fn summaries(&self) -> Vec<Summary> {
        let all = self.contenders.iter().map(|contender| (contender, self.runs_of(contender)));
        all.filter(|(_, runs)| !runs.is_empty())
            .map(|(contender, runs)| self.summary(contender, &runs))
            .collect()
    }

    fn summary(&self, contender: &Contender, runs: &[&RunRecord]) -> Summary {
        let by_run: Vec<BTreeMap<Metric, f64>> =
            runs.iter().map(|run| metrics(run, &self.alone_of(run.repetition))).collect();
        let interval = |&metric: &Metric| {
            let samples: Option<Vec<f64>> = by_run.iter().map(|run| run.get(&metric).copied()).collect();
            Some((metric, Interval::from_samples(&samples?)?))
        };
        let jobs = || runs.iter().flat_map(|run| &run.jobs);
        let of = |station: usize, all: Vec<[f64; 4]>| mean(all.iter().map(|one| one[station])).unwrap_or(0.0);
        let phases: Vec<[f64; 4]> = jobs().map(JobRun::phases).collect();
        Summary {
            contender: contender.clone(),
            metrics: Metric::ALL.iter().filter_map(interval).collect(),
            by_run,
            phases: [0, 1, 2, 3].map(|station| of(station, phases.clone())),
            replayed: SimulationError::from_runs(runs, |run| &run.replayed),
            predicted: SimulationError::from_runs(runs, |run| &run.predicted),
        }
    }

    /// Returns the planned comparison, as (one, other).
    #[must_use]
    pub fn planned(&self) -> Option<(&Contender, &Contender)> {
        let against = self.against.as_ref()?;
        let other = self.contenders.iter().find(|contender| contender.name == *against)?;
        Some((self.contenders.iter().find(|contender| *contender != other)?, other))
    }

    /// Returns the jobs and arrivals for which the runs are valid.
    #[must_use]
    pub fn scope(&self) -> Scope {
        if self.workload.is_redrawn() { Scope::AnyDraw } else { Scope::ThisDraw }
    }

    /// Compares every contender with every earlier one, judged together. The planned comparison comes
    /// first, if there is one.
    #[must_use]
    pub fn differences(&self) -> Vec<Difference> {
        let mut found = statistics::differences(self.scope(), &self.all_flow_times());
        found.retain(|difference| difference.share.is_some());
        found
    }

    /// Returns the flow times of all pairs of contenders, the planned one first.
    fn all_flow_times(&self) -> Vec<FlowTimes> {
        let planned = self.planned();
        let is_planned = |one, other| planned == Some((one, other)) || planned == Some((other, one));
        let mut all: Vec<FlowTimes> = Vec::new();
        all.extend(planned.map(|(one, other)| self.flow_times(one, other, true)));
        for (place, one) in self.contenders.iter().enumerate() {
            let others = self.contenders[..place].iter().filter(|other| !is_planned(one, other));
            all.extend(others.map(|other| self.flow_times(one, other, false)));
        }
        all
    }

    fn flow_times(&self, one: &Contender, other: &Contender, planned: bool) -> FlowTimes {
        let repetitions = self.pairs(one, other);
        FlowTimes { one: one.name.clone(), other: other.name.clone(), planned, repetitions }
    }

    /// Returns the flow times of the same jobs under both, for each repetition that both have.
    fn pairs(&self, one: &Contender, other: &Contender) -> Vec<Vec<(f64, f64)>> {
        let others = self.runs_of(other);
        let runs = self.runs_of(one).into_iter().filter_map(|run| {
            let other = others.iter().find(|other| other.repetition == run.repetition)?;
            Some(run.jobs.iter().zip(&other.jobs).map(|(one, other)| (one.flow(), other.flow())).collect())
        });
        runs.collect()
    }

    /// Reports that verdicts were seen before their number of repetitions was fixed.
    fn looked_at(&self) -> Option<String> {
        // A single repetition has no verdict.
        let seen = self.looks.iter().filter(|&&look| 1 < look && look != self.repetitions);
        let seen: Vec<String> = seen.map(u32::to_string).collect();
        (!seen.is_empty()).then(|| {
            format!(
                "verdicts were shown with {} repetitions before {} were asked for: a series that goes on until something shows \
                 finds it in equal policies too, on more than {:.0} % of such pages",
                seen.join(" and "),
                self.repetitions,
                100.0 * FALSE_MAX
            )
        })
    }

    /// Returns the reason why claims about the shuffle cannot be judged by these runs: a job moved other bytes through a
    /// limited network than the policies received as its size. `None` without such a job.
    #[must_use]
    pub fn moved_otherwise(&self) -> Option<String> {
        let limited =
            |run: &&RunRecord| run.workers.iter().any(|worker| worker.nic_bytes_per_second.is_some());
        let of_run = |run: &RunRecord| {
            let off = |job: &JobRun| Some((job.shuffle_bytes as f64 - job.known_shuffle_bytes?).abs());
            let most = |job: &JobRun| Some((MOVED_MAX * job.known_shuffle_bytes?).max(MOVED_SLACK));
            let job = run.jobs.iter().find(|&job| off(job) > most(job))?;
            Some(format!(
                "not comparable: under {} {} moved {:.2} MB, and its size for policies is {:.2} MB",
                run.contender.name,
                job.label,
                job.shuffle_bytes as f64 / 1e6,
                job.known_shuffle_bytes? / 1e6
            ))
        };
        self.runs.iter().filter(limited).find_map(of_run)
    }

    /// Returns reasons not to compare numbers of these runs; empty without such reasons.
    #[must_use]
    pub fn reservations(&self) -> Vec<String> {
        let mut words: Vec<String> = self.looked_at().into_iter().chain(self.moved_otherwise()).collect();
        for summary in self.summaries() {
            let worst = worst_of(&summary, Metric::Overcommitted);
            if OVERCOMMITTED_MAX < worst {
                words.push(format!(
                    "not comparable: under {} more slots worked than there are cores for {worst:.0} % of the time, so \
                     tasks slowed each other down",
                    summary.contender.name
                ));
            }
            let others = worst_of(&summary, Metric::OthersBusy);
            if OTHERS_BUSY_MAX < others {
                words.push(format!(
                    "noisy: under {} others than the slots used {others:.0} % of the cores' time",
                    summary.contender.name
                ));
            }
            words.extend(disturbed(&summary));
            let late = worst_of(&summary, Metric::Lateness);
            if LATENESS_MAX_MS < late {
                words.push(format!("under {} a job arrived {late:.0} ms late", summary.contender.name));
            }
        }
        let omitted: u64 = self.runs.iter().map(|run| run.omitted).sum();
        if 0 < omitted {
            words.push(format!(
                "{omitted} attempts or transfers are missing from curves and stations: there were too many to keep"
            ));
        }
        words
    }
}

/// Reports the number of runs in which attempts failed or were lost, for example when a worker is lost.
/// Their jobs took longer than under the policy alone.
fn disturbed(summary: &Summary) -> Option<String> {
    let wasted: Vec<f64> =
        summary.by_run.iter().filter_map(|run| run.get(&Metric::WastedAttempts)).copied().collect();
    let runs = wasted.iter().filter(|&&count| 0.0 < count).count();
    (0 < runs).then(|| {
        format!(
            "disturbed: under {} attempts failed or were lost, or maps ran again ({} times, in {runs} of {} runs)",
            summary.contender.name,
            wasted.iter().sum::<f64>(),
            wasted.len()
        )
    })
}

/// Returns the largest value of a metric in any run, at least 0.
fn worst_of(summary: &Summary, metric: Metric) -> f64 {
    summary.by_run.iter().filter_map(|run| run.get(&metric)).copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{comparison, job, run, span};

    #[test]
    fn metrics_of_a_run_made_by_hand_are_its_numbers() {
        let mut one = run("fifo", 0, vec![job(0, 0.0, 2.0), job(1, 1.0, 5.0)]);
        one.jobs[0].deadline = Some(3.0);
        one.jobs[1].deadline = Some(4.5);
        one.jobs[1].usage.suspensions = 2;
        let found = metrics(&one, &BTreeMap::from([(0, 1.0), (1, 2.0)]));
        let is = |metric: Metric, value: f64| {
            assert!((found[&metric] - value).abs() < 1e-9, "{metric} is {} and not {value}", found[&metric]);
        };
        is(Metric::Flow, 3.0);
        is(Metric::FlowP50, 2.0);
        is(Metric::Makespan, 5.0);
        is(Metric::Waiting, 0.3);
        is(Metric::Execution, 2.7);
        is(Metric::Slowdown, 2.0);
        is(Metric::DeadlinesMet, 50.0);
        is(Metric::Tardiness, 0.25);
        is(Metric::Suspensions, 2.0);
        // Maps of 1 and 2 s on four slots for 5 s.
        is(Metric::MapUse, 100.0 * 3.0 / 20.0);
        is(Metric::ShuffleUse, 0.0);
    }

    #[test]
    fn run_with_more_working_slots_than_cores_is_not_comparable() {
        let mut many = run("fifo", 0, vec![job(0, 0.0, 10.0)]);
        many.spans = (0..4096).map(|_| span(0, 1, 0.0, 9.0)).collect();
        let asleep = comparison(vec![many.clone()]);
        assert_eq!(asleep.reservations(), Vec::<String>::new(), "those that sleep need no core");
        many.spans.iter_mut().for_each(|span| span.busy = 0.9);
        let working = comparison(vec![many.clone()]);
        assert!(
            working.reservations()[0].starts_with("not comparable: under fifo"),
            "{:?}",
            working.reservations()
        );
        let mut beside = asleep.runs[0].clone();
        beside.others_busy = Some(0.8);
        assert!(comparison(vec![beside]).reservations()[0].starts_with("noisy: under fifo"));
        // Paced slots of a tiny speed use little of a core.
        many.spans.iter_mut().for_each(|span| span.paced = 0.9999);
        assert_eq!(comparison(vec![many]).reservations(), Vec::<String>::new());
    }

    #[test]
    fn job_that_moves_other_bytes_than_policies_know_makes_its_runs_incomparable() {
        let reason = |moved: u64, told: f64, limited: bool| {
            let job = JobRun { shuffle_bytes: moved, known_shuffle_bytes: Some(told), ..job(0, 0.0, 10.0) };
            let mut run = run("fifo", 0, vec![job]);
            run.workers[0].nic_bytes_per_second = limited.then_some(1_000_000);
            comparison(vec![run]).moved_otherwise()
        };
        assert_eq!(reason(10_299_999, 1e7, true), None);
        assert_eq!(reason(9_700_001, 1e7, true), None);
        assert_eq!(reason(60_000, 0.0, true), None, "keys of its own take this much");
        assert_eq!(reason(17_400_000, 25.6e6, false), None, "no network holds it up");
        let words = "not comparable: under fifo made moved 17.40 MB, and its size for policies is 25.60 MB";
        assert_eq!(reason(17_400_000, 25.6e6, true).as_deref(), Some(words));
        assert!(reason(10_300_001, 1e7, true).is_some());
    }

    #[test]
    fn run_in_which_attempts_were_lost_is_said_to_be_disturbed() {
        let mut runs = vec![run("fifo", 0, vec![job(0, 0.0, 10.0)]), run("fifo", 1, vec![job(0, 0.0, 10.0)])];
        assert_eq!(comparison(runs.clone()).reservations(), Vec::<String>::new());
        runs[1].jobs[0].usage.wasted_attempts = 3;
        let words = comparison(runs).reservations();
        assert_eq!(
            words,
            [
                "disturbed: under fifo attempts failed or were lost, or maps ran again (3 times, in 1 of 2 runs)"
            ]
        );
    }

    #[test]
    fn pairs_are_the_same_jobs_of_the_same_repetition() {
        let runs = (0..3).flat_map(|repetition| {
            let more = f64::from(repetition) * 0.01;
            let slow = run("fifo", repetition, vec![job(0, 0.0, 4.0), job(1, 1.0, 5.0)]);
            let fast = run("fair", repetition, vec![job(0, 0.0, 3.0 + more), job(1, 1.0, 4.0 + more)]);
            [slow, fast]
        });
        let found = comparison(runs.collect()).differences();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].one.as_str(), found[0].pairs, found[0].faster), ("fair", 6, 6));
        assert!(found[0].words().starts_with("fair is faster than fifo by 25 %"), "{}", found[0].words());
    }
}

//! Time left of live jobs, forecast when it is queried, with the interval that earlier forecasts suggest.

use super::deciders::LiveDeciders;
use gristmill_scheduler::command::Outcome;
use gristmill_scheduler::core::{Core, CoreJobState, JobSnapshot};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::metrics::quantile;
use gristmill_scheduler::sim::cluster::{Deciders, time_left};
use gristmill_scheduler::units::{Span, Time};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Minimum age of a forecast before another one is made. One takes up to about 10 ms.
const FORECAST_EVERY: Span = Span::whole_seconds(1);

/// Number of ended jobs whose first forecasts are compared with the times that they took: at least this many for an
/// interval, and at most.
const JUDGED_MIN: usize = 10;
const JUDGED_MAX: usize = 100;

/// Parts of those jobs below the ends of the interval.
const INTERVAL: [f64; 2] = [0.1, 0.9];

/// Forecast of the time left of a job.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TimeLeft {
    pub(super) expected: Span,
    /// Eight of ten earlier jobs took the time expected at first times a factor in this range.
    pub(super) interval: Option<[Span; 2]>,
}

/// Forecasts, and their accuracy.
#[derive(Default)]
pub(super) struct Forecast(RefCell<Forecasts>);

#[derive(Default)]
struct Forecasts {
    /// Time of the last forecast, and the times left by then.
    last: Option<(Time, BTreeMap<JobId, Span>)>,
    accuracy: Accuracy,
}

/// Times that jobs took from their first forecast on, divided by the times forecast.
#[derive(Default)]
struct Accuracy {
    first: BTreeMap<JobId, (Time, Span)>,
    ratios: VecDeque<f64>,
}

impl Forecast {
    /// Returns the time left of a live job from now on. `None` before a map of it has ended, as its size is not known
    /// then, and where nothing can be forecast.
    pub(super) fn of_job(
        &self,
        now: Time,
        id: JobId,
        core: &Core,
        deciders: &LiveDeciders,
    ) -> Option<TimeLeft> {
        core.job(id).filter(|job| job.ended.is_none() && 0 < job.maps.done)?;
        let mut forecasts = self.0.borrow_mut();
        let Forecasts { last, accuracy } = &mut *forecasts;
        if last.as_ref().is_none_or(|(at, _)| *at + FORECAST_EVERY <= now) {
            let left = forecast(core, deciders).unwrap_or_default();
            let judged = |job: &JobSnapshot| match job.state {
                CoreJobState::Ended(outcome) => outcome == Outcome::Succeeded,
                CoreJobState::Waiting | CoreJobState::Running => true,
            };
            accuracy.judge(|job| core.job(job).filter(judged).map(|job| job.ended));
            let sized = |job: &JobId| core.job(*job).is_some_and(|job| 0 < job.maps.done);
            accuracy.note(now, left.iter().filter(|(job, _)| sized(job)));
            *last = Some((now, left));
        }
        let (at, left) = last.as_ref()?;
        let expected = Span(left.get(&id)?.0.saturating_sub(now.since(*at).0));
        Some(TimeLeft { expected, interval: accuracy.interval(expected) })
    }
}

impl Accuracy {
    /// Remembers the first forecast of each job.
    fn note<'a>(&mut self, now: Time, left: impl Iterator<Item = (&'a JobId, &'a Span)>) {
        for (&job, &left) in left {
            self.first.entry(job).or_insert((now, left));
        }
    }

    /// Compares forecasts with the ends of their jobs, which are `None` while they are live and for unknown jobs.
    fn judge(&mut self, ended: impl Fn(JobId) -> Option<Option<Time>>) {
        let ratios = &mut self.ratios;
        self.first.retain(|&job, &mut (at, left)| {
            let Some(ended) = ended(job) else { return false };
            if let Some(ended) = ended {
                ratios.push_back(ended.since(at).seconds() / left.seconds().max(1e-3));
            }
            ended.is_none()
        });
        ratios.drain(..ratios.len().saturating_sub(JUDGED_MAX));
    }

    fn interval(&self, expected: Span) -> Option<[Span; 2]> {
        let mut sorted: Vec<f64> = self.ratios.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.len() < JUDGED_MIN {
            return None;
        }
        let [least, most] = INTERVAL.map(|part| quantile(&sorted, part));
        Some([least?, most?].map(|ratio| Span((expected.0 as f64 * ratio) as u64)))
    }
}

fn forecast(core: &Core, deciders: &LiveDeciders) -> Option<BTreeMap<JobId, Span>> {
    // Another program would be started for each forecast.
    let name = &deciders.names.policy;
    if deciders.registry.policy_starts_program(name) {
        return None;
    }
    let policy = deciders.registry.make_policy(name).ok()?;
    // A forecast is information: an error in the simulation must not end the master.
    catch_unwind(AssertUnwindSafe(|| time_left(core, Deciders::with_policy(policy)))).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_that_of_eight_of_ten_earlier_jobs_and_unknown_before_there_are_enough() {
        let mut accuracy = Accuracy::default();
        let second = Span::whole_seconds(1);
        for job in 1..=20 {
            assert_eq!(accuracy.interval(second).is_some(), JUDGED_MIN < job as usize);
            let now = Time(0) + Span::whole_seconds(100 * u64::from(job));
            let forecast = (JobId(job), Span::whole_seconds(10));
            accuracy.note(now, [(&forecast.0, &forecast.1)].into_iter());
            // A later forecast does not count.
            accuracy.note(now + second, [(&forecast.0, &second)].into_iter());
            accuracy.judge(|_| Some(None));
            assert_eq!(accuracy.first.len(), 1, "it is live");
            // The jobs take 0.5, 1, ..., 10 times as long as was forecast.
            accuracy.judge(|job| Some(Some(now + Span::whole_seconds(5 * u64::from(job.0)))));
        }
        let seconds = accuracy.interval(second).unwrap().map(Span::seconds);
        assert_eq!(seconds, [1.0, 9.0]);
    }
}

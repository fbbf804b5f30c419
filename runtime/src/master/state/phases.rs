//! Parts of the flow time of a job: it ran, waited for slots, or was blocked.

use crate::api::FlowParts;
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::{Core, JobSnapshot};
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::Time;
use std::collections::BTreeSet;

/// State of a job with respect to slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) enum Phase {
    /// Tasks of it could start if there were a slot for them.
    #[default]
    Waits,
    /// Attempts of it hold slots.
    Runs,
    /// No task of it can start: segments are on their way, or its output is published.
    Blocked,
}

impl Phase {
    fn of_job(job: &JobSnapshot) -> Self {
        let startable = job.maps.pending + job.reduces.ready + job.reduces.suspended;
        match job.maps.running + job.reduces.running {
            0 if startable == 0 || job.ended.is_some() => Phase::Blocked,
            0 => Phase::Waits,
            _ => Phase::Runs,
        }
    }
}

/// Parts of a job's flow time up to a change, and its phase since then.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct PhaseTimes {
    phase: Phase,
    since: Time,
    parts: FlowParts,
}

impl PhaseTimes {
    pub(super) fn from_arrival(arrived: Time) -> Self {
        Self { phase: Phase::default(), since: arrived, parts: FlowParts::default() }
    }

    pub(super) fn enter(&mut self, now: Time, phase: Phase) {
        (self.parts, self.since, self.phase) = (self.until(now), now, phase);
    }

    /// Returns the parts of the time from arrival to `now`.
    pub(super) fn until(&self, now: Time) -> FlowParts {
        let mut parts = self.parts;
        let part = match self.phase {
            Phase::Waits => &mut parts.waiting_ns,
            Phase::Runs => &mut parts.running_ns,
            Phase::Blocked => &mut parts.blocked_ns,
        };
        *part += now.since(self.since).0;
        parts
    }
}

/// Returns the phases of the jobs that these facts and orders concern.
pub(super) fn phases(facts: &[Event], orders: &[Command], core: &Core) -> Vec<(JobId, Phase)> {
    let named = facts.iter().filter_map(job_of_fact).chain(orders.iter().filter_map(job_of_order));
    let mut jobs: BTreeSet<JobId> = named.collect();
    if facts.iter().any(|fact| matches!(fact, Event::WorkerLost { .. })) {
        jobs.extend(core.live_jobs().map(|job| job.id));
    }
    jobs.into_iter().filter_map(|id| Some((id, Phase::of_job(&core.job(id)?)))).collect()
}

fn job_of_fact(fact: &Event) -> Option<JobId> {
    match fact {
        Event::JobArrived { job, .. } | Event::Fetched { job, .. } => Some(*job),
        Event::MapFinished { attempt, .. }
        | Event::ReduceFinished { attempt, .. }
        | Event::AttemptFailed { attempt, .. }
        | Event::AttemptReturned { attempt }
        | Event::AttemptSuspended { attempt } => Some(attempt.task.job),
        _ => None,
    }
}

fn job_of_order(order: &Command) -> Option<JobId> {
    match order {
        Command::Launch { attempt, .. } | Command::Resume { attempt, .. } => Some(attempt.task.job),
        Command::JobEnded { job, .. } => Some(*job),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_flow_time_whatever_the_phases() {
        let mut times = PhaseTimes::from_arrival(Time(10));
        for (at, phase) in [(15, Phase::Runs), (15, Phase::Waits), (40, Phase::Runs), (45, Phase::Blocked)] {
            times.enter(Time(at), phase);
        }
        let parts = times.until(Time(50));
        assert_eq!((parts.waiting_ns, parts.running_ns, parts.blocked_ns), (5 + 25, 5, 5));
    }
}

//! The master's state next to the core's ledger: names, frames to workers, reports, logs and the trace.
//!
//! Inputs (frames, requests, lost connections) become facts for the core, and the core's commands become frames. No
//! decision is taken here: no branch depends on the policy.
//!
//! The data has owners: [`Fleet`] (workers and the frames queued for them), [`Jobs`], [`JournalWriter`] and [`Pools`].
//! [`MasterState`] coordinates them: workers that come and go (`membership`), their frames (`frames`), submissions and
//! ends of jobs (`submit`), orders of the core (`orders`), and recovery (`recover`). Reads use [`Queries`].

mod as_json;
mod attempts;
mod bad_records;
mod deciders;
mod estimates;
mod explain;
mod feed;
mod fleet;
mod forecast;
mod frames;
mod job;
mod job_parts;
mod jobs;
mod journal_writer;
mod lanes;
mod logs;
mod losses;
mod lost_workers;
mod membership;
mod orders;
mod phases;
mod pools;
mod query;
mod quotas;
mod record;
mod recover;
mod snapshot;
mod submit;
mod sums;

pub(crate) use deciders::LiveDeciders;
pub(crate) use explain::{TaskName, explain_kept};
pub(crate) use feed::FeedCursor;
pub(crate) use jobs::{Absence, ClientRoute, Closing, ENDED_JOBS_MAX};
pub(crate) use journal_writer::{Guarantee, Synced};
pub(crate) use query::Queries;

use super::register::Register;
use crate::api::{ApiError, ErrorCode, EstimatorMemory, PolicyChange, Turns};
use crate::deciders::DeciderNames;
use crate::journal::{Journal, JournalRecord};
use fleet::Fleet;
use forecast::Forecast;
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::{Core, PolicyPanics};
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::http::Secret;
use jobs::Jobs;
use journal_writer::JournalWriter;
use lanes::LaneBroadcast;
use pools::Pools;
use std::collections::{BTreeMap, BTreeSet};

/// Initial configuration of a master's state.
pub(crate) struct StateConfig {
    /// Identifies the executable.
    pub build: String,
    /// Interval at which workers send signs of life, milliseconds.
    pub heartbeat_ms: u32,
    /// The policy and its companions that decide.
    pub deciders: LiveDeciders,
    /// The defined pools with their weights. If empty, every name is a pool.
    pub pools: BTreeMap<String, f64>,
    /// True if workers have separate slots for maps and reduces. A worker that offers shared slots is then refused.
    pub divided_slots: bool,
    /// Journal to which facts and orders are written.
    pub journal: Option<Journal>,
    /// Allocates job numbers and keeps the outcomes of jobs of earlier masters.
    pub register: Register,
    /// Secret from which the keys of workers' listings are derived.
    pub list_secret: Secret,
}

/// All state of the master outside its event loop.
pub(crate) struct MasterState {
    core: Core,
    deciders: LiveDeciders,
    forecast: Forecast,
    pub(super) fleet: Fleet,
    pub(super) jobs: Jobs,
    pub(super) journal: JournalWriter,
    pools: Pools,
    join_terms: JoinTerms,
    events: Vec<Event>,
    commands: Vec<Command>,
    /// Outputs to be announced, by home, source and job.
    announced: BTreeMap<(WorkerId, WorkerId, JobId), Vec<AttemptId>>,
    lanes: LaneBroadcast,
    /// Time at which the core wants to be woken.
    pub(super) wake: Option<Time>,
    /// True while the actions of an earlier master are replayed. Nothing is sent or written, and no output is touched.
    replaying: bool,
    /// Workers reported to get no new work.
    set_aside_reported: BTreeSet<WorkerId>,
}

/// Terms on which workers join.
struct JoinTerms {
    /// Generation; increases with each master of a state directory.
    generation: u64,
    /// Identifies the executable, which must be that of the worker too.
    build: String,
    heartbeat_ms: u32,
    /// Secret from which the keys of their listings are derived.
    list_secret: Secret,
    /// True if their slots are separate for maps and reduces.
    divided_slots: bool,
}

impl MasterState {
    /// Creates the state around a core, without workers and jobs.
    pub(crate) fn new(core: Core, config: StateConfig) -> Self {
        Self {
            core,
            deciders: config.deciders,
            forecast: Forecast::default(),
            fleet: Fleet::default(),
            jobs: Jobs::new(config.register),
            journal: JournalWriter::new(config.journal),
            pools: Pools::new(config.pools),
            join_terms: JoinTerms {
                generation: 1,
                build: config.build,
                heartbeat_ms: config.heartbeat_ms,
                list_secret: config.list_secret,
                divided_slots: config.divided_slots,
            },
            events: Vec::new(),
            commands: Vec::new(),
            announced: BTreeMap::new(),
            lanes: LaneBroadcast::default(),
            wake: None,
            replaying: false,
            set_aside_reported: BTreeSet::new(),
        }
    }

    /// View for reads.
    pub(crate) fn queries(&self) -> Queries<'_> {
        let forecast = Some((&self.forecast, &self.deciders));
        Queries { core: &self.core, jobs: &self.jobs, fleet: &self.fleet, forecast }
    }

    /// Explains why a job waits or how it went, or why a task of it ran where and when it did. The most direct reason
    /// is the first sentence. `None` if the job or task does not exist.
    pub(crate) fn explain(&mut self, now: Time, id: JobId, task: Option<TaskName>) -> Option<Vec<String>> {
        explain::explain(now, id, task, &mut self.core, (&self.jobs, &self.fleet))
    }

    /// Lists the jobs that would get the next slots in order, with reasons.
    pub(crate) fn turns(&mut self) -> Turns {
        explain::turns(&mut self.core)
    }

    /// Handles the wake-up that the core asked for.
    pub(crate) fn tick(&mut self) {
        self.wake = None;
        self.events.push(Event::Tick);
    }

    /// Memory of the estimator; null if there is no estimator, or one that does not learn.
    pub(crate) fn memory(&self) -> serde_json::Value {
        self.core.memory()
    }

    /// Names of the current deciders.
    pub(crate) fn deciders(&self) -> &DeciderNames {
        &self.deciders.names
    }

    /// Panics of the policy, after which `fifo` decided instead.
    pub(crate) fn policy_panics(&self) -> &PolicyPanics {
        self.core.policy_panics()
    }

    /// Replaces the deciders. Running tasks continue.
    ///
    /// # Errors
    /// Invalid names or parameters, or a decider that cannot decide live. Nothing has changed then.
    pub(crate) fn change_policy(&mut self, now: Time, change: PolicyChange) -> Result<(), ApiError> {
        let policy = change.policy.unwrap_or_else(|| self.deciders.names.policy.clone());
        let placement = change.placement.unwrap_or_else(|| self.deciders.names.placement.clone());
        let refuse = |code, message| ApiError { code, message };
        let registry = &self.deciders.registry;
        // Who may submit jobs may not start programs here.
        if registry.policy_starts_program(&policy) && policy != self.deciders.names.policy {
            let message = "a policy that is a program is chosen when the master starts".to_owned();
            return Err(refuse(ErrorCode::Policy, message));
        }
        let made = registry.make_policy(&policy).map_err(|reason| refuse(ErrorCode::Policy, reason))?;
        let made_placement =
            registry.make_placement(&placement).map_err(|reason| refuse(ErrorCode::Placement, reason))?;
        // Earlier facts are decided by the earlier deciders.
        self.settle(now);
        self.core.decide_by(made, made_placement);
        tracing::info!(%policy, %placement, "others decide from now on");
        self.journal.note(|| JournalRecord::DecideBy {
            at: now,
            policy: policy.clone(),
            placement: placement.clone(),
        });
        (self.deciders.names.policy, self.deciders.names.placement) = (policy, placement);
        self.events.push(Event::Tick);
        self.settle(now);
        Ok(())
    }

    /// Replaces the memory of the estimator.
    ///
    /// # Errors
    /// Live jobs, whose sizes it has already estimated, or the memory of another estimator or of none. Nothing has
    /// changed then.
    pub(crate) fn restore_memory(&mut self, now: Time, memory: EstimatorMemory) -> Result<(), ApiError> {
        let refuse = |message| Err(ApiError { code: ErrorCode::Estimator, message });
        let estimator = self.deciders.names.estimator.clone();
        if memory.estimator != estimator {
            return refuse(format!(
                "the memory is that of the estimator `{}`, and the master has `{estimator}`",
                memory.estimator
            ));
        }
        let jobs = self.jobs.live_count();
        if 0 < jobs {
            return refuse(format!(
                "jobs that have not ended: {jobs}; what the estimator knows can change only while there are none"
            ));
        }
        self.settle(now);
        if let Err(reason) = self.core.restore_memory(&memory.memory) {
            return refuse(reason);
        }
        tracing::info!(%estimator, "the estimator knows from now on what was put back");
        self.journal.note(|| JournalRecord::Memory { at: now, memory: memory.memory });
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! The master's state next to the core's ledger: names, frames to workers, reports, logs and the trace.
//!
//! Inputs (frames, requests, lost connections) become facts for the core, and the core's commands become frames. No
//! decision is taken here: no branch depends on the policy.

mod as_json;
mod attempts;
mod bad_records;
mod clients;
mod compact;
mod deciders;
mod ending;
mod estimates;
mod explain;
#[cfg(test)]
mod fault_simulator;
mod feed;
mod frames;
mod given_up;
mod handed_over;
mod job;
mod job_parts;
mod journal_writer;
mod lanes;
mod logs;
mod losses;
mod orders;
mod promises;
mod query;
mod quotas;
mod reconcile;
mod record;
mod relive;
mod submit;
mod sums;
mod workers;

pub(crate) use clients::ClientWay;
pub(crate) use deciders::LiveDeciders;
pub(crate) use ending::Closing;
pub(crate) use explain::{TaskName, explain_kept};
pub(crate) use feed::FeedCursor;
pub(crate) use journal_writer::Synced;
pub(crate) use promises::Promised;
pub(crate) use query::Absence;
pub(crate) use submit::ENDED_JOBS_MAX;

use super::kept_job::KeptJob;
use super::register::Register;
use crate::journal::Journal;
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::Core;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::http::Secret;
use job::JobEntry;
use journal_writer::JournalWriter;
use lanes::LaneBroadcast;
use promises::Promises;
use std::collections::{BTreeMap, BTreeSet};
use workers::{Fleet, WorkerEntry};

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
    workers: BTreeMap<WorkerId, WorkerEntry>,
    fleet: Fleet,
    jobs: BTreeMap<JobId, JobEntry>,
    /// Ended jobs, by their end.
    ended: BTreeSet<(Time, JobId)>,
    /// The last job that arrived when no other was live, until another arrives.
    alone: Option<JobId>,
    pools: Pools,
    register: Register,
    join_terms: JoinTerms,
    events: Vec<Event>,
    commands: Vec<Command>,
    outgoing: Outgoing,
    promises: Promises,
    /// Work for the event loop.
    pub(super) pending: Pending,
    journal: JournalWriter,
    /// True while the actions of an earlier master are replayed. Nothing is sent or written, and no output is touched.
    reliving: bool,
    /// Panics of the policy counted at the last report.
    policy_panics_reported: u64,
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

#[derive(Default)]
struct Pools {
    /// Numbers of the pools that were named.
    numbers: BTreeMap<String, u32>,
    /// Weights of the defined pools. If empty, every name is a pool.
    weights: BTreeMap<String, f64>,
    /// Numbers of tokens with a quota of slots.
    owners: BTreeMap<String, u32>,
}

/// Frames to be sent to workers.
#[derive(Default)]
struct Outgoing {
    /// Outputs to be announced, by home, source and job.
    announced: BTreeMap<(WorkerId, WorkerId, JobId), Vec<AttemptId>>,
    /// Workers with a non-empty outbox.
    outboxes_filled: Vec<WorkerId>,
    lanes: LaneBroadcast,
}

/// Requests of the state to the event loop, which has the clock, the threads and the disk.
#[derive(Default)]
pub(super) struct Pending {
    /// Time at which the core wants to be woken.
    pub(super) wake: Option<Time>,
    /// Outputs to be finished or abandoned by the master, because no submitter closes them.
    pub(super) closings: Vec<Closing>,
    /// True if the estimator has learned from an ended job since this was last read.
    pub(super) learned: bool,
    /// Ended jobs, to be archived for later masters.
    pub(super) archived: Vec<KeptJob>,
}

impl MasterState {
    /// Creates the state around a core, without workers and jobs.
    pub(crate) fn new(core: Core, config: StateConfig) -> Self {
        let numbers = (0..).zip(config.pools.keys()).map(|(number, name)| (name.clone(), number)).collect();
        Self {
            core,
            deciders: config.deciders,
            workers: BTreeMap::new(),
            fleet: Fleet::default(),
            jobs: BTreeMap::new(),
            ended: BTreeSet::new(),
            alone: None,
            pools: Pools { numbers, weights: config.pools, owners: BTreeMap::new() },
            register: config.register,
            join_terms: JoinTerms {
                generation: 1,
                build: config.build,
                heartbeat_ms: config.heartbeat_ms,
                list_secret: config.list_secret,
                divided_slots: config.divided_slots,
            },
            events: Vec::new(),
            commands: Vec::new(),
            outgoing: Outgoing::default(),
            promises: Promises::default(),
            pending: Pending::default(),
            journal: JournalWriter::new(config.journal),
            reliving: false,
            policy_panics_reported: 0,
            set_aside_reported: BTreeSet::new(),
        }
    }

    /// Handles the wake-up that the core asked for.
    pub(crate) fn tick(&mut self) {
        self.pending.wake = None;
        self.events.push(Event::Tick);
    }

    /// Memory of the estimator; null if there is no estimator, or one that does not learn.
    pub(crate) fn memory(&self) -> serde_json::Value {
        self.core.memory()
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! What the master remembers beside the core's ledger: names, frames to workers, reports, logs, the trace.
//!
//! Inputs (frames, requests, lost connections) become facts for the core; the core's commands become frames.
//! Nothing here decides: no branch depends on policy.

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

/// What a master's state begins with.
pub(crate) struct StateConfig {
    /// Identifies the executable.
    pub build: String,
    /// Workers give signs of life so far apart.
    pub heartbeat_ms: u32,
    /// Who decides.
    pub deciders: LiveDeciders,
    /// The pools that there are, with their weights; when empty, every name is a pool.
    pub pools: BTreeMap<String, f64>,
    /// Workers have slots of their own for maps and for reduces; one that offers others is refused.
    pub divided_slots: bool,
    /// Where facts and orders are written down.
    pub journal: Option<Journal>,
    /// Numbers for jobs, and what became of those of earlier masters.
    pub register: Register,
    /// What the keys of workers' listings are derived from.
    pub list_secret: Secret,
}

/// Everything the master knows.
pub(crate) struct MasterState {
    core: Core,
    deciders: LiveDeciders,
    workers: BTreeMap<WorkerId, WorkerEntry>,
    fleet: Fleet,
    jobs: BTreeMap<JobId, JobEntry>,
    /// Those of them that have ended, by when.
    ended: BTreeSet<(Time, JobId)>,
    /// The last job that came when no other was there, until another comes.
    alone: Option<JobId>,
    pools: Pools,
    register: Register,
    join_terms: JoinTerms,
    events: Vec<Event>,
    commands: Vec<Command>,
    outgoing: Outgoing,
    promises: Promises,
    /// What the event loop has to do.
    pub(super) pending: Pending,
    journal: JournalWriter,
    /// What an earlier master did is done again: nothing of it is said or written, and no output touched.
    reliving: bool,
    /// Panics of the policy that were counted when it was said last.
    policy_panics_reported: u64,
    /// Workers that were said to get nothing new.
    set_aside_reported: BTreeSet<WorkerId>,
}

/// What workers are received with.
struct JoinTerms {
    /// Rises with each master of a state folder.
    generation: u64,
    /// Identifies the executable, which must be theirs.
    build: String,
    heartbeat_ms: u32,
    /// What the keys of their listings are derived from.
    list_secret: Secret,
    /// Their slots are for maps or for reduces.
    divided_slots: bool,
}

#[derive(Default)]
struct Pools {
    /// Numbers of the pools that were named.
    numbers: BTreeMap<String, u32>,
    /// The pools that there are, unless every name is one.
    weights: BTreeMap<String, f64>,
    /// Numbers of tokens with a quota of slots.
    owners: BTreeMap<String, u32>,
}

/// What is to be said to workers.
#[derive(Default)]
struct Outgoing {
    /// Outputs to be announced, by home, source and job.
    announced: BTreeMap<(WorkerId, WorkerId, JobId), Vec<AttemptId>>,
    /// Workers with something in their outbox.
    outboxes_filled: Vec<WorkerId>,
    lanes: LaneBroadcast,
}

/// What the state wants of the event loop, which has the clock, the threads and the disk.
#[derive(Default)]
pub(super) struct Pending {
    /// When the core wants to be woken.
    pub(super) wake: Option<Time>,
    /// Outputs to be finished or abandoned, because no submitter does.
    pub(super) closings: Vec<Closing>,
    /// The estimator has learned from a job that has ended since somebody looked last.
    pub(super) learned: bool,
    /// Jobs that have ended, to be kept for later masters.
    pub(super) archived: Vec<KeptJob>,
}

impl MasterState {
    /// No workers and no jobs, around a core.
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

    /// The core asked to be woken at this time.
    pub(crate) fn tick(&mut self) {
        self.pending.wake = None;
        self.events.push(Event::Tick);
    }

    /// What the estimator has learned so far; null if there is none, or it learns nothing.
    pub(crate) fn memory(&self) -> serde_json::Value {
        self.core.memory()
    }
}

#[cfg(test)]
pub(crate) mod tests;

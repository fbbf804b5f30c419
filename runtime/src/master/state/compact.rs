//! Compaction of the recovery file: when it has grown, it is rewritten with the current state, which replaces the
//! history that led to it. The file stays bounded however long a master runs, also if it always has a job.
//!
//! The core that is written is read back before the old file is replaced. This master then continues with the copy, as
//! a recovered master does, so that both decide alike. Policies start again at that point and see the live jobs as new
//! arrivals. Ended jobs whose output is closed are left out: the register keeps them.

use super::super::recovery::{RecoveryLines, RecoveryNote};
use super::MasterState;
use super::job::JobEntry;
use super::workers::WorkerEntry;
use crate::journal::ledger::{go_on_from, ledger_of};
use crate::journal::{self, Encoded, JournalHeader, JournalRecord};
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{HostId, JobId, WorkerId};
use gristmill_scheduler::units::{Bytes, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// State common to all workers and jobs.
#[derive(Clone, Serialize, Deserialize)]
struct Standing {
    draining: BTreeSet<WorkerId>,
    network: Option<Bytes>,
    hosts: BTreeMap<String, HostId>,
    hosts_given: u32,
    /// Numbers of pools by name.
    pools: BTreeMap<String, u32>,
    /// Numbers of tokens with a quota of slots.
    owners: BTreeMap<String, u32>,
    set_aside: BTreeSet<WorkerId>,
}

impl MasterState {
    /// Rewrites the recovery file if it has grown. All facts must have been entered.
    pub(crate) fn compact_if_grown(&mut self, now: Time) {
        // A file that could not be synced is not trusted any more.
        if !(self.journal.has_grown() || self.journal.must_begin_anew(now)) || !self.events.is_empty() {
            return;
        }
        if let Err(reason) = self.compact(now) {
            tracing::warn!(reason, "the recovery file could not be begun anew");
        }
    }

    pub(super) fn compact(&mut self, now: Time) -> Result<(), String> {
        let Some(ledger) = ledger_of(&self.core) else { return Ok(()) };
        let core = go_on_from(&self.core, &ledger, &self.deciders.names, &self.deciders.registry);
        let header = self.header_now();
        let record = JournalRecord::Ledger { at: now, ledger };
        // Taken out, so that it can be written to while the rest of the state is read.
        let Some(mut recovery) = self.journal.take_recovery() else { return Ok(()) };
        let begun = core.and_then(|core| {
            let begun = recovery.begin_anew(&header, |lines| self.write_standing(now, &record, lines));
            begun.map(|()| core).map_err(|error| crate::chain(&error))
        });
        self.journal.come_back_from(recovery);
        self.core = begun?;
        self.journal.begun_anew();
        self.journal.note_for_people(&record);
        self.pending.wake = None;
        self.events.push(Event::Tick);
        self.settle(now);
        Ok(())
    }

    /// Header from which an equal core can be built.
    fn header_now(&self) -> JournalHeader {
        let names = &self.deciders.names;
        JournalHeader {
            schema: journal::SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: self.join_terms.build.clone(),
            policy: names.policy.clone(),
            placement: names.placement.clone(),
            estimator: names.estimator.clone(),
            memory: self.core.memory(),
            core: self.core.config().clone(),
        }
    }

    fn write_standing(
        &self,
        now: Time,
        core: &JournalRecord,
        lines: &mut RecoveryLines<impl Write>,
    ) -> io::Result<()> {
        lines.beside(&RecoveryNote::Began { generation: self.join_terms.generation, at: now })?;
        lines.facts(core)?;
        lines.write_out()?;
        let standing = Standing {
            draining: self.fleet.draining.clone(),
            network: self.fleet.network,
            hosts: self.fleet.hosts.clone(),
            hosts_given: self.fleet.hosts_given,
            pools: self.pools.numbers.clone(),
            owners: self.pools.owners.clone(),
            set_aside: self.set_aside_reported.clone(),
        };
        lines.beside(&RecoveryNote::Standing { at: now, state: Encoded::of(&standing) })?;
        for (&worker, entry) in &self.workers {
            lines.beside(&RecoveryNote::StandingWorker { worker, entry: Encoded::of(entry) })?;
        }
        let stands = |job: &JobEntry| !job.state.ended() || !*job.output.closed.borrow();
        for (&job, entry) in self.jobs.iter().filter(|(_, entry)| stands(entry)) {
            lines.beside(&RecoveryNote::StandingJob { job, entry: Encoded::of(entry) })?;
            lines.write_out()?;
        }
        Ok(())
    }

    /// Restores the ledger of a core from its encoded form.
    pub(super) fn stand_ledger(&mut self, at: Time, ledger: &Encoded) -> Result<(), String> {
        self.core = go_on_from(&self.core, ledger, &self.deciders.names, &self.deciders.registry)?;
        // The master that wrote it may have died before it asked for a wake-up.
        self.pending.wake = Some(at);
        Ok(())
    }

    /// Restores the state that the core does not hold.
    pub(super) fn stand(&mut self, state: &Encoded) -> Result<(), String> {
        let standing: Standing = decoded(state)?;
        self.fleet.draining = standing.draining;
        self.fleet.network = standing.network;
        (self.fleet.hosts, self.fleet.hosts_given) = (standing.hosts, standing.hosts_given);
        (self.pools.numbers, self.pools.owners) = (standing.pools, standing.owners);
        self.set_aside_reported = standing.set_aside;
        Ok(())
    }

    pub(super) fn stand_worker(&mut self, worker: WorkerId, entry: &Encoded) -> Result<(), String> {
        let entry: WorkerEntry = decoded(entry)?;
        self.fleet.slots += entry.hello.slots.total();
        self.fleet.processes.insert((entry.hello.pid, worker));
        self.workers.insert(worker, entry);
        Ok(())
    }

    pub(super) fn stand_job(&mut self, id: JobId, entry: &Encoded) -> Result<(), String> {
        let entry: JobEntry = decoded(entry)?;
        if let Some(ended) = entry.times.ended.filter(|_| entry.state.ended()) {
            self.ended.insert((ended, id));
        }
        if !entry.state.ended() && !entry.shared {
            self.alone = Some(id);
        }
        self.jobs.insert(id, entry);
        Ok(())
    }
}

/// Decodes a part of a line. The line has a checksum and was written by this user, so its content is trusted.
fn decoded<T: serde::de::DeserializeOwned>(encoded: &Encoded) -> Result<T, String> {
    encoded.decode(usize::MAX).map_err(|error| crate::chain(&error))
}

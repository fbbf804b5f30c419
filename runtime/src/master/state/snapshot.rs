//! The state of workers and jobs as it stands in a recovery file that was rewritten.
//!
//! Ended jobs whose output is closed are left out: the register keeps them.

use super::super::recovery::{RecoveryLines, RecoveryNote};
use super::fleet::{Fleet, WorkerEntry};
use super::job::JobEntry;
use super::jobs::Jobs;
use super::pools::Pools;
use crate::journal::Encoded;
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

/// Writes the state that the core does not hold.
pub(super) fn write_standing(
    now: Time,
    (fleet, jobs, pools): (&Fleet, &Jobs, &Pools),
    set_aside: &BTreeSet<WorkerId>,
    lines: &mut RecoveryLines<impl Write>,
) -> io::Result<()> {
    let standing = Standing {
        draining: fleet.draining.clone(),
        network: fleet.network,
        hosts: fleet.hosts.clone(),
        hosts_given: fleet.hosts_given,
        pools: pools.numbers.clone(),
        owners: pools.owners.clone(),
        set_aside: set_aside.clone(),
    };
    lines.beside(&RecoveryNote::Standing { at: now, state: Encoded::of(&standing) })?;
    for (&worker, entry) in &fleet.workers {
        lines.beside(&RecoveryNote::StandingWorker { worker, entry: Encoded::of(entry) })?;
    }
    let stands = |job: &JobEntry| !job.state.ended() || !*job.output.closed.borrow();
    for (&job, entry) in jobs.entries.iter().filter(|(_, entry)| stands(entry)) {
        lines.beside(&RecoveryNote::StandingJob { job, entry: Encoded::of(entry) })?;
        lines.write_out()?;
    }
    Ok(())
}

/// Restores the state that the core does not hold. Returns the workers that get no new work.
pub(super) fn restore(
    state: &Encoded,
    fleet: &mut Fleet,
    pools: &mut Pools,
) -> Result<BTreeSet<WorkerId>, String> {
    let standing: Standing = decoded(state)?;
    fleet.draining = standing.draining;
    fleet.network = standing.network;
    (fleet.hosts, fleet.hosts_given) = (standing.hosts, standing.hosts_given);
    (pools.numbers, pools.owners) = (standing.pools, standing.owners);
    Ok(standing.set_aside)
}

pub(super) fn restore_worker(worker: WorkerId, entry: &Encoded, fleet: &mut Fleet) -> Result<(), String> {
    let entry: WorkerEntry = decoded(entry)?;
    fleet.insert(worker, entry);
    Ok(())
}

pub(super) fn restore_job(id: JobId, entry: &Encoded, jobs: &mut Jobs) -> Result<(), String> {
    let entry: JobEntry = decoded(entry)?;
    jobs.restore(id, entry);
    Ok(())
}

/// Decodes a part of a line. The line has a checksum and was written by this user, so its content is trusted.
fn decoded<T: serde::de::DeserializeOwned>(encoded: &Encoded) -> Result<T, String> {
    encoded.decode(usize::MAX).map_err(|error| gristmill_worker::error_text::chain(&error))
}

//! The state of workers and jobs as it stands in a recovery file that was rewritten.
//!
//! Ended jobs whose output is closed are left out: the register keeps them.

use super::super::recovery::{BESIDE, RecoveryNote};
use super::fleet::Fleet;
use super::job::JobEntry;
use super::jobs::Jobs;
use super::pools::Pools;
use crate::journal::Encoded;
use crate::journal::checked::CheckedWriter;
use gristmill_scheduler::ids::{HostId, WorkerId};
use gristmill_scheduler::units::{Bytes, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// State common to all workers and jobs.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ClusterStanding {
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
    lines: &mut CheckedWriter<impl Write>,
) -> io::Result<()> {
    let standing = ClusterStanding {
        draining: fleet.draining.clone(),
        network: fleet.network,
        hosts: fleet.hosts.clone(),
        hosts_given: fleet.hosts_given,
        pools: pools.numbers.clone(),
        owners: pools.owners.clone(),
        set_aside: set_aside.clone(),
    };
    lines.line(BESIDE, &RecoveryNote::Standing { at: now, state: Encoded::new(&standing) })?;
    for (&worker, entry) in &fleet.workers {
        lines.line(BESIDE, &RecoveryNote::StandingWorker { worker, entry: Encoded::new(entry) })?;
    }
    let stands = |job: &JobEntry| !job.state.ended() || !*job.output.closed.borrow();
    for (&job, entry) in jobs.entries.iter().filter(|(_, entry)| stands(entry)) {
        lines.line(BESIDE, &RecoveryNote::StandingJob { job, entry: Encoded::new(entry) })?;
        lines.write_out()?;
    }
    Ok(())
}

impl ClusterStanding {
    /// Restores the state that the core does not hold. Returns the workers that get no new work.
    pub(super) fn restore(self, fleet: &mut Fleet, pools: &mut Pools) -> BTreeSet<WorkerId> {
        fleet.draining = self.draining;
        fleet.network = self.network;
        (fleet.hosts, fleet.hosts_given) = (self.hosts, self.hosts_given);
        (pools.numbers, pools.owners) = (self.pools, self.owners);
        self.set_aside
    }
}

//! First frame of a worker on its connection to the master: its version, slots, speed, addresses and identity. A worker
//! that reconnects adds its number and the generation of its master.

use crate::http::{Endpoint, Secret};
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::ids::WorkerId;
use serde::{Deserialize, Serialize};

/// Introduction of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Version, [`PROTOCOL_VERSION`](super::PROTOCOL_VERSION).
    pub protocol: u32,
    /// Id of the executable by [`crate::build_id`]: user functions are compiled in, so it must be that of the master.
    pub build: String,
    /// Attempts that can run at once.
    pub slots: Slots,
    /// Speed to which its slots are limited; 1 is unlimited.
    pub speed: f64,
    /// Limit of its shuffle in each direction, bytes per second; `None` is no limit.
    pub nic_bytes_per_second: Option<u64>,
    /// Endpoint of its shuffle server. An empty host means the address of this connection's peer.
    pub shuffle: Endpoint,
    /// Name of its machine; workers with the same name share a disk.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// Value derived ([`ended_proof`]) from the key that authorises the report that this process has ended.
    pub ended_proof: Secret,
    /// Memory budget in bytes.
    pub memory_bytes: u64,
    /// Current time of its clock, nanoseconds since its own start.
    pub worker_ns: u64,
    /// Its state with the master whose connection it has lost; `None` for a process that has just started.
    pub rejoin: Option<Rejoin>,
}

/// State of a worker before it lost its master.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rejoin {
    /// Number that it was given.
    pub worker: WorkerId,
    /// Latest generation of the master that it has worked for: commands of an earlier one are no longer obeyed.
    pub generation: u64,
}

/// Returns all that a worker, and so its user code, knows of the key that authorises the report of its end: the key
/// cannot be computed from it.
#[must_use]
pub fn ended_proof(key: &Secret) -> Secret {
    key.derive("a worker process has ended")
}

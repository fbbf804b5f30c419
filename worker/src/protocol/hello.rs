//! How a worker introduces itself, and what by.

use crate::http::{Endpoint, Secret};
use gristmill_scheduler::ids::WorkerId;
use serde::{Deserialize, Serialize};

/// What a worker can run at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotCounts {
    /// Maps and reduces draw on the same slots.
    Unified(u32),
    /// Each kind has slots of its own.
    Pools {
        /// Slots for maps.
        map: u32,
        /// Slots for reduces.
        reduce: u32,
    },
}

impl SlotCounts {
    /// Attempts that can run at once.
    #[must_use]
    pub fn total(self) -> u32 {
        match self {
            SlotCounts::Unified(slots) => slots,
            SlotCounts::Pools { map, reduce } => map.saturating_add(reduce),
        }
    }
}

/// A worker introduces itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`](super::PROTOCOL_VERSION).
    pub protocol: u32,
    /// [`crate::build_id`] of the executable: user functions are compiled in, so it must be the master's own.
    pub build: String,
    /// Attempts that can run at once.
    pub slots: SlotCounts,
    /// How fast its slots are made to be, 1 for as fast as they can.
    pub speed: f64,
    /// What its shuffle is held to in each direction, bytes in a second; `None`: nothing.
    pub nic_bytes_per_second: Option<u64>,
    /// Where its shuffle server listens. An empty host means: the address this connection comes from.
    pub shuffle: Endpoint,
    /// Name of its machine; workers with the same name share a disk.
    pub host: String,
    /// Process id on that machine.
    pub pid: u32,
    /// Derived ([`ended_proof`]) from the key that authorises the report that this process has ended.
    pub ended_proof: Secret,
    /// Memory budget in bytes.
    pub memory_bytes: u64,
    /// Its clock now, nanoseconds since its own start.
    pub worker_ns: u64,
    /// What it was to the master whose connection it has lost; `None` for a process that has just begun.
    pub rejoin: Option<Rejoin>,
}

/// What a worker was before it lost its master.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rejoin {
    /// The number that it was given.
    pub worker: WorkerId,
    /// The latest generation of the master that it has worked for: an earlier one is not obeyed any more.
    pub generation: u64,
}

/// All that a worker, and so its user code, knows of the key that authorises the report of its end: the key cannot be
/// computed from it.
#[must_use]
pub fn ended_proof(key: &Secret) -> Secret {
    key.derive("a worker process has ended")
}

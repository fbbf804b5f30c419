//! Settings of a worker process, as chosen by the person who starts it.
//!
//! These settings are passed as a whole, from the flags over the parent's pipe into [`crate::agent::WorkerConfig`].
//! They are applied in [`crate::agent`].

use crate::http::{ListenAddress, Permissions};
use crate::input::FilePath;
use crate::protocol::Slots;
use gristmill_scheduler::units::Bytes;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::time::Duration;

/// Settings of one worker process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerSettings {
    /// Number of concurrent attempts; each has a thread.
    pub slots: Slots,
    /// Simulated speed of its slots, above 0 and at most 1: what takes a second takes `1 / speed` seconds.
    pub speed: f64,
    /// Factor on the computing time of its slots, at least 1; waiting is not extended.
    pub slow: f64,
    /// Minimum time of a job, so that people can watch it.
    pub watched: Option<WatchedJob>,
    /// Limit of its shuffle, in each direction, so that a fast network can simulate a slow one.
    pub nic_bytes_per_second: Option<NonZeroU64>,
    /// Memory for collectors, map outputs and gathered segments.
    pub memory: Bytes,
    /// Bytes that stay free on the file system of each spill directory.
    pub disk_reserve: Bytes,
    /// Transfer mode of segments.
    pub shuffle: Shuffle,
    /// Address of its shuffle server; `None` is the address from which it reaches the master.
    pub listen: Option<ListenAddress>,
    /// Name or address under which others reach it; `None` is the address that the master sees.
    pub advertise: Option<String>,
    /// Permissions of its shuffle server.
    pub permissions: Permissions,
    /// Directory for recorded pairs of attempts, if requested.
    pub narration: Option<Box<FilePath>>,
    /// File with the join line, which is never input.
    pub join_file: Option<Box<FilePath>>,
    /// Directories from which it reads input; empty means any.
    pub input_dirs: Vec<FilePath>,
}

impl WorkerSettings {
    /// Default of the bytes that stay free on each file system with spills.
    pub const DISK_RESERVE: Bytes = Bytes::gib(1);

    /// Creates settings with full speed, for peers on this machine or on the route to the master.
    #[must_use]
    pub fn new(slots: Slots, memory: Bytes) -> Self {
        Self {
            slots,
            speed: 1.0,
            slow: 1.0,
            watched: None,
            nic_bytes_per_second: None,
            memory,
            disk_reserve: Self::DISK_RESERVE,
            shuffle: Shuffle::default(),
            listen: None,
            advertise: None,
            permissions: Permissions::default(),
            narration: None,
            join_file: None,
            input_dirs: Vec::new(),
        }
    }

    /// True if segments for others are always sent as bytes, because that is requested or a slow network is simulated.
    #[must_use]
    pub(crate) fn sends_all(&self) -> bool {
        self.shuffle == Shuffle::Http || self.nic_bytes_per_second.is_some()
    }
}

/// Minimum time of each job of a cluster: its attempts take at least their shares of it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct WatchedJob {
    /// Time of a job.
    pub takes: Duration,
    /// Number of slots of the cluster.
    pub slots: u32,
}

impl WatchedJob {
    /// Returns the time of an attempt of a job with this many tasks, which run in waves of one task per slot.
    #[must_use]
    pub fn attempt(self, maps: u32, reduces: u32) -> Duration {
        let waves = |tasks: u32| tasks.div_ceil(self.slots.max(1));
        self.takes / waves(maps).saturating_add(waves(reduces)).max(1)
    }
}

/// Transfer mode of segments to a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shuffle {
    /// Those of another worker over HTTP; a worker's own, and those whose pairs are in a file that it can also read,
    /// are read in place.
    #[default]
    Auto,
    /// All over HTTP, including a worker's own.
    Http,
}

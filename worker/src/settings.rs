//! What a worker process is made to be: whatever the person who starts it decides, from the flag to the effect.
//!
//! These settings travel as a whole, from the flags over the parent's pipe into [`crate::agent::WorkerConfig`]. Where a
//! value takes effect is in [`crate::agent`].

use crate::http::{ListenAddress, Permissions};
use crate::input::FilePath;
use crate::protocol::SlotCounts;
use gristmill_scheduler::units::Bytes;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::time::Duration;

/// Settings of one worker process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerSettings {
    /// Attempts at once; each has a thread.
    pub slots: SlotCounts,
    /// How fast its slots are made to be, above 0 and at most 1: what takes a second takes `1 / speed` seconds.
    pub speed: f64,
    /// How many times as long its slots are made to take for what they compute, at least 1; waiting is not stretched.
    pub slow: f64,
    /// How long a job is to take here, so that people can watch it.
    pub watched: Option<WatchedJob>,
    /// What its shuffle is held to, in each direction, so that a fast network can play a slow one.
    pub nic_bytes_per_second: Option<NonZeroU64>,
    /// Memory for collectors, map outputs and gathered segments.
    pub memory: Bytes,
    /// Bytes that stay free on the file system of each folder for spills.
    pub disk_reserve: Bytes,
    /// How it gets segments.
    pub shuffle: Shuffle,
    /// Where its shuffle server listens; `None`: on the address from which it reaches the master.
    pub listen: Option<ListenAddress>,
    /// The name or address under which others reach it; `None`: the address that the master sees.
    pub advertise: Option<String>,
    /// What its shuffle server is allowed to do.
    pub permissions: Permissions,
    /// Folder in which attempts write down their pairs, for somebody who wants to read them.
    pub narration: Option<Box<FilePath>>,
    /// The file with the join line, which is never input.
    pub join_file: Option<Box<FilePath>>,
    /// Directories of which it reads input; empty: any.
    pub input_dirs: Vec<FilePath>,
}

impl WorkerSettings {
    /// Bytes that stay free on each file system with spills, unless somebody says otherwise.
    pub const DISK_RESERVE: Bytes = Bytes::gib(1);

    /// As fast as the machine is, for others on this machine or on the way to the master.
    #[must_use]
    pub fn new(slots: SlotCounts, memory: Bytes) -> Self {
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

    /// Whether all bytes that others want of it are sent, because that is wanted or a slow network is played.
    #[must_use]
    pub fn sends_all(&self) -> bool {
        self.shuffle == Shuffle::Http || self.nic_bytes_per_second.is_some()
    }
}

/// How long each job of a cluster is to take: its attempts take their shares of that at least.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct WatchedJob {
    /// Time of a job.
    pub takes: Duration,
    /// Slots of the cluster.
    pub slots: u32,
}

impl WatchedJob {
    /// Time of an attempt of a job with this many tasks, which run in waves of one task for each slot.
    #[must_use]
    pub fn attempt(self, maps: u32, reduces: u32) -> Duration {
        let waves = |tasks: u32| tasks.div_ceil(self.slots.max(1));
        self.takes / waves(maps).saturating_add(waves(reduces)).max(1)
    }
}

/// How a worker gets segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shuffle {
    /// Those of another worker over HTTP; a worker's own, and those whose pairs lie in a file that it sees too, are
    /// read where they lie.
    #[default]
    Auto,
    /// All over HTTP, also a worker's own.
    Http,
}

//! State of a worker that reconnects to its master, which compares it with its own state and sends what is missing.

use gristmill_scheduler::ids::{AttemptId, JobId};
use serde::{Deserialize, Serialize};

/// State of a worker. Map outputs are not listed: it keeps all that it has reported and was not ordered to drop.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Holding {
    /// Jobs that it knows.
    pub jobs: Vec<JobId>,
    /// Attempts that have not ended.
    pub attempts: Vec<HeldAttempt>,
    /// Partitions that it gathers.
    pub homes: Vec<HeldHome>,
}

/// Attempt that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeldAttempt {
    /// Id of the attempt.
    pub attempt: AttemptId,
    /// True if it has left its slot and waits to resume.
    pub suspended: bool,
    /// True if it has built its part and waits for permission to commit it.
    pub awaits_permit: bool,
}

/// Partition that is gathered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeldHome {
    /// Job of the partition.
    pub job: JobId,
    /// Number of the partition.
    pub partition: u32,
    /// Number of maps whose segment it has reported. More may have arrived in a running fetch.
    pub segments: u32,
}

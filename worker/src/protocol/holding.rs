//! What a worker has that comes back to its master: the master compares it with what it believes, and says the rest anew.

use gristmill_scheduler::ids::{AttemptId, JobId};
use serde::{Deserialize, Serialize};

/// What a worker has. Map outputs are not listed: it keeps all that it has reported and was not told to forget.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Holding {
    /// Jobs that it was told about.
    pub jobs: Vec<JobId>,
    /// Attempts that have not ended.
    pub attempts: Vec<HeldAttempt>,
    /// Partitions that it gathers.
    pub homes: Vec<HeldHome>,
}

/// An attempt that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeldAttempt {
    /// It.
    pub attempt: AttemptId,
    /// It has left its slot and waits to go on.
    pub suspended: bool,
    /// It has built its part and waits for leave to hand it in.
    pub awaits_permit: bool,
}

/// A partition that is gathered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeldHome {
    /// Of this job.
    pub job: JobId,
    /// Its number.
    pub partition: u32,
    /// Maps of which it has told that their segment is there. More may have come in a fetch that is under way.
    pub segments: u32,
}

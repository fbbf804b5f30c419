//! Where a suspended reduce attempt stood, for another attempt to go on from.

use super::Measures;
use crate::http::Endpoint;
use gristmill_scheduler::ids::AttemptId;
use serde::{Deserialize, Serialize};

/// Where a reduce attempt stood when it was handed over. Its output so far lies at the worker that ran it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HandOver {
    /// Encoded key of the last group that is in the output; `None` if nothing is.
    pub last_key: Option<Vec<u8>>,
    /// Groups reduced so far.
    pub groups: u64,
    /// Bytes of output so far, before compression, as all that follows.
    pub bytes: u64,
    /// Records of output so far.
    pub records: u64,
    /// CRC-32C of the output so far.
    pub crc32c: u32,
    /// What the reducer keeps between groups, as it wrote it.
    pub reducer: Vec<u8>,
    /// User counters so far.
    pub counters: Vec<(String, u64)>,
    /// What user code has measured besides so far.
    pub measures: Measures,
}

/// What a new attempt goes on from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Continuation {
    /// The attempt that was handed over.
    pub attempt: AttemptId,
    /// Where its worker serves what it wrote.
    pub endpoint: Endpoint,
    /// Where it stood.
    pub state: HandOver,
}

//! State of a suspended reduce attempt, from which another attempt continues.

use crate::http::Endpoint;
use gristmill_scheduler::ids::AttemptId;
use serde::{Deserialize, Serialize};

/// State of a reduce attempt when it was handed over. Its output so far is stored on the worker that ran it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HandOver {
    /// Encoded key of the last group in the output; `None` if the output is empty.
    pub last_key: Option<Vec<u8>>,
    /// Number of groups reduced so far.
    pub groups: u64,
    /// Bytes of output so far, before compression, as the following numbers.
    pub bytes: u64,
    /// Records of output so far.
    pub records: u64,
    /// CRC-32C of the output so far.
    pub crc32c: u32,
    /// State that the reducer keeps between groups, as written by it.
    pub reducer: Vec<u8>,
    /// User counters so far.
    pub counters: Vec<(String, u64)>,
}

/// State from which a new attempt continues.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Continuation {
    /// Attempt that was handed over.
    pub attempt: AttemptId,
    /// Endpoint where its worker serves the files.
    pub endpoint: Endpoint,
    /// State at the hand-over.
    pub state: HandOver,
}

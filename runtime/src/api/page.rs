//! What the live page and `top` are told: the code that opens the page, and what has changed since somebody last looked.

use super::{JobStatus, MasterStatus, WorkerStatus};
use gristmill_scheduler::ids::WorkerId;
use serde::{Deserialize, Serialize};

/// Opens the page once. Answer of `POST /api/v1/page`, and of `POST /api/v1/page/submit` for one that may cancel jobs; the
/// page is `/#enter=CODE` of the master.
#[derive(Clone, Serialize, Deserialize)]
pub struct PageCode {
    /// The code: a secret until it is used.
    pub code: String,
}

/// Body of `POST /page/enter`, which a page sends to be let in; the answer is a [`MadeToken`](super::MadeToken).
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct EnterPage {
    /// The code.
    pub(crate) code: String,
}

/// What has changed since the last line of a feed. Answer of `GET /api/v1/feed`, a line of JSON each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FeedLine {
    /// The master; its workers are told apart from it, below.
    pub master: MasterStatus,
    /// Workers that have joined since, or whose state has changed, whole.
    pub workers: Vec<WorkerStatus>,
    /// What other workers do by now, of those where that has changed.
    pub loads: Vec<FeedLoad>,
    /// Workers that have gone since.
    pub left: Vec<WorkerId>,
    /// Jobs that are new, that have got on, or that have ended since.
    pub jobs: Vec<JobStatus>,
    /// Attempts that were launched, suspended, resumed or have ended.
    pub attempts: Vec<FeedAttempt>,
    /// Transfers that have ended.
    pub fetches: Vec<FeedFetch>,
    /// Whether more has changed than the line has room for: the rest comes with the next one.
    pub more: bool,
}

/// What a worker does as few numbers: worker, attempts that it runs, memory in use and free disk, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedLoad(pub u32, pub u32, pub u64, pub u64);

/// An attempt as few numbers: job, kind (0 map, 1 reduce), index, epoch, worker, when it was launched, began and ended
/// (master's clock, ns; 0 while not), how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedAttempt(pub u32, pub u8, pub u32, pub u32, pub u32, pub u64, pub u64, pub u64, pub FeedEnd);

/// How an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedEnd {
    /// It runs, or waits behind others of its worker.
    Running,
    /// It has left its slot for a while.
    Suspended,
    /// It ended well.
    Succeeded,
    /// Another worker goes on with it.
    HandedOver,
    /// It came back before it had begun.
    Returned,
    /// It failed, or was told to stop.
    Failed,
    /// It was lost with its worker.
    Lost,
}

/// A transfer as few numbers: job, map, from and to which worker, bytes, when it began and ended (master's clock, ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedFetch(pub u32, pub u32, pub u32, pub u32, pub u64, pub u64, pub u64);

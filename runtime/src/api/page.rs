//! What the live page is told: the code that opens it, and what has changed since it last looked.

use super::{JobStatus, MasterStatus};
use serde::{Deserialize, Serialize};

/// Opens the page once. Answer of `POST /api/v1/page`; the page is `/#CODE` of the master.
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
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FeedLine {
    /// The master and its workers.
    pub(crate) master: MasterStatus,
    /// Jobs that are new, that have got on, or that have ended since.
    pub(crate) jobs: Vec<JobStatus>,
    /// Attempts that were launched, suspended, resumed or have ended.
    pub(crate) attempts: Vec<FeedAttempt>,
    /// Transfers that have ended.
    pub(crate) fetches: Vec<FeedFetch>,
    /// Whether more has changed than the line has room for: the rest comes with the next one.
    pub(crate) more: bool,
}

/// An attempt as few numbers: job, kind (0 map, 1 reduce), index, epoch, worker, when it was launched, began and ended
/// (master's clock, ns; 0 while not), how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FeedAttempt(
    pub(crate) u32,
    pub(crate) u8,
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) FeedEnd,
);

/// How an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FeedEnd {
    Running,
    Suspended,
    Succeeded,
    HandedOver,
    Returned,
    Failed,
    Lost,
}

/// A transfer as few numbers: job, map, from and to which worker, bytes, when it began and ended (master's clock, ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FeedFetch(
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) u32,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) u64,
);

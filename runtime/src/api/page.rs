//! Data of the live page: the code that opens the page, and the feed of changes.

use super::cluster::{MasterStatus, WorkerStatus};
use super::job::JobStatus;
use gristmill_scheduler::ids::WorkerId;
use serde::{Deserialize, Serialize};

/// Code that opens the page once. Response of `POST /api/v1/page`, and of `POST /api/v1/page/submit` for a page that
/// may cancel jobs. The page is at `/#enter=CODE` of the master.
#[derive(Clone, Serialize, Deserialize)]
pub struct PageCode {
    /// The code: a secret until it is used.
    pub code: String,
}

/// Body of `POST /page/enter`, sent by a page to be admitted. The response is a [`MadeToken`](super::MadeToken).
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct EnterPage {
    /// The code.
    pub(crate) code: String,
}

/// Changes since the last line of a feed. Response of `GET /api/v1/feed`, one line of JSON each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FeedLine {
    /// The master, without its workers, which are listed below.
    pub master: MasterStatus,
    /// Workers that have joined, or whose state has changed, as a whole.
    pub workers: Vec<WorkerStatus>,
    /// Workers that have gone.
    pub left: Vec<WorkerId>,
    /// Jobs that are new, have progressed, or have ended.
    pub jobs: Vec<JobStatus>,
    /// Attempts that were launched, suspended or resumed, or have ended.
    pub attempts: Vec<FeedAttempt>,
    /// Transfers that have ended.
    pub fetches: Vec<FeedFetch>,
    /// True if more has changed than the line has room for: the next line has the rest.
    pub more: bool,
}

/// Compact attempt: job, kind (0 map, 1 reduce), index, epoch, worker, times of launch, start and end (master's clock,
/// ns; 0 if not yet), state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedAttempt(pub u32, pub u8, pub u32, pub u32, pub u32, pub u64, pub u64, pub u64, pub FeedEnd);

/// State of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedEnd {
    /// It runs, or waits behind others on its worker.
    Running,
    /// It is suspended.
    Suspended,
    /// It succeeded.
    Succeeded,
    /// It came back before it had started.
    Returned,
    /// It failed, or was cancelled.
    Failed,
    /// It was lost with its worker.
    Lost,
}

/// Compact transfer: job, map, source worker, destination worker, bytes, start and end (master's clock, ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedFetch(pub u32, pub u32, pub u32, pub u32, pub u64, pub u64, pub u64);

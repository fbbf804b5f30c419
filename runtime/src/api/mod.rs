//! Messages between clients and the master: the JSON bodies of `/api/v1`.
//!
//! The schema is versioned by [`SCHEMA`], which every body that leaves the program carries. Fields are only added
//! within a version. Times are nanoseconds since the master started unless the name indicates otherwise.

mod cluster;
mod failures;
mod job;
mod page;
mod submission;
mod tokens;
mod trace;
mod watch;

pub use self::cluster::{
    ClusterStatus, EstimatorMemory, GivenUpWorker, JobTurn, MasterStatus, PolicyChange, Turns, WorkerEnded,
    WorkerStatus,
};
pub(crate) use self::failures::DESCRIPTORS_HINT;
pub use self::failures::{AttemptEnd, AttemptFailure, ErrorCode, FailureCode};
pub(crate) use self::job::INCIDENTS_MAX;
pub use self::job::{
    AttemptCounts, DeadlineOutlook, FlowParts, JobFailure, JobState, JobStatus, JobTotals, NamedBadRecord,
    TaskCounts, WorkLeft,
};
pub(crate) use self::page::EnterPage;
pub use self::page::{FeedAttempt, FeedEnd, FeedFetch, FeedLine, PageCode};
pub(crate) use self::submission::SUBMISSION_BYTES_MAX;
pub use self::submission::{
    BAD_RECORDS_MAX, BATCH_JOBS_MAX, BATCH_NAME_MAX, BatchPlace, BuiltPart, BuiltPiece, JobAttended,
    OutputClosed, Submission,
};
pub use self::tokens::{
    JobOwner, KnownToken, MadeToken, NewToken, Quota, RevokeToken, RotateTokens, TokenList,
};
pub(crate) use self::trace::ESTIMATES_MAX;
pub use self::trace::{
    AttemptRecord, EstimateRecord, Explanation, FetchRecord, JobTrace, LogEntry, PathStep,
};
#[cfg(test)]
pub(crate) use self::watch::PARTS_OF_LINE_MAX;
pub use self::watch::WatchLine;
pub use crate::role::Role;
pub use gristmill_jobs::ExactWork;
use serde::{Deserialize, Serialize};

/// Version of all types in this directory.
pub const SCHEMA: u32 = 1;

/// Root of all routes.
pub(crate) const ROOT: &str = "/api/v1";

/// Body of every error response.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApiError {
    /// Code for programs.
    pub code: ErrorCode,
    /// Message for people.
    pub message: String,
}

//! What clients and master say to each other: the JSON bodies of `/api/v1`.
//!
//! The schema is versioned by [`SCHEMA`], which every body that leaves the program carries. Fields are only
//! ever added within a version. Times are nanoseconds since the master started unless a name says otherwise.

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
pub use self::failures::{AttemptEnd, AttemptFailure, ErrorCode, FailureCode};
pub use self::job::{
    AttemptCounts, DeadlineOutlook, INCIDENTS_MAX, JobFailure, JobState, JobStatus, JobTotals,
    NamedBadRecord, TaskCounts, WorkLeft,
};
pub(crate) use self::page::EnterPage;
pub use self::page::{FeedAttempt, FeedEnd, FeedFetch, FeedLine, FeedLoad, PageCode};
pub(crate) use self::submission::SUBMISSION_BYTES_MAX;
pub use self::submission::{BAD_RECORDS_MAX, BuiltPart, ExactWork, JobAttended, OutputClosed, Submission};
pub use self::tokens::{
    JobOwner, KnownToken, MadeToken, NewToken, Quota, RevokeToken, RotateTokens, TokenList,
};
pub use self::trace::{
    AttemptRecord, ESTIMATES_MAX, EstimateRecord, Explanation, FetchRecord, JobTrace, LogEntry, PathStep,
};
#[cfg(test)]
pub(crate) use self::watch::PARTS_OF_LINE_MAX;
pub use self::watch::WatchLine;
pub use crate::role::Role;
use serde::{Deserialize, Serialize};

/// Version of everything in this folder.
pub const SCHEMA: u32 = 1;

/// Root of all routes.
pub(crate) const ROOT: &str = "/api/v1";

/// The body of every answer that is not a success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApiError {
    /// What programs decide by.
    pub code: ErrorCode,
    /// For a person.
    pub message: String,
}

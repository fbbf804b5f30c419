//! Fields of the master's orders that are read from a journal to measure a run. Other orders and fields are ignored.

use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use serde::Deserialize;
use serde_json::Value;

/// Order with relevant fields: one of these, or none.
#[derive(Deserialize)]
pub(super) struct JournalOrder {
    #[serde(alias = "resume")]
    pub(super) launch: Option<LaunchOrder>,
    pub(super) announce: Option<Announce>,
    pub(super) retract: Option<Retract>,
    pub(super) map_added: Option<MapAdded>,
    pub(super) job_ended: Option<JobEnded>,
}

#[derive(Deserialize)]
pub(super) struct MapAdded {
    pub(super) attempt: AttemptId,
}

#[derive(Deserialize)]
pub(super) struct LaunchOrder {
    pub(super) attempt: AttemptId,
    pub(super) worker: WorkerId,
}

#[derive(Deserialize)]
pub(super) struct Announce {
    pub(super) map: AttemptId,
    pub(super) from: WorkerId,
    pub(super) to: WorkerId,
}

#[derive(Deserialize)]
pub(super) struct Retract {
    pub(super) map: AttemptId,
    pub(super) to: WorkerId,
}

#[derive(Deserialize)]
pub(super) struct JobEnded {
    pub(super) job: JobId,
    pub(super) outcome: Value,
}

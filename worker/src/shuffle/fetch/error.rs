//! Why segments did not arrive.

use crate::http::HttpError;
use gristmill_scheduler::ids::AttemptId;
use std::sync::Arc;

/// Why segments did not arrive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum FetchError {
    /// The request as a whole went wrong; several maps share the reason.
    #[error("the request failed")]
    Request {
        #[source]
        source: Arc<RequestError>,
    },
    /// It does not hold that output.
    #[error("the worker at {endpoint} does not hold {map}")]
    Missing { endpoint: String, map: AttemptId },
    /// It has looked after damaged segments of it had come, and its own copy is damaged.
    #[error("the worker at {endpoint} holds {map} damaged: its disk or memory has changed it")]
    Damaged { endpoint: String, map: AttemptId },
    /// Segments that came damaged each time, though the copy there is whole.
    #[error(
        "the segments of {map} came damaged from {endpoint}, {times} times, where they are whole: the way there, or what this worker keeps them on, changes data"
    )]
    Garbled {
        endpoint: String,
        map: AttemptId,
        /// How often.
        times: u32,
        /// How it shows.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This worker's own disk.
    #[error("could not keep the segments of {map} on disk")]
    Disk {
        map: AttemptId,
        #[source]
        source: std::io::Error,
    },
}

impl FetchError {
    /// Whether nothing is wrong: more urgent jobs left the request nothing of a paced network.
    #[must_use]
    pub(crate) fn is_preempted(&self) -> bool {
        matches!(self, FetchError::Request { source } if matches!(**source, RequestError::Preempted { .. }))
    }
}

/// Why a request brought nothing, or not all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum RequestError {
    /// The other worker could not be reached, refused, broke off or stood still.
    #[error("the worker at {endpoint} could not be reached or broke off")]
    Http {
        endpoint: String,
        #[source]
        source: HttpError,
    },
    /// The answer ended before the segments that its head promised.
    #[error("the answer of the worker at {endpoint} is too short")]
    Short { endpoint: String },
    /// More urgent jobs left it nothing of a paced network.
    #[error("the answer of the worker at {endpoint} was preempted by more urgent jobs")]
    Preempted { endpoint: String },
    /// The head of the answer does not fit the request.
    #[error("the worker at {endpoint} did not answer what was asked")]
    Head { endpoint: String },
}

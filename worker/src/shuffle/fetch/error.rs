//! Reasons for which a fetch of segments, or one of its requests, ends without them.

use crate::http::HttpError;
use gristmill_scheduler::ids::AttemptId;
use std::sync::Arc;

/// Error of fetching the segments of a map.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum FetchError {
    /// The whole request failed; several maps share the reason.
    #[error("the request failed")]
    Request {
        #[source]
        source: Arc<RequestError>,
    },
    /// The worker does not hold that output.
    #[error("the worker at {endpoint} does not hold {map}")]
    Missing { endpoint: String, map: AttemptId },
    /// The holder checked its copy after damaged segments had arrived, and the copy is damaged.
    #[error("the worker at {endpoint} holds {map} damaged: its disk or memory has changed it")]
    Damaged { endpoint: String, map: AttemptId },
    /// Segments arrived damaged each time, although the copy of the holder is intact.
    #[error(
        "the segments of {map} came damaged from {endpoint}, {times} times, where they are whole: the way there, or what this worker keeps them on, changes data"
    )]
    Garbled {
        endpoint: String,
        map: AttemptId,
        /// Number of times.
        times: u32,
        /// Error of the verification.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Error of this worker's own disk.
    #[error("could not keep the segments of {map} on disk")]
    Disk {
        map: AttemptId,
        #[source]
        source: std::io::Error,
    },
}

impl FetchError {
    /// True if nothing failed: more urgent jobs left the request no bandwidth of a paced network.
    #[must_use]
    pub(crate) fn is_preempted(&self) -> bool {
        matches!(self, FetchError::Request { source } if matches!(**source, RequestError::Preempted { .. }))
    }
}

/// Error of a request that returned nothing, or not all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum RequestError {
    /// The other worker could not be reached, rejected the request, closed the connection or stalled.
    #[error("the worker at {endpoint} could not be reached or broke off")]
    Http {
        endpoint: String,
        #[source]
        source: HttpError,
    },
    /// The response ended before all segments announced in its head.
    #[error("the answer of the worker at {endpoint} is too short")]
    Short { endpoint: String },
    /// More urgent jobs left it no bandwidth of a paced network.
    #[error("the answer of the worker at {endpoint} was preempted by more urgent jobs")]
    Preempted { endpoint: String },
    /// The head of the response does not match the request.
    #[error("the worker at {endpoint} did not answer what was asked")]
    Head { endpoint: String },
}

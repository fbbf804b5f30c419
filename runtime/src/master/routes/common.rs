//! Parts that routes share: refusals, bodies of requests, and calls of the state.

use super::super::input::{MasterHandle, MasterInput};
use super::super::state::{Absence, ENDED_JOBS_MAX, MasterState};
use crate::api::{ApiError, ErrorCode, MasterStatus, SCHEMA};
use bytes::Bytes;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::Time;
use gristmill_worker::error_text::chain;
use gristmill_worker::http::{Body, ShownKey, read_limited};
use gristmill_worker::{response, sanitize};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde::Serialize;
use tokio::sync::oneshot;

/// Longest body except for submissions, bytes.
pub(super) const BODY_BYTES_MAX: usize = 64 << 10;

/// An error response.
pub(super) struct RouteRefusal {
    pub(super) status: StatusCode,
    pub(super) error: ApiError,
}

impl RouteRefusal {
    pub(super) fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status, error: ApiError { code, message: message.into() } }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        // The message may repeat request data.
        response::json(
            self.status,
            &ApiError { message: sanitize::message(&self.error.message), ..self.error },
        )
    }

    pub(super) fn ending() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Ending, "the master is ending")
    }
}

pub(super) type Answered = Result<Response<Body>, RouteRefusal>;

pub(super) fn ok<T: Serialize>(value: &T) -> Answered {
    Ok(response::json(StatusCode::OK, value))
}

/// Result of a call of the master's state.
pub(super) async fn call<T: Send + 'static>(
    handle: &MasterHandle,
    call: impl FnOnce(&mut MasterState, Time) -> T + Send + 'static,
) -> Result<T, RouteRefusal> {
    handle.call(call).await.ok_or_else(RouteRefusal::ending)
}

/// Reply to an input of the master's loop.
pub(super) async fn asked<T>(
    handle: &MasterHandle,
    input: impl FnOnce(oneshot::Sender<T>) -> MasterInput,
) -> Result<T, RouteRefusal> {
    let (reply, answer) = oneshot::channel();
    let _ = handle.inputs.send(input(reply));
    answer.await.map_err(|_| RouteRefusal::ending())
}

/// Parses a job's name and queries the master about the job.
pub(super) async fn find<T: Send + 'static>(
    handle: &MasterHandle,
    job: &str,
    look: impl FnOnce(&MasterState, Time, JobId) -> Option<T> + Send + 'static,
) -> Result<T, RouteRefusal> {
    let refusal = |code, message| RouteRefusal::new(StatusCode::NOT_FOUND, code, message);
    let id: JobId = job.parse().map_err(|wrong| refusal(ErrorCode::Job, format!("{wrong}")))?;
    let look = move |state: &mut MasterState, now| look(state, now, id).ok_or_else(|| state.jobs.absence(id));
    let found = call(handle, look).await?;
    found.map_err(|absence| match absence {
        Absence::Unknown => refusal(ErrorCode::Job, format!("there is no {id}")),
        Absence::Forgotten => refusal(
            ErrorCode::JobForgotten,
            format!(
                "{id} is too old to know how it ended: the last {ENDED_JOBS_MAX} jobs are remembered; its output is complete if \
                 it has a _SUCCESS"
            ),
        ),
        Absence::Past => refusal(
            ErrorCode::JobPast,
            format!("{id} was run by an earlier master, and only its end is kept"),
        ),
    })
}

pub(super) fn parsed<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, RouteRefusal> {
    serde_json::from_slice(body)
        .map_err(|wrong| RouteRefusal::new(StatusCode::BAD_REQUEST, ErrorCode::Body, wrong.to_string()))
}

pub(super) fn status_in(state: &MasterState, now: Time, build: String) -> MasterStatus {
    MasterStatus {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build,
        policy: state.deciders().policy.clone(),
        placement: state.deciders().placement.clone(),
        estimator: state.deciders().estimator.clone(),
        policy_panics: state.policy_panics().count,
        policy_panic: state.policy_panics().last.clone(),
        now_ns: now.0,
        workers: state.queries().workers(),
        given_up: state.fleet.silent_lost.listed(now),
        jobs_live: state.jobs.live_count(),
        trouble: state.journal.trouble().map(str::to_owned),
        register_gap: state.jobs.register_gap().map(str::to_owned),
        returns: state.journal.is_recoverable(),
    }
}

/// Body of a request, and the key with which its head passed the gate.
pub(super) struct ShownBody {
    pub(super) incoming: Incoming,
    pub(super) key: ShownKey,
}

pub(super) fn shown(request: Request<Incoming>) -> ShownBody {
    ShownBody { key: key_of(&request), incoming: request.into_body() }
}

/// Reads a whole body. The key is checked again after its last byte, because the body can be delayed until the key has
/// been revoked.
pub(super) async fn body(
    handle: &MasterHandle,
    sent: ShownBody,
    bytes_max: usize,
) -> Result<Bytes, RouteRefusal> {
    let body = read_limited(sent.incoming, bytes_max)
        .await
        .map_err(|wrong| RouteRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::Body, chain(&wrong)))?;
    match handle.tokens.find(&sent.key.0) {
        Some(_) => Ok(body),
        None => Err(RouteRefusal::new(
            StatusCode::UNAUTHORIZED,
            ErrorCode::Token,
            format!("{} was revoked before the request had arrived", sent.key.0),
        )),
    }
}

/// Name of the key that admitted a request.
pub(super) fn key_of<B>(request: &Request<B>) -> ShownKey {
    request.extensions().get().cloned().unwrap_or_else(|| ShownKey(String::new()))
}

//! The master's routes: `/api/v1` for clients, and one upgrade for workers. The gate in front has already authenticated
//! the caller.
//!
//! | route | description |
//! |---|---|
//! | `GET /api/v1/status` | the master and its workers |
//! | `POST /api/v1/jobs` | submit a job; streams lines of status until the job ends |
//! | `POST /api/v1/attend` | reconnect as the client that submitted a job; streams lines of status |
//! | `GET /api/v1/cluster` | the master and its workers, with the keys that list their files |
//! | `GET /api/v1/jobs` | all jobs |
//! | `GET /api/v1/jobs/JOB` | one job |
//! | `GET /api/v1/jobs/JOB/watch` | lines of status until the job ends |
//! | `GET /api/v1/jobs/JOB/trace` | attempts and transfers |
//! | `GET /api/v1/jobs/JOB/logs` | output of user code |
//! | `GET /api/v1/jobs/JOB/explain` | why it waits, or with `?task=map-3` why that task ran where and when it did |
//! | `GET /api/v1/turns` | the queue of the policy: jobs that would get the next slots, with reasons |
//! | `POST /api/v1/jobs/JOB/cancel` | cancel a job: for the token that submitted it, or an admin's |
//! | `POST /api/v1/jobs/JOB/closed` | report of the client that follows a job that it has closed the output |
//! | `POST /api/v1/workers/ended` | report that a worker process has ended |
//! | `POST /api/v1/workers/WORKER/drain` | drain: the worker leaves after its attempts, once none needs its data |
//! | `PUT /api/v1/policy` | replace the deciders; returns the status |
//! | `GET /api/v1/estimator` | the estimator's memory |
//! | `PUT /api/v1/estimator` | replace the estimator's memory; returns it |
//! | `GET /api/v1/tokens` | tokens that were created, used or revoked |
//! | `POST /api/v1/tokens` | create a token |
//! | `POST /api/v1/tokens/revoke` | revoke a token |
//! | `POST /api/v1/tokens/rotate` | replace all tokens |
//! | `POST /api/v1/shutdown` | end the master, its jobs and its workers |
//! | `POST /api/v1/page` | create a code that opens the live page once, read-only |
//! | `POST /api/v1/page/submit` | create a code that opens it once, with the right to cancel jobs |
//! | `GET /api/v1/feed` | changes, a line each |
//! | `GET /metrics` | metrics for Prometheus |
//! | `GET /healthz`, `/readyz` | probes that the process runs, that the master responds: public, no data |
//! | `GET /`, `/page.js`, `/page.css` | the page, which holds no data: public |
//! | `POST /page/enter` | exchange such a code for the page's token: public |

mod common;
mod estimator;
mod feed;
mod follow;
mod page;
pub(super) mod probes;
mod tokens;

use common::{
    Answered, BODY_BYTES_MAX, RouteRefusal, ShownBody, asked, body, call, find, key_of, ok, parsed, shown,
    status_in,
};
pub(super) use probes::METRICS_PATH;

use super::connection::serve_worker;
use super::ending::Ending;
use super::input::{MasterHandle, MasterInput};
use super::kept_job::KeptJob;
use super::state::{MasterState, TaskName, explain_kept};
use super::tokens::{Tokens, list_key};
use crate::api::{
    ClusterStatus, ErrorCode, Explanation, JobTrace, MasterStatus, OutputClosed, PolicyChange, ROOT, SCHEMA,
    WorkerEnded,
};
use crate::critical_path::critical_path;
use crate::role::Role;
use gristmill_scheduler::ids::{JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::error_text::chain;
use gristmill_worker::http::{Body, PeerAddress, ShownKey, accept_upgrade};
use gristmill_worker::protocol::{CONNECT_PATH, CONTROL_PROTOCOL};
use gristmill_worker::response;
use gristmill_worker::sanitize;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

/// Parts of a path below the root of all routes; `None` for other paths.
pub(super) fn route(path: &str) -> Option<Vec<&str>> {
    let below = path.strip_prefix(ROOT)?;
    (below.is_empty() || below.starts_with('/')).then(|| below.split('/').skip(1).collect())
}

/// Responds to one request.
pub(crate) async fn respond(handle: MasterHandle, mut request: Request<Incoming>) -> Response<Body> {
    handle.tokens.note_seen(&key_of(&request).0);
    let path = request.uri().path().to_owned();
    if path == CONNECT_PATH {
        return connect(handle, &mut request);
    }
    if let (&Method::GET, Some(file)) = (request.method(), super::page::file(&path)) {
        return file;
    }
    if let Some(answer) = probes::respond(&handle, request.method(), &path).await {
        return answer;
    }
    let Some(parts) = route(&path) else { return page::respond(&handle, request).await };
    let answered = match (request.method(), parts.as_slice()) {
        (&Method::GET, ["status"]) => master_status(&handle).await,
        (&Method::GET, ["cluster"]) => cluster(&handle).await,
        (&Method::GET, ["jobs"]) => jobs(&handle).await,
        (&Method::POST, ["jobs"]) => follow::submit(handle, request).await,
        (&Method::GET, ["jobs", job]) => {
            about_job(&handle, job, |state, now, job| state.queries().status(now, job)).await
        }
        (&Method::GET, ["jobs", job, "trace"]) => trace(&handle, job).await,
        (&Method::GET, ["jobs", job, "logs"]) => logs(&handle, job).await,
        (&Method::GET, ["jobs", job, "explain"]) => {
            let query = request.uri().query().map(str::to_owned);
            explain(&handle, job, query.as_deref()).await
        }
        (&Method::GET, ["turns"]) => turns(&handle).await,
        (&Method::GET, ["jobs", job, "watch"]) => follow::watch_job(handle, job, key_of(&request)).await,
        (&Method::POST, ["jobs", job, "cancel"]) => cancel(&handle, job, &key_of(&request)).await,
        (&Method::POST, ["attend"]) => follow::follow_again(handle, request).await,
        (&Method::POST, ["jobs", job, "closed"]) => client_closed(&handle, job, shown(request)).await,
        (&Method::GET, ["feed"]) => Ok(feed::feed(handle, key_of(&request))),
        (&Method::POST, ["page"]) => page::code(&handle, &key_of(&request), Role::View),
        (&Method::POST, ["page", "submit"]) => page::code(&handle, &key_of(&request), Role::Submit),
        (&Method::GET, ["estimator"]) => estimator::memory(&handle).await,
        (&Method::PUT, ["estimator"]) => estimator::restore(&handle, shown(request)).await,
        (&Method::PUT, ["policy"]) => change_policy(&handle, shown(request)).await,
        (&Method::POST, ["workers", "ended"]) => worker_ended(&handle, shown(request)).await,
        (&Method::POST, ["workers", worker, "drain"]) => drain(&handle, worker).await,
        (&Method::GET, ["tokens"]) => ok(&handle.tokens.list()),
        (&Method::POST, ["tokens"]) => tokens::new_token(&handle, shown(request)).await,
        (&Method::POST, ["tokens", "revoke"]) => tokens::revoke_token(&handle, shown(request)).await,
        (&Method::POST, ["tokens", "rotate"]) => tokens::rotate_tokens(&handle, shown(request)).await,
        (&Method::POST, ["shutdown"]) => {
            let _ = handle.shutdown.send(Some(Ending::Abandons));
            Ok(response::status(StatusCode::NO_CONTENT))
        }
        _ => Err(RouteRefusal::new(
            StatusCode::NOT_FOUND,
            ErrorCode::Route,
            format!("there is no route {path}"),
        )),
    };
    answered.unwrap_or_else(RouteRefusal::into_response)
}

fn connect(handle: MasterHandle, request: &mut Request<Incoming>) -> Response<Body> {
    let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0.ip());
    let key = request.extensions().get::<ShownKey>().cloned();
    let (Some((response, io)), Some(peer), Some(key)) =
        (accept_upgrade(request, CONTROL_PROTOCOL), peer, key)
    else {
        return response::status(StatusCode::UPGRADE_REQUIRED);
    };
    tokio::spawn(async move {
        if let Ok(io) = io.await {
            serve_worker(handle, io, peer, key).await;
        }
    });
    response
}

async fn about_job<T: Serialize + Send + 'static>(
    handle: &MasterHandle,
    job: &str,
    look: impl FnOnce(&MasterState, Time, JobId) -> Option<T> + Send + 'static,
) -> Answered {
    ok(&find(handle, job, look).await?)
}

/// Trace of a job, from memory, or from the archive if it ended long ago or under an earlier master.
async fn trace(handle: &MasterHandle, job: &str) -> Answered {
    let found = find(handle, job, |state, now, job| state.queries().trace(now, job)).await;
    let forgotten = found.as_ref().is_ok_and(|trace| trace.attempts.is_empty() && 0 < trace.omitted);
    if (forgotten || found.is_err() || ended_before(handle, job).await)
        && let Some(kept) = kept(handle, job).await?
    {
        return ok(&with_path(kept.trace));
    }
    ok(&with_path(found?))
}

/// True if a job is in memory only as recovered from the journal of an earlier master, which lacks details that the
/// archive has.
async fn ended_before(handle: &MasterHandle, job: &str) -> bool {
    find(handle, job, |state, _, job| Some(state.jobs.ended_before(job))).await.unwrap_or(false)
}

fn with_path(trace: JobTrace) -> JobTrace {
    JobTrace { path: critical_path(&trace), ..trace }
}

/// Archived data of a job; `None` if there is no archive, or no such job in it.
async fn kept(handle: &MasterHandle, job: &str) -> Result<Option<KeptJob>, RouteRefusal> {
    let (Some(archive), Ok(id)) = (handle.archive.clone(), job.parse::<JobId>()) else { return Ok(None) };
    let kept = tokio::task::spawn_blocking(move || archive.find(id)).await;
    kept.map_err(|_| RouteRefusal::ending())?.map_err(|error| {
        let said = chain(&error);
        RouteRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Archive, said)
    })
}

/// Output of a job's code, from memory or the archive.
async fn logs(handle: &MasterHandle, job: &str) -> Answered {
    let found = find(handle, job, |state, _, job| state.jobs.logs(job)).await;
    if (found.is_err() || ended_before(handle, job).await)
        && let Some(kept) = kept(handle, job).await?
    {
        return ok(&kept.logs);
    }
    ok(&found?)
}

async fn master_status(handle: &MasterHandle) -> Answered {
    ok(&status_of_master(handle).await?)
}

/// As the status, for callers that may submit jobs.
async fn cluster(handle: &MasterHandle) -> Answered {
    let master = status_of_master(handle).await?;
    let list_secret = handle.tokens.list_secret();
    let key = |worker: WorkerId| (worker, list_key(&list_secret, worker).to_text().to_string());
    let list_keys = master.workers.iter().map(|worker| key(worker.worker)).collect();
    ok(&ClusterStatus { master, list_keys })
}

async fn status_of_master(handle: &MasterHandle) -> Result<MasterStatus, RouteRefusal> {
    let build = handle.build.clone();
    call(handle, move |state, now| status_in(state, now, build)).await
}

async fn jobs(handle: &MasterHandle) -> Answered {
    ok(&call(handle, |state, now| state.queries().statuses(now)).await?)
}

/// A job that this token submitted, or any job for an admin.
async fn own_job(
    handle: &MasterHandle,
    job: &str,
    key: &ShownKey,
    verb: &str,
) -> Result<JobId, RouteRefusal> {
    let status = find(handle, job, |state, now, job| state.queries().status(now, job)).await?;
    let asks = handle.tokens.owner(&key.0).map(|owner| owner.token).unwrap_or_default();
    if status.owner.as_deref() != Some(asks.as_str()) && !Tokens::is_admin(&key.0) {
        let owner = status.owner.as_deref().unwrap_or("an unknown token");
        let words = format!("{job} was submitted with {owner}, and {asks} {verb} its own jobs alone");
        return Err(RouteRefusal::new(StatusCode::FORBIDDEN, ErrorCode::Owner, words));
    }
    Ok(status.job)
}

async fn cancel(handle: &MasterHandle, job: &str, key: &ShownKey) -> Answered {
    let job = own_job(handle, job, key, "cancels").await?;
    let cancel = move |state: &mut MasterState, now| {
        state.cancel(job);
        state.settle(now);
    };
    call(handle, cancel).await?;
    Ok(response::status(StatusCode::NO_CONTENT))
}

async fn drain(handle: &MasterHandle, worker: &str) -> Answered {
    let missing = |message| RouteRefusal::new(StatusCode::NOT_FOUND, ErrorCode::Worker, message);
    let worker: WorkerId = worker.parse().map_err(|wrong| missing(format!("{wrong}")))?;
    let drain = move |state: &mut MasterState, now| {
        let found = state.drain(worker);
        state.settle(now);
        found
    };
    match call(handle, drain).await? {
        true => Ok(response::status(StatusCode::NO_CONTENT)),
        false => Err(missing(format!("there is no {worker}: it has left, or never joined this master"))),
    }
}

async fn client_closed(handle: &MasterHandle, job: &str, sent: ShownBody) -> Answered {
    let key = sent.key.clone();
    let closed: OutputClosed = parsed(&body(handle, sent, BODY_BYTES_MAX).await?)?;
    let job = own_job(handle, job, &key, "closes").await?;
    let close = move |state: &mut MasterState, now| {
        state.jobs.client_closed(now, job, closed.failed, &mut state.journal);
        state.settle(now);
    };
    call(handle, close).await?;
    Ok(response::status(StatusCode::NO_CONTENT))
}

async fn explain(handle: &MasterHandle, job: &str, query: Option<&str>) -> Answered {
    let found = find(handle, job, |state, _, job| state.jobs.has(job).then_some(job)).await;
    let unknown = |what: &str| {
        RouteRefusal::new(StatusCode::NOT_FOUND, ErrorCode::Task, format!("{job} has no task `{what}`"))
    };
    let named = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("task=")));
    let task = named.map(|name| task_name(name).ok_or_else(|| unknown(name))).transpose();
    let job = match found {
        Ok(job) => job,
        Err(refusal) => {
            let kept = kept(handle, job).await?.ok_or(refusal)?;
            let sentences = explain_kept(&kept.trace, task?);
            let sentences = sentences.ok_or_else(|| unknown(named.unwrap_or_default()))?;
            return ok(&Explanation { schema: SCHEMA, sentences });
        }
    };
    let task = task?;
    let sentences = call(handle, move |state, now| state.explain(now, job, task)).await?;
    let sentences = sentences.ok_or_else(|| unknown(named.unwrap_or_default()))?;
    ok(&Explanation { schema: SCHEMA, sentences })
}

/// Queue of the policy.
async fn turns(handle: &MasterHandle) -> Answered {
    ok(&call(handle, |state, _| state.turns()).await?)
}

/// Parses `map-3`.
fn task_name(text: &str) -> Option<TaskName> {
    let (kind, index) = text.split_once('-')?;
    let kind = [TaskKind::Map, TaskKind::Reduce].into_iter().find(|known| known.to_string() == kind)?;
    let digits = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Some((kind, index.parse().ok()?)))?
}

async fn change_policy(handle: &MasterHandle, sent: ShownBody) -> Answered {
    let change: PolicyChange = parsed(&body(handle, sent, BODY_BYTES_MAX).await?)?;
    for (what, name) in [("the policy", &change.policy), ("the placement", &change.placement)] {
        let checked = name.as_ref().map_or(Ok(()), |name| sanitize::check_name(what, name));
        checked.map_err(|error| {
            RouteRefusal::new(StatusCode::BAD_REQUEST, ErrorCode::Policy, error.to_string())
        })?;
    }
    let done = call(handle, move |state, now| state.change_policy(now, change)).await?;
    done.map_err(|error| RouteRefusal { status: StatusCode::BAD_REQUEST, error })?;
    master_status(handle).await
}

async fn worker_ended(handle: &MasterHandle, sent: ShownBody) -> Answered {
    let end: WorkerEnded = parsed(&body(handle, sent, BODY_BYTES_MAX).await?)?;
    let unknown = || {
        let message = "no worker of that process id and host was started with that key";
        RouteRefusal::new(StatusCode::NOT_FOUND, ErrorCode::Process, message)
    };
    let key = end.key.parse().map_err(|_| unknown())?;
    match asked(handle, |reply| MasterInput::ProcessEnded { end, key, reply }).await? {
        true => Ok(response::status(StatusCode::NO_CONTENT)),
        false => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_task_is_read_and_nothing_like_it() {
        assert_eq!(task_name("map-3"), Some((TaskKind::Map, 3)));
        assert_eq!(task_name("reduce-0"), Some((TaskKind::Reduce, 0)));
        for wrong in ["", "map", "map-", "map-+3", "map-3.0", "job-1/map-3", "Map-3", "map-99999999999"] {
            assert_eq!(task_name(wrong), None, "{wrong}");
        }
    }
}

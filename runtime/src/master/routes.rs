//! The master's routes: `/api/v1` for clients, one upgrade for workers. The gate in front has already checked
//! who asks.
//!
//! | route | what |
//! |---|---|
//! | `GET /api/v1/status` | the master and its workers |
//! | `POST /api/v1/jobs` | submit; answers lines of status until the job ends |
//! | `GET /api/v1/cluster` | the master and its workers, with what lists their files |
//! | `GET /api/v1/jobs` | all jobs |
//! | `GET /api/v1/jobs/JOB` | one job |
//! | `GET /api/v1/jobs/JOB/watch` | lines of status until the job ends |
//! | `GET /api/v1/jobs/JOB/trace` | attempts and transfers |
//! | `GET /api/v1/jobs/JOB/logs` | what user code wrote |
//! | `GET /api/v1/jobs/JOB/explain` | why it waits, or with `?task=map-3` why that ran where and when it did |
//! | `POST /api/v1/jobs/JOB/cancel` | stop it |
//! | `POST /api/v1/jobs/JOB/closed` | the client that follows it has closed its output |
//! | `POST /api/v1/workers/ended` | a worker process has ended |
//! | `PUT /api/v1/policy` | others decide from now on; answers the status |
//! | `POST /api/v1/tokens` | make a token |
//! | `POST /api/v1/tokens/revoke` | let a token open nothing any more |
//! | `POST /api/v1/tokens/rotate` | make all tokens new |
//! | `POST /api/v1/shutdown` | end the master |

use super::books::{Absence, TaskName};
use super::tokens::{Tokens, TokensError, list_key};
use super::{Books, Handle, Input, Lease, address, attend};
use crate::api::{
    ApiError, ClusterStatus, ErrorCode, Explanation, JobState, MadeToken, MasterStatus, NewToken,
    OutputClosed, PolicyChange, ROOT, RevokeToken, RotateTokens, SCHEMA, SUBMISSION_BYTES_MAX, Submission,
    WatchLine, WorkerEnded,
};
use bytes::Bytes;
use gristmill_scheduler::ids::{JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::answer;
use gristmill_worker::clean;
use gristmill_worker::http::{Body, BodySender, PeerAddress, ShownKey, accept_upgrade, read_limited, stream};
use gristmill_worker::protocol::{CONNECT_PATH, CONTROL_PROTOCOL};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Status lines of a job are at least this far apart, unless it has ended.
const LINE_PAUSE: Duration = Duration::from_millis(50);

/// A line goes out at least this often.
const KEEPALIVE: Duration = Duration::from_millis(500);

/// Longest body but for submissions, bytes.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Submissions from this length on are read on another thread.
const PARSED_INLINE_BYTES_MAX: usize = 256 << 10;

/// The parts of a path below the root of all routes; `None` beside it.
pub(super) fn route(path: &str) -> Option<Vec<&str>> {
    let below = path.strip_prefix(ROOT)?;
    (below.is_empty() || below.starts_with('/')).then(|| below.split('/').skip(1).collect())
}

/// Answers one request.
pub async fn respond(handle: Handle, mut request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if path == CONNECT_PATH {
        return connect(handle, &mut request);
    }
    let Some(parts) = route(&path) else { return answer::status(StatusCode::NOT_FOUND) };
    let answered = match (request.method(), parts.as_slice()) {
        (&Method::GET, ["status"]) => master_status(&handle).await,
        (&Method::GET, ["cluster"]) => cluster(&handle).await,
        (&Method::GET, ["jobs"]) => jobs(&handle).await,
        (&Method::POST, ["jobs"]) => submit(handle, request).await,
        (&Method::GET, ["jobs", job]) => {
            about_job(&handle, job, |books, now, job| books.status(now, job)).await
        }
        (&Method::GET, ["jobs", job, "trace"]) => {
            about_job(&handle, job, |books, now, job| books.trace(now, job)).await
        }
        (&Method::GET, ["jobs", job, "logs"]) => {
            about_job(&handle, job, |books, _, job| books.logs(job)).await
        }
        (&Method::GET, ["jobs", job, "explain"]) => {
            let query = request.uri().query().map(str::to_owned);
            explain(&handle, job, query.as_deref()).await
        }
        (&Method::GET, ["jobs", job, "watch"]) => watch_job(handle, job, key_of(&request)).await,
        (&Method::POST, ["jobs", job, "cancel"]) => cancel(&handle, job).await,
        (&Method::POST, ["jobs", job, "closed"]) => client_closed(&handle, job, request.into_body()).await,
        (&Method::PUT, ["policy"]) => decide_by(&handle, request.into_body()).await,
        (&Method::POST, ["workers", "ended"]) => worker_ended(&handle, request.into_body()).await,
        (&Method::POST, ["tokens"]) => new_token(&handle, request.into_body()).await,
        (&Method::POST, ["tokens", "revoke"]) => revoke_token(&handle, request.into_body()).await,
        (&Method::POST, ["tokens", "rotate"]) => rotate_tokens(&handle, request.into_body()).await,
        (&Method::POST, ["shutdown"]) => {
            let _ = handle.shutdown.send(true);
            Ok(answer::status(StatusCode::NO_CONTENT))
        }
        _ => Err(Refusal::new(StatusCode::NOT_FOUND, ErrorCode::Route, format!("there is no route {path}"))),
    };
    answered.unwrap_or_else(|Refusal { status, error }| {
        // It may repeat what was sent.
        answer::json(status, &ApiError { message: clean::message(&error.message), ..error })
    })
}

/// An answer that is no success.
struct Refusal {
    status: StatusCode,
    error: ApiError,
}

impl Refusal {
    fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status, error: ApiError { code, message: message.into() } }
    }

    fn ending() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Ending, "the master is ending")
    }
}

type Answered = Result<Response<Body>, Refusal>;

fn ok<T: Serialize>(value: &T) -> Answered {
    Ok(answer::json(StatusCode::OK, value))
}

fn connect(handle: Handle, request: &mut Request<Incoming>) -> Response<Body> {
    let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0.ip());
    let key = request.extensions().get::<ShownKey>().cloned();
    let (Some((response, io)), Some(peer), Some(key)) =
        (accept_upgrade(request, CONTROL_PROTOCOL), peer, key)
    else {
        return answer::status(StatusCode::UPGRADE_REQUIRED);
    };
    tokio::spawn(async move {
        if let Ok(io) = io.await {
            attend(handle, io, peer, key).await;
        }
    });
    response
}

/// Reads a job's name and asks the books about it.
async fn find<T: Send + 'static>(
    handle: &Handle,
    job: &str,
    look: impl FnOnce(&Books, Time, JobId) -> Option<T> + Send + 'static,
) -> Result<T, Refusal> {
    let refusal = |code, message| Refusal::new(StatusCode::NOT_FOUND, code, message);
    let id: JobId = job.parse().map_err(|wrong| refusal(ErrorCode::Job, format!("{wrong}")))?;
    let found = handle.query(move |books, now| look(books, now, id).ok_or_else(|| books.absence(id)));
    let found = found.await.ok_or_else(Refusal::ending)?;
    found.map_err(|absence| match absence {
        Absence::Unknown => refusal(ErrorCode::Job, format!("there is no {id}")),
        Absence::Forgotten => refusal(
            ErrorCode::JobForgotten,
            format!("{id} ended too long ago: how is not remembered any more"),
        ),
        Absence::Past => refusal(
            ErrorCode::JobPast,
            format!("{id} was run by an earlier master, and only its end is kept"),
        ),
    })
}

async fn about_job<T: Serialize + Send + 'static>(
    handle: &Handle,
    job: &str,
    look: impl FnOnce(&Books, Time, JobId) -> Option<T> + Send + 'static,
) -> Answered {
    ok(&find(handle, job, look).await?)
}

async fn master_status(handle: &Handle) -> Answered {
    ok(&status_of_master(handle).await?)
}

/// As the status, for those who may submit jobs.
async fn cluster(handle: &Handle) -> Answered {
    let master = status_of_master(handle).await?;
    let list_secret = handle.tokens.list_secret();
    let key = |worker: WorkerId| (worker, list_key(&list_secret, worker).to_text().to_string());
    let list_keys = master.workers.iter().map(|worker| key(worker.worker)).collect();
    ok(&ClusterStatus { master, list_keys })
}

async fn new_token(handle: &Handle, incoming: Incoming) -> Answered {
    let wanted: NewToken = parsed(&body(incoming, BODY_BYTES_MAX).await?)?;
    let token =
        handle.tokens.token(wanted.role, wanted.label.as_deref()).map_err(|error| refused_token(&error))?;
    ok(&MadeToken { token: token.to_text().to_string() })
}

async fn revoke_token(handle: &Handle, incoming: Incoming) -> Answered {
    let revoke: RevokeToken = parsed(&body(incoming, BODY_BYTES_MAX).await?)?;
    change_tokens(handle, move |tokens| tokens.revoke(&revoke.name)).await
}

async fn rotate_tokens(handle: &Handle, incoming: Incoming) -> Answered {
    let rotate: RotateTokens = parsed(&body(incoming, BODY_BYTES_MAX).await?)?;
    change_tokens(handle, move |tokens| tokens.rotate(Duration::from_secs(rotate.grace_seconds))).await
}

/// Changes the tokens on another thread, as the change is on disk before it holds.
async fn change_tokens(
    handle: &Handle,
    change: impl FnOnce(&Tokens) -> Result<(), TokensError> + Send + 'static,
) -> Answered {
    let tokens = handle.tokens.clone();
    let changed =
        tokio::task::spawn_blocking(move || change(&tokens)).await.map_err(|_| Refusal::ending())?;
    changed.map_err(|error| refused_token(&error))?;
    Ok(answer::status(StatusCode::NO_CONTENT))
}

fn refused_token(error: &TokensError) -> Refusal {
    let status = match error {
        TokensError::File(_) | TokensError::Content { .. } | TokensError::Rotated { .. } => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        _ => StatusCode::BAD_REQUEST,
    };
    Refusal::new(status, ErrorCode::Token, crate::chain(error))
}

fn parsed<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|wrong| Refusal::new(StatusCode::BAD_REQUEST, ErrorCode::Body, wrong.to_string()))
}

async fn status_of_master(handle: &Handle) -> Result<MasterStatus, Refusal> {
    let build = handle.build.clone();
    let status = handle.query(move |books, now| MasterStatus {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build,
        policy: books.deciders().policy.clone(),
        placement: books.deciders().placement.clone(),
        estimator: books.deciders().estimator.clone(),
        policy_panics: books.policy_panics().count,
        policy_panic: books.policy_panics().last.clone(),
        now_ns: now.0,
        workers: books.workers(),
        jobs_live: books.jobs_live(),
    });
    status.await.ok_or_else(Refusal::ending)
}

async fn jobs(handle: &Handle) -> Answered {
    ok(&handle.query(|books, now| books.statuses(now)).await.ok_or_else(Refusal::ending)?)
}

async fn cancel(handle: &Handle, job: &str) -> Answered {
    let job = find(handle, job, |books, now, job| books.status(now, job)).await?.job;
    let (reply, done) = oneshot::channel();
    let _ = handle.inputs.send(Input::Cancel { job, reply });
    done.await.map_err(|_| Refusal::ending())?;
    Ok(answer::status(StatusCode::NO_CONTENT))
}

async fn client_closed(handle: &Handle, job: &str, incoming: Incoming) -> Answered {
    let closed: OutputClosed = serde_json::from_slice(&body(incoming, BODY_BYTES_MAX).await?)
        .map_err(|wrong| Refusal::new(StatusCode::BAD_REQUEST, ErrorCode::Body, wrong.to_string()))?;
    let job = find(handle, job, |books, _, job| books.watch(job).map(|_| job)).await?;
    let (reply, done) = oneshot::channel();
    let _ = handle.inputs.send(Input::ClientClosed { job, failed: closed.failed, reply });
    done.await.map_err(|_| Refusal::ending())?;
    Ok(answer::status(StatusCode::NO_CONTENT))
}

async fn explain(handle: &Handle, job: &str, query: Option<&str>) -> Answered {
    let job = find(handle, job, |books, _, job| books.has(job).then_some(job)).await?;
    let unknown = |what: &str| {
        Refusal::new(StatusCode::NOT_FOUND, ErrorCode::Task, format!("{job} has no task `{what}`"))
    };
    let named = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("task=")));
    let task = named.map(|name| task_name(name).ok_or_else(|| unknown(name))).transpose()?;
    let (reply, answer) = oneshot::channel();
    let _ = handle.inputs.send(Input::Explain { job, task, reply });
    let sentences = answer.await.map_err(|_| Refusal::ending())?;
    let sentences = sentences.ok_or_else(|| unknown(named.unwrap_or_default()))?;
    ok(&Explanation { schema: SCHEMA, sentences })
}

/// Reads `map-3`.
fn task_name(text: &str) -> Option<TaskName> {
    let (kind, index) = text.split_once('-')?;
    let kind = [TaskKind::Map, TaskKind::Reduce].into_iter().find(|known| known.to_string() == kind)?;
    let digits = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Some((kind, index.parse().ok()?)))?
}

async fn decide_by(handle: &Handle, incoming: Incoming) -> Answered {
    let change: PolicyChange = serde_json::from_slice(&body(incoming, BODY_BYTES_MAX).await?)
        .map_err(|wrong| Refusal::new(StatusCode::BAD_REQUEST, ErrorCode::Body, wrong.to_string()))?;
    for (what, name) in [("the policy", &change.policy), ("the placement", &change.placement)] {
        let checked = name.as_ref().map_or(Ok(()), |name| clean::check_name(what, name));
        checked
            .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, ErrorCode::Policy, error.to_string()))?;
    }
    let (reply, done) = oneshot::channel();
    let _ = handle.inputs.send(Input::DecideBy { change, reply });
    let done = done.await.map_err(|_| Refusal::ending())?;
    done.map_err(|error| Refusal { status: StatusCode::BAD_REQUEST, error })?;
    master_status(handle).await
}

async fn body(body: Incoming, bytes_max: usize) -> Result<Bytes, Refusal> {
    read_limited(body, bytes_max)
        .await
        .map_err(|wrong| Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::Body, crate::chain(&wrong)))
}

async fn worker_ended(handle: &Handle, incoming: Incoming) -> Answered {
    let end: WorkerEnded = serde_json::from_slice(&body(incoming, BODY_BYTES_MAX).await?)
        .map_err(|wrong| Refusal::new(StatusCode::BAD_REQUEST, ErrorCode::Body, wrong.to_string()))?;
    let unknown = || {
        let message = "no worker of that process id and host was started by whoever has that key";
        Refusal::new(StatusCode::NOT_FOUND, ErrorCode::Process, message)
    };
    let key = end.key.parse().map_err(|_| unknown())?;
    let (reply, known) = oneshot::channel();
    let _ = handle.inputs.send(Input::ProcessEnded { end, key, reply });
    match known.await.map_err(|_| Refusal::ending())? {
        true => Ok(answer::status(StatusCode::NO_CONTENT)),
        false => Err(unknown()),
    }
}

/// Reads a submission, off the thread that drives the workers if it is long.
async fn parse(body: Bytes) -> Result<Submission, Refusal> {
    let short = body.len() < PARSED_INLINE_BYTES_MAX;
    let read = move || serde_json::from_slice(&body);
    let parsed = if short {
        read()
    } else {
        tokio::task::spawn_blocking(read).await.map_err(|_| Refusal::ending())?
    };
    parsed.map_err(|wrong| Refusal::new(StatusCode::BAD_REQUEST, ErrorCode::Submission, wrong.to_string()))
}

async fn submit(handle: Handle, request: Request<Incoming>) -> Answered {
    let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0.ip());
    let key = key_of(&request);
    let mut submission = parse(body(request.into_body(), SUBMISSION_BYTES_MAX).await?).await?;
    if let (Some(endpoint), Some(peer)) = (submission.submitter.take(), peer) {
        let endpoint = address::of_peer(endpoint, peer, handle.plaintext).await;
        let refusal = |reason| Refusal::new(StatusCode::BAD_REQUEST, ErrorCode::Submitter, reason);
        submission.submitter = Some(endpoint.map_err(refusal)?);
    }
    let (reply, submitted) = oneshot::channel();
    let _ = handle.inputs.send(Input::Submit { submission: Box::new(submission), reply });
    let submitted = submitted.await.map_err(|_| Refusal::ending())?;
    let (job, changes, lease) =
        submitted.map_err(|error| Refusal { status: StatusCode::BAD_REQUEST, error })?;
    Ok(lines(handle, job, changes, lease, key))
}

/// The name of the key that let a request pass.
fn key_of<B>(request: &Request<B>) -> ShownKey {
    request.extensions().get().cloned().unwrap_or_else(|| ShownKey(String::new()))
}

async fn watch_job(handle: Handle, job: &str, key: ShownKey) -> Answered {
    let (job, changes) =
        find(&handle, job, |books, _, job| books.watch(job).map(|changes| (job, changes))).await?;
    Ok(lines(handle, job, changes, None, key))
}

/// An endless answer: a line of status for each change, the last one with the ended state, or for whoever closes the
/// output with the state `publishing`. It breaks off when the token that opened it holds no more.
fn lines(
    handle: Handle,
    job: JobId,
    mut changes: watch::Receiver<bool>,
    mut lease: Option<Lease>,
    key: ShownKey,
) -> Response<Body> {
    let (sender, body) = stream(1);
    // Whoever submitted the job attached closes its output.
    let closes = lease.is_some();
    tokio::spawn(async move {
        while handle.tokens.find(&key.0).is_some() {
            changes.mark_unchanged();
            let status = handle.query(move |books, now| books.glance(now, job, closes)).await.flatten();
            let Some(status) = status else { return };
            let publishes = closes && status.state == JobState::Publishing;
            let ended = status.state.ended();
            for line in WatchLine::of(status) {
                let Some(line) = encoded(&line) else { return };
                if sender.send(line).await.is_err() {
                    return;
                }
            }
            if ended || publishes {
                if closes && !await_closed(&handle, job, &key, &sender).await {
                    // The lease goes, and tells.
                    return;
                }
                if let Some(lease) = &mut lease {
                    lease.job = None;
                }
                let _ = sender.finish().await;
                return;
            }
            let due = tokio::time::Instant::now() + LINE_PAUSE;
            // A change is told after a pause, except for the end, which must not wait.
            let told = async {
                if changes.changed().await.is_err() || *changes.borrow_and_update() {
                    return;
                }
                let _ = tokio::time::timeout_at(due, changes.wait_for(|ended| *ended)).await;
            };
            // Writing even without a change is how a client that is gone shows.
            let _ = tokio::time::timeout(KEEPALIVE, told).await;
        }
    });
    answer::with_body(StatusCode::OK, body)
}

/// Waits until the client that follows a job has closed its output; `false` if it is gone before, or its token holds no
/// more.
async fn await_closed(handle: &Handle, job: JobId, key: &ShownKey, sender: &BodySender) -> bool {
    let closed = handle.query(move |books, _| books.output_closed(job)).await.flatten();
    let Some(mut closed) = closed else { return false };
    while handle.tokens.find(&key.0).is_some() {
        let done = tokio::time::timeout(KEEPALIVE, closed.wait_for(|closed| *closed)).await;
        if let Ok(done) = done.map(|done| done.is_ok()) {
            return done;
        }
        // An empty line, which shows whether somebody is there.
        if sender.send(Bytes::from_static(b"\n")).await.is_err() {
            return false;
        }
    }
    false
}

fn encoded(line: &WatchLine) -> Option<Bytes> {
    let mut line = serde_json::to_vec(line).ok()?;
    line.push(b'\n');
    Some(Bytes::from(line))
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

//! Submission and following of jobs. The response has one line of status for each change.

use super::super::address;
use super::super::ending::Ending;
use super::super::input::{Lease, MasterHandle, MasterInput};
use super::common::{Answered, BODY_BYTES_MAX, RouteRefusal, asked, body, find, key_of, parsed, shown};
use crate::api::{ErrorCode, JobAttended, JobState, SUBMISSION_BYTES_MAX, Submission, WatchLine};
use crate::output_dir::ClaimedOutput;
use bytes::Bytes;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::codec;
use gristmill_worker::fault;
use gristmill_worker::http::{Body, BodySender, PeerAddress, ShownKey, stream};
use gristmill_worker::objects::is_url;
use gristmill_worker::response;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use std::time::Duration;
use tokio::sync::watch;

/// Minimum interval of the status lines of a job, unless it has ended.
const LINE_PAUSE: Duration = Duration::from_millis(50);

/// Maximum interval of lines.
const KEEPALIVE: Duration = Duration::from_millis(500);

/// Approximate size up to which lines of status are sent together, bytes.
const LINES_BYTES: usize = 64 << 10;

/// Length from which on submissions are parsed on another thread.
const PARSED_INLINE_BYTES_MAX: usize = 256 << 10;

pub(super) async fn submit(handle: MasterHandle, request: Request<Incoming>) -> Answered {
    let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0.ip());
    let key = key_of(&request);
    let mut submission = parse(body(&handle, shown(request), SUBMISSION_BYTES_MAX).await?).await?;
    submission.owner = handle.tokens.owner(&key.0);
    if let (Some(endpoint), Some(peer)) = (submission.submitter.take(), peer) {
        let endpoint = address::of_peer(endpoint, peer, handle.plaintext).await;
        let refusal = |reason| RouteRefusal::new(StatusCode::BAD_REQUEST, ErrorCode::Submitter, reason);
        submission.submitter = Some(endpoint.map_err(refusal)?);
    }
    let submission = hold_output(&handle, submission).await?;
    fault::place("submit.read");
    let submission = Box::new(submission);
    let submitted = asked(&handle, |reply| MasterInput::Submit { submission, reply }).await?;
    let (job, changes, lease) =
        submitted.map_err(|error| RouteRefusal { status: StatusCode::BAD_REQUEST, error })?;
    fault::place("submit.taken");
    Ok(lines(handle, job, changes, lease, key))
}

/// Writes this master's name to the claim in a store: the master closes the output of a detached job. This also shows
/// that it can reach the store. Runs off the thread that drives the workers, because a store may be slow.
async fn hold_output(handle: &MasterHandle, submission: Submission) -> Result<Submission, RouteRefusal> {
    if submission.attached || !is_url(&submission.output.to_text()) {
        return Ok(submission);
    }
    // The output of a job that exists here already may be closed by now.
    let key = submission.permit_key.parse().ok();
    if handle.call(move |state, _| key.is_some_and(|key| state.jobs.has_key(&key))).await == Some(true) {
        return Ok(submission);
    }
    let holding = tokio::task::spawn_blocking(move || {
        let held = ClaimedOutput::adopt(&submission, None).and_then(|output| output.take_over());
        held.map(|()| submission)
    });
    let held = holding.await.map_err(|_| RouteRefusal::ending())?;
    held.map_err(|error| {
        let why = gristmill_worker::error_text::chain(&error);
        let words = format!("the master cannot use the output of a detached job: {why}");
        RouteRefusal::new(StatusCode::BAD_REQUEST, ErrorCode::OutputStore, words)
    })
}

/// Handles a submitter that lost its connection to this master, or to its predecessor, and follows its job again.
pub(super) async fn follow_again(handle: MasterHandle, request: Request<Incoming>) -> Answered {
    let key = key_of(&request);
    let attended: JobAttended = parsed(&body(&handle, shown(request), BODY_BYTES_MAX).await?)?;
    let refusal = |code, message| RouteRefusal::new(StatusCode::BAD_REQUEST, code, message);
    let wrong = |_| refusal(ErrorCode::Key, "the key is not a secret".to_owned());
    let permit_key = attended.permit_key.parse().map_err(wrong)?;
    let attended = asked(&handle, |reply| MasterInput::Attend { key: permit_key, reply }).await?;
    let (job, changes, lease) =
        attended.map_err(|error| RouteRefusal { status: StatusCode::NOT_FOUND, error })?;
    Ok(lines(handle, job, changes, lease, key))
}

/// Parses a submission, off the thread that drives the workers if it is long.
async fn parse(body: Bytes) -> Result<Submission, RouteRefusal> {
    let short = body.len() < PARSED_INLINE_BYTES_MAX;
    let read = move || codec::decode_json(&body, SUBMISSION_BYTES_MAX);
    let parsed = if short {
        read()
    } else {
        tokio::task::spawn_blocking(read).await.map_err(|_| RouteRefusal::ending())?
    };
    parsed
        .map_err(|wrong| RouteRefusal::new(StatusCode::BAD_REQUEST, ErrorCode::Submission, wrong.to_string()))
}

pub(super) async fn watch_job(handle: MasterHandle, job: &str, key: ShownKey) -> Answered {
    let (job, changes) =
        find(&handle, job, |state, _, job| state.jobs.watch(job).map(|changes| (job, changes))).await?;
    Ok(lines(handle, job, changes, None, key))
}

/// Streams a line of status for each change. The last one has the ended state, or the state `publishing` for the client
/// that closes the output. The stream breaks off when its token becomes invalid.
fn lines(
    handle: MasterHandle,
    job: JobId,
    mut changes: watch::Receiver<bool>,
    mut lease: Option<Lease>,
    key: ShownKey,
) -> Response<Body> {
    let (sender, body) = stream(1);
    // The client that submitted the job attached closes its output.
    let closes = lease.is_some();
    tokio::spawn(async move {
        while handle.tokens.find(&key.0).is_some() {
            changes.mark_unchanged();
            let status = handle
                .call(move |state, now| state.queries().followed_status(now, job, closes))
                .await
                .flatten();
            let Some(status) = status else {
                // If another master follows this one, the stream has no regular end, and its client looks for that
                // master.
                if *handle.shutdown.borrow() != Some(Ending::Keeps) {
                    let _ = sender.finish().await;
                }
                return;
            };
            let publishes = closes && status.state == JobState::Publishing;
            let ended = status.state.ended();
            // Short lines are sent together, so that the reader wakes once for them.
            let mut lines = Vec::new();
            for line in WatchLine::from_status(status) {
                if serde_json::to_writer(&mut lines, &line).is_err() {
                    return;
                }
                lines.push(b'\n');
                if LINES_BYTES <= lines.len() && sender.send(std::mem::take(&mut lines).into()).await.is_err()
                {
                    return;
                }
            }
            if !lines.is_empty() && sender.send(lines.into()).await.is_err() {
                return;
            }
            if ended || publishes {
                if closes && !await_closed(&handle, job, &key, &sender).await {
                    // Dropping the lease notifies the loop.
                    return;
                }
                if let Some(lease) = &mut lease {
                    lease.job = None;
                }
                let _ = sender.finish().await;
                return;
            }
            let due = tokio::time::Instant::now() + LINE_PAUSE;
            // A change is sent after a pause, but the end is sent at once.
            let notified = async {
                if changes.changed().await.is_err() || *changes.borrow_and_update() {
                    return;
                }
                let _ = tokio::time::timeout_at(due, changes.wait_for(|ended| *ended)).await;
            };
            // A write without a change detects a client that is gone.
            let _ = tokio::time::timeout(KEEPALIVE, notified).await;
        }
    });
    response::with_body(StatusCode::OK, body)
}

/// Waits until the client that follows a job has closed its output. Returns false if it is gone before, or its token
/// becomes invalid.
async fn await_closed(handle: &MasterHandle, job: JobId, key: &ShownKey, sender: &BodySender) -> bool {
    let closed = handle.call(move |state, _| state.jobs.output_closed(job)).await.flatten();
    let Some(mut closed) = closed else { return false };
    while handle.tokens.find(&key.0).is_some() {
        let done = tokio::time::timeout(KEEPALIVE, closed.wait_for(|closed| *closed)).await;
        if let Ok(done) = done.map(|done| done.is_ok()) {
            return done;
        }
        // An empty line detects a client that is gone.
        if sender.send(Bytes::from_static(b"\n")).await.is_err() {
            return false;
        }
    }
    false
}

//! Upload of programs by submitters, and download by workers.

use super::super::input::MasterHandle;
use super::super::programs::{ProgramError, Programs};
use super::super::state::{MasterState, check_bytes};
use super::{Answered, RouteRefusal, ok};
use crate::api::{ErrorCode, Submission};
use gristmill_worker::http::{Body, ShownKey};
use gristmill_worker::protocol::{PROGRAMS_PATH, ProgramSum, ShippedProgram};
use gristmill_worker::response;
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Minimum average rate of an upload in bytes per second, after [`UPLOAD_TIME_LEAST`].
const UPLOAD_RATE_MIN: u64 = 64 << 10;

/// Minimum time limit of every upload.
const UPLOAD_TIME_LEAST: Duration = Duration::from_secs(60);

/// Interval at which the token of an upload is checked.
const TOKEN_LOOK_PAUSE: Duration = Duration::from_millis(500);

/// The programs of a master that accepts any.
fn programs(handle: &MasterHandle) -> Result<&Arc<Programs>, RouteRefusal> {
    handle.programs.as_ref().ok_or_else(|| {
        let words = "this master runs its own program alone: whoever started it did not --allow-ship";
        RouteRefusal::new(StatusCode::FORBIDDEN, ErrorCode::Ship, words)
    })
}

/// `GET /api/v1/programs`
pub(super) fn list(handle: &MasterHandle) -> Answered {
    ok(&programs(handle)?.list())
}

/// Parses the program named by a path.
fn named((sum, bytes): (&str, &str)) -> Result<ShippedProgram, RouteRefusal> {
    let wrong = |words: String| RouteRefusal::new(StatusCode::BAD_REQUEST, ErrorCode::Program, words);
    let sum = sum.parse().map_err(|error| wrong(format!("{error}")))?;
    let bytes = bytes.parse().map_err(|error| wrong(format!("{bytes:?} is no number of bytes: {error}")))?;
    Ok(ShippedProgram { sum, bytes })
}

/// Programs of jobs that have not ended. An error if the quota of the token with this key has no room for this one.
async fn live(
    handle: &MasterHandle,
    programs: &Programs,
    program: ShippedProgram,
    key: &ShownKey,
) -> Result<BTreeSet<ProgramSum>, RouteRefusal> {
    let owner = handle.tokens.owner(&key.0);
    let arriving = owner.as_ref().map_or(0, |owner| programs.arriving_of(&owner.token));
    let look = move |state: &mut MasterState, _| {
        let room = check_bytes(&state.jobs, owner.as_ref(), program.bytes.saturating_add(arriving));
        room.map(|()| state.jobs.live_programs())
    };
    let live = handle.call(look).await.ok_or_else(RouteRefusal::ending)?;
    live.map_err(|error| RouteRefusal { status: StatusCode::BAD_REQUEST, error })
}

fn refused(error: &ProgramError) -> RouteRefusal {
    let (status, code) = match error {
        ProgramError::NoRoom { .. } => (StatusCode::INSUFFICIENT_STORAGE, ErrorCode::ProgramRoom),
        ProgramError::Uploads { .. } | ProgramError::UploadBytes { .. } => {
            (StatusCode::TOO_MANY_REQUESTS, ErrorCode::Quota)
        }
        ProgramError::Disk { .. } => (StatusCode::INSUFFICIENT_STORAGE, ErrorCode::Register),
        ProgramError::Other { .. } | ProgramError::Broken { .. } => {
            (StatusCode::BAD_REQUEST, ErrorCode::Program)
        }
    };
    RouteRefusal::new(status, code, gristmill_worker::error_text::chain(error))
}

/// `GET /api/v1/programs/SUM/BYTES`: reports if it exists; refused if it may not be sent.
pub(super) async fn look(handle: &MasterHandle, named_by: (&str, &str), key: &ShownKey) -> Answered {
    let (programs, program) = (programs(handle)?, named(named_by)?);
    let is_here = programs.list().contains(&program);
    if !is_here {
        programs
            .fits(program.bytes, &live(handle, programs, program, key).await?)
            .map_err(|error| refused(&error))?;
    }
    ok(&is_here)
}

/// `PUT /api/v1/programs/SUM/BYTES`
pub(super) async fn put(
    handle: &MasterHandle,
    named_by: (&str, &str),
    key: &ShownKey,
    body: Incoming,
) -> Answered {
    let (programs, program) = (programs(handle)?, named(named_by)?);
    let live = live(handle, programs, program, key).await?;
    let owner = handle.tokens.owner(&key.0).unwrap_or_default();
    let time = UPLOAD_TIME_LEAST.saturating_add(Duration::from_secs(program.bytes / UPLOAD_RATE_MIN));
    let ended = async {
        while handle.tokens.find(&key.0).is_some() {
            tokio::time::sleep(TOKEN_LOOK_PAUSE).await;
        }
    };
    let refusal = |status, why| Err(RouteRefusal::new(status, ErrorCode::Program, why));
    // A dropped upload leaves no draft.
    tokio::select! {
        taken = programs.receive(program, body, &live, &owner) => taken.map_err(|error| refused(&error))?,
        () = tokio::time::sleep(time) => {
            let why = format!("the program has not come within {} s: send 64 KiB in each second", time.as_secs());
            return refusal(StatusCode::REQUEST_TIMEOUT, why);
        }
        () = ended => return refusal(StatusCode::UNAUTHORIZED, "the token of this upload ended".to_owned()),
    }
    Ok(response::status(StatusCode::NO_CONTENT))
}

/// Rejects a job whose program does not exist here.
pub(super) fn check(handle: &MasterHandle, submission: &Submission) -> Result<(), RouteRefusal> {
    let Some(program) = &submission.program else { return Ok(()) };
    if programs(handle)?.touch(program) {
        return Ok(());
    }
    let words = format!("program {} is not here (any more): ship it again", program.sum);
    Err(RouteRefusal::new(StatusCode::BAD_REQUEST, ErrorCode::Program, words))
}

/// `GET /worker/programs/SUM`, for workers; `None` if it is another route.
pub(super) async fn send(handle: &MasterHandle, method: &Method, path: &str) -> Option<Response<Body>> {
    let sum = path.strip_prefix(PROGRAMS_PATH).filter(|_| method == Method::GET)?;
    let found = match (&handle.programs, sum.parse::<ProgramSum>()) {
        (Some(programs), Ok(sum)) => programs.body(sum).await,
        _ => Ok(None),
    };
    Some(match found {
        Ok(Some(body)) => response::with_body(StatusCode::OK, body),
        Ok(None) => response::status(StatusCode::NOT_FOUND),
        Err(error) => {
            tracing::warn!(program = sum, %error, "a shipped program could not be read");
            response::status(StatusCode::INTERNAL_SERVER_ERROR)
        }
    })
}

//! Routes that read and replace the estimator's memory, so that experiments on one master can start alike.
//!
//! Its storage over restarts is in `master::history`.

use super::{Answered, RouteRefusal, ShownBody, body, ok, parsed};
use crate::api::EstimatorMemory;
use crate::master::input::{MasterHandle, MasterInput};
use hyper::StatusCode;
use tokio::sync::oneshot;

/// Longest memory accepted, bytes. A thousand names of ordinary length take a fifth of it.
const MEMORY_BYTES_MAX: usize = 1 << 20;

pub(super) async fn memory(handle: &MasterHandle) -> Answered {
    let memory = handle.query(|state, _| EstimatorMemory {
        estimator: state.deciders().estimator.clone(),
        memory: state.memory(),
    });
    ok(&memory.await.ok_or_else(RouteRefusal::ending)?)
}

pub(super) async fn restore(handle: &MasterHandle, sent: ShownBody) -> Answered {
    let memory: EstimatorMemory = parsed(&body(handle, sent, MEMORY_BYTES_MAX).await?)?;
    let (reply, done) = oneshot::channel();
    let _ = handle.inputs.send(MasterInput::Restore { memory, reply });
    let done = done.await.map_err(|_| RouteRefusal::ending())?;
    done.map_err(|error| RouteRefusal { status: StatusCode::BAD_REQUEST, error })?;
    self::memory(handle).await
}

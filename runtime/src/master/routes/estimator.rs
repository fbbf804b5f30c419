//! Routes that read and replace the estimator's memory, so that experiments on one master can start alike.

use super::common::{Answered, RouteRefusal, ShownBody, body, call, ok, parsed};
use crate::api::EstimatorMemory;
use crate::master::input::MasterHandle;
use hyper::StatusCode;

/// Longest memory accepted, bytes. A thousand names of ordinary length take a fifth of it.
const MEMORY_BYTES_MAX: usize = 1 << 20;

pub(super) async fn memory(handle: &MasterHandle) -> Answered {
    let memory = call(handle, |state, _| EstimatorMemory {
        estimator: state.deciders().estimator.clone(),
        memory: state.memory(),
    });
    ok(&memory.await?)
}

pub(super) async fn restore(handle: &MasterHandle, sent: ShownBody) -> Answered {
    let memory: EstimatorMemory = parsed(&body(handle, sent, MEMORY_BYTES_MAX).await?)?;
    let done = call(handle, move |state, now| state.restore_memory(now, memory)).await?;
    done.map_err(|error| RouteRefusal { status: StatusCode::BAD_REQUEST, error })?;
    self::memory(handle).await
}

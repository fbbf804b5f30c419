//! A job on a worker: its order, its functions or why there are none, and what its attempts share.

use super::config::JobSource;
use super::failed::{Destination, Failed};
use super::files::JobFiles;
use crate::api::JobPlan;
use crate::attempt::SideInputs;
use crate::directory::PlainName;
use crate::protocol::{FailureClass, JobOrder};
use crate::sanitize::message as sanitize;
use crate::task::TaskSettings;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Job as run by this process.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct RunningJob {
    /// Description from the master.
    pub order: JobOrder,
    /// Its functions, or the reason why this program has none.
    pub plan: Result<JobPlan, String>,
    /// Access to its files.
    pub files: Arc<JobFiles>,
    pub side: Arc<SideInputs>,
    /// Limits of its tasks.
    pub settings: TaskSettings,
    /// Destination of its parts, determined by the first attempt that needs it.
    pub destination: OnceLock<Destination>,
    /// Named outputs to which attempts have written on this worker. Their files of an attempt are handled
    /// with its part.
    pub named: Mutex<BTreeSet<PlainName>>,
}

impl RunningJob {
    pub(super) fn named_outputs(&self) -> MutexGuard<'_, BTreeSet<PlainName>> {
        // Every change is one insert.
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn plan(&self) -> Result<&JobPlan, Failed> {
        let failed = |message: &String| Failed { class: FailureClass::Config, message: sanitize(message) };
        self.plan.as_ref().map_err(failed)
    }
}

/// Returns the functions of a job that are in this program, or the reason why there are none.
pub(super) fn plan_of(source: &dyn JobSource, order: &JobOrder) -> Result<JobPlan, String> {
    let making = AssertUnwindSafe(|| source.plan(&order.name, &order.parameters));
    match std::panic::catch_unwind(making) {
        // A submission may come from any program that implements the protocol.
        Ok(Ok(plan)) => plan.validate().map(|()| plan).map_err(|error| error.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the job's plan panicked".to_owned()),
    }
}

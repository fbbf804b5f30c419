//! A job in a process that runs its attempts: a worker, or a runner of a shipped program.

use super::config::JobSource;
use super::failed::{Destination, Failed};
use super::files::{self, JobFiles};
use crate::api::JobPlan;
use crate::attempt::{SideInputs, SlowPart};
use crate::budget::KeptInFiles;
use crate::collect::pair_bytes_max;
use crate::folder::PlainName;
use crate::http::Pool;
use crate::input::InputLimits;
use crate::memory_watch::item_bytes_max;
use crate::narration::Narration;
use crate::output::Output;
use crate::protocol::{FailureClass, JobOrder, ShippedProgram};
use crate::recycle::Recycler;
use crate::sanitize::message as sanitize;
use crate::segment::SpillDirs;
use crate::task::{Parking, Progress, TaskSettings};
use gristmill_scheduler::ids::WorkerId;
use std::collections::BTreeSet;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Location of the functions of a job.
pub enum JobCode {
    /// In this program; or the reason why not.
    Linked(Result<JobPlan, String>),
    /// In a shipped program, which runs in processes of its own.
    Shipped(ShippedProgram),
}

/// Job as run by this process.
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct RunningJob {
    /// Description from the master.
    pub order: JobOrder,
    pub code: JobCode,
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

/// Context that the jobs of a process share.
pub(super) struct JobMeans {
    pub worker: WorkerId,
    /// Connections for remote input.
    pub pool: Pool,
    pub runtime: tokio::runtime::Handle,
    /// Bytes that an attempt collects or merges.
    pub slot_bytes: usize,
    pub recycler: Recycler,
    pub kept_in_files: KeptInFiles,
    /// Narration to which attempts write their pairs, if enabled.
    pub narration: Option<Narration>,
}

impl RunningJob {
    /// Creates a job that starts on this worker.
    pub(super) fn new(order: JobOrder, code: JobCode, means: &JobMeans, spill: SpillDirs) -> Self {
        let job = order.job;
        let files = Arc::new(JobFiles {
            route: files::job_route(job),
            worker: Some(means.worker),
            key: files::FileKey::OfJob(order.key.clone()),
            submitter: order.submitter.clone(),
            peers: order.peers.iter().cloned().collect(),
            pool: means.pool.clone(),
            runtime: means.runtime.clone(),
        });
        let limits = InputLimits {
            record_max: order.limits.record_bytes_max,
            buffered_record_max: pair_bytes_max(means.slot_bytes) as u64,
            held_max: item_bytes_max(means.slot_bytes) as u64,
            expansion_max: order.limits.expansion_max,
            bad_records_max: order.limits.bad_records_max,
            ..InputLimits::default()
        };
        let settings = TaskSettings {
            collector_bytes: means.slot_bytes,
            merge_bytes: means.slot_bytes,
            cuts: Arc::new(order.cuts.clone()),
            recycler: means.recycler.clone(),
            kept_in_files: means.kept_in_files.clone(),
            limits,
            narration: means.narration.clone(),
            ..TaskSettings::new(job, order.partitions, spill)
        };
        let side = SideInputs::new(order.side.clone(), files.clone(), limits);
        let side = Arc::new(side.narrated(settings.narration.is_some()));
        Self { order, code, files, side, settings, destination: OnceLock::new(), named: Mutex::default() }
    }

    pub(super) fn named_outputs(&self) -> MutexGuard<'_, BTreeSet<PlainName>> {
        // Every change is one insert.
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an output that writes a part into this file.
    pub(super) fn part(&self, path: PathBuf, file: File) -> Result<Output, Failed> {
        let plan = self.plan()?;
        Ok(Output::formatted(path, Box::new(file), self.order.part_format, &plan.rows))
    }

    pub(super) fn plan(&self) -> Result<&JobPlan, Failed> {
        let failed = |class, message: &str| Failed { class, message: sanitize(message) };
        match &self.code {
            JobCode::Linked(Ok(plan)) => Ok(plan),
            JobCode::Linked(Err(message)) => Err(failed(FailureClass::Config, message)),
            JobCode::Shipped(_) => Err(failed(FailureClass::Engine, "its functions are in another program")),
        }
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

/// Returns the progress for an attempt in a slot with this slowdown and speed.
pub(super) fn slot_progress((slow, speed): (f64, f64), parking: Option<Box<dyn Parking>>) -> Progress {
    match 1.0 < slow {
        true => Progress::paced(1.0 / slow, SlowPart::Computing, parking),
        false => Progress::new(speed, parking),
    }
}

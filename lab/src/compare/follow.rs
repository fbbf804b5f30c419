//! Follows the jobs of a run: waits for workers, submits jobs at their times, reads traces before the
//! master discards them, and measures how busy the machine was meanwhile.

use super::CompareError;
use super::workload::DrawnJob;
use futures_util::future::join_all;
use gristmill_runtime::api::{BATCH_JOBS_MAX, JobTrace, MasterStatus};
use gristmill_runtime::client::{AsyncClient, Ready};
use gristmill_scheduler::ids::JobId;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Interval at which the end of all jobs is polled. Times come from the master, so it only lengthens the run.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Timeout for the workers of a fresh cluster to join, in addition to a share for each.
const JOIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Additional timeout for each worker.
const JOIN_TIMEOUT_PER_WORKER: Duration = Duration::from_millis(200);

/// Time from the end of all planning to the first arrival.
const LEAD: Duration = Duration::from_millis(20);

/// Maximum number of submitted jobs with unread traces while other jobs arrive. The master keeps a few more.
const UNREAD_MAX: usize = 200;

/// Timeout for cancelled jobs to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the seconds that this machine's cores have been busy since boot, and the seconds available.
/// `None` where the system does not report them.
pub(super) fn processors() -> Option<(f64, f64)> {
    /// The kernel reports times in hundredths of a second on all known machines.
    const TICKS_PER_SECOND: f64 = 100.0;
    /// Indices of the idle times in the line: idle, and waiting for a disk.
    const IDLE: std::ops::Range<usize> = 3..5;
    /// Index of the first guest time. Guest times are already included in earlier fields.
    const GUESTS: usize = 8;
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_whitespace().take(GUESTS).map_while(|cell| cell.parse().ok()).collect();
    let all: f64 = ticks.iter().sum();
    let idle: f64 = ticks.get(IDLE)?.iter().sum();
    Some(((all - idle) / TICKS_PER_SECOND, all / TICKS_PER_SECOND))
}

/// Waits until this many workers have joined.
pub(super) async fn joined(client: &AsyncClient, workers: u32) -> Result<MasterStatus, CompareError> {
    let patience = JOIN_TIMEOUT + JOIN_TIMEOUT_PER_WORKER * workers;
    let joined = client.await_workers(workers, patience).await;
    joined.map_err(CompareError::client("wait for the workers"))?.ok_or(CompareError::Missing { workers })
}

pub(super) async fn trace_of(client: &AsyncClient, id: JobId) -> Result<JobTrace, CompareError> {
    client.trace(id).await.map_err(CompareError::client("read a job's trace"))
}

/// Submits each job when the previous one has ended and its own pause is over. If there are fewer pauses
/// than jobs, the last jobs have none.
pub(super) async fn hand_over_one_by_one(
    client: &AsyncClient,
    pauses: &[Duration],
    jobs: Vec<Ready>,
    read: &mut BTreeMap<JobId, JobTrace>,
) -> Result<Vec<JobId>, CompareError> {
    let mut ids = Vec::with_capacity(jobs.len());
    for (number, ready) in jobs.into_iter().enumerate() {
        sleep(pauses.get(number).copied().unwrap_or_default()).await;
        let id = client.hand_over(ready).await.map_err(CompareError::client("submit a job"))?;
        all_ended(client).await?;
        read.insert(id, trace_of(client, id).await?);
        ids.push(id);
    }
    Ok(ids)
}

/// Returns the jobs that arrive at one instant, as many together as fit into a batch.
pub(super) fn batches(jobs: &[DrawnJob]) -> impl Iterator<Item = &[DrawnJob]> {
    let instants = jobs.chunk_by(|one, next| one.arrival == next.arrival);
    instants.flat_map(|together| together.chunks(BATCH_JOBS_MAX as usize))
}

/// Submits each job at its time and returns their numbers in the order of the list. Jobs of one instant are a batch: they
/// arrive together, in this order. If there are many, traces of jobs that have ended are read meanwhile, as the master
/// discards the oldest.
pub(super) async fn hand_over_in_time(
    client: &AsyncClient,
    jobs: &[DrawnJob],
    ready: Vec<Ready>,
    read: &mut BTreeMap<JobId, JobTrace>,
) -> Result<Vec<JobId>, CompareError> {
    let start = Instant::now() + LEAD;
    let (mut ids, mut unread) = (Vec::with_capacity(jobs.len()), VecDeque::new());
    let mut ready = ready.into_iter();
    for batch in batches(jobs) {
        sleep_until(start + Duration::from_secs_f64(batch[0].arrival)).await;
        for id in join_all(ready.by_ref().take(batch.len()).map(|ready| client.hand_over(ready))).await {
            let id = id.map_err(CompareError::client("submit a job"))?;
            ids.push(id);
            unread.push_back(id);
            if let Some(oldest) = unread.pop_front_if(|_| UNREAD_MAX < ids.len() - read.len()) {
                let trace = trace_of(client, oldest).await?;
                if trace.status.state.ended() {
                    read.insert(oldest, trace);
                } else {
                    unread.push_back(oldest);
                }
            }
        }
    }
    Ok(ids)
}

/// Waits until the master has no live job.
pub(super) async fn all_ended(client: &AsyncClient) -> Result<(), CompareError> {
    loop {
        let master = client.master().await.map_err(CompareError::client("follow the jobs"))?;
        if master.jobs_live == 0 {
            return Ok(());
        }
        sleep(LOOK_PAUSE).await;
    }
}

/// Cancels all jobs of a given cluster, which are all ours.
pub(super) async fn cancel_all(client: &AsyncClient) {
    for job in client.jobs().await.unwrap_or_default().into_iter().filter(|job| !job.state.ended()) {
        // A master that has stopped has no jobs.
        let _ = client.cancel(job.job).await;
    }
    // The estimator's knowledge is restored only after all jobs have ended.
    let _ = timeout(END_TIMEOUT, all_ended(client)).await;
}

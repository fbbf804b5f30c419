//! Pace of received bytes, shared by all fetches of a worker.

use super::lanes::PacedLanes;
use super::{chunk_bytes, since, until};
use crate::protocol::LaneOrder;
use gristmill_scheduler::ids::JobId;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Time without bytes after which a request gives up its turn: the other side would close its connection, since no data
/// is read from it.
pub const TIMEOUT: Duration = Duration::from_secs(15);

/// Message from a fetch to the task that paces all of them.
enum PaceRequest {
    Order(LaneOrder),
    Open(JobId),
    Ask { job: JobId, request: u64, bytes: u64, pass: oneshot::Sender<()> },
    Close { job: JobId, request: u64 },
    Forget(JobId),
}

/// Paces incoming bytes. Clones share the state; when the last clone and the last [`PacedStream`] are dropped, its task
/// ends.
///
/// The messages in its channel are bounded by the number of requests: each has at most one at a time.
#[derive(Clone, Debug)]
pub(crate) struct InPace {
    requests: UnboundedSender<PaceRequest>,
    chunk_bytes: u64,
    patience: Duration,
}

impl InPace {
    /// Starts the pacing task on the runtime of the caller.
    #[must_use]
    pub fn start(bytes_per_second: NonZeroU64) -> Self {
        let (sender, receiver) = unbounded_channel();
        tokio::spawn(pace(bytes_per_second, receiver));
        Self { requests: sender, chunk_bytes: chunk_bytes(bytes_per_second), patience: TIMEOUT }
    }

    /// Sets the time after which requests give up their turn, instead of `TIMEOUT`.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Sets the order of jobs.
    pub fn order(&self, order: LaneOrder) {
        // The task ends only when all senders are dropped, or with the runtime.
        let _ = self.requests.send(PaceRequest::Order(order));
    }

    /// Drops a job: its waiting requests end at once.
    pub fn forget(&self, job: JobId) {
        let _ = self.requests.send(PaceRequest::Forget(job));
    }

    /// Opens the stream of a request; its number is unique and increasing.
    #[must_use]
    pub fn open(&self, job: JobId, request: u64) -> PacedStream {
        let _ = self.requests.send(PaceRequest::Open(job));
        PacedStream { pace: self.clone(), job, request }
    }
}

/// Paced stream of one request's bytes.
#[derive(Debug)]
pub struct PacedStream {
    pace: InPace,
    job: JobId,
    request: u64,
}

impl PacedStream {
    /// Waits until this many bytes have passed.
    ///
    /// # Errors
    /// [`Preempted`] if no chunk of them passed for too long.
    pub async fn pass(&self, bytes: u64) -> Result<(), Preempted> {
        let mut left = bytes;
        while 0 < left {
            let bytes = left.min(self.pace.chunk_bytes);
            let (pass, passed) = oneshot::channel();
            let ask = PaceRequest::Ask { job: self.job, request: self.request, bytes, pass };
            let _ = self.pace.requests.send(ask);
            match tokio::time::timeout(self.pace.patience, passed).await {
                Ok(Ok(())) => left -= bytes,
                // Timeout, or its job was dropped; the pacing task ends only when the runtime stops.
                Ok(Err(_)) | Err(_) => return Err(Preempted),
            }
        }
        Ok(())
    }
}

impl Drop for PacedStream {
    fn drop(&mut self) {
        let _ = self.pace.requests.send(PaceRequest::Close { job: self.job, request: self.request });
    }
}

/// Error: other jobs left a request no bandwidth for `TIMEOUT`, or its job was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preempted;

async fn pace(bytes_per_second: NonZeroU64, mut requests: UnboundedReceiver<PaceRequest>) {
    let epoch = Instant::now();
    let mut lanes = PacedLanes::new(bytes_per_second, since(epoch));
    let mut passes: BTreeMap<u64, oneshot::Sender<()>> = BTreeMap::new();
    loop {
        // All messages are handled before the next grant.
        while let Ok(word) = requests.try_recv() {
            handle(&mut lanes, &mut passes, word);
        }
        let now = since(epoch);
        if let Some((_, request)) = lanes.grant(now) {
            if let Some(pass) = passes.remove(&request) {
                let _ = pass.send(());
            }
            // The stream that was granted may ask again before the next grant.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            word = requests.recv() => match word {
                Some(word) => handle(&mut lanes, &mut passes, word),
                None => return,
            },
            () = until(epoch, lanes.wake_at(now)) => {}
        }
    }
}

fn handle(lanes: &mut PacedLanes, passes: &mut BTreeMap<u64, oneshot::Sender<()>>, word: PaceRequest) {
    match word {
        PaceRequest::Order(order) => lanes.order(&order),
        PaceRequest::Open(job) => lanes.open(job),
        PaceRequest::Ask { job, request, bytes, pass } => {
            lanes.request(job, request, bytes);
            passes.insert(request, pass);
        }
        PaceRequest::Close { job, request } => {
            lanes.close(job, request);
            passes.remove(&request);
        }
        // Dropping a sender here wakes the fetch that waits for it.
        PaceRequest::Forget(job) => lanes.forget(job).iter().for_each(|request| drop(passes.remove(request))),
    }
}

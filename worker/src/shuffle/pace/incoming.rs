//! The pace of what a worker reads, shared by its fetches.

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

/// A request that gets nothing for so long gives way: its connection would be given up by the other side, which sees
/// that nobody reads.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// A message from a fetch to the task that paces all of them.
enum PaceRequest {
    Order(LaneOrder),
    Open(JobId),
    Ask { job: JobId, request: u64, bytes: u64, pass: oneshot::Sender<()> },
    Close { job: JobId, request: u64 },
    Forget(JobId),
}

/// Paces what comes in. Cloning shares it; when the last clone and the last [`PacedStream`] are gone, its task ends.
///
/// The messages that wait in its channel are bounded by the requests under way: each asks once at a time.
#[derive(Clone, Debug)]
pub struct InPace {
    requests: UnboundedSender<PaceRequest>,
    chunk_bytes: u64,
    patience: Duration,
}

impl InPace {
    /// Starts the task that paces, on the runtime of the caller.
    #[must_use]
    pub fn start(bytes_per_second: NonZeroU64) -> Self {
        let (sender, receiver) = unbounded_channel();
        tokio::spawn(pace(bytes_per_second, receiver));
        Self { requests: sender, chunk_bytes: chunk_bytes(bytes_per_second), patience: PATIENCE }
    }

    /// Requests give way after this time and not after `PATIENCE`.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Whose bytes go first from now on.
    pub fn order(&self, order: LaneOrder) {
        // The task ends only when all senders are gone, or with the runtime.
        let _ = self.requests.send(PaceRequest::Order(order));
    }

    /// Nobody wants the bytes of this job any more: requests that wait give way at once.
    pub fn forget(&self, job: JobId) {
        let _ = self.requests.send(PaceRequest::Forget(job));
    }

    /// A request begins; its number is unique and rises.
    #[must_use]
    pub fn open(&self, job: JobId, request: u64) -> PacedStream {
        let _ = self.requests.send(PaceRequest::Open(job));
        PacedStream { pace: self.clone(), job, request }
    }
}

/// The way of one request's bytes.
#[derive(Debug)]
pub struct PacedStream {
    pace: InPace,
    job: JobId,
    request: u64,
}

impl PacedStream {
    /// Waits until so many bytes have passed.
    ///
    /// # Errors
    /// [`Preempted`] if not a chunk of them passed for too long.
    pub async fn pass(&self, bytes: u64) -> Result<(), Preempted> {
        let mut left = bytes;
        while 0 < left {
            let bytes = left.min(self.pace.chunk_bytes);
            let (pass, passed) = oneshot::channel();
            let ask = PaceRequest::Ask { job: self.job, request: self.request, bytes, pass };
            let _ = self.pace.requests.send(ask);
            match tokio::time::timeout(self.pace.patience, passed).await {
                Ok(Ok(())) => left -= bytes,
                // Too long, or its job was forgotten; the task that paces is gone only when the runtime stops.
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

/// Others left nothing to a request for `PATIENCE`, or nobody wants its bytes any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preempted;

async fn pace(bytes_per_second: NonZeroU64, mut requests: UnboundedReceiver<PaceRequest>) {
    let epoch = Instant::now();
    let mut lanes = PacedLanes::new(bytes_per_second, since(epoch));
    let mut passes: BTreeMap<u64, oneshot::Sender<()>> = BTreeMap::new();
    loop {
        // All messages are handled before anyone is served.
        while let Ok(word) = requests.try_recv() {
            handle(&mut lanes, &mut passes, word);
        }
        let now = since(epoch);
        if let Some((_, request)) = lanes.grant(now) {
            if let Some(pass) = passes.remove(&request) {
                let _ = pass.send(());
            }
            // The one who was served may ask again before the next is.
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
            lanes.ask(job, request, bytes);
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

//! Inputs of the master's loop, and the handle that sends them.

use super::archive::JobArchive;
use super::ending::Ending;
use super::page::PageCodes;
use super::state::{MasterState, Synced};
use super::tokens::Tokens;
use crate::api::{ApiError, Submission, WorkerEnded};
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::http::{Plaintext, Secret};
use gristmill_worker::protocol::{Hello, WorkerFrame};
use std::sync::Arc;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

/// Inputs of the loop.
pub(super) enum MasterInput {
    Join {
        hello: Hello,
        frames: UnboundedSender<Vec<u8>>,
        reply: oneshot::Sender<Joined>,
    },
    /// `turn` is released once the consequences of the frames have been settled.
    Frames {
        worker: WorkerId,
        connection: u64,
        frames: Vec<WorkerFrame>,
        turn: OwnedSemaphorePermit,
    },
    Gone {
        worker: WorkerId,
        connection: u64,
        goodbye: bool,
    },
    ProcessEnded {
        end: WorkerEnded,
        key: Secret,
        reply: oneshot::Sender<bool>,
    },
    Submit {
        submission: Box<Submission>,
        reply: oneshot::Sender<Submitted>,
    },
    ClientLost {
        job: JobId,
        lease: u64,
    },
    /// The client of a job has reconnected, and has the key of the job's permits.
    Attend {
        key: Secret,
        reply: oneshot::Sender<Submitted>,
    },
    Closed {
        job: JobId,
        failed: Option<String>,
    },
    Synced(Synced),
    /// A read or a change of the state alone.
    Call(StateCall),
}

/// A read or a change of the state, which sends its result itself.
pub(super) type StateCall = Box<dyn FnOnce(&mut MasterState, Time) + Send>;

/// A worker and the number of its connection. Frames of an earlier connection are ignored.
pub(super) type Joined = Result<(WorkerId, u64), String>;

/// A job, the channel on which its changes are announced, and the lease on it if its client follows it.
pub(super) type Submitted = Result<(JobId, watch::Receiver<bool>, Option<Lease>), ApiError>;

/// Lease held by the response to the client that follows an attached job. If it is dropped before the job has ended,
/// the job ends, unless the client comes back in time.
pub(super) struct Lease {
    pub(super) inputs: UnboundedSender<MasterInput>,
    pub(super) job: Option<JobId>,
    /// Number of the lease. An earlier lease on the same job has no effect.
    pub(super) number: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            let _ = self.inputs.send(MasterInput::ClientLost { job, lease: self.number });
        }
    }
}

/// A handle of the loop; clones share it.
#[derive(Clone)]
pub(super) struct MasterHandle {
    pub(super) inputs: UnboundedSender<MasterInput>,
    pub(super) shutdown: Arc<watch::Sender<Option<Ending>>>,
    /// Dropped with the last connection of a worker, which shows that all workers were ordered to exit.
    pub(super) _attended: mpsc::Sender<()>,
    pub(super) build: String,
    /// Rule for which endpoints of peers may use plain HTTP.
    pub(super) plaintext: Plaintext,
    pub(super) tokens: Arc<Tokens>,
    pub(super) page_codes: Arc<PageCodes>,
    /// Archive of ended jobs.
    pub(super) archive: Option<Arc<JobArchive>>,
}

impl MasterHandle {
    /// Result of a read or a change of the state, in which all earlier inputs are settled; `None` if the master is
    /// ending. A change settles its own facts before it returns.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut MasterState, Time) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let call = Box::new(move |state: &mut MasterState, now| {
            let _ = reply.send(call(state, now));
        });
        self.inputs.send(MasterInput::Call(call)).ok()?;
        answer.await.ok()
    }
}

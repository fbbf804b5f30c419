//! What the master's loop is fed with, and the handle that feeds it.

use super::archive::Archive;
use super::page::PageCodes;
use super::programs::Programs;
use super::state::{MasterState, Synced, TaskName};
use super::tokens::Tokens;
use crate::api::{ApiError, EstimatorMemory, PolicyChange, Submission, Turns, WorkerEnded};
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::http::{Plaintext, Secret};
use gristmill_worker::protocol::{Hello, WorkerFrame};
use std::sync::Arc;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

/// How a master ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The next master of the state folder goes on with its jobs, and its workers wait for that one.
    Keeps,
    /// With its jobs and workers.
    Abandons,
}

/// What the loop is fed with.
pub(super) enum MasterInput {
    Join {
        hello: Hello,
        frames: UnboundedSender<Vec<u8>>,
        reply: oneshot::Sender<Joined>,
    },
    /// `turn` is given back once what follows from the frames has been settled.
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
    /// The client of a job has found the master again, and has the key of the job's permits.
    Attend {
        key: Secret,
        reply: oneshot::Sender<Submitted>,
    },
    ClientClosed {
        job: JobId,
        failed: Option<String>,
        reply: oneshot::Sender<()>,
    },
    Drain {
        worker: WorkerId,
        reply: oneshot::Sender<bool>,
    },
    Cancel {
        job: JobId,
        reply: oneshot::Sender<bool>,
    },
    DecideBy {
        change: PolicyChange,
        reply: oneshot::Sender<Result<(), ApiError>>,
    },
    Restore {
        memory: EstimatorMemory,
        reply: oneshot::Sender<Result<(), ApiError>>,
    },
    Explain {
        job: JobId,
        task: Option<TaskName>,
        reply: oneshot::Sender<Option<Vec<String>>>,
    },
    Turns {
        reply: oneshot::Sender<Turns>,
    },
    Closed {
        job: JobId,
        failed: Option<String>,
    },
    Synced(Synced),
    Query(StateQuery),
}

/// A look at the state.
pub(super) type StateQuery = Box<dyn FnOnce(&MasterState, Time) + Send>;

/// A worker and the number of its connection: what comes over an earlier one does not count any more.
pub(super) type Joined = Result<(WorkerId, u64), String>;

/// A job, where its changes are announced, and what keeps it if its client follows it.
pub(super) type Submitted = Result<(JobId, watch::Receiver<bool>, Option<Lease>), ApiError>;

/// Held by the answer to whoever follows an attached job: dropped before the job has ended, it ends the job, unless the
/// client comes back in time.
pub(super) struct Lease {
    pub(super) inputs: UnboundedSender<MasterInput>,
    pub(super) job: Option<JobId>,
    /// An earlier one of the same job says nothing any more.
    pub(super) number: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            let _ = self.inputs.send(MasterInput::ClientLost { job, lease: self.number });
        }
    }
}

/// A way to the loop; cloning shares it.
#[derive(Clone)]
pub(super) struct MasterHandle {
    pub(super) inputs: UnboundedSender<MasterInput>,
    pub(super) shutdown: Arc<watch::Sender<Option<Ending>>>,
    /// Dropped with the last connection of a worker: tells when all have been told to end.
    pub(super) _attended: mpsc::Sender<()>,
    pub(super) build: String,
    /// Which endpoints of others may speak plain HTTP.
    pub(super) plaintext: Plaintext,
    pub(super) tokens: Arc<Tokens>,
    pub(super) page_codes: Arc<PageCodes>,
    /// Jobs that have ended.
    pub(super) archive: Option<Arc<Archive>>,
    /// Programs that jobs are shipped with, if any may be.
    pub(super) programs: Option<Arc<Programs>>,
}

impl MasterHandle {
    /// What a look at the state gives; `None` if the master is ending.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        look: impl FnOnce(&MasterState, Time) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let query = Box::new(move |state: &MasterState, now| {
            let _ = reply.send(look(state, now));
        });
        self.inputs.send(MasterInput::Query(query)).ok()?;
        answer.await.ok()
    }
}

//! What the master's loop is fed with, and the handle that feeds it.

use super::page::PageCodes;
use super::state::{MasterState, TaskName};
use super::tokens::Tokens;
use crate::api::{ApiError, EstimatorMemory, PolicyChange, Submission, WorkerEnded};
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::http::{Plaintext, Secret};
use gristmill_worker::protocol::{Hello, WorkerFrame};
use std::sync::Arc;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

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
        frames: Vec<WorkerFrame>,
        turn: OwnedSemaphorePermit,
    },
    Gone {
        worker: WorkerId,
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
    ClientLost(JobId),
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
    Closed {
        job: JobId,
        failed: Option<String>,
    },
    Query(StateQuery),
}

/// A look at the state.
pub(super) type StateQuery = Box<dyn FnOnce(&MasterState, Time) + Send>;

pub(super) type Joined = Result<WorkerId, String>;

pub(super) type Submitted = Result<(JobId, watch::Receiver<bool>, Option<Lease>), ApiError>;

/// Held by the answer to an attached submission: dropped before the job has ended, it ends the job.
pub(super) struct Lease {
    pub(super) inputs: UnboundedSender<MasterInput>,
    pub(super) job: Option<JobId>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            let _ = self.inputs.send(MasterInput::ClientLost(job));
        }
    }
}

/// A way to the loop; cloning shares it.
#[derive(Clone)]
pub(super) struct MasterHandle {
    pub(super) inputs: UnboundedSender<MasterInput>,
    pub(super) shutdown: Arc<watch::Sender<bool>>,
    /// Dropped with the last connection of a worker: tells when all have been told to end.
    pub(super) _attended: mpsc::Sender<()>,
    pub(super) build: String,
    /// Which endpoints of others may speak plain HTTP.
    pub(super) plaintext: Plaintext,
    pub(super) tokens: Arc<Tokens>,
    pub(super) page_codes: Arc<PageCodes>,
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

//! Failures: of jobs, of requests and of attempts.
//!
//! Programs use these codes, never the texts. An unknown code of a newer master is kept as it is.

use gristmill_worker::exit::{self, Exit};
use gristmill_worker::protocol::FailureClass;
use serde::{Deserialize, Serialize};

/// Reason for which a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// A task failed in user code too many times.
    UserCode,
    /// The input is missing, changed or corrupt, or holds a record over the limit.
    Input,
    /// A store rejected the credentials of a worker, or a worker had none.
    Credentials,
    /// The job's parameters are invalid.
    Config,
    /// The output could not be written or finished.
    Output,
    /// The output directory was removed while the job ran, or a worker cannot see it.
    OutputGone,
    /// A map output could not be fetched.
    OutputUnreadable,
    /// A map output was damaged each time it was read.
    OutputCorrupt,
    /// Memory ran out on several workers while they ran its tasks.
    Memory,
    /// A bug of this program, found by a task.
    Engine,
    /// A map had different output when it ran again.
    NotDeterministic,
    /// A task lost too many workers.
    WorkersLost,
    /// A task failed on all workers through no fault of its own.
    WorkersUnfit,
    /// The submitter, or a worker that has input files, could not be reached.
    Unreachable,
    /// The store of its input could not be reached, or did not send it.
    Store,
    /// No worker is left.
    NoWorkers,
    /// The client to which the job was attached is gone.
    ClientLost,
    /// The master that ran it ended before the job did.
    MasterLost,
    /// A limit of the master, or the quota of its token, was exceeded.
    Limit,
    /// A bug of this program, found by the master.
    Internal,
    /// A code unknown to this program.
    #[serde(untagged)]
    Other(String),
}

/// Hint for too few descriptors on another machine.
pub(crate) const DESCRIPTORS_HINT: &str =
    "raise the limit of open files there, as by `ulimit -n 4096` before the start, or run fewer jobs at once";

impl FailureCode {
    /// Returns the exit code of a job that failed so.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::UserCode => Exit::with(exit::FAILED),
            Self::NotDeterministic => Exit::hinted(
                exit::FAILED,
                "let the mapper depend on its records and the job's parameters alone, and seed random numbers",
            ),
            Self::Input => Exit::with(exit::INPUT),
            Self::Credentials => Exit::hinted(
                exit::UNAUTHORISED,
                "each worker uses its own: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY where it runs",
            ),
            Self::Config => Exit::with(exit::USAGE),
            Self::NoWorkers | Self::WorkersLost | Self::ClientLost | Self::MasterLost | Self::Store => {
                Exit::with(exit::CLUSTER)
            }
            Self::Unreachable => Exit::hinted(
                exit::CLUSTER,
                "workers must reach this machine: see the addresses above, and the firewall",
            ),
            Self::OutputGone => Exit::hinted(
                exit::ENVIRONMENT,
                "run it again, and leave its output directory alone until it has ended (`gristmill job cancel JOB` stops a job); workers on other machines must see it under the same name",
            ),
            Self::Output | Self::WorkersUnfit => {
                Exit::hinted(exit::RESOURCES, "free some space, or choose other directories")
            }
            Self::Memory => {
                let hint = "a worker over its own budget needs a larger --memory; where the kernel ended it, run less at \
                            once: fewer --workers or --slots, or a smaller --memory";
                Exit::hinted(exit::RESOURCES, hint)
            }
            Self::OutputCorrupt => Exit::hinted(
                exit::RESOURCES,
                "the disk or memory of a machine damages data: the incidents name the workers",
            ),
            Self::OutputUnreadable => {
                Exit::hinted(exit::CLUSTER, "do the workers reach each other? the incidents name them")
            }
            Self::Limit => Exit::with(exit::CANCELLED),
            Self::Engine | Self::Internal | Self::Other(_) => {
                Exit::hinted(exit::ENGINE, "please report it, with what was run")
            }
        }
    }
}

/// Reason for which the master refused a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The route does not exist.
    Route,
    /// The master is ending.
    Ending,
    /// The body of the request is too long, or invalid for the route.
    Body,
    /// The job does not exist.
    Job,
    /// The job ended too long ago.
    JobForgotten,
    /// The job was run by an earlier master.
    JobPast,
    /// The master's archived data of the job cannot be read.
    Archive,
    /// The job has no such task.
    Task,
    /// The worker does not exist.
    Worker,
    /// The worker process does not exist.
    Process,
    /// A token cannot be created or changed.
    Token,
    /// The policy cannot be created, or cannot decide live.
    Policy,
    /// The placement cannot be created.
    Placement,
    /// The estimator's memory is invalid, or cannot be replaced now.
    Estimator,
    /// The submission cannot be parsed.
    Submission,
    /// The submitter's address is unusable.
    Submitter,
    /// The submission is of another version of [`super::SCHEMA`].
    Schema,
    /// A name of the submission is too long, or unsafe to display.
    Name,
    /// A key of the submission is invalid.
    Key,
    /// The bounds of its ranges cannot be parsed.
    Cuts,
    /// Its deadline has already passed.
    Deadline,
    /// Its measured work is invalid.
    Exact,
    /// The scheduler rejects such a job.
    Spec,
    /// The pool does not exist.
    Pool,
    /// No job of that name is registered.
    JobName,
    /// The submitting program is not the cluster's.
    Build,
    /// The job belongs to another token.
    Owner,
    /// The quota of the token does not allow it.
    Quota,
    /// The state directory cannot be written.
    Register,
    /// The recovery file cannot be written.
    Journal,
    /// The master has no free file descriptor.
    Resources,
    /// The master cannot use the output directory of a detached job.
    NotShared,
    /// The master cannot use the store into which a detached job writes.
    OutputStore,
    /// A code unknown to this program.
    #[serde(untagged)]
    Other(String),
}

impl ErrorCode {
    /// Returns the exit code of a request that was rejected so.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Task
            | Self::JobName
            | Self::Name
            | Self::Policy
            | Self::Placement
            | Self::Estimator
            | Self::Pool
            | Self::Deadline
            | Self::Exact
            | Self::Spec => Exit::with(exit::USAGE),
            Self::Ending | Self::JobForgotten => Exit::with(exit::CLUSTER),
            Self::Owner => Exit::hinted(
                exit::UNAUTHORISED,
                "`gristmill job list` lists owners; an admin token cancels any job",
            ),
            Self::Quota => Exit::hinted(
                exit::CANCELLED,
                "`gristmill job list` lists jobs; `gristmill cluster token new` where the master runs changes quotas",
            ),
            Self::Resources => Exit::hinted(exit::RESOURCES, DESCRIPTORS_HINT),
            Self::Archive => Exit::hinted(
                exit::ENVIRONMENT,
                "remove what is there where the master runs; `gristmill job list --ended` shows how the job ended",
            ),
            Self::Job => Exit::hinted(exit::USAGE, "`gristmill job list` lists them"),
            Self::Worker => Exit::hinted(exit::USAGE, "`gristmill cluster status` lists them"),
            _ => Exit::with(exit::ENVIRONMENT),
        }
    }
}

/// Outcome of an attempt. In JSON, a return is a failure with a class of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// It runs.
    Running,
    /// It succeeded.
    Succeeded,
    /// It ended without success; with a message.
    Failed(AttemptFailure, String),
    /// Its worker was lost.
    Lost,
}

/// Cause of an attempt's end without success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptFailure {
    /// It came back from its worker's queue before it had started.
    Returned,
    /// As reported by the worker.
    #[serde(untagged)]
    Known(FailureClass),
    /// A class unknown to this program.
    #[serde(untagged)]
    Other(String),
}

impl AttemptEnd {
    /// End of an attempt that came back before it had started.
    #[must_use]
    pub fn returned() -> Self {
        Self::Failed(AttemptFailure::Returned, "it had not started".to_owned())
    }

    /// True if it came back before it had started.
    #[must_use]
    pub fn is_returned(&self) -> bool {
        matches!(self, Self::Failed(AttemptFailure::Returned, _))
    }

    /// Class and message of an attempt that ended without success, unless it was lost with its worker.
    #[must_use]
    pub fn shown(&self) -> Option<(&str, &str)> {
        let Self::Failed(class, message) = self else { return None };
        let word = match class {
            AttemptFailure::Returned => "returned",
            AttemptFailure::Known(class) => class.word(),
            AttemptFailure::Other(word) => word,
        };
        Some((word, message))
    }
}

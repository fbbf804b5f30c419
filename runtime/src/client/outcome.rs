//! Results of calls to a master: the report of a successful job, or an error.
//!
//! The exit codes of errors are in `cli`.

use crate::api::{ApiError, JobState, JobStatus};
use crate::output_dir::OutputError;
use crate::submit::SubmitError;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::http::{BindError, Endpoint, HttpError, IdentityError, Phase};
use gristmill_worker::objects::ObjectFault;
use gristmill_worker::protocol::Part;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Error of a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The job could not be planned or its directory could not be claimed; no task has run.
    #[error(transparent)]
    Submit {
        /// Cause.
        source: Box<SubmitError>,
    },
    /// The master could not be reached, refused, or closed the connection.
    #[error("{}", what_it_did(master, source))]
    Master {
        /// Endpoint of the master.
        master: Endpoint,
        /// Cause.
        #[source]
        source: Box<HttpError>,
    },
    /// The connection to the master broke while it ran the job, and neither it nor a successor was found in time.
    #[error("lost sight of {job}: the master at {master} could not be reached for {seconds} s")]
    LostSight {
        /// The job.
        job: JobId,
        /// Endpoint of the master.
        master: Endpoint,
        /// Duration of the search.
        seconds: f64,
        /// Error of the last try.
        #[source]
        source: Box<HttpError>,
    },
    /// The master refused the request.
    #[error("the master refused: {}", error.message)]
    Refused {
        /// Its error.
        error: ApiError,
    },
    /// The cluster runs another program than this one.
    #[error(
        "this program (build {own}) is not the cluster's (build {cluster}), which would run other code under the job's name"
    )]
    OtherBuild {
        /// Build of this program.
        own: String,
        /// Build of master and workers.
        cluster: String,
    },
    /// The master's response is invalid for this program.
    #[error("the master's answer could not be read")]
    Answer {
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
    /// The job failed or was cancelled.
    #[error("{}", ended(status))]
    Job {
        /// Status of the job.
        status: Box<JobStatus>,
    },
    /// The job succeeded, but its output could not be finished.
    #[error(transparent)]
    Output {
        /// Cause.
        source: OutputError,
    },
    /// The user interrupted.
    #[error("interrupted; {job} was cancelled")]
    Interrupted {
        /// The job that ran.
        job: JobId,
    },
    /// The user interrupted before the job was submitted.
    #[error("interrupted while the job was planned; nothing of it has run")]
    InterruptedPlanning,
    /// Files cannot be served to workers.
    #[error("the submitter cannot serve its files")]
    Serve {
        /// Cause.
        #[source]
        source: BindError,
    },
    /// No key could be created for serving files.
    #[error("the submitter cannot make a TLS key")]
    Identity {
        /// Cause.
        #[source]
        source: IdentityError,
    },
    /// A detached job must not depend on this process.
    #[error("a detached job needs paths that all see, but {who} does not see {path}")]
    NotShared {
        /// The master or a worker.
        who: String,
        /// The path that it cannot see.
        path: String,
    },
    /// The client's runtime could not be started.
    #[error("the client could not start")]
    Start {
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

impl ExitsWith for ClientError {
    fn exit(&self) -> Exit {
        match self {
            Self::Submit { source } => source.exit(),
            Self::Master { source, .. } => source.exit(),
            Self::LostSight { .. } => Exit::hinted(
                exit::CLUSTER,
                "start the master again in its state directory; a job that must outlive its client is one of `submit --detach`",
            ),
            Self::Job { status } => {
                let failure = status.failure.as_ref();
                failure.map_or(Exit::with(exit::CANCELLED), |failure| failure.code.exit())
            }
            Self::Output { source } => match source {
                OutputError::Gone { .. } => source.exit(),
                OutputError::Io { source, .. } if exit::is_out_of_room(source) => {
                    Exit::hinted(exit::RESOURCES, "free some space, or choose another directory")
                }
                OutputError::Store { source } if source.cause.fault() == ObjectFault::Credentials => {
                    Exit::with(exit::UNAUTHORISED)
                }
                // The job itself went well.
                _ => Exit::with(exit::RESOURCES),
            },
            Self::Interrupted { .. } | Self::InterruptedPlanning => Exit::with(exit::INTERRUPTED),
            Self::Refused { error } => error.code.exit(),
            Self::OtherBuild { .. } => Exit::hinted(
                exit::ENVIRONMENT,
                "submit with the executable that master and workers run; for a job of your own, start master and workers \
                 from its program",
            ),
            _ => Exit::with(exit::ENVIRONMENT),
        }
    }
}

/// Description of a failed request to a master: it was not reached, or it was and something else failed.
fn what_it_did(master: &Endpoint, error: &HttpError) -> String {
    let did = match error {
        HttpError::Connect { .. } | HttpError::Timeout { phase: Phase::Connect, .. } => {
            "could not be reached"
        }
        HttpError::PinMismatch { .. } => {
            "has another key than the join line says: it is another master, or one whose state directory was created again"
        }
        HttpError::Tls { .. } => "was reached, but speaks no TLS",
        HttpError::Unauthorized { .. } => "was reached, but does not know the join line's token",
        HttpError::Forbidden { .. } => "was reached, but the join line's token may not do this",
        HttpError::Plaintext { .. } | HttpError::Forwarded { .. } => "was not asked",
        HttpError::Timeout { .. } => "was reached, but is silent",
        HttpError::Closed { .. } | HttpError::Truncated { .. } => "was reached, but broke off",
        _ => "was reached, but did not answer as a master does",
    };
    format!("the master at {master} {did}")
}

fn ended(status: &JobStatus) -> String {
    match (&status.failure, status.state) {
        (Some(failure), _) => match &failure.detail {
            Some(detail) => format!("{} {}: {detail}", status.job, failure.message),
            None => format!("{} {}", status.job, failure.message),
        },
        (None, JobState::Cancelled) => format!("{} was cancelled", status.job),
        (None, _) => format!("{} ended without success", status.job),
    }
}

/// A successful job.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Final status from the master.
    pub status: JobStatus,
    /// Its output directory.
    pub output: PathBuf,
}

impl JobReport {
    /// The job's user counters.
    #[must_use]
    pub fn counters(&self) -> &BTreeMap<String, u64> {
        &self.status.counters
    }

    /// One counter; 0 if it does not exist.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        self.status.counters.get(name).copied().unwrap_or(0)
    }

    /// The output directory as the input of another job.
    #[must_use]
    pub fn as_input(&self) -> String {
        self.output.to_string_lossy().into_owned()
    }

    /// The parts of a named output as the input of another job; they do not exist if no task wrote to it.
    #[must_use]
    pub fn named_as_input(&self, output: &str) -> String {
        self.output.join(output).to_string_lossy().into_owned()
    }

    /// Paths of the parts of a named output, in order; a task that wrote nothing to it has none.
    #[must_use]
    pub fn named_parts(&self, output: &str) -> Vec<PathBuf> {
        let has = |part: &&Part| part.named.iter().any(|named| named.output.as_str() == output);
        let parts = self.status.parts.iter().filter(has);
        parts.map(|part| self.output.join(output).join(&part.name)).collect()
    }

    /// Paths of the parts, in order.
    #[must_use]
    pub fn parts(&self) -> Vec<PathBuf> {
        self.status.parts.iter().map(|part| self.output.join(&part.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Method;

    #[test]
    fn only_a_master_that_was_not_reached_is_said_not_to_be() {
        let master = Endpoint { host: "192.0.2.1".to_owned(), port: 7070, pin: None };
        let words =
            |source| ClientError::Master { master: master.clone(), source: Box::new(source) }.to_string();
        let peer = || "192.0.2.1:7070".to_owned();
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        assert!(
            words(HttpError::Connect { peer: peer(), source: refused }).ends_with("could not be reached")
        );
        let (method, path) = (Method::GET, "/".to_owned());
        for (source, expected) in [
            (HttpError::PinMismatch { peer: peer() }, "has another key than the join line says"),
            (HttpError::Unauthorized { peer: peer(), method, path }, "does not know the join line's token"),
        ] {
            let words = words(source);
            assert!(words.contains(expected) && !words.contains("could not be reached"), "{words}");
        }
    }
}

//! What can go wrong: why a job failed, why a request was refused, how an attempt ended.
//!
//! Programs decide by these, never by texts. A word that this program does not know, of a newer master, is kept as it is.

use gristmill_worker::protocol::FailureClass;
use serde::{Deserialize, Serialize};

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// A task failed in user code too often.
    UserCode,
    /// The input is missing, changed, corrupt or holds a record over the limit.
    Input,
    /// A store did not take the credentials of a worker, or a worker had none.
    Credentials,
    /// The job's parameters do not work.
    Config,
    /// The output could not be written or finished.
    Output,
    /// The output directory was removed while the job ran, or a worker does not see it.
    OutputGone,
    /// A map output could not be fetched.
    OutputUnreadable,
    /// A map output was damaged each time it was read.
    OutputCorrupt,
    /// Memory ran out on several workers while they ran its tasks.
    Memory,
    /// A mistake in this program, found by a task.
    Engine,
    /// A map gave another output the second time.
    NotDeterministic,
    /// A task lost too many workers.
    WorkersLost,
    /// A task failed on all workers, through no fault of its own.
    WorkersUnfit,
    /// The submitter, or a worker that has input files, could not be reached.
    Unreachable,
    /// The store that has its input could not be reached, or did not send it.
    Store,
    /// No worker is left.
    NoWorkers,
    /// The client that the job was attached to has gone.
    ClientLost,
    /// The master that ran it ended before the job did.
    MasterLost,
    /// A limit of the master, or the quota of its token, was passed.
    Limit,
    /// A mistake in this program, found by the master.
    Internal,
    /// One that this program does not know.
    #[serde(untagged)]
    Other(String),
}

/// Why the master refused a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// There is no such route.
    Route,
    /// The master is ending.
    Ending,
    /// The body of the request is too long, or none that the route takes.
    Body,
    /// There is no such job.
    Job,
    /// The job ended too long ago.
    JobForgotten,
    /// The job was run by an earlier master.
    JobPast,
    /// What the master keeps of the job cannot be read.
    Archive,
    /// The job has no such task.
    Task,
    /// There is no such worker.
    Worker,
    /// There is no such worker process.
    Process,
    /// A token cannot be made or changed.
    Token,
    /// The policy cannot be made, or cannot decide live.
    Policy,
    /// The placement cannot be made.
    Placement,
    /// The estimator cannot know what it is to know, or not now.
    Estimator,
    /// The submission cannot be read.
    Submission,
    /// The submitter's address is of no use.
    Submitter,
    /// The submission is of another version of [`super::SCHEMA`].
    Schema,
    /// A name of the submission is too long, or could harm whoever is shown it.
    Name,
    /// A key of the submission is no secret.
    Key,
    /// The borders of its ranges cannot be read.
    Cuts,
    /// Its deadline is over already.
    Deadline,
    /// Its measured work is none.
    Exact,
    /// The scheduler does not take such a job.
    Spec,
    /// There is no such pool.
    Pool,
    /// No job of that name is registered.
    JobName,
    /// The submitting program is not the cluster's.
    Build,
    /// The master takes no programs.
    Ship,
    /// The program of a job is not there, or is not what it was said to be.
    Program,
    /// There is no room for another program.
    ProgramRoom,
    /// The job is of another token.
    Owner,
    /// The quota of the token does not allow it.
    Quota,
    /// The state folder cannot be written.
    Register,
    /// The file that another master would come back from cannot be written.
    Journal,
    /// The master has no descriptor left.
    Resources,
    /// The master cannot use the output directory of a detached job.
    NotShared,
    /// The master cannot use the store into which a detached job writes.
    OutputStore,
    /// One that this program does not know.
    #[serde(untagged)]
    Other(String),
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EndJson", into = "EndJson")]
pub enum AttemptEnd {
    /// It runs.
    Running,
    /// Well.
    Succeeded,
    /// It was suspended, and another attempt goes on where it stood.
    HandedOver,
    /// It came back from its worker's queue before it had begun.
    Returned,
    /// Badly.
    Failed {
        /// Whose fault.
        class: AttemptFailure,
        /// What happened.
        message: String,
    },
    /// Its worker was lost.
    Lost,
}

/// Whose fault the failure of an attempt was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AttemptFailure {
    /// As the worker said.
    Known(FailureClass),
    /// One that this program does not know.
    Other(String),
}

/// How a handover is shown: class and message.
const HANDED_OVER: (&str, &str) = ("handed_over", "another attempt goes on from there");

/// How a return is shown, likewise.
const RETURNED: (&str, &str) = ("returned", "it had not begun");

impl AttemptEnd {
    /// Class and message, if the attempt ended neither well nor with its worker.
    #[must_use]
    pub fn shown(&self) -> Option<(&str, &str)> {
        match self {
            Self::HandedOver => Some(HANDED_OVER),
            Self::Returned => Some(RETURNED),
            Self::Failed { class: AttemptFailure::Known(class), message } => Some((class.word(), message)),
            Self::Failed { class: AttemptFailure::Other(word), message } => Some((word, message)),
            Self::Running | Self::Succeeded | Self::Lost => None,
        }
    }
}

/// An [`AttemptEnd`] in JSON, where a handover and a return stand among the failures, as they did in the first version.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndJson {
    Running,
    Succeeded,
    Failed(AttemptFailure, String),
    Lost,
}

impl From<AttemptEnd> for EndJson {
    fn from(end: AttemptEnd) -> Self {
        let other = |(word, message): (&str, &str)| {
            Self::Failed(AttemptFailure::Other(word.to_owned()), message.to_owned())
        };
        match end {
            AttemptEnd::Running => Self::Running,
            AttemptEnd::Succeeded => Self::Succeeded,
            AttemptEnd::HandedOver => other(HANDED_OVER),
            AttemptEnd::Returned => other(RETURNED),
            AttemptEnd::Failed { class, message } => Self::Failed(class, message),
            AttemptEnd::Lost => Self::Lost,
        }
    }
}

impl From<EndJson> for AttemptEnd {
    fn from(end: EndJson) -> Self {
        match end {
            EndJson::Running => Self::Running,
            EndJson::Succeeded => Self::Succeeded,
            EndJson::Failed(AttemptFailure::Other(word), _) if word == HANDED_OVER.0 => Self::HandedOver,
            EndJson::Failed(AttemptFailure::Other(word), _) if word == RETURNED.0 => Self::Returned,
            EndJson::Failed(class, message) => Self::Failed { class, message },
            EndJson::Lost => Self::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    #[track_caller]
    fn check<T: Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(
        value: &T,
        text: Value,
    ) {
        assert_eq!(serde_json::to_value(value).unwrap(), text);
        assert_eq!(from_value::<T>(text).unwrap(), *value);
    }

    #[test]
    fn codes_are_the_words_of_the_first_version_and_unknown_ones_are_kept() {
        check(&FailureCode::OutputUnreadable, json!("output_unreadable"));
        check(&FailureCode::Other("flood".to_owned()), json!("flood"));
        check(&ErrorCode::JobForgotten, json!("job_forgotten"));
        check(&ErrorCode::Other("tea_time".to_owned()), json!("tea_time"));
    }

    #[test]
    fn ends_of_attempts_are_the_pairs_of_the_first_version() {
        check(&AttemptEnd::Running, json!("running"));
        check(&AttemptEnd::Lost, json!("lost"));
        let handed_over = json!({"failed": ["handed_over", "another attempt goes on from there"]});
        check(&AttemptEnd::HandedOver, handed_over);
        check(&AttemptEnd::Returned, json!({"failed": ["returned", "it had not begun"]}));
        let failed = |class| AttemptEnd::Failed { class, message: "no".to_owned() };
        check(
            &failed(AttemptFailure::Known(FailureClass::Unreachable)),
            json!({"failed": ["unreachable", "no"]}),
        );
        check(&failed(AttemptFailure::Other("flood".to_owned())), json!({"failed": ["flood", "no"]}));
        for class in [FailureClass::User, FailureClass::Hang, FailureClass::Input, FailureClass::Missing] {
            assert_eq!(serde_json::to_value(class).unwrap(), class.word());
        }
    }
}

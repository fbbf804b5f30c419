//! What an error costs: the exit code of the program, and the hint of what to do next.

use crate::usage::UsageError;
use crate::{files, state, trusted};
use gristmill_lab::compare::CompareError;
use gristmill_lab::compare::file::FileError;
use gristmill_lab::compare::store::StoreError;
use gristmill_lab::paper;
use gristmill_runtime::api::{ErrorCode, FailureCode};
use gristmill_runtime::client::ClientError;
use gristmill_runtime::cluster::ClusterError;
use gristmill_runtime::exit;
use gristmill_runtime::master::MasterError;
use gristmill_runtime::master::tokens::TokensError;
use gristmill_runtime::output_dir::OutputError;
use gristmill_runtime::submit::SubmitError;
use gristmill_worker::agent::WorkerError;
use gristmill_worker::api::PlanError;
use gristmill_worker::http::{BindError, HttpError, IdentityError, PrivateFileError, SecretError};
use gristmill_worker::task::Fault;

/// The exit code of an error, and what to do next.
pub(crate) fn judge(error: &anyhow::Error) -> (u8, Option<&'static str>) {
    if error.is::<UsageError>() || error.is::<clap::Error>() {
        return (exit::USAGE, None);
    }
    if let Some(error) = error.downcast_ref::<paper::WriteError>() {
        let replaceable = matches!(error, paper::WriteError::NotEmpty { .. });
        return (exit::ENVIRONMENT, replaceable.then_some("choose another folder, or add --overwrite"));
    }
    if error.is::<paper::Interrupted>() {
        return (exit::INTERRUPTED, None);
    }
    if error.is::<files::InputError>() {
        return (exit::INPUT, None);
    }
    if let Some(judged) = judge_comparison(error) {
        return judged;
    }
    if let Some(error) = error.downcast_ref::<ClientError>() {
        return judge_client(error);
    }
    if error.downcast_ref::<std::io::Error>().is_some_and(is_out_of_room) {
        return (exit::RESOURCES, None);
    }
    let environment = error.is::<trusted::TrustError>()
        || error.is::<ClusterError>()
        || error.is::<BindError>()
        || error.is::<MasterError>()
        || error.is::<state::StateError>()
        || error.is::<SecretError>()
        || error.is::<PrivateFileError>()
        || error.is::<TokensError>()
        || error.is::<IdentityError>()
        || error.is::<std::io::Error>();
    if environment {
        return (exit::ENVIRONMENT, None);
    }
    match error.downcast_ref::<WorkerError>() {
        Some(WorkerError::Unreachable { .. }) => {
            return (exit::CLUSTER, Some("check the master's address, or start one with `gristmill master`"));
        }
        Some(_) => return (exit::ENVIRONMENT, None),
        None => {}
    }
    (exit::FAILED, None)
}

/// Whether a disk has no more room, or none for this user or this file.
fn is_out_of_room(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

pub(crate) fn judge_client(error: &ClientError) -> (u8, Option<&'static str>) {
    match error {
        ClientError::Submit { source } => match &**source {
            SubmitError::Output { source: OutputError::Io { source, .. } } if is_out_of_room(source) => {
                (exit::RESOURCES, Some("free some space, or choose another directory"))
            }
            // This machine lacks the means, such as descriptors, or does not reach the worker that has it.
            SubmitError::Input { source } if !source.is_input_fault() => (exit::ENVIRONMENT, None),
            SubmitError::Plan { source: PlanError::Input { .. } } | SubmitError::Input { .. } => {
                (exit::INPUT, None)
            }
            SubmitError::Plan { .. } | SubmitError::Settings { .. } => (exit::USAGE, None),
            SubmitError::Panicked => (exit::FAILED, None),
            SubmitError::Sample { source } => match source.class() {
                Fault::Input => (exit::INPUT, None),
                Fault::User => (exit::FAILED, None),
                Fault::Config => (exit::USAGE, None),
                _ => (exit::ENVIRONMENT, None),
            },
            SubmitError::Output { source: OutputError::Protected { .. } } => (exit::USAGE, None),
            SubmitError::Output { source: OutputError::NotEmpty { .. } } => {
                (exit::ENVIRONMENT, Some("choose another directory, or add --overwrite"))
            }
            SubmitError::Output { source: OutputError::Busy { .. } } => (
                exit::ENVIRONMENT,
                Some(
                    "if no job runs there any more, bring back what is in a _replaced folder there, and \
                     remove _temporary",
                ),
            ),
            _ => (exit::ENVIRONMENT, None),
        },
        ClientError::Master { source, .. } if matches!(**source, HttpError::Unauthorized { .. }) => (
            exit::UNAUTHORISED,
            Some(
                "use the master's join line: --join FILE; if it is that one, its token was revoked or replaced, or another program has the port",
            ),
        ),
        ClientError::Master { source, .. } if matches!(**source, HttpError::Forbidden { .. }) => (
            exit::UNAUTHORISED,
            Some(
                "use a join line with a token that may: `gristmill token new ROLE` makes one where the master runs",
            ),
        ),
        ClientError::Master { source, .. }
            if matches!(**source, HttpError::Plaintext { .. } | HttpError::Forwarded { .. }) =>
        {
            (exit::ENVIRONMENT, None)
        }
        ClientError::Master { .. } => (exit::CLUSTER, Some("is the master running? see `gristmill status`")),
        ClientError::Job { status } => match &status.failure {
            Some(failure) => judge_failure(&failure.code),
            None => (exit::CANCELLED, None),
        },
        ClientError::Output { source: OutputError::Io { source, .. } } if is_out_of_room(source) => {
            (exit::RESOURCES, Some("free some space, or choose another directory"))
        }
        // The job itself went well.
        ClientError::Output { .. } => (exit::RESOURCES, None),
        ClientError::Interrupted { .. } => (exit::INTERRUPTED, None),
        ClientError::Refused { error } => judge_refusal(&error.code),
        ClientError::OtherBuild { .. } => (
            exit::ENVIRONMENT,
            Some("submit with the executable that master and workers run, or start them anew with this one"),
        ),
        ClientError::NotShared { .. } | ClientError::Serve { .. } => (exit::ENVIRONMENT, None),
        _ => (exit::ENVIRONMENT, None),
    }
}

fn judge_failure(code: &FailureCode) -> (u8, Option<&'static str>) {
    match code {
        FailureCode::UserCode => (exit::FAILED, None),
        FailureCode::NotDeterministic => (
            exit::FAILED,
            Some(
                "let the mapper depend on its records and the job's parameters alone, and seed random numbers",
            ),
        ),
        FailureCode::Input => (exit::INPUT, None),
        FailureCode::Config => (exit::USAGE, None),
        FailureCode::NoWorkers
        | FailureCode::WorkersLost
        | FailureCode::ClientLost
        | FailureCode::MasterLost => (exit::CLUSTER, None),
        FailureCode::Unreachable => (
            exit::CLUSTER,
            Some("workers must reach this machine: see the addresses above, and the firewall"),
        ),
        FailureCode::Output | FailureCode::WorkersUnfit => {
            (exit::RESOURCES, Some("free some space, or choose other folders"))
        }
        FailureCode::Memory => {
            (exit::RESOURCES, Some("run less at once: fewer --workers or --slots, or a smaller --memory"))
        }
        FailureCode::OutputCorrupt => (
            exit::RESOURCES,
            Some("the disk or memory of a machine damages data: the incidents name the workers"),
        ),
        FailureCode::OutputUnreadable => {
            (exit::CLUSTER, Some("do the workers reach each other? the incidents name them"))
        }
        FailureCode::Limit => (exit::CANCELLED, None),
        FailureCode::Engine | FailureCode::Internal | FailureCode::Other(_) => {
            (exit::ENGINE, Some("please report it, with what was run"))
        }
    }
}

fn judge_refusal(code: &ErrorCode) -> (u8, Option<&'static str>) {
    match code {
        ErrorCode::Task
        | ErrorCode::JobName
        | ErrorCode::Name
        | ErrorCode::Policy
        | ErrorCode::Placement
        | ErrorCode::Pool
        | ErrorCode::Deadline
        | ErrorCode::Exact
        | ErrorCode::Spec => (exit::USAGE, None),
        ErrorCode::Ending => (exit::CLUSTER, None),
        ErrorCode::Job => (exit::USAGE, Some("`gristmill jobs` lists them")),
        ErrorCode::Route
        | ErrorCode::Body
        | ErrorCode::JobForgotten
        | ErrorCode::JobPast
        | ErrorCode::Process
        | ErrorCode::Token
        | ErrorCode::Submission
        | ErrorCode::Submitter
        | ErrorCode::Schema
        | ErrorCode::Key
        | ErrorCode::Cuts
        | ErrorCode::Build
        | ErrorCode::Register
        | ErrorCode::NotShared
        | ErrorCode::Other(_) => (exit::ENVIRONMENT, None),
    }
}

/// The exit code of an error of this command; `None` if it is another's.
fn judge_comparison(error: &anyhow::Error) -> Option<(u8, Option<&'static str>)> {
    if let Some(error) = error.downcast_ref::<FileError>() {
        return Some(match error {
            FileError::Read { .. } | FileError::Trace { .. } => (exit::INPUT, None),
            _ => (exit::USAGE, None),
        });
    }
    if let Some(error) = error.downcast_ref::<StoreError>() {
        return Some(judge_store(error));
    }
    Some(match error.downcast_ref::<CompareError>()? {
        CompareError::Unknown { .. }
        | CompareError::Arguments { .. }
        | CompareError::Name { .. }
        | CompareError::Options { .. }
        | CompareError::Draw { .. } => (exit::USAGE, None),
        CompareError::Data { .. } | CompareError::Cluster { .. } | CompareError::Start { .. } => {
            (exit::ENVIRONMENT, None)
        }
        CompareError::Store { source } => judge_store(source),
        CompareError::Client { source, .. } => judge_client(source),
        CompareError::Busy { .. } | CompareError::Missing { .. } => (exit::CLUSTER, None),
        CompareError::Forgotten { .. } => (exit::FAILED, None),
        CompareError::Job { .. } | CompareError::Output { .. } | CompareError::Late { .. } => {
            (exit::FAILED, Some("runs that ended before are kept; --resume goes on with them"))
        }
    })
}

fn judge_store(error: &StoreError) -> (u8, Option<&'static str>) {
    match error {
        StoreError::NotEmpty { .. } => {
            (exit::ENVIRONMENT, Some("choose another folder with --out, or go on with --resume"))
        }
        StoreError::Differs { .. } => (exit::USAGE, Some("choose another folder with --out")),
        _ => (exit::ENVIRONMENT, None),
    }
}

#[cfg(test)]
mod tests;

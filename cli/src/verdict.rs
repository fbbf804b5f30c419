//! What an error costs: the exit code of the program, and the hint of what to do next.

use crate::places::PlaceError;
use crate::usage::UsageError;
use crate::{files, private_file, state, trusted};
use gristmill_lab::compare::CompareError;
use gristmill_lab::compare::file::FileError;
use gristmill_lab::compare::store::StoreError;
use gristmill_runtime::api::{ErrorCode, FailureCode};
use gristmill_runtime::client::{ClientError, ResumeError};
use gristmill_runtime::cluster::ClusterError;
use gristmill_runtime::exit;
use gristmill_runtime::master::MasterError;
use gristmill_runtime::master::tokens::TokensError;
use gristmill_runtime::output_dir::OutputError;
use gristmill_runtime::submit::SubmitError;
use gristmill_worker::agent::WorkerError;
use gristmill_worker::api::PlanError;
use gristmill_worker::descriptors::{TooFewDescriptors, are_used_up};
use gristmill_worker::http::{BindError, HttpError, IdentityError, PrivateFileError, SecretError};
use gristmill_worker::input::InputError;
use gristmill_worker::objects::ObjectFault;
use gristmill_worker::task::Fault;
use gristmill_worker::threads;

#[cfg(feature = "papers")]
fn judge_paper(error: &anyhow::Error) -> Option<(u8, Option<&'static str>)> {
    use gristmill_papers::{Interrupted, RunsFolderError, WriteError};
    if let Some(error) = error.downcast_ref() {
        let replaceable = matches!(error, WriteError::NotEmpty { .. });
        return Some((exit::ENVIRONMENT, replaceable.then_some("choose another folder, or add --overwrite")));
    }
    if error.is::<RunsFolderError>() {
        return Some((exit::ENVIRONMENT, None));
    }
    error.is::<Interrupted>().then_some((exit::INTERRUPTED, None))
}

/// The exit code of an error, and what to do next.
pub(crate) fn judge(error: &anyhow::Error) -> (u8, Option<&'static str>) {
    if error.is::<UsageError>() || error.is::<clap::Error>() {
        return (exit::USAGE, None);
    }
    #[cfg(feature = "papers")]
    if let Some(judged) = judge_paper(error) {
        return judged;
    }
    if error.is::<private_file::FileExists>() {
        return (exit::ENVIRONMENT, Some("choose another file, or add --overwrite"));
    }
    if error.is::<files::InputFileError>() {
        return (exit::INPUT, None);
    }
    if let Some(error) = error.downcast_ref::<PlaceError>() {
        return match error {
            PlaceError::Hosts { .. } | PlaceError::Left { .. } => (exit::CLUSTER, None),
            _ => (exit::ENVIRONMENT, None),
        };
    }
    if error.chain().any(|cause| cause.is::<TooFewDescriptors>()) {
        return (exit::RESOURCES, Some("raise the limit, as by `ulimit -n 1024`"));
    }
    if let Some(ClusterError::MasterEnded { code: Some(code) }) = error.downcast_ref() {
        // It is this program, and has judged by the same rules.
        return (u8::try_from(*code).unwrap_or(exit::ENVIRONMENT), None);
    }
    let lacks_threads = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(threads::are_used_up)
    };
    if (error.is::<ClusterError>() || error.is::<std::io::Error>()) && error.chain().any(lacks_threads) {
        return (
            exit::RESOURCES,
            Some("raise the limit of processes (ulimit -u, pids.max), or use fewer slots"),
        );
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
    match error.downcast_ref::<WorkerError>() {
        Some(WorkerError::Unreachable { .. }) => {
            (exit::CLUSTER, Some("check the master's address, or start one with `gristmill master`"))
        }
        Some(_) => (exit::ENVIRONMENT, None),
        None if is_environment(error) && is_by_lack_of_room(error) => {
            (exit::RESOURCES, Some("free some space there, or name other directories"))
        }
        None if is_environment(error) => (exit::ENVIRONMENT, None),
        None => (exit::FAILED, None),
    }
}

/// Whether the machine or its user's files keep the command from doing its work.
fn is_environment(error: &anyhow::Error) -> bool {
    error.is::<trusted::TrustError>()
        || error.is::<ClusterError>()
        || error.is::<BindError>()
        || error.is::<MasterError>()
        || error.is::<state::StateError>()
        || error.is::<SecretError>()
        || error.is::<PrivateFileError>()
        || error.is::<TokensError>()
        || error.is::<IdentityError>()
        || error.is::<std::io::Error>()
}

/// True if that is a cause of an error.
fn is_by_lack_of_room(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(is_out_of_room))
}

/// Whether a disk has no more room, or none for this user or this file.
fn is_out_of_room(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn judge_client(error: &ClientError) -> (u8, Option<&'static str>) {
    match error {
        ClientError::Submit { source } => judge_submit(source),
        ClientError::Master { source, .. } => judge_request(source),
        ClientError::LostSight { .. } => (
            exit::CLUSTER,
            Some(
                "start the master again in its state folder; a job that must outlive its client is one of `submit --detach`",
            ),
        ),
        ClientError::Job { status } => match &status.failure {
            Some(failure) => judge_failure(&failure.code),
            None => (exit::CANCELLED, None),
        },
        ClientError::Output { source: OutputError::Io { source, .. } } if is_out_of_room(source) => {
            (exit::RESOURCES, Some("free some space, or choose another directory"))
        }
        ClientError::Output { source: OutputError::Gone { .. } } => (exit::ENVIRONMENT, Some(HINT_OF_GONE)),
        ClientError::Output { source: OutputError::Store { source } }
            if source.cause.fault() == ObjectFault::Credentials =>
        {
            (exit::UNAUTHORISED, None)
        }
        ClientError::Resume { source } => judge_resume(source),
        // The job itself went well.
        ClientError::Output { .. } => (exit::RESOURCES, None),
        ClientError::Interrupted { .. } | ClientError::InterruptedPlanning => (exit::INTERRUPTED, None),
        ClientError::Refused { error } => judge_refusal(&error.code),
        ClientError::OtherBuild { .. } => (
            exit::ENVIRONMENT,
            Some(
                "submit with the executable that master and workers run, or send this one along with --ship, if the master \
                 allows that",
            ),
        ),
        ClientError::NotShared { .. } | ClientError::Serve { .. } => (exit::ENVIRONMENT, None),
        _ => (exit::ENVIRONMENT, None),
    }
}

/// Rounds that cannot go on where they were left.
fn judge_resume(error: &ResumeError) -> (u8, Option<&'static str>) {
    match error {
        ResumeError::Unasked { .. } => (
            exit::ENVIRONMENT,
            Some("go on with them by --resume, begin anew by --overwrite, or choose another directory"),
        ),
        ResumeError::NoRecord { .. } => {
            (exit::ENVIRONMENT, Some("is it the right directory? without --resume the rounds begin there"))
        }
        ResumeError::Input { .. } => {
            (exit::INPUT, Some("to begin anew, say --overwrite in the place of --resume"))
        }
        ResumeError::Record { source, .. } if is_out_of_room(source) => {
            (exit::RESOURCES, Some("free some space, or choose another directory"))
        }
        _ => (exit::ENVIRONMENT, Some("to begin anew, say --overwrite in the place of --resume")),
    }
}

/// A job that did not come as far as the master.
fn judge_submit(error: &SubmitError) -> (u8, Option<&'static str>) {
    match error {
        SubmitError::Output { source } => judge_output(source),
        SubmitError::Input { source: InputError::Store { source } } => {
            judge_store_fault(source.cause.fault())
        }
        // This machine lacks the means, such as descriptors, or does not reach the worker that has it.
        SubmitError::Input { source } if !source.is_input_fault() => (exit::ENVIRONMENT, None),
        SubmitError::Input { source } => (exit::INPUT, hint_of_input(source)),
        SubmitError::Plan { source: PlanError::Input { .. } } => {
            (exit::INPUT, Some("check the name of the file, and what it holds"))
        }
        SubmitError::Plan { .. }
        | SubmitError::Settings { .. }
        | SubmitError::Overwritten { .. }
        | SubmitError::WithinOutput { .. } => (exit::USAGE, None),
        SubmitError::Panicked => (exit::FAILED, None),
        SubmitError::Sample { source } => match source.class() {
            Fault::Credentials => (exit::UNAUTHORISED, None),
            Fault::Input => (exit::INPUT, None),
            Fault::User => (exit::FAILED, None),
            Fault::Config => (exit::USAGE, None),
            _ => (exit::ENVIRONMENT, None),
        },
        _ => (exit::ENVIRONMENT, None),
    }
}

/// A store that could not be read, or is no place for an output; the error says itself what to do.
fn judge_store_fault(fault: ObjectFault) -> (u8, Option<&'static str>) {
    match fault {
        ObjectFault::Asked => (exit::INPUT, None),
        ObjectFault::Credentials => (exit::UNAUTHORISED, None),
        ObjectFault::Settings | ObjectFault::Way | ObjectFault::Machine => (exit::ENVIRONMENT, None),
    }
}

/// What to do about input of which the error does not say so itself.
fn hint_of_input(error: &InputError) -> Option<&'static str> {
    match error {
        InputError::Missing { .. } => Some(HINT_OF_MISSING),
        InputError::Paths { first, .. }
            if first.iter().all(|error| matches!(error, InputError::Missing { .. })) =>
        {
            Some(HINT_OF_MISSING)
        }
        InputError::Unreadable { source, .. } if source.kind() == std::io::ErrorKind::NotConnected => {
            Some("standard input is closed: pipe the input in, or name a file")
        }
        InputError::Unreadable { .. } => {
            Some("have its permissions changed, or name a copy that you may read")
        }
        _ => None,
    }
}

const HINT_OF_GONE: &str = "run it again, and leave its output directory alone until it has ended (`gristmill cancel JOB` stops a job); workers on \
     other machines must see it under the same name";

const HINT_OF_DESCRIPTORS: &str =
    "raise the limit of open files there, as by `ulimit -n 4096` before the start, or run fewer jobs at once";

const HINT_OF_MISSING: &str = "check the name; a path counts from the folder you are in, and worker-3:/path names a file on that worker";

/// An output directory that cannot be claimed.
fn judge_output(error: &OutputError) -> (u8, Option<&'static str>) {
    match error {
        OutputError::Io { source, .. } if are_used_up(source) => (exit::RESOURCES, Some(HINT_OF_DESCRIPTORS)),
        OutputError::Io { source, .. } if is_out_of_room(source) => {
            (exit::RESOURCES, Some("free some space, or choose another directory"))
        }
        OutputError::Io { action: "create", source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            (
                exit::ENVIRONMENT,
                Some("the folder in which it is to lie must be there: make it first, as with `mkdir -p`"),
            )
        }
        OutputError::Io { .. } => {
            (exit::ENVIRONMENT, Some("name another directory with --output, in a folder that you may write"))
        }
        OutputError::Protected { .. } | OutputError::ReadOnly { .. } => (exit::USAGE, None),
        OutputError::Store { source } => match source.cause.fault() {
            ObjectFault::Credentials => (exit::UNAUTHORISED, None),
            _ => (exit::ENVIRONMENT, None),
        },
        OutputError::Claimed { .. } => (
            exit::ENVIRONMENT,
            Some("if no job writes there any more, delete that object, and run this one again"),
        ),
        OutputError::NotEmpty { .. } => {
            (exit::ENVIRONMENT, Some("choose another directory, or add --overwrite"))
        }
        OutputError::Busy { .. } => (
            exit::ENVIRONMENT,
            Some(
                "if no job runs there any more, bring back what is in a _replaced folder there, and \
                 remove _temporary",
            ),
        ),
        _ => (exit::ENVIRONMENT, None),
    }
}

/// A request that the master did not answer.
fn judge_request(error: &HttpError) -> (u8, Option<&'static str>) {
    match error {
        HttpError::Unauthorized { .. } => (
            exit::UNAUTHORISED,
            Some(
                "use the master's join line: --join FILE; if it is that one, its token was revoked or replaced, or another program has the port",
            ),
        ),
        HttpError::Forbidden { .. } => (
            exit::UNAUTHORISED,
            Some(
                "use a join line with a token that may: `gristmill token new ROLE` makes one where the master runs",
            ),
        ),
        HttpError::Plaintext { .. } | HttpError::Forwarded { .. } => (exit::ENVIRONMENT, None),
        HttpError::PinMismatch { .. } => (
            exit::CLUSTER,
            Some("use the join line of the master that runs there now: the file `join` in its state folder"),
        ),
        HttpError::Connect { .. } => (
            exit::CLUSTER,
            Some(
                "is the master running? `gristmill master` starts it where it was, and it goes on; `gristmill doctor` looks further",
            ),
        ),
        _ => (exit::CLUSTER, Some("`gristmill doctor` looks at the master and the ways to it")),
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
        FailureCode::Credentials => (
            exit::UNAUTHORISED,
            Some("each worker uses its own: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY where it runs"),
        ),
        FailureCode::Config => (exit::USAGE, None),
        FailureCode::NoWorkers
        | FailureCode::WorkersLost
        | FailureCode::ClientLost
        | FailureCode::MasterLost => (exit::CLUSTER, None),
        FailureCode::Unreachable => (
            exit::CLUSTER,
            Some("workers must reach this machine: see the addresses above, and the firewall"),
        ),
        FailureCode::Store => (exit::CLUSTER, None),
        FailureCode::OutputGone => (exit::ENVIRONMENT, Some(HINT_OF_GONE)),
        FailureCode::Output | FailureCode::WorkersUnfit => {
            (exit::RESOURCES, Some("free some space, or choose other folders"))
        }
        FailureCode::Memory => {
            let hint = "a worker over its own budget needs a larger --memory; where the kernel ended it, run less at \
                        once: fewer --workers or --slots, or a smaller --memory";
            (exit::RESOURCES, Some(hint))
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
        | ErrorCode::Estimator
        | ErrorCode::Pool
        | ErrorCode::Deadline
        | ErrorCode::Exact
        | ErrorCode::Spec => (exit::USAGE, None),
        ErrorCode::Ending | ErrorCode::JobForgotten => (exit::CLUSTER, None),
        ErrorCode::Owner => {
            (exit::UNAUTHORISED, Some("`gristmill jobs` lists owners; an admin token cancels any job"))
        }
        ErrorCode::Quota => (
            exit::CANCELLED,
            Some("`gristmill jobs` lists jobs; `gristmill token new` where the master runs changes quotas"),
        ),
        ErrorCode::Ship => (
            exit::ENVIRONMENT,
            Some("have the master started with --allow-ship, or submit with the executable that it runs"),
        ),
        ErrorCode::Resources => (exit::RESOURCES, Some(HINT_OF_DESCRIPTORS)),
        ErrorCode::ProgramRoom => (
            exit::RESOURCES,
            Some(
                "wait until jobs have ended, or have the master started with larger --shipped-programs and --shipped-bytes",
            ),
        ),
        ErrorCode::Archive => (
            exit::ENVIRONMENT,
            Some("remove what is there where the master runs; how the job ended `gristmill history` tells"),
        ),
        ErrorCode::Job => (exit::USAGE, Some("`gristmill jobs` lists them")),
        ErrorCode::Worker => (exit::USAGE, Some("`gristmill status` lists them")),
        ErrorCode::Route
        | ErrorCode::Body
        | ErrorCode::JobPast
        | ErrorCode::Process
        | ErrorCode::Token
        | ErrorCode::Submission
        | ErrorCode::Submitter
        | ErrorCode::Schema
        | ErrorCode::Key
        | ErrorCode::Cuts
        | ErrorCode::Build
        | ErrorCode::Program
        | ErrorCode::Register
        | ErrorCode::Journal
        | ErrorCode::NotShared
        | ErrorCode::OutputStore
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
        CompareError::Forgotten { .. } | CompareError::Calibration { .. } | CompareError::Fit { .. } => {
            (exit::FAILED, None)
        }
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
        StoreError::Differs { .. } | StoreError::Planned { .. } => {
            (exit::USAGE, Some("choose another folder with --out"))
        }
        _ => (exit::ENVIRONMENT, None),
    }
}

/// Which exit code each kind of error has: those that the README promises. That commands end with them `tests/it` shows.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::usage;
    use gristmill_runtime::api::JobStatus;
    use gristmill_scheduler::ids::JobId;
    use gristmill_worker::api::TaskError;
    use gristmill_worker::http::Endpoint;
    use gristmill_worker::input::FilePath;
    use gristmill_worker::task::TaskFailure;
    use hyper::Method;
    use serde_json::json;
    use std::io;

    /// A job that ended without success; `None`: it was cancelled.
    fn job(code: Option<&str>) -> anyhow::Error {
        let counts = json!({"total": 1, "running": 0, "done": 1});
        let attempts = json!({
            "launched": 1, "failed_user": 0, "failed_other": 0, "lost": 0, "cancelled": 0, "maps_rerun": 0
        });
        let status = json!({
            "schema": 1, "job": 1, "name": "test", "parameters": "{}", "state": "failed", "maps": counts,
            "reduces": counts, "segments_total": 1, "input_bytes": 0, "input_bytes_read": 0, "arrived_ns": 0,
            "started_ns": 0, "maps_done_ns": 0, "shuffle_done_ns": 0, "ended_ns": 1, "now_ns": 1,
            "totals": gristmill_runtime::api::JobTotals::default(), "attempts": attempts, "counters": {}, "parts": [],
            "incidents": [], "incidents_omitted": 0, "remarks": [], "workers": 1, "slots": 4, "output": "/out",
            "failure": code.map(|code| json!({"code": code, "message": "", "detail": null})),
        });
        let status: JobStatus = serde_json::from_value(status).unwrap();
        ClientError::Job { status: Box::new(status) }.into()
    }

    fn submit(source: SubmitError) -> anyhow::Error {
        ClientError::Submit { source: Box::new(source) }.into()
    }

    fn sample(source: TaskFailure) -> anyhow::Error {
        submit(SubmitError::Sample { source })
    }

    fn disk(kind: io::ErrorKind) -> OutputError {
        OutputError::Io { action: "create", path: "/out".into(), source: kind.into() }
    }

    fn refused(code: &str) -> anyhow::Error {
        ClientError::Refused { error: serde_json::from_value(json!({"code": code, "message": ""})).unwrap() }
            .into()
    }

    fn master(source: HttpError) -> anyhow::Error {
        let master = Endpoint { host: "127.0.0.1".to_owned(), port: 1, pin: None };
        ClientError::Master { master, source: Box::new(source) }.into()
    }

    #[track_caller]
    fn check(expected: u8, errors: impl IntoIterator<Item = anyhow::Error>) {
        for error in errors {
            assert_eq!(judge(&error).0, expected, "{error:?}");
        }
    }

    #[test]
    fn failed_job_ends_with_the_code_of_whose_trouble_it_was() {
        for (code, expected) in [
            (Some("user_code"), exit::FAILED),
            (Some("config"), exit::USAGE),
            (Some("input"), exit::INPUT),
            (Some("no_workers"), exit::CLUSTER),
            (Some("workers_lost"), exit::CLUSTER),
            (Some("client_lost"), exit::CLUSTER),
            (Some("master_lost"), exit::CLUSTER),
            (Some("output_unreadable"), exit::CLUSTER),
            (Some("output"), exit::RESOURCES),
            (Some("output_gone"), exit::ENVIRONMENT),
            (Some("output_corrupt"), exit::RESOURCES),
            (Some("workers_unfit"), exit::RESOURCES),
            (Some("memory"), exit::RESOURCES),
            (Some("limit"), exit::CANCELLED),
            (None, exit::CANCELLED),
            (Some("engine"), exit::ENGINE),
            (Some("internal"), exit::ENGINE),
            (Some("a word that nobody knows"), exit::ENGINE),
        ] {
            assert_eq!(judge(&job(code)).0, expected, "{code:?}");
        }
    }

    #[test]
    fn job_that_cannot_be_planned_ends_with_the_code_of_what_is_in_the_way() {
        let path = || FilePath::new(*b"input");
        let plan = |source| submit(SubmitError::Plan { source });
        let parameter =
            || PlanError::Parameter { parameter: String::new(), value: String::new(), reason: String::new() };
        check(exit::USAGE, [plan(parameter()), submit(SubmitError::Settings { reason: TaskError::new("") })]);
        check(exit::USAGE, [submit(SubmitError::Overwritten { written: path(), input: path() })]);
        check(
            exit::INPUT,
            [
                plan(PlanError::Input { path: String::new(), reason: String::new() }),
                submit(SubmitError::Input { source: InputError::Missing { path: path() } }),
                sample(InputError::Missing { path: path() }.into()),
            ],
        );
        // A lack of descriptors, say: nothing is wrong with the input.
        let lacking = || InputError::Unavailable { path: path(), source: io::ErrorKind::Other.into() };
        check(
            exit::ENVIRONMENT,
            [submit(SubmitError::Input { source: lacking() }), sample(lacking().into())],
        );
        check(
            exit::FAILED,
            [submit(SubmitError::Panicked), sample(TaskFailure::User { message: "no".to_owned() })],
        );
        check(exit::USAGE, [sample(TaskFailure::Config { message: "no".to_owned() })]);
    }

    #[test]
    fn output_that_cannot_be_had_ends_with_the_code_of_why() {
        let output = |source| submit(SubmitError::Output { source });
        let finish = |source| anyhow::Error::from(ClientError::Output { source });
        let refusals = [
            OutputError::NotEmpty { path: "/out".into() },
            OutputError::NotADirectory { path: "/out".into() },
            disk(io::ErrorKind::PermissionDenied),
        ];
        check(exit::ENVIRONMENT, refusals.map(output));
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge] {
            check(exit::RESOURCES, [output(disk(kind)), finish(disk(kind)), io::Error::from(kind).into()]);
        }
    }

    #[test]
    fn input_that_is_missing_and_output_that_cannot_be_made_come_with_a_next_step() {
        let missing = || InputError::Missing { path: FilePath::new(*b"input") };
        let both = InputError::Paths { first: vec![missing(), missing()], total: 2 };
        for (error, expected) in [
            (submit(SubmitError::Input { source: missing() }), "check the name"),
            (submit(SubmitError::Input { source: both }), "check the name"),
            (submit(SubmitError::Output { source: disk(io::ErrorKind::NotFound) }), "mkdir -p"),
            (submit(SubmitError::Output { source: disk(io::ErrorKind::PermissionDenied) }), "--output"),
        ] {
            let (_, hint) = judge(&error);
            assert!(hint.is_some_and(|hint| hint.contains(expected)), "{error:?}: {hint:?}");
        }
    }

    #[test]
    fn other_errors_end_with_their_documented_codes() {
        check(exit::USAGE, [usage(String::new()), refused("policy"), refused("job")]);
        check(exit::ENVIRONMENT, [refused("build"), io::Error::from(io::ErrorKind::PermissionDenied).into()]);
        let connect =
            HttpError::Connect { peer: String::new(), source: io::ErrorKind::ConnectionRefused.into() };
        check(exit::CLUSTER, [master(connect)]);
        let unauthorised =
            HttpError::Unauthorized { peer: String::new(), method: Method::GET, path: String::new() };
        check(exit::UNAUTHORISED, [master(unauthorised)]);
        let plain = HttpError::Plaintext { peer: String::new() };
        check(exit::ENVIRONMENT, [master(plain), master(HttpError::Forwarded { peer: String::new() })]);
        check(
            exit::INTERRUPTED,
            [ClientError::Interrupted { job: JobId(1) }.into(), ClientError::InterruptedPlanning.into()],
        );
    }
}

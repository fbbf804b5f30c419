//! Exit code of the program for an error, and the hint of what to do next. Each error has its own
//! ([`ExitsWith`]); this file lists those that a command can end with.

use crate::places::UpError;
use crate::usage::UsageError;
use crate::{files, private_file, state, trusted};
use gristmill_lab::compare::CompareError;
use gristmill_lab::compare::file::FileError;
use gristmill_lab::compare::store::StoreError;
use gristmill_runtime::client::ClientError;
use gristmill_runtime::cluster::ClusterError;
use gristmill_runtime::master::MasterError;
use gristmill_runtime::master::tokens::TokensError;
use gristmill_worker::agent::WorkerError;
use gristmill_worker::descriptors::TooFewDescriptors;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::http::{BindError, IdentityError, PrivateFileError, SecretError};

/// Finds an error of one type in what a command returned.
type FindExit = fn(&anyhow::Error) -> Option<Exit>;

/// Errors with an exit code; the first one that is found decides.
const KINDS: &[FindExit] = &[
    any::<TooFewDescriptors>,
    one::<UsageError>,
    #[cfg(feature = "papers")]
    one::<gristmill_papers::PaperWriteError>,
    one::<private_file::FileExists>,
    #[cfg(feature = "papers")]
    one::<gristmill_papers::Interrupted>,
    one::<files::InputFileError>,
    one::<UpError>,
    one::<FileError>,
    one::<StoreError>,
    one::<CompareError>,
    one::<ClientError>,
    one::<WorkerError>,
    one::<ClusterError>,
    one::<trusted::TrustError>,
    one::<BindError>,
    one::<MasterError>,
    one::<state::StateError>,
    one::<SecretError>,
    one::<PrivateFileError>,
    one::<TokensError>,
    one::<IdentityError>,
    one::<std::io::Error>,
];

fn one<E: ExitsWith + Send + Sync + 'static>(error: &anyhow::Error) -> Option<Exit> {
    error.downcast_ref::<E>().map(ExitsWith::exit)
}

/// As [`one`], also for its causes.
fn any<E: ExitsWith + 'static>(error: &anyhow::Error) -> Option<Exit> {
    error.chain().find_map(|cause| cause.downcast_ref::<E>()).map(ExitsWith::exit)
}

/// Returns the exit code of an error, and a hint.
pub(crate) fn judge(error: &anyhow::Error) -> Exit {
    if error.is::<clap::Error>() {
        return Exit::with(exit::USAGE);
    }
    KINDS.iter().find_map(|kind| kind(error)).unwrap_or(Exit::with(exit::FAILED))
}

/// Checks the exit code of each kind of error against those of the reference. `cli/tests/it` shows that commands end
/// with them.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::usage;
    use gristmill_runtime::api::JobStatus;
    use gristmill_runtime::output_dir::OutputError;
    use gristmill_runtime::submit::SubmitError;
    use gristmill_scheduler::ids::JobId;
    use gristmill_worker::api::{PlanError, TaskError};
    use gristmill_worker::http::{Endpoint, HttpError};
    use gristmill_worker::input::{FilePath, InputError};
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
            assert_eq!(judge(&error).code, expected, "{error:?}");
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
            (Some("an unknown word"), exit::ENGINE),
        ] {
            assert_eq!(judge(&job(code)).code, expected, "{code:?}");
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
        // For example a lack of descriptors: the input is not wrong.
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
            let hint = judge(&error).hint;
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

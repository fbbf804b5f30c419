//! The command line: the whole program, given a registry of jobs.
//!
//! One file for each group of commands. stdout is data, stderr is talk; exit codes are those of
//! [`exit`]. Not here: anything a library user could not do without it.

/// Says something on stderr.
macro_rules! say {
    ($($words:tt)*) => { $crate::cli::stderr_line(&format!($($words)*)) };
}

mod bars;
mod child;
mod compare;
mod explain;
mod files;
mod flags;
mod number_table;
mod order;
mod paper;
mod policy;
mod processes;
mod query;
mod queues;
mod replay;
mod run;
mod settings;
mod shape;
mod sim;
mod state;
mod summary;
mod text_table;
mod token;
mod tools;
mod trace;
mod trusted;
mod verify;
mod whatif;

use crate::client::ClientError;
use crate::cluster::ClusterError;
use crate::exit;
use crate::master::MasterError;
use crate::output_dir::OutputError;
use crate::registry::Registry;
use crate::submit::SubmitError;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use gristmill_worker::agent::WorkerError;
use gristmill_worker::api::PlanError;
use gristmill_worker::clean;
use gristmill_worker::fault;
use gristmill_worker::http::{BindError, HttpError, IdentityError, SecretError};
use gristmill_worker::task::Fault;
use std::ffi::OsString;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Commands whose flags do not depend on the registry.
#[derive(Subcommand)]
enum Fixed {
    /// Start a master and print the line with which workers join
    Master(processes::MasterCommand),
    /// Start a worker and join a master
    Worker(processes::WorkerCommand),
    /// Show the master and its workers, or one job
    Status(query::StatusCommand),
    /// Show or change who decides on a running master
    Policy(policy::PolicyCommand),
    Token(token::TokenCommand),
    /// List jobs
    Jobs(query::JobsCommand),
    /// Wait until a job has ended
    Wait(query::WaitCommand),
    /// Stop a job
    Cancel(query::CancelCommand),
    /// Say why a job waits, or why a task ran where and when it did
    Explain(explain::ExplainCommand),
    /// Show what user code wrote to stdout and stderr
    Logs(query::LogsCommand),
    Replay(replay::ReplayCommand),
    Whatif(whatif::WhatifCommand),
    Sim(Box<sim::SimCommand>),
    Order(order::OrderCommand),
    Place(queues::PlaceCommand),
    Size(queues::SizeCommand),
    Fit(queues::FitCommand),
    /// Run the experiments of the papers anew and write their figures and tables
    Paper(paper::PaperCommand),
    Verify(verify::VerifyCommand),
    /// Make input: text, records or tables
    Gen(crate::generate::GenerateArgs),
    /// Check the order, count and checksum of a sorted output
    VerifySort(tools::VerifySortCommand),
    /// Print a completion script for a shell
    Completions(tools::CompletionsCommand),
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main(registry: Registry) -> ExitCode {
    main_from(registry, std::env::args_os().collect())
}

/// Runs the program with these arguments, the first being its name.
#[must_use]
pub fn main_from(registry: Registry, arguments: Vec<OsString>) -> ExitCode {
    survive_file_limit();
    gristmill_worker::descriptors::raise();
    let typed = arguments.clone();
    let matches = match command(&registry).try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if error.kind() == clap::error::ErrorKind::InvalidUtf8 => {
            eprintln!("{}error:{} {}", style("1;31"), style("0"), not_text(&typed));
            return ExitCode::from(exit::USAGE);
        }
        Err(error) => {
            let code = if error.use_stderr() { exit::USAGE } else { exit::OK };
            // Help into a closed pipe is no error.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let result = dispatch(registry, &matches);
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if error.is::<StdoutClosed>() {
                return ExitCode::from(exit::OK);
            }
            let (code, hint) = judge(&error);
            let words = crate::chain(error.as_ref());
            eprintln!("{}error:{} {}", style("1;31"), style("0"), clean::message(&words));
            if let Some(hint) = hint {
                eprintln!("  hint: {hint}");
            }
            ExitCode::from(code)
        }
    }
}

/// Names the arguments that are no text.
fn not_text(arguments: &[OsString]) -> String {
    let wrong = arguments.iter().enumerate().filter(|(_, argument)| argument.to_str().is_none());
    let named = wrong.map(|(number, argument)| format!("{number} ({argument:?})"));
    let named: Vec<String> = named.collect();
    let (word, is) = if named.len() == 1 { ("argument", "is") } else { ("arguments", "are") };
    format!("{word} {} {is} not UTF-8", named.join(", "))
}

/// Lets a write beyond the limit on the size of files fail, as other writes do, instead of ending the process. The
/// signal is caught and not ignored: programs that user code starts get it as ever.
fn survive_file_limit() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    let _within = runtime.enter();
    // What is caught stays caught, though nobody listens.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// The whole command line of this registry.
fn command(registry: &Registry) -> Command {
    let about =
        "MapReduce on a laptop or a LAN: a real master, real workers, a shuffle that overlaps with the maps";
    let program = Command::new("gristmill")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(80)
        .arg(
            clap::Arg::new("settings")
                .long("settings")
                .global(true)
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Settings [default: ./gristmill.toml if there is one]"),
        );
    Fixed::augment_subcommands(program)
        .about(about)
        .long_about(None)
        .subcommand(run::run_command(registry).display_order(0))
        .subcommand(run::submit_command(registry).display_order(1))
        .subcommand(compare::command().display_order(2))
}

/// Whether a flag was typed, behind whatever command.
fn is_typed(matches: &ArgMatches, flag: &str) -> bool {
    let here = matches.try_get_one::<bool>(flag).ok().flatten().is_some_and(|typed| *typed);
    here || matches.subcommand().is_some_and(|(_, inner)| is_typed(inner, flag))
}

/// Keeps the memory of this process, in which secrets are, from other processes of its user and out of core files.
/// Children that are other programs are as ever.
fn keep_memory_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // A test that is not root could not look at the process otherwise.
    if fault::is_armed("dumpable") {
        return;
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::debug!(%error, "other processes of this user can read the memory of this one");
    }
}

fn dispatch(registry: Registry, matches: &ArgMatches) -> anyhow::Result<u8> {
    let child = is_typed(matches, "from_parent");
    // A worker process has something to do before.
    if !child || matches.subcommand_name() == Some("master") {
        keep_memory_private();
    }
    if !child && is_typed(matches, "insecure_plaintext") {
        eprintln!(
            "{}warning:{} --insecure-plaintext: everyone on the way to other machines can read and change all data",
            style("1;31"),
            style("0")
        );
    }
    let named = matches.get_one::<PathBuf>("settings").map(PathBuf::as_path);
    let settings = settings::load(named)?;
    match matches.subcommand() {
        Some(("run", flags)) => run::run(&registry, &settings, flags),
        Some(("submit", flags)) => run::submit(&registry, &settings, flags),
        Some(("compare", flags)) => compare::compare(&registry, &settings, flags),
        _ => match Fixed::from_arg_matches(matches)? {
            Fixed::Master(flags) => processes::master(&registry, &settings, &flags),
            Fixed::Worker(flags) => processes::worker(registry, &settings, &flags),
            Fixed::Status(flags) => query::status(&settings, &flags),
            Fixed::Policy(flags) => policy::policy(&registry, &settings, &flags),
            Fixed::Token(flags) => token::token(&settings, &flags),
            Fixed::Jobs(flags) => query::jobs(&settings, &flags),
            Fixed::Wait(flags) => query::wait(&settings, &flags),
            Fixed::Cancel(flags) => query::cancel(&settings, &flags),
            Fixed::Explain(flags) => explain::explain(&settings, &flags),
            Fixed::Logs(flags) => query::logs(&settings, &flags),
            Fixed::Replay(flags) => replay::run(&registry, &flags),
            Fixed::Whatif(flags) => whatif::run(&registry, &flags),
            Fixed::Sim(flags) => sim::sim(&registry, &flags),
            Fixed::Order(flags) => order::run(&flags),
            Fixed::Place(flags) => queues::run_place(&flags),
            Fixed::Size(flags) => queues::run_size(&flags),
            Fixed::Paper(flags) => paper::paper(&registry, &flags),
            Fixed::Fit(flags) => queues::run_fit(&flags),
            Fixed::Verify(flags) => verify::verify(&flags),
            Fixed::Gen(flags) => tools::generate(&flags),
            Fixed::VerifySort(flags) => tools::verify_sort(&flags),
            Fixed::Completions(flags) => tools::completions(&flags, command(&registry)),
        },
    }
}

/// A mistake in the command, exit code 2.
#[derive(Debug)]
struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

fn usage(message: String) -> anyhow::Error {
    UsageError(message).into()
}

/// Whoever read stdout has had enough: no error. Only writing to stdout makes this one; a pipe to a child that
/// breaks is something else.
#[derive(Debug)]
struct StdoutClosed;

impl fmt::Display for StdoutClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stdout was closed")
    }
}

impl std::error::Error for StdoutClosed {}

/// The result of writing to stdout.
fn written<T>(result: std::io::Result<T>) -> anyhow::Result<T> {
    result.map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => StdoutClosed.into(),
        _ => error.into(),
    })
}

/// The exit code of an error, and what to do next.
fn judge(error: &anyhow::Error) -> (u8, Option<&'static str>) {
    if error.is::<UsageError>() || error.is::<clap::Error>() {
        return (exit::USAGE, None);
    }
    if let Some(error) = error.downcast_ref::<crate::paper::WriteError>() {
        let replaceable = matches!(error, crate::paper::WriteError::NotEmpty { .. });
        return (exit::ENVIRONMENT, replaceable.then_some("choose another folder, or add --overwrite"));
    }
    if error.is::<crate::paper::Interrupted>() {
        return (exit::INTERRUPTED, None);
    }
    if error.is::<files::InputError>() {
        return (exit::INPUT, None);
    }
    if let Some(judged) = compare::judge(error) {
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

fn judge_client(error: &ClientError) -> (u8, Option<&'static str>) {
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
        ClientError::Job { status } => match status.failure.as_ref().map(|failure| failure.code.as_str()) {
            Some("user_code") => (exit::FAILED, None),
            Some("not_deterministic") => (
                exit::FAILED,
                Some(
                    "let the mapper depend on its records and the job's parameters alone, and seed random numbers",
                ),
            ),
            Some("input") => (exit::INPUT, None),
            Some("config") => (exit::USAGE, None),
            Some("no_workers" | "workers_lost" | "client_lost" | "master_lost") => (exit::CLUSTER, None),
            Some("unreachable") => (
                exit::CLUSTER,
                Some("workers must reach this machine: see the addresses above, and the firewall"),
            ),
            Some("output" | "workers_unfit") => {
                (exit::RESOURCES, Some("free some space, or choose other folders"))
            }
            Some("memory") => {
                (exit::RESOURCES, Some("run less at once: fewer --workers or --slots, or a smaller --memory"))
            }
            Some("output_corrupt") => (
                exit::RESOURCES,
                Some("the disk or memory of a machine damages data: the incidents name the workers"),
            ),
            Some("output_unreadable") => {
                (exit::CLUSTER, Some("do the workers reach each other? the incidents name them"))
            }
            Some("limit") | None => (exit::CANCELLED, None),
            Some(_) => (exit::ENGINE, Some("please report it, with what was run")),
        },
        ClientError::Output { source: OutputError::Io { source, .. } } if is_out_of_room(source) => {
            (exit::RESOURCES, Some("free some space, or choose another directory"))
        }
        // The job itself went well.
        ClientError::Output { .. } => (exit::RESOURCES, None),
        ClientError::Interrupted { .. } => (exit::INTERRUPTED, None),
        ClientError::Refused { error }
            if matches!(
                error.code.as_str(),
                "task"
                    | "job_name"
                    | "name"
                    | "policy"
                    | "placement"
                    | "pool"
                    | "deadline"
                    | "exact"
                    | "spec"
            ) =>
        {
            (exit::USAGE, None)
        }
        ClientError::Refused { error } if error.code == "ending" => (exit::CLUSTER, None),
        ClientError::Refused { error } if error.code == "job" => {
            (exit::USAGE, Some("`gristmill jobs` lists them"))
        }
        ClientError::OtherBuild { .. } => (
            exit::ENVIRONMENT,
            Some("submit with the executable that master and workers run, or start them anew with this one"),
        ),
        ClientError::Refused { .. } | ClientError::NotShared { .. } | ClientError::Serve { .. } => {
            (exit::ENVIRONMENT, None)
        }
        _ => (exit::ENVIRONMENT, None),
    }
}

/// What is shown of a text: lines without anything that drives a terminal.
fn shown(text: &dyn fmt::Display) -> String {
    clean::lines(&text.to_string()).into_owned()
}

/// Writes a line to stdout, cleaned: names in it are those that others gave. Unlike with `println!`, a closed pipe is an
/// error and not a panic.
fn stdout_line(text: &dyn fmt::Display) -> anyhow::Result<()> {
    written(writeln!(std::io::stdout(), "{}", shown(text)))
}

/// Writes a text to stdout as it is, for a person who asked for just that.
fn stdout_raw(text: &str) -> anyhow::Result<()> {
    written(std::io::stdout().write_all(text.as_bytes()))
}

/// Writes a text to stdout, cleaned likewise.
fn stdout_text(text: &dyn fmt::Display) -> anyhow::Result<()> {
    written(write!(std::io::stdout(), "{}", shown(text)))
}

/// Writes a line to stderr, cleaned likewise. Nobody is left to be told that stderr is closed.
fn stderr_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", clean::lines(text));
}

/// Writes a text to stderr, cleaned likewise.
fn stderr_text(text: &str) {
    let _ = write!(std::io::stderr(), "{}", clean::lines(text));
}

/// A terminal's colour code, or nothing where stderr is no terminal.
fn style(code: &str) -> String {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colour { format!("\x1b[{code}m") } else { String::new() }
}

#[cfg(test)]
mod tests;

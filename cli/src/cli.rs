//! Commands of the program, and dispatch to the module of each.
//!
//! Data go to stdout, messages to stderr; exit codes are those of [`exit`].

use crate::interruption::Listener;
use crate::papers::{paper, verify};
use crate::private_memory::keep_memory_private;
use crate::settings::Settings;
use crate::terminal::{self, StdoutClosed};
use crate::{
    compare, doctor, explain, history, init, order, page, places, policy, processes, query, queues, replay,
    run, sim, streaming, token, tools,
};
use crate::{verdict, whatif};
use clap::{ArgAction, ArgMatches, Command, FromArgMatches, Subcommand};
use gristmill_runtime::cluster::ChildRole;
use gristmill_runtime::exit;
use gristmill_runtime::generate::GenerateArgs;
use gristmill_runtime::registry::Registry;
use gristmill_worker::exit::Exit;
use gristmill_worker::sanitize;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use tokio::signal::unix::SignalKind;

/// Top-level commands, besides those of the registry's jobs. The list of commands shows the texts here, since
/// the flags of a command are built when it is called.
#[derive(Subcommand)]
#[command(defer = true)]
enum Visible {
    /// Run a job of Hadoop Streaming: commands that read lines and write lines
    Streaming(Box<streaming::StreamingCommand>),
    /// Generate input: text, records or tables
    Gen(GenerateArgs),
    /// Check the order, count and checksum of a sorted output
    VerifySort(tools::VerifySortCommand),
    /// Write a settings file with all settings, commented out
    Init(init::InitCommand),
    /// List, watch, explain and cancel jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// Start, show, change and stop a cluster
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Compare, simulate and analyse schedulers
    #[command(subcommand)]
    Lab(LabCommand),
}

/// Commands about jobs of a running master.
#[derive(Subcommand)]
#[command(defer = true)]
enum JobCommand {
    /// List jobs
    #[command(alias = "jobs")]
    List(query::JobsCommand),
    /// Show a job
    Show(query::ShowCommand),
    /// Explain why a job waits, or why a task ran where and when it did
    Explain(explain::ExplainCommand),
    /// Show what user code wrote to stdout and stderr
    Logs(query::LogsCommand),
    /// Write a trace of a job, for ui.perfetto.dev or chrome://tracing
    Trace(history::TraceCommand),
    /// Write a self-contained HTML report of a job
    Report(history::ReportCommand),
    /// Wait until a job has ended
    Wait(query::WaitCommand),
    /// Stop a job
    #[command(alias = "kill")]
    Cancel(query::CancelCommand),
}

/// Commands about a cluster.
#[derive(Subcommand)]
#[command(defer = true)]
enum ClusterCommand {
    /// Start a cluster by ssh, Slurm, Ray or Kubernetes
    Up(Box<places::UpCommand>),
    /// End what `gristmill cluster up` has started, here and elsewhere
    Down(places::DownCommand),
    /// Start a master and print the line with which workers join
    Master(processes::MasterCommand),
    /// Start a worker and join a master
    Worker(Box<processes::WorkerCommand>),
    /// Show the master and its workers, or one job
    Status(query::StatusCommand),
    /// Show or change the policy of a running master
    Policy(policy::PolicyCommand),
    /// Create, revoke or rotate access tokens
    Token(token::TokenCommand),
    /// Let a worker finish its tasks, hand over its data, and leave
    Drain(query::DrainCommand),
    /// Diagnose this machine and cluster
    Doctor(Box<doctor::DoctorCommand>),
    /// Print a link to the live page of a running master
    Page(page::PageCommand),
}

/// Commands about schedulers, besides `lab compare`.
#[derive(Subcommand)]
#[command(defer = true)]
enum LabCommand {
    /// Simulate policies on jobs and machines
    Sim(Box<sim::SimCommand>),
    /// Replay a journal through the scheduler and compare the orders
    Replay(replay::ReplayCommand),
    /// Replay a journal under other policies
    Whatif(whatif::WhatifCommand),
    /// Run the experiments of the papers again and write their figures and tables
    #[cfg_attr(not(feature = "papers"), command(hide = true))]
    Paper(paper::PaperCommand),
    /// Put waiting jobs in order
    Order(order::OrderCommand),
    /// Split arriving tasks over workers
    Place(queues::PlaceCommand),
    /// Choose how many workers of which kind to buy
    Size(queues::SizeCommand),
    /// Compute worked cases and compare
    #[cfg_attr(not(feature = "papers"), command(hide = true))]
    Verify(verify::VerifyCommand),
}

/// Commands that only this program calls.
#[derive(Subcommand)]
#[command(defer = true)]
enum Internal {
    Unpack(places::UnpackCommand),
}

/// All commands. Commands of groups also work without the group's name, for example `wait` without `job`; help
/// does not list them so.
#[derive(Subcommand)]
enum Called {
    #[command(flatten)]
    Visible(Visible),
    #[command(flatten)]
    Job(JobCommand),
    #[command(flatten)]
    Cluster(ClusterCommand),
    #[command(flatten)]
    Lab(LabCommand),
    #[command(flatten)]
    Internal(Internal),
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main(registry: Registry) -> ExitCode {
    main_from(registry, std::env::args_os().collect())
}

/// Runs the program with these arguments, the first being its name.
#[must_use]
pub fn main_from(registry: Registry, arguments: Vec<OsString>) -> ExitCode {
    gristmill_worker::streams::make_closed_ones_fail();
    plug_in_extensions();
    let registry = registry.policy(&gristmill_programs::ENTRY);
    survive_file_limit();
    gristmill_worker::descriptors::raise();
    // Children come first, under any name of the program: they need no command line.
    if let Some(role) = ChildRole::from_arguments(&arguments) {
        // The master has decided whether it accepts streaming jobs.
        return exit_code(processes::child(role, streaming::registered(registry)));
    }
    if streaming::is_called_as_hadoop(&arguments) {
        keep_memory_private();
        return ExitCode::from(streaming::hadoop_main(&arguments));
    }
    let typed = arguments.clone();
    let matches = match command(&registry).try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if error.kind() == clap::error::ErrorKind::InvalidUtf8 => {
            terminal::complain("error", &not_text(&typed));
            return ExitCode::from(exit::USAGE);
        }
        Err(error) => {
            let code = if error.use_stderr() { exit::USAGE } else { exit::OK };
            let written = error.print().and_then(|()| std::io::stdout().flush());
            // Help into a closed pipe is no error.
            if let Err(error) = terminal::written(written)
                && !error.is::<StdoutClosed>()
            {
                return exit_code(Err(error));
            }
            if let Some(hint) = hint_of_command(&error, &registry) {
                terminal::stderr_line(&format!("  hint: {hint}"));
            }
            return ExitCode::from(code);
        }
    };
    exit_code(dispatch(registry, &matches))
}

/// Makes the formats and stores that were built in inputs and outputs of this process. [`main`] does so itself.
pub fn plug_in_extensions() {
    #[cfg(feature = "formats")]
    gristmill_formats::plug_in();
    #[cfg(feature = "stores")]
    gristmill_stores::plug_in();
}

/// Returns the exit code of a command, and prints its error.
fn exit_code(result: anyhow::Result<u8>) -> ExitCode {
    // Output without a line end would be written at the end of the process, where an error is lost.
    match result.and_then(|code| terminal::written(std::io::stdout().flush()).map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if error.is::<StdoutClosed>() {
                return ExitCode::from(exit::OK);
            }
            let Exit { code, hint } = verdict::judge(&error);
            let words = gristmill_runtime::chain(error.as_ref());
            terminal::complain("error", &sanitize::message(&words));
            if let Some(hint) = hint {
                terminal::stderr_line(&format!("  hint: {hint}"));
            }
            ExitCode::from(code)
        }
    }
}

/// Returns a hint about a word that is not a command: the name of a job, nearly one, or one of another program.
fn hint_of_command(error: &clap::Error, registry: &Registry) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    if registry.find_job(typed).is_some() || registry.find_rounds(typed).is_some() {
        return Some(format!("`{typed}` is a job: gristmill run {typed}"));
    }
    let run = run::run_command(registry).no_binary_name(true).try_get_matches_from([typed]);
    let meant = run.err()?;
    let Some(meant) = meant.get(ContextKind::SuggestedSubcommand) else {
        let typed = sanitize::message(typed);
        return Some(format!("a job of your own runs by its own program: cargo run -- run {typed}"));
    };
    match meant {
        // Clap's own tip names the job if it was typed after `run`.
        _ if error.get(ContextKind::SuggestedSubcommand) == Some(meant) => None,
        ContextValue::Strings(names) => Some(format!("is it a job? gristmill run {}", names.last()?)),
        _ => None,
    }
}

/// Names the arguments that are not UTF-8.
fn not_text(arguments: &[OsString]) -> String {
    let wrong = arguments.iter().enumerate().filter(|(_, argument)| argument.to_str().is_none());
    let named = wrong.map(|(number, argument)| format!("{number} ({argument:?})"));
    let named: Vec<String> = named.collect();
    let (word, is) = if named.len() == 1 { ("argument", "is") } else { ("arguments", "are") };
    format!("{word} {} {is} not UTF-8", named.join(", "))
}

/// Makes a write beyond the limit on the size of files fail, as other writes do, instead of ending the
/// process. The signal is caught and not ignored, so that programs started by user code get its default
/// action.
fn survive_file_limit() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    let _within = runtime.enter();
    // The handler stays after its listener is dropped.
    let _ = Listener::new(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// Returns the version of the release (from `scripts/release.py`), and the build id that master and workers
/// compare.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let commit =
            option_env!("GRISTMILL_BUILD").map(|commit| format!("commit {commit}, ")).unwrap_or_default();
        format!("{} ({commit}build {})", env!("CARGO_PKG_VERSION"), gristmill_worker::build_id())
    })
}

/// Display order that puts the flags of every command after its own.
const BASIC_ORDER: usize = 1000;

const ABOUT: &str =
    "MapReduce on a laptop or a LAN: a real master, real workers, a shuffle that overlaps with the maps";

/// Returns the commands of this registry that help lists.
#[must_use]
pub fn visible_command(registry: &Registry) -> Command {
    let program = Command::new("gristmill")
        .version(version())
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(80)
        .disable_help_flag(true)
        .arg(
            clap::Arg::new("settings")
                .long("settings")
                .global(true)
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .display_order(BASIC_ORDER)
                .help("Settings [default: ./gristmill.toml if it exists]"),
        )
        .arg(help_flag("help", "Print help").short('h').action(ArgAction::HelpShort))
        .arg(help_flag("help-all", "Print help with all flags").action(ArgAction::HelpLong));
    Visible::augment_subcommands(program)
        .about(ABOUT)
        .long_about(None)
        .subcommand(run::run_command(registry).display_order(0))
        .subcommand(run::submit_command(registry).display_order(1))
        .mut_subcommand("lab", |lab| lab.subcommand(compare::command().display_order(0)))
}

fn help_flag(name: &'static str, help: &'static str) -> clap::Arg {
    clap::Arg::new(name).long(name).global(true).display_order(BASIC_ORDER).help(help)
}

/// Returns the whole command line. It includes commands without the name of their group, and those that the program
/// calls itself.
fn command(registry: &Registry) -> Command {
    let mut program = visible_command(registry);
    let visible: Vec<String> =
        program.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    program = JobCommand::augment_subcommands(program);
    program = ClusterCommand::augment_subcommands(program);
    program = LabCommand::augment_subcommands(program);
    program = Internal::augment_subcommands(program);
    program = program.subcommand(compare::command());
    program.about(ABOUT).long_about(None).mut_subcommands(|command| {
        let is_hidden = !visible.iter().any(|name| name == command.get_name());
        command.hide(is_hidden)
    })
}

/// True if a flag was typed, at any level of commands.
fn is_typed(matches: &ArgMatches, flag: &str) -> bool {
    let here = matches.try_get_one::<bool>(flag).ok().flatten().is_some_and(|typed| *typed);
    here || matches.subcommand().is_some_and(|(_, inner)| is_typed(inner, flag))
}

fn dispatch(registry: Registry, matches: &ArgMatches) -> anyhow::Result<u8> {
    keep_memory_private();
    if is_typed(matches, "insecure_plaintext") {
        terminal::complain(
            "warning",
            "--insecure-plaintext: everyone on the route to other machines can read and change all data",
        );
    }
    let named = matches.get_one::<PathBuf>("settings").map(PathBuf::as_path);
    let settings = crate::settings::load(named)?;
    let called = match matches.subcommand() {
        Some(("lab", lab)) if lab.subcommand_name() == Some("compare") => lab.subcommand(),
        other => other,
    };
    match called {
        Some(("run", flags)) => run::run(&registry, &settings, flags),
        Some(("submit", flags)) => run::submit(&registry, &settings, flags),
        Some(("compare", flags)) => compare::compare(&registry, &settings, flags),
        _ => match Called::from_arg_matches(matches)? {
            Called::Visible(Visible::Streaming(flags)) => Ok(streaming::streaming(&settings, &flags)),
            Called::Visible(Visible::Gen(flags)) => tools::generate(&flags),
            Called::Visible(Visible::VerifySort(flags)) => tools::verify_sort(&flags),
            Called::Visible(Visible::Init(flags)) => init::init(&flags),
            Called::Visible(Visible::Job(job)) | Called::Job(job) => call_job(&settings, job),
            Called::Visible(Visible::Cluster(cluster)) | Called::Cluster(cluster) => {
                call_cluster(registry, &settings, named, cluster)
            }
            Called::Visible(Visible::Lab(lab)) | Called::Lab(lab) => call_lab(&registry, lab),
            Called::Internal(Internal::Unpack(flags)) => places::unpack(&flags),
        },
    }
}

fn call_job(settings: &Settings, job: JobCommand) -> anyhow::Result<u8> {
    match job {
        JobCommand::List(flags) => query::jobs(settings, &flags),
        JobCommand::Show(flags) => query::show(settings, &flags),
        JobCommand::Explain(flags) => explain::explain(settings, &flags),
        JobCommand::Logs(flags) => query::logs(settings, &flags),
        JobCommand::Trace(flags) => history::write_trace(settings, &flags),
        JobCommand::Report(flags) => history::write_report(settings, &flags),
        JobCommand::Wait(flags) => query::wait(settings, &flags),
        JobCommand::Cancel(flags) => query::cancel(settings, &flags),
    }
}

fn call_cluster(
    registry: Registry,
    settings: &Settings,
    named: Option<&Path>,
    cluster: ClusterCommand,
) -> anyhow::Result<u8> {
    match cluster {
        ClusterCommand::Up(flags) => places::up(settings, named, &flags),
        ClusterCommand::Down(flags) => places::down(settings, &flags),
        ClusterCommand::Master(flags) if flags.allow_commands => {
            processes::master(streaming::registered(registry), settings, &flags)
        }
        ClusterCommand::Master(flags) => processes::master(registry, settings, &flags),
        ClusterCommand::Worker(flags) => processes::worker(settings, &flags),
        ClusterCommand::Status(flags) => query::status(settings, &flags),
        ClusterCommand::Policy(flags) => policy::policy(&registry, settings, &flags),
        ClusterCommand::Token(flags) => token::token(settings, &flags),
        ClusterCommand::Drain(flags) => query::drain(settings, &flags),
        ClusterCommand::Doctor(flags) => doctor::doctor(settings, &flags),
        ClusterCommand::Page(flags) => page::page(settings, &flags),
    }
}

fn call_lab(registry: &Registry, lab: LabCommand) -> anyhow::Result<u8> {
    match lab {
        LabCommand::Sim(flags) => sim::sim(registry, &flags),
        LabCommand::Replay(flags) => replay::run(registry, &flags),
        LabCommand::Whatif(flags) => whatif::run(registry, &flags),
        LabCommand::Paper(flags) => paper::paper(registry, &flags),
        LabCommand::Order(flags) => order::run(&flags),
        LabCommand::Place(flags) => queues::run_place(&flags),
        LabCommand::Size(flags) => queues::run_size(&flags),
        LabCommand::Verify(flags) => verify::verify(&flags),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_commands_says_of_each_what_its_help_says() {
        let listed = command(&Registry::standard());
        let mut built = listed.clone();
        built.build();
        let said = |commands: &Command| -> Vec<(String, String)> {
            let said = commands.get_subcommands().filter(|command| !command.is_hide_set());
            let said = said.map(|command| {
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                (command.get_name().to_owned(), about)
            });
            said.filter(|(name, _)| name != "help").collect()
        };
        let listed = said(&listed);
        assert!(listed.iter().all(|(name, about)| !about.is_empty() && !name.is_empty()));
        assert_eq!(listed, said(&built));
    }
}

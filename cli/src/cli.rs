//! The program's commands: which there are, and which file carries each one out.
//!
//! stdout is data, stderr is talk; exit codes are those of [`exit`].

use crate::interruption::Listener;
use crate::papers::{paper, verify};
use crate::private_memory::keep_memory_private;
use crate::terminal::{self, StdoutClosed};
#[cfg(feature = "top")]
use crate::top;
use crate::{
    compare, doctor, explain, history, init, man, order, page, places, policy, processes, query, queues,
    replay, run, settings, sim, streaming, token, tools,
};
use crate::{verdict, whatif};
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use gristmill_runtime::cluster::ChildRole;
use gristmill_runtime::exit;
use gristmill_runtime::generate::GenerateArgs;
use gristmill_runtime::registry::Registry;
use gristmill_worker::clean;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use tokio::signal::unix::SignalKind;

/// Commands whose flags do not depend on the registry. Those of a command are made when it is called; what the list of
/// commands says of it stands here.
#[derive(Subcommand)]
#[command(defer = true)]
enum Fixed {
    /// Run a job of Hadoop Streaming: commands that read lines and write lines
    Streaming(Box<streaming::StreamingCommand>),
    /// Start a master and print the line with which workers join
    Master(processes::MasterCommand),
    /// Start a worker and join a master
    Worker(Box<processes::WorkerCommand>),
    /// Bring a cluster up where something else places processes
    Up(Box<places::UpCommand>),
    /// End what `gristmill up` has started, here and elsewhere
    Down(places::DownCommand),
    #[command(hide = true)]
    Guest(places::GuestCommand),
    /// Show the master and its workers, or one job
    Status(query::StatusCommand),
    /// Show or change who decides on a running master
    Policy(policy::PolicyCommand),
    /// Make, revoke or renew what opens a running master
    Token(token::TokenCommand),
    /// Print a link to the live page of a running master
    Page(page::PageCommand),
    /// Show the cluster in a terminal as it moves: workers, jobs, slots
    #[cfg(feature = "top")]
    Top(top::TopCommand),
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
    /// List jobs that have ended, the last one first, of earlier masters of the same state folder too
    History(history::HistoryCommand),
    /// Write what happened to a job, for ui.perfetto.dev or chrome://tracing
    Trace(history::TraceCommand),
    /// Write all that is kept of a job as one page that stands alone
    Report(history::ReportCommand),
    /// Feed a journal through the scheduler again and compare the orders
    Replay(replay::ReplayCommand),
    /// Ask what the jobs of a journal would have taken under other policies
    Whatif(whatif::WhatifCommand),
    /// Try policies on simulated jobs and machines
    Sim(Box<sim::SimCommand>),
    /// Put waiting jobs in order
    Order(order::OrderCommand),
    /// Split arriving tasks over workers
    Place(queues::PlaceCommand),
    /// Choose how many workers of which kind to buy
    Size(queues::SizeCommand),
    /// Fit a distribution to measured task times
    Fit(queues::FitCommand),
    /// Run the experiments of the papers anew and write their figures and tables
    Paper(paper::PaperCommand),
    /// Compute worked cases and compare
    Verify(verify::VerifyCommand),
    /// Generate input: text, records or tables
    Gen(GenerateArgs),
    /// Check the order, count and checksum of a sorted output
    VerifySort(tools::VerifySortCommand),
    /// Say what keeps jobs from running here, and what to do about it
    Doctor(Box<doctor::DoctorCommand>),
    /// Write a settings file with all there is, commented out
    Init(init::InitCommand),
    /// Write manual pages, one for each command
    Man(man::ManCommand),
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
    gristmill_worker::streams::make_closed_ones_fail();
    survive_file_limit();
    gristmill_worker::descriptors::raise();
    // Children come first, under whatever name the program was called: there is no command line to be made for them.
    if let Some(role) = ChildRole::of(&arguments) {
        // What streaming jobs may run was decided where they were taken.
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
            if let Some(job) = job_without_run(&error, &registry) {
                terminal::stderr_line(&format!("  hint: `{job}` is a job: gristmill run {job}"));
            }
            if typed.get(1).is_some_and(|word| word == "as-streaming") {
                terminal::stderr_line(
                    "  hint: `as-streaming` was removed: run the job here with `gristmill run`",
                );
            }
            return ExitCode::from(code);
        }
    };
    exit_code(dispatch(registry, &matches))
}

/// The exit code of what was carried out; an error is told.
fn exit_code(result: anyhow::Result<u8>) -> ExitCode {
    // What has no end of line yet would be written at the end of the process, and an error there is lost.
    match result.and_then(|code| terminal::written(std::io::stdout().flush()).map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if error.is::<StdoutClosed>() {
                return ExitCode::from(exit::OK);
            }
            let (code, hint) = verdict::judge(&error);
            let words = gristmill_runtime::chain(error.as_ref());
            terminal::complain("error", &clean::message(&words));
            if let Some(hint) = hint {
                terminal::stderr_line(&format!("  hint: {hint}"));
            }
            ExitCode::from(code)
        }
    }
}

/// The job whose name was typed where a command stands.
fn job_without_run(error: &clap::Error, registry: &Registry) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let known = registry.find_job(typed).is_some() || registry.find_rounds(typed).is_some();
    (error.kind() == ErrorKind::InvalidSubcommand && known).then(|| typed.clone())
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
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    let _within = runtime.enter();
    // What is caught stays caught, though nobody listens.
    let _ = Listener::new(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// The version, from what a release was built (`scripts/release.py` says it), and the id by which master and workers know
/// whether they are of one build.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let commit =
            option_env!("GRISTMILL_BUILD").map(|commit| format!("commit {commit}, ")).unwrap_or_default();
        format!("{} ({commit}build {})", env!("CARGO_PKG_VERSION"), gristmill_worker::build_id())
    })
}

/// The whole command line of this registry.
fn command(registry: &Registry) -> Command {
    let about =
        "MapReduce on a laptop or a LAN: a real master, real workers, a shuffle that overlaps with the maps";
    let program = Command::new("gristmill")
        .version(version())
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

fn dispatch(registry: Registry, matches: &ArgMatches) -> anyhow::Result<u8> {
    keep_memory_private();
    if is_typed(matches, "insecure_plaintext") {
        terminal::complain(
            "warning",
            "--insecure-plaintext: everyone on the way to other machines can read and change all data",
        );
    }
    let named = matches.get_one::<PathBuf>("settings").map(PathBuf::as_path);
    let settings = settings::load(named)?;
    match matches.subcommand() {
        Some(("run", flags)) => run::run(&registry, &settings, flags),
        Some(("submit", flags)) => run::submit(&registry, &settings, flags),
        Some(("compare", flags)) => compare::compare(&registry, &settings, flags),
        _ => match Fixed::from_arg_matches(matches)? {
            Fixed::Streaming(flags) => Ok(streaming::streaming(&settings, &flags)),
            Fixed::Master(flags) if flags.allow_commands => {
                processes::master(streaming::registered(registry), &settings, &flags)
            }
            Fixed::Master(flags) => processes::master(registry, &settings, &flags),
            Fixed::Worker(flags) => processes::worker(&settings, &flags),
            Fixed::Up(flags) => places::up(&settings, named, &flags),
            Fixed::Down(flags) => places::down(&settings, &flags),
            Fixed::Guest(flags) => places::guest(&flags),
            Fixed::Status(flags) => query::status(&settings, &flags),
            Fixed::Policy(flags) => policy::policy(&registry, &settings, &flags),
            Fixed::Token(flags) => token::token(&settings, &flags),
            Fixed::Page(flags) => page::page(&settings, &flags),
            #[cfg(feature = "top")]
            Fixed::Top(flags) => top::top(&settings, &flags),
            Fixed::Jobs(flags) => query::jobs(&settings, &flags),
            Fixed::Wait(flags) => query::wait(&settings, &flags),
            Fixed::Cancel(flags) => query::cancel(&settings, &flags),
            Fixed::Explain(flags) => explain::explain(&settings, &flags),
            Fixed::Logs(flags) => query::logs(&settings, &flags),
            Fixed::History(flags) => history::history(&settings, &flags),
            Fixed::Trace(flags) => history::write_trace(&settings, &flags),
            Fixed::Report(flags) => history::write_report(&settings, &flags),
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
            Fixed::Doctor(flags) => doctor::doctor(&settings, &flags),
            Fixed::Init(flags) => init::init(&flags),
            Fixed::Man(flags) => man::man(&flags, command(&registry)),
            Fixed::Completions(flags) => tools::completions(&flags, command(&registry)),
        },
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

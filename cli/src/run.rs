//! `run` and `submit`: a job on an embedded cluster, or on a running master.

use crate::bars::JobProgress;
use crate::flags::{ClusterFlags, JobFlags, ListenFlags, MasterFlags, Spread};
use crate::interruption::watch_interruptions;
use crate::narrate::{JobNarrator, StoryForms};
use crate::settings::Settings;
use crate::terminal::{
    StdoutClosed, complain, stderr_text, stdout_json, stdout_line, stdout_records, written,
};
use crate::usage::usage;
use crate::{advice, page, private_file, processes, summary, task_log, trace};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use gristmill_runtime::api::{JobStatus, Role};
use gristmill_runtime::client::{AsyncClient, Client, ClientError, JobReport, RoundReport};
use gristmill_runtime::cluster::Cluster;
use gristmill_runtime::deciders::DeciderNames;
use gristmill_runtime::exit;
use gristmill_runtime::output_dir::OutputError;
use gristmill_runtime::prepared::PreparedJob;
use gristmill_runtime::registry::{AnyRounds, Registry};
use gristmill_runtime::scratch::ScratchDirectory;
use gristmill_runtime::submit::SubmitError;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::objects::is_url;
use gristmill_worker::output::open_part;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// Ways to watch a job of `run`.
#[derive(Args)]
#[command(next_help_heading = "Watching")]
struct WatchFlags {
    /// Print a link to the live page of this run, and keep the page until Enter
    #[arg(long, global = true)]
    show: bool,
    /// Narrate the job step by step, pair by pair, on stdout; for small inputs, best with a small --split-size
    #[arg(long, global = true, conflicts_with = "json")]
    narrate: bool,
    /// Write the same story as a moving picture to this file, a page for a browser
    #[arg(long, global = true, value_name = "FILE")]
    narrate_html: Option<PathBuf>,
}

impl WatchFlags {
    fn narrates(&self) -> bool {
        self.narrate || self.narrate_html.is_some()
    }
}

/// `gristmill run`: one subcommand for each job.
pub fn run_command(registry: &Registry) -> Command {
    let command = WatchFlags::augment_args(ClusterFlags::augment_args(Command::new("run")));
    let command = JobFlags::augment_args(command)
        .about("Run a job on a cluster of local processes that lives as long as the job")
        .long_about(
            "Run a job on a cluster of local processes that lives as long as the job.\n\nStarts a master and workers \
             of this same program on the loopback interface, runs the job, ends them. Without --output the result is \
             printed.",
        );
    with_jobs(command, registry)
}

/// `gristmill submit`: the same jobs on a running master.
pub fn submit_command(registry: &Registry) -> Command {
    let command = Command::new("submit");
    let command = ListenFlags::augment_args(command).mut_args(|flag| flag.global(true));
    let command = JobFlags::augment_args(MasterFlags::augment_args(command));
    let command = command.about("Submit a job to a running cluster").long_about(None).arg(
        clap::Arg::new("detach")
            .long("detach")
            .global(true)
            .action(clap::ArgAction::SetTrue)
            .help("Come back at once; the master must see the input and the output directory"),
    );
    with_jobs(command, registry)
}

fn with_jobs(command: Command, registry: &Registry) -> Command {
    let output = command.get_arguments().find(|flag| flag.get_id() == "output").cloned();
    // `grep -o` is not --output.
    let jobs = registry.jobs().map(|job| {
        let has_short = job.command().get_arguments().any(|flag| flag.get_short() == Some('o'));
        let output = output.iter().filter(|_| has_short).map(|output| output.clone().short(None));
        job.command().args(output)
    });
    let rounds = registry.all_rounds().map(|rounds| rounds.command());
    command
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand_value_name("JOB")
        .subcommands(jobs.chain(rounds))
}

/// Returns the name and flags of the job on the command line.
fn job_flags(flags: &ArgMatches) -> anyhow::Result<(&str, &ArgMatches)> {
    flags.subcommand().ok_or_else(|| usage("no job was named".to_owned()))
}

/// `gristmill run JOB`.
pub fn run(registry: &Registry, settings: &Settings, flags: &ArgMatches) -> anyhow::Result<u8> {
    processes::log_of_client();
    let (name, typed) = job_flags(flags)?;
    let (cluster_flags, job) = (ClusterFlags::from_arg_matches(typed)?, JobFlags::from_arg_matches(typed)?);
    expect_place_of_trace(&job)?;
    let watch = WatchFlags::from_arg_matches(typed)?;
    if let Some(path) = &watch.narrate_html {
        private_file::expect_place("the story", path, job.overwrite)?;
    }
    // Only workers of their own fetch from each other, which is worth seeing.
    let watched = watch.show || watch.narrates();
    let spread = if registry.is_standard(name) && !watched { Spread::Together } else { Spread::Apart };
    let mut config = cluster_flags.config(settings, spread)?;
    expect_different([
        ("--trace", job.report.trace.as_ref()),
        ("--journal", config.journal.as_ref()),
        ("--narrate-html", watch.narrate_html.as_ref()),
    ])?;
    // The master is another process of this program: what it would refuse is refused here, before anything starts.
    config.deciders.clone().make(registry).map_err(usage)?;
    let work = PreparedWork::parse(registry, name, typed, &job)?;
    let narrator = narrator(&watch, &work, &job, &config.deciders)?;
    config.workers.each.narration = narrator.as_ref().map(JobNarrator::directory).map(Box::new);
    let mut options = job.options(settings, job.output.clone().unwrap_or_default())?;
    options.written.extend(config.journal.clone());
    options.written.extend(watch.narrate_html);
    let runtime = Arc::new(gristmill_worker::threads::runtime()?);
    let interrupted = watch_interruptions()?;
    let ended = interrupted.clone();
    let cluster = runtime.block_on(Cluster::start(&config))?;
    if job.output.is_none() {
        // In the cluster's own directory: if this process is killed, its children remove it.
        options.output = cluster.directory().join("output");
        // It is printed and removed, so a loss of power does not matter.
        options.sync = false;
    }
    options.standard_input = Some(cluster.directory().to_owned());
    let mut core = AsyncClient::new(&cluster.join_line());
    core.set_interrupted(interrupted);
    let mut client = Client::within(runtime.clone(), core);
    client.wait_for_workers(config.workers.count);
    let page = match watch.show {
        true => Some(page::link(
            &cluster.join_line().endpoint,
            &client.block_on(client.requests().page_code(Role::View))?,
        )),
        false => None,
    };
    let page = page.as_deref();
    let shown = ResultView { print: job.output.is_none(), narrator: narrator.as_ref(), page };
    let result = work.carry_out(&mut client, &options, &job, shown);
    // A job that was not submitted has nothing to show.
    let has_ended_job = |error: &anyhow::Error| matches!(error.downcast_ref(), Some(ClientError::Job { .. }));
    if watch.show && *ended.borrow() == 0 && result.as_ref().err().is_none_or(has_ended_job) {
        if let Err(error) = &result {
            say!("{}", gristmill_runtime::chain(error.as_ref()));
        }
        say!("the page stays until you press Enter");
        runtime.block_on(page::wait_for_enter(ended.clone()));
    }
    runtime.block_on(cluster.stop());
    leave_threads(&runtime, &ended);
    result
}

/// Leaks the runtime after an interruption: its end would wait for a thread that still plans.
fn leave_threads(runtime: &Arc<tokio::runtime::Runtime>, interrupted: &watch::Receiver<u32>) {
    if 0 < *interrupted.borrow() {
        std::mem::forget(runtime.clone());
    }
}

/// `gristmill submit JOB`.
pub fn submit(registry: &Registry, settings: &Settings, flags: &ArgMatches) -> anyhow::Result<u8> {
    processes::log_of_client();
    let (name, typed) = job_flags(flags)?;
    let (master, job) = (MasterFlags::from_arg_matches(typed)?, JobFlags::from_arg_matches(typed)?);
    let listen = ListenFlags::from_arg_matches(flags)?;
    expect_place_of_trace(&job)?;
    let work = PreparedWork::parse(registry, name, typed, &job)?;
    let line = master.join_line(settings)?;
    let runtime = Arc::new(gristmill_worker::threads::runtime()?);
    let interrupted = watch_interruptions()?;
    let ended = interrupted.clone();
    let mut core = AsyncClient::new(&line);
    core.set_interrupted(interrupted);
    core.set_said(crate::terminal::stderr_line);
    core.set_permissions(listen.permissions(&master.plaintext));
    let mut client = Client::within(runtime.clone(), core);
    let result = submit_with(&mut client, (settings, name, typed), work, &job);
    leave_threads(&runtime, &ended);
    result
}

/// Submits a job and follows it, unless `--detach` was typed.
fn submit_with(
    client: &mut Client,
    (settings, name, typed): (&Settings, &str, &ArgMatches),
    work: PreparedWork,
    job: &JobFlags,
) -> anyhow::Result<u8> {
    if typed.get_flag("detach") {
        let PreparedWork::Job(prepared) = work else {
            return Err(usage(format!(
                "{name} runs several jobs, which needs this process: leave out --detach"
            )));
        };
        let Some(output) = job.output.clone() else {
            return Err(usage("--detach needs --output, as it prints no result".to_owned()));
        };
        let submitted = client.submit_prepared(prepared, &job.options(settings, output)?)?;
        stdout_line(&submitted)?;
        if !job.report.quiet {
            // A master that has ended meanwhile is not a failure of the submission.
            let status = client.status(submitted);
            status.iter().for_each(|status| JobProgress::new(false).say_if_no_workers(status, &mut false));
        }
        return Ok(exit::OK);
    }
    let printed = match &job.output {
        Some(_) => None,
        // A private directory, whose parts are printed.
        None => Some(ScratchDirectory::new("output-")?),
    };
    let output = job.output.clone().or_else(|| printed.as_ref().map(|dir| dir.path().join("output")));
    let mut options = job.options(settings, output.unwrap_or_default())?;
    // Only if it was typed: after a kill the directory stays until the next process removes it.
    let dash = std::env::args_os().any(|argument| argument == "-");
    let kept = dash.then(|| ScratchDirectory::new("input-")).transpose()?;
    options.standard_input = kept.as_ref().map(|directory| directory.path().to_owned());
    work.carry_out(client, &options, job, ResultView { print: printed.is_some(), narrator: None, page: None })
}

/// Presentation of a result.
#[derive(Clone, Copy)]
struct ResultView<'a> {
    /// True if the output is printed on stdout.
    print: bool,
    /// Narrator of the job.
    narrator: Option<&'a JobNarrator>,
    /// Link to the live page of the run.
    page: Option<&'a str>,
}

/// A job, or rounds of jobs, ready to run.
enum PreparedWork {
    Job(Box<dyn PreparedJob>),
    Rounds(Arc<dyn AnyRounds>, ArgMatches),
}

impl PreparedWork {
    fn parse(registry: &Registry, name: &str, typed: &ArgMatches, flags: &JobFlags) -> anyhow::Result<Self> {
        if let Some(job) = registry.find_job(name) {
            return Ok(PreparedWork::Job(job.parse(typed)?));
        }
        let rounds =
            registry.find_rounds(name).ok_or_else(|| usage(format!("job `{name}` does not exist")))?;
        let Some(output) = &flags.output else {
            return Err(usage(format!(
                "{name} runs several jobs: name a directory for their outputs with --output"
            )));
        };
        if output.to_str().is_some_and(is_url) {
            return Err(usage(format!("{name} runs several jobs: name a directory on disk with --output")));
        }
        Ok(PreparedWork::Rounds(rounds.clone(), typed.clone()))
    }

    fn carry_out(
        self,
        client: &mut Client,
        options: &gristmill_runtime::submit::JobOptions,
        flags: &JobFlags,
        shown: ResultView<'_>,
    ) -> anyhow::Result<u8> {
        match self {
            PreparedWork::Job(job) => run_job(client, job, options, flags, shown),
            PreparedWork::Rounds(rounds, typed) => {
                shown.page.into_iter().for_each(|link| say!("live page: {link}"));
                run_rounds(client, (&*rounds, &typed), options, flags)
            }
        }
    }
}

fn run_rounds(
    client: &mut Client,
    (rounds, typed): (&dyn AnyRounds, &ArgMatches),
    options: &gristmill_runtime::submit::JobOptions,
    flags: &JobFlags,
) -> anyhow::Result<u8> {
    fs::create_dir_all(&options.output)?;
    // Each round claims a directory in it. The last one must not find, after all others, what is there now.
    if !options.overwrite && fs::read_dir(&options.output)?.next().is_some() {
        let source = OutputError::NotEmpty { path: options.output.clone() };
        return Err(ClientError::Submit { source: Box::new(SubmitError::Output { source }) }.into());
    }
    client.set_options(options.clone());
    if !flags.report.quiet {
        client.set_announce(|status| say!("{}", summary::line(status)));
    }
    if flags.report.trace.is_some() {
        client.keep_traces();
    }
    let result = rounds.drive(typed, client);
    if let Some(path) = &flags.report.trace {
        let trace = serde_json::to_vec(&trace::chrome_of_rounds(client.traces()))?;
        private_file::write_asked("the trace", path, flags.overwrite, &trace)?;
    }
    if flags.report.json {
        let printed = stdout_json(&json_of_rounds(client, options, &result));
        match &result {
            Ok(_) => printed?,
            Err(_) => complain_of_output(printed),
        }
    } else if let Ok(words) = &result
        && !words.is_empty()
    {
        stdout_line(words)?;
    }
    result.map(|_| exit::OK)
}

/// Prints an error of the output of a failed job, whose own error decides the exit code.
fn complain_of_output(written: anyhow::Result<()>) {
    if let Err(error) = written
        && !error.is::<StdoutClosed>()
    {
        complain("error", &gristmill_worker::sanitize::message(&gristmill_runtime::chain(error.as_ref())));
    }
}

/// JSON of rounds: those that are done, the one that failed, and the result of the program.
fn json_of_rounds(
    client: &Client,
    options: &gristmill_runtime::submit::JobOptions,
    result: &anyhow::Result<String>,
) -> Value {
    let round = |round: &RoundReport| {
        let RoundReport { name, report } = round;
        json!({"name": name, "output": report.output, "status": report.status})
    };
    let failed = result.as_ref().err().and_then(|error| match error.downcast_ref() {
        Some(ClientError::Job { status }) => Some(status),
        _ => None,
    });
    json!({
        "schema": gristmill_runtime::api::SCHEMA,
        "output": options.output,
        "rounds": client.rounds().iter().map(round).collect::<Vec<_>>(),
        "failed": failed,
        "error": result.as_ref().err().map(|error| format!("{error:#}")),
        "result": result.as_ref().ok(),
    })
}

fn run_job(
    client: &mut Client,
    job: Box<dyn PreparedJob>,
    options: &gristmill_runtime::submit::JobOptions,
    flags: &JobFlags,
    shown: ResultView<'_>,
) -> anyhow::Result<u8> {
    let mut progress = JobProgress::new(flags.report.quiet);
    let mut seen = None;
    let mut outlook_due = !flags.report.quiet;
    let mut workers_missed = false;
    let result = client.run_prepared(job, options, &mut |status| {
        if seen.replace(status.job).is_none() {
            shown.page.into_iter().for_each(|link| say!("live page: {link}"));
        }
        if let Some(outlook) = status.deadline_outlook.as_ref().filter(|_| outlook_due) {
            outlook_due = false;
            progress.print_line(&outlook.words);
        }
        progress.say_if_no_workers(status, &mut workers_missed);
        progress.show(status);
    });
    progress.clear();
    let recorded = seen.map_or(Ok(()), |job| {
        if let Some(path) = &flags.report.trace {
            write_trace(client, job, path, flags.overwrite)?;
        }
        shown.narrator.map_or(Ok(()), |narrator| narrator.narrate(client, job, result.as_ref().ok()))
    });
    match result {
        Ok(report) => {
            recorded?;
            finish(&report, flags, shown)?;
            if !flags.report.quiet {
                task_log::show(client, &report.status);
                advise(client, &report.status);
            }
            Ok(exit::OK)
        }
        Err(ClientError::Job { status }) => {
            if !flags.report.quiet {
                stderr_text(&summary::text(&status, None));
                task_log::show_last_words(client, &status);
            }
            let json = if flags.report.json { stdout_json(&status) } else { Ok(()) };
            [recorded, json].into_iter().for_each(complain_of_output);
            Err(ClientError::Job { status }.into())
        }
        Err(error) => Err(error.into()),
    }
}

fn finish(
    report: &JobReport,
    flags: &JobFlags,
    ResultView { print, narrator, .. }: ResultView<'_>,
) -> anyhow::Result<()> {
    if flags.report.json {
        let mut value = json!({"output": report.output, "status": report.status});
        value["schema"] = json!(gristmill_runtime::api::SCHEMA);
        value["tardiness_ns"] = json!(summary::tardiness_ns(&report.status));
        if print {
            value["output"] = serde_json::Value::Null;
            value["result"] = json!(report.json_lines()?);
        }
        stdout_json(&value)?;
    } else if print && narrator.is_none_or(|narrator| !narrator.prints()) {
        for part in report.parts() {
            stdout_records(open_part(&part)?)?;
        }
        written(io::stdout().flush())?;
    }
    if !flags.report.quiet {
        let place = report.output.display().to_string();
        stderr_text(&summary::text(&report.status, (!print).then_some(place.as_str())));
    }
    Ok(())
}

/// Maximum number of tasks of a job whose trace is fetched for advice.
const ADVISED_TASKS_MAX: u32 = 20_000;

/// Prints advice on a job that took long enough for it to matter.
fn advise(client: &Client, status: &JobStatus) {
    let tasks = status.maps.total.saturating_add(status.reduces.total);
    if status.flow_ns() < advice::FLOW_MIN.0 || ADVISED_TASKS_MAX < tasks {
        return;
    }
    // Advice is optional.
    let Ok(trace) = client.trace(status.job) else { return };
    for words in advice::advice(&trace) {
        say!("  advice     {words}");
    }
}

/// Returns the narrator of a job, if its flags ask for one.
fn narrator(
    watch: &WatchFlags,
    work: &PreparedWork,
    job: &JobFlags,
    deciders: &DeciderNames,
) -> anyhow::Result<Option<JobNarrator>> {
    if !watch.narrates() {
        return Ok(None);
    }
    if matches!(work, PreparedWork::Rounds(..)) {
        return Err(usage("several jobs run here, and a story has one: run one of them alone".to_owned()));
    }
    if job.output_format.is_some() {
        let without =
            "a story needs parts that are text: leave out --output-format, or --narrate and --narrate-html";
        return Err(usage(without.to_owned()));
    }
    let picture = watch.narrate_html.clone().map(|path| (path, job.overwrite));
    let forms = StoryForms { text: watch.narrate, picture };
    Ok(Some(JobNarrator::new(deciders, forms)?))
}

/// Checks that no two flags name the same file.
fn expect_different(files: [(&str, Option<&PathBuf>); 3]) -> anyhow::Result<()> {
    for (place, (flag, path)) in files.iter().enumerate() {
        for (other, same) in &files[place + 1..] {
            if let (Some(path), Some(same)) = (path, same)
                && private_file::is_same(path, same)
            {
                return Err(usage(format!("{flag} and {other} name the same file: name two files")));
            }
        }
    }
    Ok(())
}

fn expect_place_of_trace(job: &JobFlags) -> anyhow::Result<()> {
    let expect = |path: &PathBuf| private_file::expect_place("the trace", path, job.overwrite);
    job.report.trace.as_ref().map_or(Ok(()), expect)
}

/// Writes the trace of a job, 0600: it contains names of files and output of user code.
fn write_trace(client: &Client, job: JobId, path: &Path, overwrite: bool) -> anyhow::Result<()> {
    let trace = serde_json::to_vec(&trace::chrome(&client.trace(job)?))?;
    private_file::write_asked("the trace", path, overwrite, &trace)
}

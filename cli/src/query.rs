//! `cluster status`, `job list`, `job wait`, `job cancel`, `job logs`: queries to a running master.

use crate::bars::JobProgress;
use crate::flags::MasterFlags;
use crate::policy::deciders;
use crate::settings::Settings;
use crate::summary;
use crate::terminal::{
    complain, stderr_text, stdout_columns, stdout_json, stdout_line, stdout_raw, stdout_result,
};
use crate::text_table::{fitted, table, wrapped};
use clap::Args;
use gristmill_runtime::api::{JobState, JobStatus, LogEntry, WorkerStatus};
use gristmill_runtime::client::{Client, ClientError};
use gristmill_runtime::exit;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::ids::{JobId, ParseIdError, WorkerId};
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::protocol::Slots;
use gristmill_worker::sanitize;

/// Show the master and its workers, or one job
#[derive(Args)]
pub struct StatusCommand {
    /// A job, such as job-7
    #[arg(value_parser = parse_job)]
    job: Option<JobId>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// Show a job
#[derive(Args)]
pub struct ShowCommand {
    /// The job, such as job-7
    #[arg(value_parser = parse_job)]
    job: JobId,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// List jobs
#[derive(Args)]
pub struct JobsCommand {
    /// List ended jobs, newest first, including those of earlier masters
    #[arg(long)]
    ended: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// Wait until a job has ended
#[derive(Args)]
pub struct WaitCommand {
    /// The job
    #[arg(value_parser = parse_job)]
    job: JobId,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print nothing on stderr but errors
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// Stop a job
#[derive(Args)]
pub struct CancelCommand {
    /// The job
    #[arg(value_parser = parse_job)]
    job: JobId,
    #[command(flatten)]
    master: MasterFlags,
}

/// Let a worker finish its tasks, hand over its data, and leave
#[derive(Args)]
pub struct DrainCommand {
    /// The worker, such as worker-3; `gristmill cluster status` lists them
    #[arg(value_parser = parse_worker)]
    worker: WorkerId,
    #[command(flatten)]
    master: MasterFlags,
}

/// Show what user code wrote to stdout and stderr
#[derive(Args)]
pub struct LogsCommand {
    /// The job
    #[arg(value_parser = parse_job)]
    job: JobId,
    /// A task, for example map-12 or reduce-0 [default: all]
    task: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the exact bytes, even if they could harm a terminal
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// Parses a job: `job-7`, or its number.
pub(crate) fn parse_job(text: &str) -> Result<JobId, ParseIdError> {
    text.parse().or_else(|wrong| format!("job-{text}").parse().map_err(|_| wrong))
}

/// Parses a worker: `worker-3`, or its number.
fn parse_worker(text: &str) -> Result<WorkerId, ParseIdError> {
    text.parse().or_else(|wrong| format!("worker-{text}").parse().map_err(|_| wrong))
}

fn client(flags: &MasterFlags, settings: &Settings) -> anyhow::Result<Client> {
    let mut client = Client::connect(&flags.join_line(settings)?)?;
    client.set_said(crate::terminal::stderr_line);
    Ok(client)
}

/// `gristmill job show`.
pub fn show(settings: &Settings, flags: &ShowCommand) -> anyhow::Result<u8> {
    show_job(&client(&flags.master, settings)?, flags.job, flags.json)
}

fn show_job(client: &Client, job: JobId, json: bool) -> anyhow::Result<u8> {
    let status = client.status(job)?;
    stdout_result(json, || &status, || summary::text(&status, Some(&status.output.to_string())))
}

/// `gristmill cluster status`.
pub fn status(settings: &Settings, flags: &StatusCommand) -> anyhow::Result<u8> {
    let client = client(&flags.master, settings)?;
    if let Some(job) = flags.job {
        return show_job(&client, job, flags.json);
    }
    let master = client.master()?;
    if flags.json {
        stdout_json(&master)?;
        return Ok(exit::OK);
    }
    stdout_line(&format!(
        "gristmill {} up {}, {}, {}",
        master.version,
        Span(master.now_ns),
        deciders(&master),
        counted(u64::from(master.jobs_live), "live job", "live jobs")
    ))?;
    if let Some(trouble) = &master.trouble {
        stdout_line(&format!("accepts no jobs and launches no tasks for now: {trouble}"))?;
    }
    let rows = master.workers.iter().map(|worker| {
        [
            worker.worker.to_string() + condition(worker),
            worker.host.clone(),
            worker.endpoint.to_string(),
            format!("{}/{}", worker.running, slots(worker.slot_counts)),
            format!("{}", worker.speed),
            worker.nic_bytes_per_second.map_or_else(|| "-".to_owned(), |rate| format!("{}/s", Bytes(rate))),
            format!("{} of {}", Bytes(worker.memory_bytes), Bytes(worker.memory_budget_bytes)),
            Bytes(worker.disk_free_bytes).to_string(),
        ]
    });
    let header = ["WORKER", "HOST", "ADDRESS", "SLOTS", "SPEED", "NIC RATE", "MEMORY", "DISK FREE"];
    stdout_line(&table(&header, rows))?;
    Ok(exit::OK)
}

/// Short reason why a worker gets no new tasks.
fn condition(worker: &WorkerStatus) -> &'static str {
    match (worker.away, worker.disk_full) {
        (true, _) => " (away)",
        (false, true) => " (disk full)",
        (false, false) => "",
    }
}

/// Slots, abbreviated; those of pools one by one.
fn slots(counts: Slots) -> String {
    match counts {
        Slots::Unified(slots) => slots.to_string(),
        Slots::Pools { map, reduce } => format!("{map} map + {reduce} reduce"),
    }
}

/// `gristmill job list`.
pub fn jobs(settings: &Settings, flags: &JobsCommand) -> anyhow::Result<u8> {
    let client = client(&flags.master, settings)?;
    let (mut jobs, mut gap) = (client.jobs()?, None);
    if flags.ended {
        jobs.retain(|job| job.state.ended());
        jobs.sort_by_key(|job| std::cmp::Reverse(job.job));
        gap = client.master()?.register_gap;
    }
    match (flags.json, &gap) {
        (true, _) => stdout_json(&jobs)?,
        // Not an empty list, as if no job had ever run.
        (false, Some(_)) if jobs.is_empty() => {}
        (false, _) => {
            let width = stdout_columns().unwrap_or(usize::MAX);
            let (table, omitted) = listed(&jobs, width);
            stdout_line(&table)?;
            if !omitted.is_empty() {
                let words = format!("not shown on a terminal of this width: {}", omitted.join(", "));
                stderr_text(&wrapped(&words, width));
            }
        }
    }
    let Some(gap) = gap else { return Ok(exit::OK) };
    let (kind, code) = if jobs.is_empty() { ("error", exit::ENVIRONMENT) } else { ("warning", exit::OK) };
    complain(kind, &sanitize::message(&format!("could not list all ended jobs: {gap}")));
    say!(
        "  hint: restore a copy of it while no master runs, if you have one; ended jobs are kept in the directory \
         ended-jobs next to it"
    );
    Ok(code)
}

/// Columns of the list of jobs that a narrow terminal does not show, the first to go first.
const LEAST: [&str; 10] = [
    "SUBMITTED",
    "STARTED",
    "ENDED",
    "PRIORITY",
    "WEIGHT",
    "POOL",
    "DEADLINE",
    "OWNER",
    "WAITING",
    "REDUCES",
];

/// Table of the jobs, and the columns that do not fit a width.
fn listed(jobs: &[JobStatus], width: usize) -> (String, Vec<&'static str>) {
    let rows = jobs.iter().map(|job| {
        vec![
            job.job.to_string(),
            job.name.clone(),
            owner(job),
            job.state.word().to_owned(),
            format!("{}/{}", job.maps.done, job.maps.total),
            format!("{}/{}", job.reduces.done, job.reduces.total),
            Span(job.waiting_ns()).to_string(),
            Span(job.flow_ns()).to_string(),
            job.pool.clone().unwrap_or_else(|| "-".to_owned()),
            job.weight.to_string(),
            job.priority.to_string(),
            deadline(job),
            job.submitted_at.clone().unwrap_or_else(|| "-".to_owned()),
            job.started_at.clone().unwrap_or_else(|| "-".to_owned()),
            job.ended_at.clone().unwrap_or_else(|| "-".to_owned()),
            job.output.to_string(),
        ]
    });
    let header = [
        "JOB",
        "NAME",
        "OWNER",
        "STATE",
        "MAPS",
        "REDUCES",
        "WAITING",
        "FLOW",
        "POOL",
        "WEIGHT",
        "PRIORITY",
        "DEADLINE",
        "SUBMITTED",
        "STARTED",
        "ENDED",
        "OUTPUT",
    ];
    fitted(&header, rows, &LEAST, width)
}

/// Token that submitted a job.
fn owner(job: &JobStatus) -> String {
    job.owner.clone().unwrap_or_else(|| "-".to_owned())
}

/// Time from arrival to deadline, and its state.
fn deadline(job: &JobStatus) -> String {
    let Some(deadline_ns) = job.deadline_ns else { return "-".to_owned() };
    let span = Span(deadline_ns.saturating_sub(job.arrived_ns));
    match (job.ended_ns, summary::tardiness_ns(job)) {
        (Some(_), Some(0)) => format!("{span}, met"),
        (_, Some(late)) if 0 < late => format!("{span}, late by {}", Span(late)),
        _ => span.to_string(),
    }
}

/// `gristmill job wait JOB`.
pub fn wait(settings: &Settings, flags: &WaitCommand) -> anyhow::Result<u8> {
    let client = client(&flags.master, settings)?;
    let mut progress = JobProgress::new(flags.quiet);
    let mut said = false;
    let status: JobStatus = client.wait(flags.job, |status| {
        progress.say_if_no_workers(status, &mut said);
        progress.show(status);
    })?;
    progress.clear();
    let printed = if flags.json { stdout_json(&status) } else { Ok(()) };
    if !flags.quiet {
        stderr_text(&summary::text(&status, Some(&status.output.to_string())));
    }
    match status.state {
        JobState::Succeeded => printed.map(|()| exit::OK),
        // The error of the job decides the exit code, also where its status could not be printed.
        _ => Err(ClientError::Job { status: Box::new(status) }.into()),
    }
}

/// `gristmill cluster drain WORKER`.
pub fn drain(settings: &Settings, flags: &DrainCommand) -> anyhow::Result<u8> {
    let client = client(&flags.master, settings)?;
    client.block_on(client.requests().drain(flags.worker))?;
    stderr_text(&format!(
        "{} leaves once its tasks have ended and other workers have fetched its data\n",
        flags.worker
    ));
    Ok(exit::OK)
}

/// `gristmill job cancel JOB`.
pub fn cancel(settings: &Settings, flags: &CancelCommand) -> anyhow::Result<u8> {
    let client = client(&flags.master, settings)?;
    let before = client.status(flags.job)?.state;
    client.cancel(flags.job)?;
    if before.ended() {
        stderr_text(&format!("{} had ended before: {}\n", flags.job, before.word()));
    }
    Ok(exit::OK)
}

/// `gristmill job logs JOB [TASK]`.
pub fn logs(settings: &Settings, flags: &LogsCommand) -> anyhow::Result<u8> {
    let logs = client(&flags.master, settings)?.logs(flags.job)?;
    let wanted = |entry: &LogEntry| match (&flags.task, entry.attempt) {
        (None, _) => true,
        (Some(task), Some(attempt)) => format!("{}-{}", attempt.task.kind, attempt.task.index) == *task,
        (Some(_), None) => false,
    };
    let logs: Vec<&LogEntry> = logs.iter().filter(|entry| wanted(entry)).collect();
    if flags.json {
        stdout_json(&logs)?;
        return Ok(exit::OK);
    }
    if logs.is_empty() {
        stderr_text(&format!("no output of the code of {} is kept\n", flags.job));
    }
    for entry in logs {
        let attempt =
            entry.attempt.map_or_else(|| "several attempts".to_owned(), |attempt| attempt.to_string());
        stdout_line(&format!("==> {attempt} on {} <==", entry.worker))?;
        if flags.raw {
            stdout_raw(&entry.text)?;
        } else {
            for line in entry.text.lines() {
                stdout_line(&sanitize::message(line))?;
            }
        }
        if 0 < entry.omitted_bytes {
            stdout_line(&format!("({} left out)", Bytes(entry.omitted_bytes)))?;
        }
    }
    Ok(exit::OK)
}

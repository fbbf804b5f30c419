//! `history`, `trace JOB` and `report JOB`: records of ended jobs, including those of earlier masters.

use crate::flags::MasterFlags;
use crate::query::{owner, parse_job};
use crate::settings::Settings;
use crate::terminal::{complain, stdout_json, stdout_line};
use crate::text_table::table;
use crate::{private_file, report, trace};
use clap::Args;
use gristmill_runtime::api::JobStatus;
use gristmill_runtime::client::Client;
use gristmill_runtime::exit;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::sanitize;
use std::path::{Path, PathBuf};

/// File name that means stdout.
const STDOUT: &str = "-";

/// List ended jobs, newest first, including those of earlier masters
#[derive(Args)]
pub struct HistoryCommand {
    /// Maximum number of jobs to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// Write a trace of a job, for ui.perfetto.dev or chrome://tracing
///
/// Also of a job that was detached, or that an earlier master ran: the last 1,000 are kept in the master's state directory,
/// 256 MiB at most.
#[derive(Args)]
pub struct TraceCommand {
    /// The job
    #[arg(value_parser = parse_job)]
    job: JobId,
    /// Output file; - for stdout
    #[arg(short, long, value_name = "FILE", default_value = STDOUT)]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long, requires = "output")]
    overwrite: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// Write a self-contained HTML report of a job
///
/// Summary, advice, what ran where and when, partitions, and each attempt with the reason of its placement. It names the
/// job's files and parameters; only you can read it until you pass it on.
#[derive(Args)]
pub struct ReportCommand {
    /// The job
    #[arg(value_parser = parse_job)]
    job: JobId,
    /// Output file; - for stdout [default: job-N.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// `gristmill job history`.
pub fn history(settings: &Settings, flags: &HistoryCommand) -> anyhow::Result<u8> {
    let client = Client::connect(&flags.master.join_line(settings)?)?;
    let mut jobs: Vec<JobStatus> = client.jobs()?.into_iter().filter(|job| job.state.ended()).collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(job.job));
    jobs.truncate(flags.last);
    let gap = client.master()?.register_gap;
    match (flags.json, &gap) {
        (true, _) => stdout_json(&jobs)?,
        // Not an empty list, as if no job had ever run.
        (false, Some(_)) if jobs.is_empty() => {}
        (false, _) => stdout_line(&listed(&jobs))?,
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

fn listed(jobs: &[JobStatus]) -> String {
    let rows = jobs.iter().map(|job| {
        [
            job.job.to_string(),
            job.name.clone(),
            owner(job),
            job.state.word().to_owned(),
            job.ended_ns.map_or_else(|| "-".to_owned(), |_| Span(job.flow_ns()).to_string()),
            Bytes(job.totals.map_bytes_in).to_string(),
            job.totals.records_out.to_string(),
            job.submitted_at.clone().unwrap_or_else(|| "-".to_owned()),
            job.ended_at.clone().unwrap_or_else(|| "-".to_owned()),
            job.output.to_string(),
        ]
    });
    table(
        &["JOB", "NAME", "OWNER", "STATE", "FLOW", "INPUT", "RECORDS", "SUBMITTED", "ENDED", "OUTPUT"],
        rows,
    )
}

/// `gristmill job trace JOB`.
pub fn write_trace(settings: &Settings, flags: &TraceCommand) -> anyhow::Result<u8> {
    let client = Client::connect(&flags.master.join_line(settings)?)?;
    let text = serde_json::to_string(&trace::chrome(&client.trace(flags.job)?))?;
    write("the trace", &flags.output, flags.overwrite, &text)?;
    Ok(exit::OK)
}

/// `gristmill job report JOB`.
pub fn write_report(settings: &Settings, flags: &ReportCommand) -> anyhow::Result<u8> {
    let client = Client::connect(&flags.master.join_line(settings)?)?;
    let page = report::html(&client.trace(flags.job)?);
    let path = flags.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.html", flags.job)));
    write("the report", &path, flags.overwrite, &page)?;
    if path != Path::new(STDOUT) {
        stdout_line(&path.display())?;
    }
    Ok(exit::OK)
}

fn write(what: &'static str, path: &Path, overwrite: bool, text: &str) -> anyhow::Result<()> {
    match path == Path::new(STDOUT) {
        true => stdout_line(&text),
        false => private_file::write_asked(what, path, overwrite, text.as_bytes()),
    }
}

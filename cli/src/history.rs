//! `job trace JOB` and `job report JOB`: records of jobs, including those of earlier masters.

use crate::flags::MasterFlags;
use crate::query::parse_job;
use crate::settings::Settings;
use crate::terminal::stdout_line;
use crate::{private_file, report, trace};
use clap::Args;
use gristmill_runtime::client::Client;
use gristmill_runtime::exit;
use gristmill_scheduler::ids::JobId;
use std::path::{Path, PathBuf};

/// File name that means stdout.
const STDOUT: &str = "-";

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
/// Summary, advice, what ran where and when, and each attempt with the reason of its placement. It names the
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

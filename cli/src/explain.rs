//! `job explain`: why a task ran where and when it did, or why a job waits.

use crate::flags::MasterFlags;
use crate::query::parse_job;
use crate::settings::Settings;
use crate::terminal::{stdout_json, stdout_line};
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::client::Client;
use gristmill_runtime::exit;
use gristmill_scheduler::ids::{JobId, TaskKind};
use gristmill_scheduler::units::Span;

/// Explain why a job waits, or why a task ran where and when it did
#[derive(Args)]
#[command(after_help = "\
Examples:
  gristmill job explain job-7
  gristmill job explain job-7/map-12
  gristmill job explain job-7/reduce-0")]
pub struct ExplainCommand {
    /// A job such as job-7, or a task such as job-7/map-12
    what: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    master: MasterFlags,
}

/// Parses `job-7` or `job-7/map-12` into the job and the name of the task.
fn read(what: &str) -> anyhow::Result<(JobId, Option<String>)> {
    let wrong =
        || usage(format!("`{what}` is neither a job such as job-7 (or 7) nor a task such as job-7/map-12"));
    let (job, task) = match what.split_once('/') {
        Some((job, task)) => (job, Some(task)),
        None => (what, None),
    };
    let job = parse_job(job).map_err(|_| wrong())?;
    let task = task.map(|task| {
        let (kind, index) = task.split_once('-')?;
        let kind = [TaskKind::Map, TaskKind::Reduce].into_iter().find(|known| known.to_string() == kind)?;
        Some(format!("{kind}-{}", index.parse::<u32>().ok()?))
    });
    match task {
        Some(None) => Err(wrong()),
        task => Ok((job, task.flatten())),
    }
}

/// `gristmill job explain`.
pub fn explain(settings: &Settings, flags: &ExplainCommand) -> anyhow::Result<u8> {
    let (job, task) = read(&flags.what)?;
    let client = Client::connect(&flags.master.join_line(settings)?)?;
    let explanation = client.block_on(client.requests().explain(job, task.as_deref()))?;
    // A whole trace is large, so it is requested only if needed. Of a job of an earlier master only the trace
    // is known.
    let path = match task.is_some() || client.status(job).is_ok_and(|job| !job.state.ended()) {
        true => Vec::new(),
        false => client.trace(job)?.path,
    };
    if flags.json {
        stdout_json(&explanation)?;
    } else {
        for sentence in &explanation.sentences {
            stdout_line(sentence)?;
        }
        if !path.is_empty() {
            stdout_line(
                &"what its time went into, from its arrival on, each step waiting for the one before:",
            )?;
        }
        for step in &path {
            let (at, took) = (Span(step.from_ns), Span(step.until_ns.saturating_sub(step.from_ns)));
            stdout_line(&format!("  {:>9}  {:>9}  {}", at.to_string(), took.to_string(), step.what))?;
        }
    }
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_or_a_task_is_read_and_nothing_else() {
        assert_eq!(read("job-7").unwrap(), (JobId(7), None));
        assert_eq!(read("7/map-12").unwrap(), (JobId(7), Some("map-12".to_owned())));
        assert_eq!(read("job-7/map-12").unwrap(), (JobId(7), Some("map-12".to_owned())));
        assert_eq!(read("job-7/reduce-0").unwrap(), (JobId(7), Some("reduce-0".to_owned())));
        for wrong in
            ["", "seven", "job-", "job-7/", "job-7/map", "job-7/map-x", "job-7/mop-1", "job-7/map-1/2"]
        {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{wrong}` is neither a job")), "{error}");
        }
    }
}

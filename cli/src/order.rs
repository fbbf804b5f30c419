//! `lab order`: jobs that all wait at the start, in the order of an algorithm.

use crate::files::{InputFileError, read_text};
use crate::terminal::stdout_result;
use crate::text_table::aligned;
use crate::usage::usage;
use clap::Args;
use gristmill_lab::report::number::number;
use gristmill_scheduler::policy::pairs::{OrderError, OrderedJobs, order};
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::{self, Format, Job, Reading};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Put waiting jobs in order
///
/// Prints the order in which the whole system runs the maps, and then the shuffle, of one job after the
/// other. Also prints the averages of waiting, execution and flow time (their sum, called makespan of a job
/// in the paper).
#[derive(Args)]
#[command(after_help = "\
Example:
  printf 'name,map,shuffle\\nA,6,4\\nB,2,3\\nC,3,2\\n' > jobs.csv
  gristmill lab order --policy match --jobs jobs.csv")]
pub struct OrderCommand {
    /// NAME or NAME:PARAMETER=VALUE,...: pair, couple, generalized, group, match, ...
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// Table of jobs (.csv or .toml) with map and shuffle, in seconds
    #[arg(long, value_name = "FILE")]
    jobs: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `gristmill lab order`.
pub fn run(flags: &OrderCommand) -> anyhow::Result<u8> {
    let name = flags.jobs.to_string_lossy();
    let format = Format::of_name(&name).unwrap_or(Format::Csv);
    let trace = workload::read(format, &read_text(&flags.jobs)?, &Reading::default())
        .map_err(|error| InputFileError::new(&flags.jobs, error))?;
    let jobs = trace.jobs;
    let sizes: Vec<(f64, f64)> =
        jobs.iter().map(|job| (job.work[Station::Map], job.work[Station::Shuffle])).collect();
    let ordered = order(&flags.policy, &sizes).map_err(|error| match error {
        OrderError::Rule(error) => usage(error.to_string()),
        other => InputFileError::new(&flags.jobs, other).into(),
    })?;
    stdout_result(flags.json, || as_json(&jobs, &ordered), || as_text(&jobs, &ordered))
}

/// Returns the job's name, or its position in the table from 1.
fn name_of(jobs: &[Job], index: usize) -> String {
    jobs[index].name.clone().unwrap_or_else(|| (index + 1).to_string())
}

fn as_text(jobs: &[Job], ordered: &OrderedJobs) -> String {
    let block_of = |index: &usize| ordered.blocks.iter().position(|block| block.contains(index));
    let rows = ordered.order.iter().enumerate().map(|(place, index)| {
        let (job, times) = (&jobs[*index], ordered.times[*index]);
        vec![
            (place + 1).to_string(),
            name_of(jobs, *index),
            number(job.work[Station::Map]),
            number(job.work[Station::Shuffle]),
            number(times.start),
            number(times.end),
            block_of(index).map_or(String::new(), |block| (block + 1).to_string()),
        ]
    });
    let header = ["PLACE", "JOB", "MAP, s", "SHUFFLE, s", "START, s", "END, s", "SET"];
    let averages = ordered.averages;
    let mut text = aligned(&header, rows);
    text.push_str(&format!(
        "\naverages: waiting {} s, execution {} s, flow {} s\n",
        number(averages.waiting),
        number(averages.execution),
        number(averages.makespan)
    ));
    if let Some(optimum) = ordered.optimum {
        text.push_str(&format!("least average flow of any order: {} s\n", number(optimum)));
    }
    text
}

fn as_json(jobs: &[Job], ordered: &OrderedJobs) -> Value {
    let names = |indices: &[usize]| indices.iter().map(|&index| name_of(jobs, index)).collect::<Vec<_>>();
    let rows: Vec<_> = ordered
        .order
        .iter()
        .map(|&index| {
            json!({
                "job": name_of(jobs, index),
                "map": jobs[index].work[Station::Map],
                "shuffle": jobs[index].work[Station::Shuffle],
                "start": ordered.times[index].start,
                "end": ordered.times[index].end,
            })
        })
        .collect();
    let averages = ordered.averages;
    json!({
        "order": rows,
        "sets": ordered.blocks.iter().map(|block| names(block)).collect::<Vec<_>>(),
        "averages": {
            "waiting": averages.waiting,
            "execution": averages.execution,
            "flow": averages.makespan,
        },
        "optimum_flow": ordered.optimum,
    })
}

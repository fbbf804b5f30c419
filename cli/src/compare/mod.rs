//! `gristmill lab compare`: a workload under several policies on real processes, and the page about it.
//!
//! This module has the flags and the terminal; runs, statistics and the page are in the laboratory
//! (`gristmill_lab::compare`).

mod flags;
mod options;

use crate::files::InputFileError;
use crate::flags::{ClusterFlags, MasterFlags};
use crate::interruption::watch_interruptions;
use crate::settings::Settings;
use crate::terminal::{stdout_json, stdout_line, stdout_text};
use crate::text_table::table;
use crate::usage::usage;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use flags::CompareFlags;
use gristmill_lab::compare::file::{WorkloadFile, read};
use gristmill_lab::compare::metrics::metrics;
use gristmill_lab::compare::store::ComparisonStore;
use gristmill_lab::compare::{
    CompareError, CompareProgress, Comparison, Options, Site, Workload, check, report, run,
};
use gristmill_lab::report::Circumstances;
use gristmill_lab::report::number;
use gristmill_runtime::exit;
use gristmill_runtime::plural::counted;
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::metrics::Metric;
use options::options;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// The subcommand.
pub fn command() -> Command {
    let command = CompareFlags::augment_args(Command::new("compare"));
    let command = MasterFlags::augment_args(ClusterFlags::augment_args(command));
    // Flags that are added later set the texts of the command, so its own texts come last.
    command
        .about("Run a workload under several policies on real processes and compare")
        .long_about(
            "Run a workload under several policies on real processes and compare\n\n\
             Every policy meets the same jobs at the same times, on a fresh cluster of local processes for each run or \
             on the cluster of a given master, repeated in balanced orders (Williams designs), so that drift of the machine hits all \
             alike. Prints a table and verdicts, and writes report.html, report.csv, results.json and figures/ into the \
             directory.",
        )
        .mut_arg("policy", |flag| {
            flag.value_name("LIST").help_heading("Policies").help(
                "Policies to compare: NAME or NAME:PARAMETER=VALUE,..., with commas between, \
                 and `+divide` at the end to divide running tasks; `gristmill lab sim --list` shows them [required unless the settings name one]",
            )
        })
        .mut_arg("placement", |flag| {
            flag.value_name("LIST")
                .help_heading("Policies")
                .help("Placements to compare; every policy runs with each [default: pull]")
        })
        .mut_arg("journal", |flag| flag.hide(true))
        .mut_arg("no_backup", |flag| flag.hide(true))
        .mut_arg("master", |flag| {
            flag.help("Run on the cluster of this master [default: fresh local clusters]")
        })
        .mut_arg("join", |flag| {
            flag.help("Run on the cluster of the master with this join line [default: fresh local clusters]")
        })
}

/// `gristmill lab compare WORKLOAD`.
pub fn compare(registry: &Registry, settings: &Settings, typed: &ArgMatches) -> anyhow::Result<u8> {
    let flags = CompareFlags::from_arg_matches(typed)?;
    let mut file = read(&flags.workload)?;
    if let Some(seed) = flags.seed {
        file.workload.seed = seed;
    }
    require_inputs(&file, &flags.workload)?;
    let options = options(&flags, settings, typed, &file)?;
    if let Site::Embedded(config) = &options.site {
        registry.make_estimator(&config.deciders.estimator).map_err(usage)?;
    }
    if let Err(error) = check(registry, &file.workload, &options) {
        let of_job = |job: &String| file.jobs.iter().find(|(name, _)| name == job);
        let place = match &error {
            CompareError::Unknown { job, .. } => of_job(job).map(|(_, place)| *place),
            _ => None,
        };
        let place = place.map(|place| format!("{}, {place}", flags.workload.display()));
        return Err(place.into_iter().fold(error.into(), anyhow::Error::context));
    }
    if matches!(options.site, Site::Given(_)) && !file.cluster.is_empty() && !flags.quiet {
        say!("the workload's [cluster] is not used: the given cluster has its own shape");
    }
    if flags.check {
        stdout_text(&arrivals(&file.workload)?)?;
        return Ok(exit::OK);
    }
    let interrupted = watch_interruptions()?;
    let begun = Instant::now();
    let mut printer = RunPrinter::new(&options, flags.quiet);
    let comparison =
        run(registry, &file.workload, &options, Some(interrupted), &mut |progress| printer.print(&progress))?;
    finish(&flags, &options, &comparison, begun.elapsed())
}

fn finish(
    flags: &CompareFlags,
    options: &Options,
    comparison: &Comparison,
    taken: Duration,
) -> anyhow::Result<u8> {
    if !comparison.runs.is_empty() {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let seconds = vec![("this call".to_owned(), taken.as_secs_f64())];
        let circumstances = Circumstances::now(format!("gristmill {}", command.join(" ")), seconds);
        let store = ComparisonStore::open(&options.directory, &comparison.setting, true)?;
        let page = report::write(comparison, &circumstances, &store)?;
        print_results(flags.json, comparison, &page)?;
        if !flags.quiet {
            say!("{}", page.display());
        }
    }
    if comparison.interrupted {
        say!(
            "interrupted with {} finished; the same command with --resume continues",
            counted(comparison.runs.len() as u64, "run", "runs")
        );
        return Ok(exit::INTERRUPTED);
    }
    Ok(exit::OK)
}

fn print_results(as_json: bool, comparison: &Comparison, page: &Path) -> anyhow::Result<()> {
    if as_json {
        let value = json!({
            "schema": report::SCHEMA,
            "summaries": comparison.summaries(),
            "differences": comparison.differences(),
            "verdicts": report::verdicts(comparison),
            "correction": report::correction(comparison),
            "reservations": comparison.reservations(),
            "interrupted": comparison.interrupted,
            "report": page,
        });
        return stdout_json(&value);
    }
    stdout_line(&report::table(comparison))?;
    let verdicts = report::verdicts(comparison).into_iter().chain(report::correction(comparison));
    for words in verdicts.chain(comparison.reservations()) {
        stdout_line(&words)?;
    }
    Ok(())
}

/// Refuses a workload with missing inputs.
fn require_inputs(file: &WorkloadFile, workload: &Path) -> Result<(), InputFileError> {
    // A path on a worker has a colon.
    let local = file.inputs.iter().filter(|(path, _)| !path.contains(':'));
    match local.into_iter().find(|(path, _)| !Path::new(path).exists()) {
        None => Ok(()),
        Some((path, place)) => {
            let words = format!("does not exist; it is named in {}, {place}", workload.display());
            Err(InputFileError::new(Path::new(path), words))
        }
    }
}

/// Table of the arrivals of jobs.
fn arrivals(workload: &Workload) -> anyhow::Result<String> {
    let jobs = workload.draw(0).map_err(CompareError::from)?;
    let rows = jobs.iter().map(|job| {
        let label = workload.kinds[job.kind].label.clone();
        [(job.index + 1).to_string(), format!("{:.3}", job.arrival), label, job.arguments.join(" ")]
    });
    Ok(table(&["job", "arrival, s", "kind", "arguments"], rows) + "\n")
}

/// Printer of progress on stderr.
struct RunPrinter {
    quiet: bool,
    runs: u32,
}

impl RunPrinter {
    fn new(options: &Options, quiet: bool) -> Self {
        Self { quiet, runs: options.repetitions * options.contenders.len() as u32 }
    }

    fn print(&mut self, progress: &CompareProgress<'_>) {
        if self.quiet {
            return;
        }
        let all = self.runs;
        match progress {
            CompareProgress::Step(words) => say!("{words}"),
            CompareProgress::Begins(contender, repetition, place) => {
                say!("run {} of {all}: {}, repetition {}", place + 1, contender.name, repetition + 1);
            }
            CompareProgress::Ended(record, _) => {
                let found = metrics(record, &BTreeMap::new());
                let value = |metric| found.get(&metric).copied().map_or_else(String::new, number::number);
                say!(
                    "  {} in {} s, mean flow time {} s",
                    counted(record.jobs.len() as u64, "job", "jobs"),
                    value(Metric::Makespan),
                    value(Metric::Flow)
                );
            }
            CompareProgress::Kept(record, place) => {
                say!("run {} of {all}: {} was done before", place + 1, record.contender.name);
            }
        }
    }
}

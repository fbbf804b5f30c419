//! Sources of simulated jobs: a file, read once, or a generator.

use super::machines::MachineFlags;
use crate::files::{InputFileError, read_text};
use crate::flags::{above_zero, size};
use crate::usage::usage;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use gristmill_runtime::plural::counted;
use gristmill_runtime::rate::parse_rate;
use gristmill_scheduler::catalogue::{self, CatalogueError, Entry};
use gristmill_scheduler::workload::{self, Costs, Format, Generator, Job, Reading, Scale};
use std::path::Path;

/// Selection of jobs.
#[derive(Args)]
#[command(next_help_heading = "Jobs")]
pub struct JobsFlags {
    /// Format of the file [default: by its ending]
    #[arg(long, value_parser = formats(), hide_short_help = true)]
    format: Option<Format>,
    /// Only the first N jobs
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Multiply the arrival rate by F
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = above_zero, hide_short_help = true)]
    scale_load: f64,
    /// Multiply all times by F; the load stays
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = above_zero, hide_short_help = true)]
    scale_time: f64,
    /// Multiply all bytes by F, with the work that follows from them
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = above_zero, hide_short_help = true)]
    scale_bytes: f64,
    /// Maximum number of unreadable lines of a trace that are skipped
    #[arg(long, value_name = "N", default_value_t = 100, hide_short_help = true)]
    skip: u64,
    /// Input of one map, if a trace has only bytes
    #[arg(long, value_name = "SIZE", default_value = "64MiB", hide_short_help = true)]
    split_size: String,
    /// Shuffled bytes of one reduce, if a trace has only bytes
    #[arg(long, value_name = "SIZE", default_value = "256MiB", hide_short_help = true)]
    partition_size: String,
    /// Rate of a task, if a trace has only bytes
    #[arg(long, value_name = "RATE", default_value = "20MB/s", hide_short_help = true)]
    task_rate: String,
    /// Seconds of a task besides, if a trace has only bytes
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = above_zero, hide_short_help = true)]
    task_start: f64,
}

/// Values of `--format`: SWIM's tab-separated lines, Rumen's JSON objects, comma-separated values, `[[job]]` tables.
fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["swim", "rumen", "csv", "toml"]).map(|name| match name.as_str() {
        "swim" => Format::Swim,
        "rumen" => Format::Rumen,
        "csv" => Format::Csv,
        _ => Format::Toml,
    })
}

/// Jobs for any number of runs.
pub struct SimulatedJobs {
    name: String,
    kind: Origin,
    scale: Scale,
    jobs_max: usize,
}

enum Origin {
    File(Vec<Job>),
    Generator(Box<dyn Generator>),
}

/// Returns the generators of this program, by name.
pub fn generators() -> Vec<&'static Entry<dyn Generator>> {
    #[cfg(feature = "papers")]
    let entries = gristmill_papers::workload::catalogue();
    #[cfg(not(feature = "papers"))]
    let entries = workload::catalogue();
    entries
}

/// Returns the error of an unknown generator. Without the papers it names their feature.
fn absent(name: &str, error: &CatalogueError) -> anyhow::Error {
    const PAPERS: [&str; 5] = ["asrpt", "deadlines", "overlap-trace", "pairs", "stragglers"];
    if !cfg!(feature = "papers") && PAPERS.iter().any(|papers| name.starts_with(papers)) {
        return usage(format!(
            "workload {name} is in the feature `papers`, which this program lacks: \
             build it with `cargo build --release -p gristmill --features papers`"
        ));
    }
    usage(error.to_string())
}

impl SimulatedJobs {
    /// Reads the file of this name, or makes the generator. Prints the number of skipped lines on stderr.
    pub fn open(name: &str, flags: &JobsFlags, machines: &MachineFlags) -> anyhow::Result<SimulatedJobs> {
        let scale = Scale { load: flags.scale_load, time: flags.scale_time, bytes: flags.scale_bytes };
        scale.validate().map_err(|error| usage(format!("--{error}").replace('`', "")))?;
        if flags.jobs == Some(0) {
            return Err(usage("--jobs must be at least 1".to_owned()));
        }
        let source = |kind: Origin| SimulatedJobs {
            name: name.to_owned(),
            kind,
            scale,
            jobs_max: flags.jobs.unwrap_or(usize::MAX),
        };
        let path = Path::new(name);
        let format = flags.format.or_else(|| Format::of_name(name));
        let Some(format) = format else {
            if path.is_file() {
                return Err(usage(format!(
                    "{name}: its ending is not that of a known format; name one with --format"
                )));
            }
            let generator =
                catalogue::call(&generators(), "workload", name).map_err(|error| absent(name, &error))?;
            return Ok(source(Origin::Generator(generator)));
        };
        let reading = Reading { costs: flags.costs(machines)?, scale, skipped_max: flags.skip };
        let trace = workload::read(format, &read_text(path)?, &reading)
            .map_err(|error| InputFileError::new(path, error))?;
        if let Some(first) = trace.first_skipped {
            let skipped = counted(trace.skipped, "line", "lines");
            say!("{name}: skipped {skipped} that could not be read, the first: {first}");
        }
        Ok(source(Origin::File(trace.jobs)))
    }

    /// The name on the command line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if every seed gives the same jobs.
    pub fn is_fixed(&self) -> bool {
        matches!(self.kind, Origin::File(_))
    }

    /// The jobs of a run.
    pub fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_> {
        match &self.kind {
            // Scaled when it was read.
            Origin::File(jobs) => Box::new(jobs.iter().take(self.jobs_max).cloned()),
            Origin::Generator(generator) => {
                let jobs = generator.jobs(seed).take(self.jobs_max);
                if self.scale == Scale::default() {
                    return Box::new(jobs);
                }
                Box::new(jobs.map(|mut job| {
                    self.scale.apply(&mut job);
                    job
                }))
            }
        }
    }
}

impl JobsFlags {
    fn costs(&self, machines: &MachineFlags) -> anyhow::Result<Costs> {
        let rate = parse_rate(&self.task_rate).map_err(|error| usage(format!("--task-rate: {error}")))?;
        let rate = rate.get() as f64;
        Ok(Costs {
            split_bytes: size("--split-size", &self.split_size)? as f64,
            partition_bytes: size("--partition-size", &self.partition_size)? as f64,
            task_seconds: self.task_start,
            map_rate: rate,
            reduce_rate: rate,
            network: machines.network()?.unwrap_or(Costs::default().network),
        })
    }
}

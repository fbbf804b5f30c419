//! Source of simulated jobs: a file, read once, or a generator.

use super::machines::MachineFlags;
use crate::files::{InputFileError, read_text};
use crate::usage::usage;
use clap::{Args, ValueEnum};
use gristmill_runtime::plural::counted;
use gristmill_runtime::rate::parse_rate;
use gristmill_runtime::size::parse_bytes;
use gristmill_scheduler::workload::{self, Costs, Format, Generator, Job, Reading, Scale};
use std::path::Path;

/// Flags for the source and number of jobs.
#[derive(Args)]
#[command(next_help_heading = "Jobs")]
pub struct JobsFlags {
    /// Format of the file [default: by its ending]
    #[arg(long, value_enum, hide_short_help = true)]
    format: Option<FormatName>,
    /// Only the first N jobs
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Multiply the arrival rate by F
    #[arg(
        long,
        value_name = "F",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    scale_load: f64,
    /// Multiply all times by F; the load stays
    #[arg(
        long,
        value_name = "F",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    scale_time: f64,
    /// Multiply all bytes by F, with the work that follows from them
    #[arg(
        long,
        value_name = "F",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        hide_short_help = true
    )]
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
    /// Additional seconds of each task, if a trace has only bytes
    #[arg(
        long,
        value_name = "S",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    task_start: f64,
}

/// [`Format`] on the command line.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum FormatName {
    /// SWIM: tab-separated arrivals and bytes
    Swim,
    /// Rumen: a sequence of JSON objects
    Rumen,
    /// Comma-separated, with a header line
    Csv,
    /// A list of [[job]] tables
    Toml,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Format {
        match name {
            FormatName::Swim => Format::Swim,
            FormatName::Rumen => Format::Rumen,
            FormatName::Csv => Format::Csv,
            FormatName::Toml => Format::Toml,
        }
    }
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

impl SimulatedJobs {
    /// Reads the file of this name, or creates the generator. Reports skipped lines on stderr.
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
        let format = flags.format.map(Format::from).or_else(|| Format::of_name(name));
        let Some(format) = format else {
            if path.is_file() {
                return Err(usage(format!(
                    "{name}: its ending is not that of a known format; name one with --format"
                )));
            }
            let generator = workload::by_name(name).map_err(|error| usage(error.to_string()))?;
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
        let size = |flag: &str, text: &str| match parse_bytes(text) {
            Ok(0) => Err(usage(format!("{flag} must be at least 1"))),
            Ok(bytes) => Ok(bytes as f64),
            Err(error) => Err(usage(format!("{flag}: {error}"))),
        };
        if !(self.task_start.is_finite() && 0.0 < self.task_start) {
            return Err(usage(format!("--task-start {} must be a number above 0", self.task_start)));
        }
        let rate = parse_rate(&self.task_rate).map_err(|error| usage(format!("--task-rate: {error}")))?;
        let rate = rate.get() as f64;
        Ok(Costs {
            split_bytes: size("--split-size", &self.split_size)?,
            partition_bytes: size("--partition-size", &self.partition_size)?,
            task_seconds: self.task_start,
            map_rate: rate,
            reduce_rate: rate,
            network: machines.network()?.unwrap_or(Costs::default().network),
        })
    }
}

//! Where simulated jobs come from: a file, read once, or a generator.

use super::machines::MachineFlags;
use crate::files::{InputFileError, read_text};
use crate::usage::usage;
use clap::{Args, ValueEnum};
use gristmill_runtime::rate::parse_rate;
use gristmill_runtime::size::parse_bytes;
use gristmill_scheduler::workload::{self, Costs, Format, Generator, Job, Reading, Scale};
use std::path::Path;

/// Which jobs, and how many of them.
#[derive(Args)]
#[command(next_help_heading = "Jobs")]
pub struct JobsFlags {
    /// Format of the file [default: by its ending]
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// Only the first N jobs
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Let jobs arrive F times as often
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true)]
    scale_load: f64,
    /// Make all times F times as long; the load stays
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true)]
    scale_time: f64,
    /// Make all bytes F times as many, with the work that follows from them
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true)]
    scale_bytes: f64,
    /// Lines of a trace that may be skipped because they cannot be read
    #[arg(long, value_name = "N", default_value_t = 100)]
    skip: u64,
    /// Input of one map, where a trace tells only bytes
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    split_size: String,
    /// Shuffled bytes of one reduce, likewise
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    partition_size: String,
    /// What a task works through in a second, likewise
    #[arg(long, value_name = "RATE", default_value = "20MB/s")]
    task_rate: String,
    /// Seconds that a task takes besides, likewise
    #[arg(long, value_name = "S", default_value_t = 1.0, allow_negative_numbers = true)]
    task_start: f64,
}

/// [`Format`] on the command line.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum FormatName {
    /// SWIM: tab-separated arrivals and bytes
    Swim,
    /// Rumen: JSON objects one after another
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
    /// What bytes cost in a trace that tells no tasks.
    costs: Option<Costs>,
}

enum Origin {
    File(Vec<Job>),
    Generator(Box<dyn Generator>),
}

impl SimulatedJobs {
    /// Reads the file of this name, or makes the generator. What was skipped is told on stderr.
    pub fn open(name: &str, flags: &JobsFlags, machines: &MachineFlags) -> anyhow::Result<SimulatedJobs> {
        let scale = Scale { load: flags.scale_load, time: flags.scale_time, bytes: flags.scale_bytes };
        scale.validate().map_err(|error| usage(format!("--{error}").replace('`', "")))?;
        if flags.jobs == Some(0) {
            return Err(usage("--jobs must be at least 1".to_owned()));
        }
        let source = |kind: Origin, costs: Option<Costs>| SimulatedJobs {
            name: name.to_owned(),
            kind,
            scale,
            jobs_max: flags.jobs.unwrap_or(usize::MAX),
            costs,
        };
        let path = Path::new(name);
        let format = flags.format.map(Format::from).or_else(|| Format::of_name(name));
        let Some(format) = format else {
            if path.is_file() {
                return Err(usage(format!("{name}: its ending tells no format; name one with --format")));
            }
            let generator = workload::by_name(name).map_err(|error| usage(error.to_string()))?;
            return Ok(source(Origin::Generator(generator), None));
        };
        let reading = Reading { costs: flags.costs(machines)?, scale, skipped_max: flags.skip };
        let trace = workload::read(format, &read_text(path)?, &reading)
            .map_err(|error| InputFileError::new(path, error))?;
        if let Some(first) = trace.first_skipped {
            say!("{name}: skipped {} line(s) that could not be read, the first: {first}", trace.skipped);
        }
        let costs = (format == Format::Swim).then_some(reading.costs);
        Ok(source(Origin::File(trace.jobs), costs))
    }

    /// As typed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether every seed gives the same jobs.
    pub fn is_fixed(&self) -> bool {
        matches!(self.kind, Origin::File(_))
    }

    /// The factor on bytes by which a trace that tells only bytes has at most so many tasks, short and rounded down;
    /// `None` for other workloads, and where no factor makes them so few.
    pub fn bytes_factor(&self, tasks_max: f64) -> Option<f64> {
        let (Origin::File(jobs), Some(costs)) = (&self.kind, &self.costs) else { return None };
        let jobs = &jobs[..jobs.len().min(self.jobs_max)];
        let tasks =
            |factor: f64| jobs.iter().map(|job| workload::swim_tasks(job, costs, factor)).sum::<f64>();
        // From tenths down, in short numbers.
        let factors =
            (0..12).flat_map(|power| [5, 2, 1].map(|digit| f64::from(digit) / 10_f64.powi(power + 1)));
        factors.into_iter().find(|&factor| tasks(factor) <= tasks_max)
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
    /// The factor on bytes.
    pub fn scale_bytes(&self) -> f64 {
        self.scale_bytes
    }

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

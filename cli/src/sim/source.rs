//! Sources of simulated jobs: a file, read once, or a generator.

use super::machines::MachineFlags;
use crate::files::{InputFileError, read_text};
use crate::flags::above_zero;
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::catalogue::{self, CatalogueError, Entry};
use gristmill_scheduler::workload::{self, Costs, Format, Generator, Job, Reading, Scale};
use std::path::Path;

/// Selection of jobs.
#[derive(Args)]
#[command(next_help_heading = "Jobs")]
pub struct JobsFlags {
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
    const PAPERS: [&str; 2] = ["asrpt", "deadlines"];
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
        let Some(format) = Format::of_name(name) else {
            if path.is_file() {
                return Err(usage(format!(
                    "{name}: its name is not that of a format, such as .csv, .toml, .tsv, .json, .sls.json, .swf or \
                     .coflows, or one with .gz"
                )));
            }
            let generator =
                catalogue::call(&generators(), "workload", name).map_err(|error| absent(name, &error))?;
            return Ok(source(Origin::Generator(generator)));
        };
        let network = machines.network()?.unwrap_or(Costs::default().network);
        let costs = Costs { network, ..Costs::default() };
        let reading = Reading { costs, scale, ..Reading::default() };
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

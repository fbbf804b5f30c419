//! Reads a workload of any format: detects the format, counts unreadable lines, scales, and sorts by arrival.

use super::{BadLine, Costs, Job, Scale, WorkloadError, rumen, swim, table};

/// Format of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Tab-separated lines of job, arrival, gap and bytes: SWIM.
    Swim,
    /// Rumen's JSON objects, one after another.
    Rumen,
    /// A table of jobs with a header line.
    Csv,
    /// A list of `[[job]]` tables.
    Toml,
}

impl Format {
    /// Detects the format from the ending of a file name, without `.gz`; `None` if it is unknown.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Format> {
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let (_, ending) = name.rsplit_once('.')?;
        match ending {
            "tsv" => Some(Format::Swim),
            "json" | "trace" => Some(Format::Rumen),
            "csv" => Some(Format::Csv),
            "toml" => Some(Format::Toml),
            _ => None,
        }
    }
}

/// Settings of reading.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reading {
    /// Costs of bytes for formats without times.
    pub costs: Costs,
    /// Factors on all sizes.
    pub scale: Scale,
    /// Maximum number of unreadable jobs of a trace that are skipped. Tables may have none.
    pub skipped_max: u64,
}

/// Default maximum number of skipped jobs of a trace.
const SKIPPED_MAX: u64 = 100;

impl Default for Reading {
    fn default() -> Self {
        Reading { costs: Costs::default(), scale: Scale::default(), skipped_max: SKIPPED_MAX }
    }
}

/// Maximum number of tasks of one workload: ten times the largest cluster that can be simulated in minutes, 8 bytes
/// each.
pub(super) const TASKS_MAX: usize = 100_000_000;

/// Result of reading a workload.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// Jobs in the order of arrival, at least one.
    pub jobs: Vec<Job>,
    /// Number of unreadable lines.
    pub skipped: u64,
    /// The first unreadable line.
    pub first_skipped: Option<BadLine>,
}

impl Trace {
    /// Adds a line of a trace.
    pub(super) fn take(
        &mut self,
        line: u64,
        job: Result<Job, super::LineError>,
        reading: &Reading,
    ) -> Result<(), WorkloadError> {
        match job {
            Ok(job) => self.jobs.push(job),
            Err(error) => {
                self.skipped += 1;
                let first = self.first_skipped.get_or_insert(BadLine { line, error });
                if reading.skipped_max < self.skipped {
                    let (limit, first) = (reading.skipped_max, first.clone());
                    return Err(WorkloadError::TooManyBad { limit, first });
                }
            }
        }
        Ok(())
    }
}

/// Reads the jobs of a text.
///
/// # Errors
/// More unreadable lines than may be skipped; no job at all; factors out of range.
pub fn read(format: Format, text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    reading.scale.validate()?;
    reading.costs.validate()?;
    let mut trace = match format {
        Format::Swim => swim::read(text, reading)?,
        Format::Rumen => rumen::read(text, reading)?,
        Format::Csv => table::read_csv(text, reading)?,
        Format::Toml => table::read_toml(text, reading)?,
    };
    if trace.jobs.is_empty() {
        return Err(WorkloadError::Empty { first: trace.first_skipped });
    }
    for job in &mut trace.jobs {
        reading.scale.apply(job);
    }
    // A stable sort keeps jobs of equal arrival in the order of the text.
    trace.jobs.sort_by(|one, other| one.arrival.total_cmp(&other.arrival));
    Ok(trace)
}

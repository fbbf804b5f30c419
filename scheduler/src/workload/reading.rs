//! Settings and result of reading a workload.

use super::{BadLine, Costs, Job, LineError, Scale, WorkloadError};

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
    /// Makes arrivals relative to the first.
    pub(super) fn count_from_first(&mut self) {
        let first = self.jobs.iter().map(|job| job.arrival).fold(f64::INFINITY, f64::min);
        self.jobs.iter_mut().for_each(|job| job.arrival -= first);
    }

    /// Adds a line of a trace.
    pub(super) fn add_line(
        &mut self,
        line: u64,
        job: Result<Job, LineError>,
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

/// Reads a number of at least 0.
pub(super) fn number(field: &'static str, text: &str) -> Result<f64, LineError> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && 0.0 <= *number);
    let wanted = "a finite number at least 0";
    number.ok_or_else(|| LineError::Field { field, value: text.to_owned(), wanted })
}

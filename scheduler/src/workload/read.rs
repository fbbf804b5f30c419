//! Reads a workload of any format: detects the format, counts unreadable lines, scales, and sorts by arrival.

use super::{Reading, Trace, WorkloadError, clusters, lines, rumen, swim, table};

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
    /// The standard workload format of the Parallel Workloads Archive.
    Swf,
    /// The coflow benchmark.
    Coflows,
    /// `batch_task.csv` of Alibaba's trace of 2018.
    Alibaba,
    /// `instance_events` of Google's trace of 2019, exported as JSON lines.
    Google,
    /// `cluster_job_log` of Microsoft's Philly trace.
    Philly,
    /// JSON objects of Hadoop's scheduler load simulator.
    Sls,
}

impl Format {
    /// Detects the format from a file name or its ending, without `.gz`; `None` if it is unknown.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Format> {
        let name = name.strip_suffix(".gz").unwrap_or(name);
        match name.rsplit('/').next().unwrap_or(name) {
            "batch_task.csv" => return Some(Format::Alibaba),
            "cluster_job_log" => return Some(Format::Philly),
            name if name.starts_with("instance_events") && name.ends_with(".json") => {
                return Some(Format::Google);
            }
            _ => {}
        }
        if name.ends_with(".sls.json") {
            return Some(Format::Sls);
        }
        let (_, ending) = name.rsplit_once('.')?;
        match ending {
            "swf" => Some(Format::Swf),
            "coflows" => Some(Format::Coflows),
            "philly" => Some(Format::Philly),
            "tsv" => Some(Format::Swim),
            "json" | "trace" => Some(Format::Rumen),
            "csv" => Some(Format::Csv),
            "toml" => Some(Format::Toml),
            _ => None,
        }
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
        Format::Swf => lines::read_swf(text, reading)?,
        Format::Coflows => lines::read_coflows(text, reading)?,
        Format::Alibaba => clusters::read_alibaba(text, reading)?,
        Format::Google => clusters::read_google(text, reading)?,
        Format::Philly => clusters::read_philly(text, reading)?,
        Format::Sls => clusters::read_sls(text, reading)?,
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

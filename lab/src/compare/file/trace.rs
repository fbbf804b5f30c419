//! Converts a scaled trace of a real cluster to jobs that only take time.
//!
//! Not here: the formats of traces, which are in the scheduler.

use super::values::TraceTable;
use super::{FileError, Source};
use crate::compare::workload::{Arrivals, JOBS_MAX, Kind, Workload};
use flate2::read::MultiGzDecoder;
use gristmill_runtime::api::ExactWork;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::{Format, Job, Reading, Scale, Trace, read as read_trace};
use gristmill_worker::sanitize;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;
use toml::Spanned;

/// Maximum bytes of a decompressed trace.
const TRACE_BYTES_MAX: u64 = 1 << 30;

/// Reads the trace that the table names and adds its jobs and arrivals to the workload.
pub(super) fn read(
    table: &Spanned<TraceTable>,
    source: Source<'_>,
    folder: &Path,
    workload: &mut Workload,
    remarks: &mut Vec<String>,
) -> Result<(), FileError> {
    let TraceTable { file: name, load, time, bytes, jobs } = table.get_ref();
    let [load, time, bytes] =
        [load, time, bytes].map(|factor| factor.as_ref().map_or(1.0, |factor| factor.0));
    let scale = Scale { load, time, bytes };
    let most = jobs.map_or(JOBS_MAX, |jobs| jobs.0 as usize);
    let path = folder.join(name);
    let file = path.display().to_string();
    let unknown = || {
        let reason = format!("the name of `{name}` does not end in .tsv, .json, .csv or .toml");
        source.refuse(table.span().start, reason)
    };
    let format = Format::of_name(name).ok_or_else(unknown)?;
    let text = text(&path).map_err(|source| FileError::Read { file: file.clone(), source })?;
    let reading = Reading { scale, ..Reading::default() };
    let trace: Trace = read_trace(format, &text, &reading)
        .map_err(|source| FileError::Trace { file: file.clone(), source })?;
    if 0 < trace.skipped {
        remarks.push(format!("lines of {file} that could not be read and were skipped: {}", trace.skipped));
    }
    let first = trace.jobs.first().map_or(0.0, |job| job.arrival);
    let mut jobs = trace.jobs;
    jobs.truncate(most);
    let labels = labels(&jobs);
    let mut arrivals = Vec::new();
    for (job, label) in jobs.into_iter().zip(labels) {
        arrivals.push(job.arrival - first);
        let maps = if job.maps.is_empty() { vec![job.work[Station::Map]] } else { job.maps };
        let reduces = if job.reduces.is_empty() && 0.0 < job.work[Station::Reduce] {
            vec![job.work[Station::Reduce]]
        } else {
            job.reduces
        };
        let mut kind = Kind::new("synthetic", &[]);
        kind.label = label;
        // A job without reduces is a map-only job and specifies that itself.
        kind.reduces = Some(reduces.len() as u32).filter(|&reduces| 0 < reduces);
        kind.deadline = job.deadline.map(|deadline| deadline - job.arrival).filter(|span| 0.0 < *span);
        kind.weight = if 0.0 < job.weight { job.weight } else { 1.0 };
        kind.pool = job.pool.map(|pool| format!("pool-{pool}"));
        let (map_seconds, reduce_seconds) = (maps, reduces);
        kind.exact = Some(ExactWork { map_seconds, shuffle_bytes: job.shuffle_bytes, reduce_seconds });
        kind.plays_exact = true;
        workload.kinds.push(kind);
    }
    workload.arrivals = Arrivals::Times(arrivals);
    Ok(())
}

/// Maximum number of distinct job names in a trace for which names are kinds, not names of single jobs.
const NAMES_MAX: usize = 12;

/// Bytes of a name that are shown.
const NAME_BYTES_MAX: usize = 40;

/// Returns the label of each job: the trace's own name if at least two jobs share one on average, else `trace`.
fn labels(jobs: &[Job]) -> Vec<String> {
    let names: Option<Vec<&str>> = jobs.iter().map(|job| job.name.as_deref()).collect();
    let names = names.filter(|names| {
        let different = names.iter().collect::<BTreeSet<_>>().len();
        let some = names.iter().all(|name| !name.is_empty());
        some && different <= NAMES_MAX && 2 * different <= jobs.len()
    });
    match names {
        Some(names) => names.iter().map(|name| sanitize::line(name, NAME_BYTES_MAX)).collect(),
        None => vec!["trace".to_owned(); jobs.len()],
    }
}

fn text(path: &Path) -> io::Result<String> {
    let file = std::fs::File::open(path)?;
    let mut text = String::new();
    if path.extension().is_some_and(|ending| ending == "gz") {
        MultiGzDecoder::new(file).take(TRACE_BYTES_MAX).read_to_string(&mut text)?;
    } else {
        file.take(TRACE_BYTES_MAX).read_to_string(&mut text)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: Option<&str>, map: f64) -> Job {
        Job { name: name.map(str::to_owned), maps: vec![map, map], ..Job::default() }
    }

    #[test]
    fn jobs_of_a_trace_are_labelled_by_its_names_when_these_are_shared() {
        let jobs =
            [job(Some("sort"), 1.0), job(Some("join"), 9.0), job(Some("sort"), 9.0), job(Some("join"), 1.0)];
        assert_eq!(labels(&jobs), ["sort", "join", "sort", "join"]);
        let own = [job(Some("a"), 1.0), job(Some("b"), 9.0)];
        assert_eq!([labels(&own), labels(&[job(None, 1.0), job(None, 2.0)])], [["trace"; 2]; 2]);
    }
}

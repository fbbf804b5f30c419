//! A trace of a real cluster, scaled, as jobs that only take time.
//!
//! Not here: the formats of traces, which are the scheduler's.

use super::FileError;
use super::table::Table;
use crate::compare::workload::{Amount, Arrivals, JOBS_MAX, Kind, Workload};
use flate2::read::MultiGzDecoder;
use gristmill_runtime::api::ExactWork;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::{Format, Reading, Scale, Trace, read as read_trace};
use std::io::{self, Read};
use std::path::Path;

/// Bytes of an unpacked trace at most.
const TRACE_BYTES_MAX: u64 = 1 << 30;

/// Reads the trace that the table names and puts its jobs and arrivals into the workload.
pub(super) fn read(
    table: &Table<'_>,
    folder: &Path,
    workload: &mut Workload,
    remarks: &mut Vec<String>,
) -> Result<(), FileError> {
    let name = table.text("file")?.ok_or_else(|| table.refuse("file", "the name of a file"))?;
    let factor = |key| Ok(table.number(key, "a number above 0", |number| 0.0 < number)?.unwrap_or(1.0));
    let scale = Scale { load: factor("load")?, time: factor("time")?, bytes: factor("bytes")? };
    let most = table.whole("jobs", 1..JOBS_MAX as i64 + 1)?.unwrap_or(JOBS_MAX as i64) as usize;
    table.done()?;
    let path = folder.join(&name);
    let file = path.display().to_string();
    let format = Format::of_name(&name)
        .ok_or_else(|| table.refuse("file", "a file whose name ends in .tsv, .json, .csv or .toml"))?;
    let text = text(&path).map_err(|source| FileError::Read { file: file.clone(), source })?;
    let reading = Reading { scale, ..Reading::default() };
    let trace: Trace = read_trace(format, &text, &reading)
        .map_err(|source| FileError::Trace { file: file.clone(), source })?;
    if 0 < trace.skipped {
        remarks.push(format!("{} line(s) of {file} could not be read and were skipped", trace.skipped));
    }
    let first = trace.jobs.first().map_or(0.0, |job| job.arrival);
    let mut arrivals = Vec::new();
    for job in trace.jobs.into_iter().take(most) {
        arrivals.push(job.arrival - first);
        let maps = if job.maps.is_empty() { vec![job.work[Station::Map]] } else { job.maps };
        let reduces = if job.reduces.is_empty() && 0.0 < job.work[Station::Reduce] {
            vec![job.work[Station::Reduce]]
        } else {
            job.reduces
        };
        let mut kind = Kind::new("synthetic", &[]);
        kind.label = "trace".to_owned();
        kind.amount = Amount::Count(1);
        // A job without reduces is one of maps alone and says so itself.
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

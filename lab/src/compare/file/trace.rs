//! Converts a scaled trace of a real cluster to jobs that only take time.
//!
//! Not here: the formats of traces, which are in the scheduler.

use super::values::TraceTable;
use super::{FileError, Source};
use crate::compare::workload::{Arrivals, JOBS_MAX, Kind, Workload};
use crate::report::number;
use flate2::read::MultiGzDecoder;
use gristmill_runtime::api::ExactWork;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::{Format, Job, Reading, Scale, Trace, read as read_trace};
use gristmill_worker::clean;
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
        remarks.push(format!("{} line(s) of {file} could not be read and were skipped", trace.skipped));
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
        (kind.label, kind.told_label) = (label.shown, label.told);
        kind.count = 1;
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

/// Returns the kind of each job. It is the trace's own name if at least two jobs share one on average,
/// else the power of ten of its slot-seconds.
fn labels(jobs: &[Job]) -> Vec<Label> {
    let names: Option<Vec<&str>> = jobs.iter().map(|job| job.name.as_deref()).collect();
    let names = names.filter(|names| {
        let different = names.iter().collect::<BTreeSet<_>>().len();
        let some = names.iter().all(|name| !name.is_empty());
        some && different <= NAMES_MAX && 2 * different <= jobs.len()
    });
    match names {
        Some(names) => names.iter().map(|name| Label::named(name)).collect(),
        None => jobs.iter().map(|job| Label::sized(slot_seconds(job))).collect(),
    }
}

/// Label of a job of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Label {
    shown: String,
    /// Label that the master and its estimators receive.
    told: Option<String>,
}

impl Label {
    fn named(name: &str) -> Self {
        Self { shown: clean::line(name, NAME_BYTES_MAX), told: None }
    }

    /// Returns a label by size. Estimators do not receive it, because it reveals the size that they must
    /// estimate.
    fn sized(seconds: f64) -> Self {
        Self { shown: size_class(seconds), told: Some("trace".to_owned()) }
    }
}

fn slot_seconds(job: &Job) -> f64 {
    let of = |tasks: &[f64], station| if tasks.is_empty() { job.work[station] } else { tasks.iter().sum() };
    of(&job.maps, Station::Map) + of(&job.reduces, Station::Reduce)
}

/// Describes the decade of a number of slot-seconds.
fn size_class(seconds: f64) -> String {
    const LEAST: i32 = -2;
    let decade = if 0.0 < seconds { (seconds.log10().floor() as i32).max(LEAST - 1) } else { LEAST - 1 };
    let power = |exponent: i32| number::number(10_f64.powi(exponent));
    match decade < LEAST {
        true => format!("under {} slot-s", power(LEAST)),
        false => format!("{} to {} slot-s", power(decade), power(decade + 1)),
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
        assert_eq!(labels(&jobs), ["sort", "join", "sort", "join"].map(Label::named));
    }

    #[test]
    fn jobs_of_a_trace_are_labelled_by_size_for_people_alone_when_names_are_their_own_or_missing() {
        let expected = ["under 0.01 slot-s", "1 to 10 slot-s", "10 to 100 slot-s", "under 0.01 slot-s"];
        let sizes = [0.001, 0.5, 20.0, 0.0];
        let own: Vec<Job> =
            ["a", "b", "c", "d"].iter().zip(sizes).map(|(name, map)| job(Some(name), map)).collect();
        for found in [labels(&own), labels(&sizes.map(|map| job(None, map)))] {
            assert_eq!(found.iter().map(|label| &label.shown[..]).collect::<Vec<_>>(), expected);
            assert!(found.iter().all(|label| label.told.as_deref() == Some("trace")), "{found:?}");
        }
    }
}

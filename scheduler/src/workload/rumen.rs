//! Traces of Rumen, the reader of Hadoop's job histories: a sequence of JSON objects, one per job.
//!
//! Fields used of a job: `submitTime` (milliseconds), `jobName`, and of each map and reduce the attempt that succeeded.
//! The length of a map is that of this attempt. A reduce counts from the end of its shuffle, since the shuffle is a
//! separate station; its bytes are `reduceShuffleBytes`, or the output of the maps. Times are relative to the first
//! job. Failed attempts, placement, and the distributions that Rumen adds for other simulators are ignored.

use super::{Job, LineError, Reading, Trace, WorkloadError};
use crate::station::{PerStation, Station};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoggedJob {
    job_name: Option<String>,
    submit_time: i64,
    #[serde(default)]
    map_tasks: Vec<LoggedTask>,
    #[serde(default)]
    reduce_tasks: Vec<LoggedTask>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoggedTask {
    #[serde(default)]
    attempts: Vec<LoggedAttempt>,
    input_bytes: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoggedAttempt {
    result: Option<String>,
    start_time: i64,
    finish_time: i64,
    shuffle_finished: Option<i64>,
    map_output_bytes: Option<i64>,
    reduce_shuffle_bytes: Option<i64>,
}

pub(super) fn read(text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let mut trace = Trace::default();
    let (mut offset, mut line) = (0, 1);
    while let Some(start) = text[offset..].find(|c: char| !c.is_whitespace()) {
        line += newlines(&text[offset..offset + start]);
        offset += start;
        let rest = &text[offset..];
        let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<LoggedJob>();
        let (length, job) = match objects.next() {
            Some(Ok(job)) => (objects.byte_offset(), job.into_job()),
            Some(Err(error)) => (next_object(rest), Err(LineError::Json { words: error.to_string() })),
            None => break,
        };
        trace.add_line(line, job, reading)?;
        line += newlines(&rest[..length]);
        offset += length;
    }
    // Milliseconds since the epoch up to here, so that no precision is lost before the first arrival is known.
    let first = trace.jobs.iter().map(|job| job.arrival).fold(f64::INFINITY, f64::min);
    for job in &mut trace.jobs {
        job.arrival = (job.arrival - first) / 1e3;
        job.work[Station::Shuffle] = job.shuffle_bytes / reading.costs.network;
    }
    Ok(trace)
}

fn newlines(text: &str) -> u64 {
    text.bytes().filter(|&byte| byte == b'\n').count() as u64
}

/// Returns the start of the next object: a brace at the start of a line, as these traces are written.
fn next_object(text: &str) -> usize {
    text.find("\n{").map_or(text.len(), |place| place + 1)
}

impl LoggedJob {
    fn into_job(self) -> Result<Job, LineError> {
        if self.submit_time < 0 {
            let (field, value) = ("submitTime", self.submit_time.to_string());
            return Err(LineError::Field { field, value, wanted: "milliseconds since the epoch" });
        }
        let maps = lengths(&self.map_tasks, "map attempt", |attempt| attempt.start_time)?;
        // A reduce without a recorded end of its shuffle counts from its start.
        let reduces = lengths(&self.reduce_tasks, "reduce attempt", |attempt| {
            attempt.shuffle_finished.filter(|&end| attempt.start_time <= end).unwrap_or(attempt.start_time)
        })?;
        if maps.is_empty() {
            return Err(LineError::NoTasks);
        }
        let bytes = |tasks: &[LoggedTask], of: fn(&LoggedAttempt) -> Option<i64>| -> f64 {
            tasks.iter().filter_map(LoggedTask::success).filter_map(of).map(|bytes| bytes.max(0) as f64).sum()
        };
        let fetched = bytes(&self.reduce_tasks, |attempt| attempt.reduce_shuffle_bytes);
        let put_out = bytes(&self.map_tasks, |attempt| attempt.map_output_bytes);
        let shuffle = if reduces.is_empty() {
            0.0
        } else if 0.0 < fetched {
            fetched
        } else {
            put_out
        };
        let input =
            self.map_tasks.iter().filter_map(|task| task.input_bytes).map(|bytes| bytes.max(0) as f64);
        Ok(Job {
            arrival: self.submit_time as f64,
            work: PerStation::new(maps.iter().sum(), 0.0, reduces.iter().sum()),
            input_bytes: input.sum(),
            shuffle_bytes: shuffle,
            name: self.job_name,
            maps,
            reduces,
            ..Job::default()
        })
    }
}

impl LoggedTask {
    fn success(&self) -> Option<&LoggedAttempt> {
        self.attempts.iter().find(|attempt| attempt.result.as_deref() == Some("SUCCESS"))
    }
}

/// Returns the seconds from `begin` to the end of each task's successful attempt.
fn lengths(
    tasks: &[LoggedTask],
    field: &'static str,
    begin: impl Fn(&LoggedAttempt) -> i64,
) -> Result<Vec<f64>, LineError> {
    let attempts = tasks.iter().filter_map(LoggedTask::success);
    attempts
        .map(|attempt| {
            let (from, to) = (begin(attempt), attempt.finish_time);
            if from < 0 || to < from {
                let value = format!("{from} to {to}");
                return Err(LineError::Field { field, value, wanted: "a span of milliseconds" });
            }
            Ok((to - from) as f64 / 1e3)
        })
        .collect()
}

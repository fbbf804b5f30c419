//! Environment variables of commands: Hadoop's properties of the job and the task, and few of the
//! worker's own.

use super::job::StreamingJob;
use super::place::AttemptPlace;
use gristmill_runtime::cluster::inherited;
use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind};
use gristmill_worker::api::InputRange;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// Converts a property's name to a variable: characters other than letters and digits become `_`.
#[must_use]
pub(super) fn variable_name(property: &str) -> String {
    property.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// Returns the variables of a command.
pub(super) fn environment(
    job: &StreamingJob,
    place: &AttemptPlace,
    directory: &Path,
) -> BTreeMap<OsString, OsString> {
    let mut all = inherited();
    let mut set = |name: String, value: &str| drop(all.insert(name.into(), value.into()));
    for (name, value) in &job.properties {
        set(variable_name(name), value);
    }
    // Hadoop's properties of a task, under the old and the new names.
    let mut both =
        |names: &[&str], value: &str| names.iter().for_each(|name| set(variable_name(name), value));
    let task = place.attempt.task;
    let number = job_number(job.stamp, task.job);
    let (letter, is_map) = match task.kind {
        TaskKind::Map => ('m', "true"),
        TaskKind::Reduce => ('r', "false"),
    };
    let here = directory.display().to_string();
    both(&["mapreduce.job.id", "mapred.job.id"], &format!("job_{number}"));
    both(&["mapreduce.task.id", "mapred.tip.id"], &format!("task_{number}_{letter}_{:06}", task.index));
    both(&["mapreduce.task.attempt.id", "mapred.task.id"], &attempt_name(job.stamp, place.attempt));
    both(&["mapreduce.task.partition", "mapred.task.partition"], &task.index.to_string());
    both(&["mapreduce.task.ismap", "mapreduce.task.is.map", "mapred.task.is.map"], is_map);
    both(&["mapreduce.task.output.dir", "mapred.work.output.dir"], &here);
    both(&["mapreduce.job.local.dir", "mapred.job.local.dir", "job.local.dir"], &here);
    both(&["mapreduce.task.attempt.number"], &place.attempt.epoch.to_string());
    if let Some(stretch) = &place.stretch {
        both(&["mapreduce.map.input.file", "map.input.file"], &uri_of(job, &stretch.path));
        both(&["mapreduce.map.input.start", "map.input.start"], &stretch.offset.to_string());
        both(&["mapreduce.map.input.length", "map.input.length"], &stretch.length.to_string());
    }
    for (name, value) in &job.variables {
        set(name.clone(), value);
    }
    all.insert("TMPDIR".into(), directory.join("tmp").into());
    all.insert("PWD".into(), directory.into());
    all
}

/// Returns the number of a job in Hadoop's format, `STAMP_0001`: its tools expect four digits.
#[must_use]
pub fn job_number(stamp: u64, job: JobId) -> String {
    const NUMBERS: u32 = 9_999;
    format!("{stamp}_{:04}", (job.0.max(1) - 1) % NUMBERS + 1)
}

/// Returns the name of an attempt in Hadoop's format.
pub(super) fn attempt_name(stamp: u64, attempt: AttemptId) -> String {
    let letter = if attempt.task.kind == TaskKind::Map { 'm' } else { 'r' };
    let number = job_number(stamp, attempt.task.job);
    format!("attempt_{number}_{letter}_{:06}_{}", attempt.task.index, attempt.epoch)
}

/// Returns the range of a map in Hadoop's format: `FILE:BEGIN+LENGTH`.
pub(super) fn split_name(job: &StreamingJob, stretch: &InputRange) -> String {
    format!("{}:{}+{}", uri_of(job, &stretch.path), stretch.offset, stretch.length)
}

/// Returns the URI of a file in Hadoop's format.
fn uri_of(job: &StreamingJob, path: &str) -> String {
    let below = job.hdfs_root.as_ref().and_then(|root| Path::new(path).strip_prefix(root).ok());
    match below {
        Some(below) => format!("hdfs:///{}", below.display()),
        None => format!("file:{path}"),
    }
}

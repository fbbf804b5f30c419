//! Traces of clusters that run other programs than MapReduce: Alibaba 2018, Google 2019, Microsoft's Philly, and Hadoop's
//! scheduler load simulator.
//!
//! None has bytes, so jobs shuffle nothing. Times are relative to the first job.

use super::reading::{TASKS_MAX, number};
use super::{Job, LineError, Reading, Trace, WorkloadError};
use crate::station::PerStation;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Returns a job of these tasks.
fn job(arrival: f64, maps: Vec<f64>, reduces: Vec<f64>, name: &str) -> Result<Job, LineError> {
    if maps.is_empty() && reduces.is_empty() {
        return Err(LineError::NoTasks);
    }
    let (maps, reduces) = if maps.is_empty() { (reduces, maps) } else { (maps, reduces) };
    let work = PerStation::new(maps.iter().sum(), 0.0, reduces.iter().sum());
    Ok(Job { arrival, work, maps, reduces, name: Some(name.to_owned()), ..Job::default() })
}

/// Reads `batch_task.csv` of Alibaba's trace of 2018: nine columns without a header, of which the name of the task (stage),
/// its number of instances, the name of its job, its status, and its start and end in seconds are used. A job is the stages
/// of one name that ended (`Terminated`).
///
/// Assumed: a job arrives when its first stage starts; each instance takes as long as its stage; stages that depend on no
/// other (their name has no number after `_`) are maps, and all others are reduces, which then run at the same time.
pub(super) fn read_alibaba(text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let mut trace = Trace::default();
    let mut jobs: BTreeMap<&str, (f64, [Vec<f64>; 2])> = BTreeMap::new();
    let mut tasks = 0;
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        match Stage::read(text) {
            Err(error) => trace.add_line(line, Err(error), reading)?,
            Ok(None) => {}
            Ok(Some(stage)) => {
                tasks += stage.instances;
                if TASKS_MAX < tasks {
                    return Err(WorkloadError::Tasks { line, limit: TASKS_MAX, needed: None });
                }
                let (arrival, lengths) =
                    jobs.entry(stage.job).or_insert_with(|| (stage.start, Default::default()));
                *arrival = arrival.min(stage.start);
                let lengths = &mut lengths[usize::from(stage.depends)];
                lengths.resize(lengths.len() + stage.instances, stage.end - stage.start);
            }
        }
    }
    for (name, (arrival, [maps, reduces])) in jobs {
        trace.jobs.extend(job(arrival, maps, reduces, name).ok());
    }
    trace.count_from_first();
    Ok(trace)
}

/// Stage of Alibaba's trace.
struct Stage<'a> {
    job: &'a str,
    instances: usize,
    depends: bool,
    start: f64,
    end: f64,
}

impl<'a> Stage<'a> {
    /// Reads a line; `None` for a stage that did not end.
    fn read(line: &'a str) -> Result<Option<Self>, LineError> {
        let cells: Vec<&str> = line.split(',').collect();
        let [name, instances, job, _, status, start, end, ..] = cells[..] else {
            return Err(LineError::Cells { found: cells.len(), wanted: "9".to_owned() });
        };
        if status != "Terminated" {
            return Ok(None);
        }
        let instances = number("instance_num", instances)?;
        let (start, end) = (number("start_time", start)?, number("end_time", end)?);
        if end < start || TASKS_MAX as f64 <= instances {
            let (field, value) = ("end_time", format!("{start} to {end}"));
            return Err(LineError::Field { field, value, wanted: "a span of seconds" });
        }
        let depends = name.split('_').skip(1).any(|other| other.parse::<u32>().is_ok());
        Ok(Some(Self { job, instances: instances as usize, depends, start, end }))
    }
}

/// Event of an instance in Google's trace. BigQuery exports its numbers as text.
#[derive(Deserialize)]
struct InstanceEvent {
    /// Microseconds; 0 before the trace, and the largest number after it.
    #[serde(deserialize_with = "whole")]
    time: i64,
    #[serde(rename = "type", deserialize_with = "whole")]
    kind: i64,
    #[serde(deserialize_with = "whole")]
    collection_id: i64,
    /// 0 for a job; 1 for a reservation, in which jobs run.
    #[serde(deserialize_with = "whole")]
    collection_type: i64,
    #[serde(deserialize_with = "whole")]
    instance_index: i64,
}

/// Kinds of events that are used, as the trace numbers them.
const SUBMIT: i64 = 0;
const SCHEDULE: i64 = 3;
const FINISH: i64 = 6;

fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| D::Error::custom(format!("{value} is not a whole number")))
}

/// Job of Google's trace: its first submission, and by instance the times at which it was last scheduled and finished.
#[derive(Default)]
struct Collection {
    submitted: Option<i64>,
    instances: BTreeMap<i64, [Option<i64>; 2]>,
}

/// Reads `instance_events` of Google's trace of 2019 (version 3) as BigQuery exports it: an object of JSON per line, in any
/// order, of which `time`, `type`, `collection_id`, `collection_type` and `instance_index` are used. A job is the instances
/// of a collection that finished, each a map that takes from its last scheduling to its end; it arrives when its first
/// instance is submitted. All events of a collection must be in one text, and an export in several files has them in any.
///
/// Assumed: instances need not run together. What was submitted or scheduled before the trace is left out.
pub(super) fn read_google(text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let mut trace = Trace::default();
    let mut collections: BTreeMap<i64, Collection> = BTreeMap::new();
    let mut tasks = 0;
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let event = match serde_json::from_str::<InstanceEvent>(text) {
            Ok(event) => event,
            Err(error) => {
                trace.add_line(line, Err(LineError::Json { words: error.to_string() }), reading)?;
                continue;
            }
        };
        // Before the trace, after it, or no job.
        if event.time <= 0 || event.time == i64::MAX || event.collection_type != 0 {
            continue;
        }
        let collection = collections.entry(event.collection_id).or_default();
        let place = match event.kind {
            SUBMIT => {
                collection.submitted = Some(collection.submitted.map_or(event.time, |at| at.min(event.time)));
                continue;
            }
            SCHEDULE => 0,
            FINISH => 1,
            _ => continue,
        };
        let times = collection.instances.entry(event.instance_index).or_insert_with(|| {
            tasks += 1;
            [None, None]
        });
        times[place] = times[place].max(Some(event.time));
        if TASKS_MAX < tasks {
            return Err(WorkloadError::Tasks { line, limit: TASKS_MAX, needed: None });
        }
    }
    for (id, collection) in collections {
        let length = |times: &[Option<i64>; 2]| Some((times[1]?.checked_sub(times[0]?)?) as f64 / 1e6);
        let maps: Vec<f64> =
            collection.instances.values().filter_map(length).filter(|length| 0.0 <= *length).collect();
        let arrival = collection.submitted.map(|at| at as f64 / 1e6);
        trace.jobs.extend(arrival.and_then(|arrival| job(arrival, maps, Vec::new(), &id.to_string()).ok()));
    }
    trace.count_from_first();
    Ok(trace)
}

#[derive(Deserialize)]
struct PhillyJob {
    jobid: String,
    vc: String,
    status: String,
    submitted_time: String,
    attempts: Vec<PhillyAttempt>,
}

#[derive(Deserialize)]
struct PhillyAttempt {
    start_time: Option<String>,
    end_time: Option<String>,
    detail: Vec<PhillyMachine>,
}

#[derive(Deserialize)]
struct PhillyMachine {
    gpus: Vec<String>,
}

/// Reads `cluster_job_log` of Microsoft's Philly trace: a JSON list of jobs with their attempts. A job that passed is the
/// processors (GPUs) of its last attempt, each a map as long as the attempt; its virtual cluster becomes the pool.
///
/// Assumed: the processors of a job need not run together; earlier attempts are left out.
pub(super) fn read_philly(text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let mut trace = Trace::default();
    let jobs: Vec<serde_json::Value> = match serde_json::from_str(text) {
        Ok(jobs) => jobs,
        Err(error) => {
            trace.add_line(
                1,
                Err(LineError::Json { words: error.to_string() }),
                &Reading { skipped_max: 0, ..*reading },
            )?;
            return Ok(trace);
        }
    };
    let mut pools: BTreeMap<String, u32> = BTreeMap::new();
    for (place, value) in (1..).zip(jobs) {
        let job = serde_json::from_value::<PhillyJob>(value)
            .map_err(|error| LineError::Json { words: error.to_string() });
        let job = match job {
            Ok(job) if job.status != "Pass" => continue,
            Ok(job) => job.into_job(&mut pools),
            Err(error) => Err(error),
        };
        trace.add_line(place, job, reading)?;
    }
    trace.count_from_first();
    Ok(trace)
}

impl PhillyJob {
    fn into_job(self, pools: &mut BTreeMap<String, u32>) -> Result<Job, LineError> {
        let last = self.attempts.last().ok_or(LineError::NoTasks)?;
        let time = |field: &'static str, text: &Option<String>| {
            let text = text.as_deref().unwrap_or_default();
            let wanted = "a time as 2017-10-09 07:03:30";
            seconds(text).ok_or_else(|| LineError::Field { field, value: text.to_owned(), wanted })
        };
        let (start, end) = (time("start_time", &last.start_time)?, time("end_time", &last.end_time)?);
        let length = (end - start).max(0.0);
        let processors = last.detail.iter().map(|machine| machine.gpus.len()).sum();
        let arrival = time("submitted_time", &Some(self.submitted_time))?;
        let pool = pools.len() as u32;
        let pool = *pools.entry(self.vc).or_insert(pool);
        Ok(Job { pool: Some(pool), ..job(arrival, vec![length; processors], Vec::new(), &self.jobid)? })
    }
}

/// Returns the seconds of a time since an arbitrary day.
fn seconds(time: &str) -> Option<f64> {
    let (date, clock) = time.split_once(' ')?;
    let numbers = |text: &str, by: char| -> Option<[u32; 3]> {
        text.split(by).map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>()?.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(clock, ':')?);
    if !(1..=12).contains(&month) || !(1970..=9999).contains(&year) || 31 < day || 24 < hour {
        return None;
    }
    if 59 < minute || 60 < second {
        return None;
    }
    // Years from March on, so that the leap day is the last.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    Some(f64::from(days) * 86_400.0 + f64::from(hour * 3600 + minute * 60 + second))
}

#[derive(Deserialize)]
struct SlsJob {
    #[serde(rename = "job.start.ms", default)]
    start: f64,
    #[serde(rename = "job.id")]
    id: Option<String>,
    #[serde(rename = "job.tasks")]
    tasks: Vec<SlsTask>,
}

#[derive(Deserialize)]
struct SlsTask {
    #[serde(rename = "container.start.ms")]
    start: Option<f64>,
    #[serde(rename = "container.end.ms")]
    end: Option<f64>,
    #[serde(rename = "duration.ms")]
    duration: Option<f64>,
    #[serde(rename = "container.type", default)]
    kind: String,
    count: Option<usize>,
}

/// Reads the input of Hadoop's scheduler load simulator: JSON objects, one per job, whose tasks have a duration or a start
/// and an end in milliseconds, a type (`map`, `reduce`) and a count.
pub(super) fn read_sls(text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let (mut trace, mut tasks) = (Trace::default(), 0);
    for (place, found) in (1..).zip(serde_json::Deserializer::from_str(text).into_iter::<SlsJob>()) {
        let broken = found.is_err();
        let job = found
            .map_err(|error| LineError::Json { words: error.to_string() })
            .and_then(|job| job.into_job(place, TASKS_MAX - tasks));
        tasks += job.as_ref().map_or(0, |job| job.maps.len() + job.reduces.len());
        // What follows a broken object cannot be found.
        let reading = if broken { Reading { skipped_max: 0, ..*reading } } else { *reading };
        trace.add_line(place, job, &reading)?;
    }
    trace.count_from_first();
    Ok(trace)
}

impl SlsJob {
    /// Makes the job, of at most this many tasks.
    fn into_job(self, place: u64, tasks_max: usize) -> Result<Job, LineError> {
        let mut lengths = [Vec::new(), Vec::new()];
        for task in &self.tasks {
            let milliseconds = task.duration.or_else(|| Some(task.end? - task.start?)).unwrap_or(-1.0);
            let count = task.count.unwrap_or(1);
            let all = lengths.iter().map(Vec::len).sum::<usize>().saturating_add(count);
            if tasks_max < all {
                let (field, value) = ("count", count.to_string());
                return Err(LineError::Field {
                    field,
                    value,
                    wanted: "a number of tasks that all jobs may have",
                });
            }
            if !(milliseconds.is_finite() && 0.0 <= milliseconds) {
                let (field, value) = ("duration.ms", milliseconds.to_string());
                return Err(LineError::Field { field, value, wanted: "milliseconds of a task" });
            }
            let lengths = &mut lengths[usize::from(task.kind.eq_ignore_ascii_case("reduce"))];
            lengths.resize(lengths.len() + count, milliseconds / 1e3);
        }
        let [maps, reduces] = lengths;
        job(self.start / 1e3, maps, reduces, &self.id.unwrap_or_else(|| format!("job {place}")))
    }
}

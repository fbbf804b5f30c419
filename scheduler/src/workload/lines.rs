//! Traces of one job per line of numbers: the standard workload format of parallel machines, and the coflow benchmark.

use super::reading::{TASKS_MAX, number};
use super::{Job, LineError, Reading, Trace, WorkloadError};
use crate::station::PerStation;

/// Reads a whole number of at most [`TASKS_MAX`].
fn count(field: &'static str, value: &str) -> Result<usize, LineError> {
    let number = value.parse::<usize>().ok().filter(|number| *number <= TASKS_MAX);
    let wanted = "a whole number of tasks";
    number.ok_or_else(|| LineError::Field { field, value: value.to_owned(), wanted })
}

/// Reads the jobs of lines that are not empty. Those without a job are left out.
fn read<'a>(
    lines: impl Iterator<Item = (u64, &'a str)>,
    reading: &Reading,
    job: impl Fn(&'a str) -> Result<Option<Job>, LineError>,
) -> Result<Trace, WorkloadError> {
    let (mut trace, mut tasks) = (Trace::default(), 0_usize);
    for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
        let Some(job) = job(text).transpose() else { continue };
        tasks += job.as_ref().map_or(0, |job| job.maps.len() + job.reduces.len());
        if TASKS_MAX < tasks {
            return Err(WorkloadError::Tasks { line, limit: TASKS_MAX, needed: None });
        }
        trace.add_line(line, job, reading)?;
    }
    Ok(trace)
}

/// Reads the standard workload format (Feitelson's Parallel Workloads Archive): 18 columns separated by blanks, and
/// comments behind `;`. Used are the submit time (2), the run time (4), the allocated processors (5, or if unknown the
/// requested ones, 8), in seconds, the user (12) as name, and the queue (15) as pool. Jobs that did not run, with a run time or
/// processors of -1 or 0, are left out.
///
/// Assumed: a job of n processors is n maps as long as its run, which need not run together; it shuffles nothing.
pub(super) fn read_swf(text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let lines = (1..).zip(text.lines().map(|line| line.split(';').next().unwrap_or_default()));
    let trace = read(lines, reading, |line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        if cells.len() < 18 {
            return Err(LineError::Cells { found: cells.len(), wanted: "18".to_owned() });
        }
        // What cannot be read is an error later.
        let known = |column: usize| !cells[column - 1].parse::<f64>().is_ok_and(|number| number <= 0.0);
        let processors = if known(5) { 5 } else { 8 };
        if !known(4) || !known(processors) {
            return Ok(None);
        }
        let (arrival, run) = (number("submit time", cells[1])?, number("run time", cells[3])?);
        let processors = count("processors", cells[processors - 1])?;
        Ok(Some(Job {
            arrival,
            work: PerStation::new(run * processors as f64, 0.0, 0.0),
            maps: vec![run; processors],
            pool: cells[14].parse().ok(),
            name: Some(format!("user {}", cells[11])),
            ..Job::default()
        }))
    });
    trace.map(|mut trace| {
        trace.count_from_first();
        trace
    })
}

/// Reads the coflow benchmark (Chowdhury, FB2010-1Hr-150-0): a line of the numbers of ports and coflows, then for each
/// coflow its name, arrival in milliseconds, number of mappers and their racks, number of reducers, and for each its rack
/// and megabytes, as `7:120.0`.
///
/// Assumed: maps and reduces take no time; a megabyte is 10⁶ bytes; every reducer of a job receives the same, and racks
/// are not kept, since the placement chooses homes.
pub(super) fn read_coflows(text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let mut lines = (1..).zip(text.lines());
    let header: Vec<&str> = lines.next().map_or("", |(_, header)| header).split_whitespace().collect();
    let coflows = text.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
    if header.len() != 2 || header[1].parse() != Ok(coflows) {
        let (field, value) = ("first line", header.join(" "));
        let error =
            LineError::Field { field, value, wanted: "the numbers of ports and of the coflows that follow" };
        Trace::default().add_line(1, Err(error), &Reading { skipped_max: 0, ..*reading })?;
    }
    read(lines, reading, |line| {
        let mut cells = line.split_whitespace();
        let mut next = || cells.next().unwrap_or_default();
        let (name, arrival) = (next(), number("arrival", next())? / 1e3);
        let maps = count("number of mappers", next())?;
        let found = cells.by_ref().take(maps).count();
        if maps != found {
            return Err(LineError::Cells { found, wanted: format!("racks of {maps} mappers") });
        }
        let reduces = count("number of reducers", cells.next().unwrap_or_default())?;
        let (mut megabytes, mut found) = (0.0, 0);
        for cell in cells {
            let of_rack = cell.split_once(':').map_or("", |(_, megabytes)| megabytes);
            megabytes += number("megabytes of a reducer", of_rack)?;
            found += 1;
        }
        if reduces != found {
            let wanted = format!("megabytes of {reduces} reducers");
            return Err(LineError::Cells { found, wanted });
        }
        if maps == 0 || reduces == 0 {
            return Err(LineError::NoTasks);
        }
        let shuffle_bytes = megabytes * 1e6;
        Ok(Some(Job {
            arrival,
            work: PerStation::new(0.0, shuffle_bytes / reading.costs.network, 0.0),
            maps: vec![0.0; maps],
            reduces: vec![0.0; reduces],
            shuffle_bytes,
            name: Some(format!("coflow {name}")),
            ..Job::default()
        }))
    })
}

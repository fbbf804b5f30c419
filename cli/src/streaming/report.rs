//! Log of a running job, for people and for programs that read Hadoop's log.

use super::file_names::FileNames;
use super::json_progress::JsonProgress;
use super::kept::{JobDirectories, KeptJobs};
use super::log::{Level, log};
use crate::terminal::stderr_text;
use gristmill_runtime::api::{JobState, JobStatus};
use gristmill_streaming::{counter_sums, job_number};
use gristmill_worker::http::Endpoint;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two lines of progress.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// Logger of the job.
const JOB: &str = "mapreduce.Job";

/// Printer of a job's progress.
pub struct JobReporter {
    stamp: u64,
    places: FileNames,
    /// Address of the master.
    url: String,
    /// True if the job gets a directory, for `mapred job -kill` and for drivers that look for the logs of tasks.
    is_kept: bool,
    kept: Option<JobDirectories>,
    is_started: bool,
    /// Progress of maps and reduces that was printed last, and when.
    shown: Option<((u64, u64), Instant)>,
    incidents: BTreeSet<String>,
    pub json: JsonProgress,
}

impl JobReporter {
    pub fn new(stamp: u64, places: FileNames, master: &Endpoint, is_kept: bool, json: JsonProgress) -> Self {
        let scheme = if master.pin.is_some() { "https" } else { "http" };
        Self {
            stamp,
            places,
            url: format!("{scheme}://{}:{}/", master.host, master.port),
            is_kept,
            kept: None,
            is_started: false,
            shown: None,
            incidents: BTreeSet::new(),
            json,
        }
    }

    /// Creates the directory of the job. A job runs without one, too.
    fn keep(&mut self, status: &JobStatus) {
        if self.is_kept {
            match KeptJobs::new(&self.places).start(&self.number(status)) {
                Ok(kept) => self.kept = Some(kept),
                Err(error) => {
                    log(Level::Warn, JOB, &format!("`mapred job -kill` will not find this job: {error}"));
                }
            }
        }
    }

    fn number(&self, status: &JobStatus) -> String {
        job_number(self.stamp, status.job)
    }

    /// Prints the changes of a new status.
    pub fn show(&mut self, status: &JobStatus) {
        self.json.show(status);
        if !std::mem::replace(&mut self.is_started, true) {
            let number = self.number(status);
            log(Level::Info, "mapreduce.JobSubmitter", &format!("number of splits:{}", status.maps.total));
            log(Level::Info, "impl.YarnClientImpl", &format!("Submitted application application_{number}"));
            log(Level::Info, JOB, &format!("The url to track the job: {}", self.url));
            log(Level::Info, JOB, &format!("Running job: job_{number}"));
            log(Level::Info, JOB, &format!("Job job_{number} running in uber mode : false"));
            self.keep(status);
        }
        self.tell_failures(status);
        let progress = progress(status);
        if self.shown.is_none_or(|(shown, at)| shown != progress && PROGRESS_PAUSE <= at.elapsed()) {
            self.tell_progress(progress);
        }
    }

    fn tell_progress(&mut self, progress: (u64, u64)) {
        self.shown = Some((progress, Instant::now()));
        log(Level::Info, JOB, &format!(" map {}% reduce {}%", progress.0, progress.1));
    }

    /// Prints each failed attempt once, as Hadoop does.
    fn tell_failures(&mut self, status: &JobStatus) {
        for incident in &status.incidents {
            if !self.incidents.insert(incident.clone()) {
                continue;
            }
            if let Some((attempt, message)) = failed_attempt(incident) {
                let number = self.number(status);
                log(Level::Info, JOB, &format!("Task Id : attempt_{number}_{attempt}, Status : FAILED"));
                let text = format!("{message}\n");
                stderr_text(&text);
                if let Some(keeper) = &self.kept {
                    // They are printed in any case.
                    let _ = keeper.keep_log(&format!("attempt_{number}_{attempt}"), &text);
                }
            }
        }
    }

    /// Prints the end of a successful job.
    pub fn succeeded(&mut self, status: &JobStatus, output: &Path, has_reduces: bool) {
        self.show(status);
        let all = (100, if has_reduces { 100 } else { 0 });
        if self.shown.is_none_or(|(shown, _)| shown != all) {
            self.tell_progress(all);
        }
        log(Level::Info, JOB, &format!("Job job_{} completed successfully", self.number(status)));
        tell_counters(status, has_reduces);
        log(Level::Info, "streaming.StreamJob", &format!("Output directory: {}", self.places.uri(output)));
    }

    /// Prints the end of a job that failed or was cancelled.
    pub fn failed(&mut self, status: &JobStatus, has_reduces: bool) {
        self.show(status);
        let state = if status.state == JobState::Cancelled { "KILLED" } else { "FAILED" };
        let why = status.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default();
        let number = self.number(status);
        log(Level::Info, JOB, &format!("Job job_{number} failed with state {state} due to: {why}"));
        tell_counters(status, has_reduces);
    }
}

/// Progress of maps and reduces, percent.
fn progress(status: &JobStatus) -> (u64, u64) {
    let of = |done: u64, total: u64| (done * 100).checked_div(total).unwrap_or(0);
    let maps = match status.input_bytes {
        0 => of(status.maps.done.into(), status.maps.total.into()),
        bytes => of(status.input_bytes_read.min(bytes), bytes),
    };
    (maps, of(status.reduces.done.into(), status.reduces.total.into()))
}

/// Returns the attempt of an incident, in Hadoop's style without the job, and its message.
fn failed_attempt(incident: &str) -> Option<(String, &str)> {
    let (_, rest) = incident.split_once(": ")?;
    let (attempt, rest) = rest.split_once(" on ")?;
    let (_, message) = rest.split_once(" failed (")?;
    let (_, message) = message.split_once("): ")?;
    let (_, task) = attempt.split_once('/')?;
    let (kind, number) = task.split_once('-')?;
    let (index, epoch) = number.split_once('.')?;
    let letter = match kind {
        "map" => 'm',
        "reduce" => 'r',
        _ => return None,
    };
    let (index, epoch): (u32, u32) = (index.parse().ok()?, epoch.parse().ok()?);
    Some((format!("{letter}_{index:06}_{epoch}"), message))
}

fn tell_counters(status: &JobStatus, has_reduces: bool) {
    let groups = counters(status, has_reduces);
    let count: usize = groups.values().map(Vec::len).sum();
    log(Level::Info, JOB, &format!("Counters: {count}"));
    let mut text = String::new();
    for (group, counters) in groups {
        let _ = writeln!(text, "\t{group}");
        for (name, count) in counters {
            let _ = writeln!(text, "\t\t{name}={count}");
        }
    }
    stderr_text(&text);
}

/// Counters by group: those of the system under Hadoop's names, then those of commands.
fn counters(status: &JobStatus, has_reduces: bool) -> BTreeMap<String, Vec<(String, u64)>> {
    let totals = &status.totals;
    let mut groups: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
    let mut add = |group: &str, name: &str, count: u64| {
        groups.entry(group.to_owned()).or_default().push((name.to_owned(), count));
    };
    add("File Input Format Counters", "Bytes Read", totals.map_bytes_in);
    add("File Output Format Counters", "Bytes Written", totals.bytes_out);
    let framework = "Map-Reduce Framework";
    add(framework, "Map input records", totals.map_records_in);
    if has_reduces {
        add(framework, "Map output records", totals.map_records_out);
        add(framework, "Map output bytes", totals.map_bytes_out);
        add(framework, "Reduce input records", totals.reduce_records_in);
        add(framework, "Reduce output records", totals.records_out);
    } else {
        add(framework, "Map output records", totals.records_out);
    }
    for (group, name, sum) in counter_sums(&status.counters) {
        // Programs that read this accept no negative number.
        let Ok(sum) = u64::try_from(sum) else { continue };
        // What a combiner took is counted where it ran; the system sees what it left.
        match groups
            .get_mut(&group)
            .and_then(|of_group| of_group.iter_mut().find(|(known, _)| *known == name))
        {
            Some((_, count)) => *count = sum,
            None => groups.entry(group).or_default().push((name, sum)),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_in_the_style_that_drivers_read() {
        let incident = "0.123 s: job-1/map-12.3 on worker-0 failed (user): PipeMapRed: subprocess failed with code 1 | Traceback";
        let (attempt, message) = failed_attempt(incident).unwrap();
        assert_eq!(attempt, "m_000012_3");
        assert_eq!(message, "PipeMapRed: subprocess failed with code 1 | Traceback");
        assert_eq!(failed_attempt("0.1 s: worker-1 was lost"), None);
    }
}

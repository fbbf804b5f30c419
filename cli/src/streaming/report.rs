//! What is printed of a job as it goes, for people and for programs that read Hadoop's log.

use super::kept::{JobKeeper, KeptJob, KeptJobs, KeptState, KeptTasks, now_ms, this_process};
use super::log::{Level, log};
use super::places::FileNames;
use crate::terminal::stderr_text;
use gristmill_runtime::api::{JobState, JobStatus};
use gristmill_runtime::streaming::counter_sums;
use gristmill_worker::http::Endpoint;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two lines of progress.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// Who speaks of the job.
const JOB: &str = "mapreduce.Job";

/// Tells how a job goes on.
pub struct JobReporter {
    stamp: u64,
    places: FileNames,
    /// Where the master is.
    url: String,
    begun: bool,
    shown: Option<(u64, u64)>,
    shown_at: Option<Instant>,
    told: BTreeSet<String>,
    /// What is kept of the job, if anything is.
    kept: Kept,
}

/// Whether something is kept of a job, for `mapred job` and for drivers that look for the logs of tasks.
#[derive(Debug)]
enum Kept {
    No,
    /// It will be, under this name and priority, once the job has a number.
    Soon(String, String),
    Yes(Box<JobKeeper>),
}

impl JobReporter {
    pub fn new(stamp: u64, places: FileNames, master: &Endpoint) -> Self {
        let scheme = if master.pin.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}:{}/", master.host, master.port);
        Self {
            stamp,
            places,
            url,
            begun: false,
            shown: None,
            shown_at: None,
            told: BTreeSet::new(),
            kept: Kept::No,
        }
    }

    /// Keeps a file of the job from its beginning.
    pub fn keep(&mut self, name: &str, priority: &str) {
        self.kept = Kept::Soon(name.to_owned(), priority.to_owned());
    }

    /// Begins the file of the job. One that cannot be written keeps no job from running.
    fn begin_file(&mut self, status: &JobStatus) {
        let Kept::Soon(name, priority) = &self.kept else { return };
        let (process, process_began) = this_process();
        let job = KeptJob {
            number: self.number(status),
            name: name.clone(),
            user: self.places.user().to_owned(),
            priority: priority.clone(),
            state: KeptState::Running,
            why: String::new(),
            started_ms: now_ms(),
            finished_ms: None,
            maps: KeptTasks { total: status.maps.total, percent: 0 },
            reduces: KeptTasks { total: status.reduces.total, percent: 0 },
            counters: BTreeMap::new(),
            url: self.url.clone(),
            output: self.places.uri(status.output.to_path()),
            process,
            process_began,
        };
        self.kept = match KeptJobs::of(&self.places).begin(job) {
            Ok(keeper) => Kept::Yes(Box::new(keeper)),
            Err(error) => {
                log(Level::Warn, JOB, &format!("`mapred job` will not know of this job: {error}"));
                Kept::No
            }
        };
    }

    /// Brings the file of the job up to date.
    fn keep_state(&mut self, status: &JobStatus, ended: Option<(KeptState, String)>) {
        let has_reduces = 0 < status.reduces.total;
        let Kept::Yes(keeper) = &mut self.kept else { return };
        let percents = if matches!(ended, Some((KeptState::Succeeded, _))) {
            (100, if has_reduces { 100 } else { 0 })
        } else {
            progress(status)
        };
        (keeper.job.maps.percent, keeper.job.reduces.percent) = percents;
        let groups = counters(status, has_reduces).into_iter();
        keeper.job.counters = groups.map(|(group, counts)| (group, counts.into_iter().collect())).collect();
        if let Some((state, why)) = ended {
            (keeper.job.state, keeper.job.why, keeper.job.finished_ms) = (state, why, Some(now_ms()));
        }
        // Nobody is kept from anything by an old file.
        let _ = keeper.save();
    }

    /// The job was interrupted. Answers whether it was ended by `mapred job -kill`, which is an end as any other.
    pub fn interrupted(&mut self) -> bool {
        let Kept::Yes(keeper) = &mut self.kept else { return false };
        let killed = keeper.is_killed();
        (keeper.job.state, keeper.job.finished_ms) = (KeptState::Killed, Some(now_ms()));
        let number = keeper.job.number.clone();
        if killed {
            keeper.job.why = "it was killed by its user".to_owned();
            log(
                Level::Info,
                JOB,
                &format!("Job job_{number} failed with state KILLED due to: {}", keeper.job.why),
            );
        }
        let _ = keeper.save();
        killed
    }

    /// The number of the job in Hadoop's style: its tools expect four digits.
    fn number(&self, status: &JobStatus) -> String {
        format!("{}_{:04}", self.stamp, (status.job.0.max(1) - 1) % 9_999 + 1)
    }

    /// A new status is there.
    pub fn show(&mut self, status: &JobStatus) {
        if !std::mem::replace(&mut self.begun, true) {
            let number = self.number(status);
            log(Level::Info, "mapreduce.JobSubmitter", &format!("number of splits:{}", status.maps.total));
            log(Level::Info, "impl.YarnClientImpl", &format!("Submitted application application_{number}"));
            log(Level::Info, JOB, &format!("The url to track the job: {}", self.url));
            log(Level::Info, JOB, &format!("Running job: job_{number}"));
            log(Level::Info, JOB, &format!("Job job_{number} running in uber mode : false"));
            self.begin_file(status);
        }
        self.tell_failures(status);
        let progress = progress(status);
        let due = self.shown_at.is_none_or(|at| PROGRESS_PAUSE <= at.elapsed());
        if due && self.shown != Some(progress) {
            self.tell_progress(progress);
            self.keep_state(status, None);
        }
    }

    fn tell_progress(&mut self, progress: (u64, u64)) {
        (self.shown, self.shown_at) = (Some(progress), Some(Instant::now()));
        log(Level::Info, JOB, &format!(" map {}% reduce {}%", progress.0, progress.1));
    }

    /// Tells of each failed attempt once, as Hadoop does.
    fn tell_failures(&mut self, status: &JobStatus) {
        for incident in &status.incidents {
            if self.told.contains(incident) {
                continue;
            }
            self.told.insert(incident.clone());
            if let Some((attempt, message)) = failed_attempt(incident) {
                let number = self.number(status);
                log(Level::Info, JOB, &format!("Task Id : attempt_{number}_{attempt}, Status : FAILED"));
                let text = format!("{message}\n");
                stderr_text(&text);
                if let Kept::Yes(keeper) = &self.kept {
                    // The words stand in the log of this program in any case.
                    let _ = keeper.keep_log(&format!("attempt_{number}_{attempt}"), &text);
                }
            }
        }
    }

    /// The job has succeeded.
    pub fn succeeded(&mut self, status: &JobStatus, output: &Path, has_reduces: bool) {
        self.show(status);
        let all = (100, if has_reduces { 100 } else { 0 });
        if self.shown != Some(all) {
            self.tell_progress(all);
        }
        log(Level::Info, JOB, &format!("Job job_{} completed successfully", self.number(status)));
        tell_counters(status, has_reduces);
        self.keep_state(status, Some((KeptState::Succeeded, String::new())));
        log(Level::Info, "streaming.StreamJob", &format!("Output directory: {}", self.places.uri(output)));
    }

    /// The job has failed, or was cancelled.
    pub fn failed(&mut self, status: &JobStatus, has_reduces: bool) {
        self.show(status);
        let state = if status.state == JobState::Cancelled { "KILLED" } else { "FAILED" };
        let why = status.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default();
        let number = self.number(status);
        log(Level::Info, JOB, &format!("Job job_{number} failed with state {state} due to: {why}"));
        tell_counters(status, has_reduces);
        let kept = if state == "KILLED" { KeptState::Killed } else { KeptState::Failed };
        self.keep_state(status, Some((kept, why)));
    }
}

/// Maps and reduces that are done, of hundred.
fn progress(status: &JobStatus) -> (u64, u64) {
    let of = |done: u64, total: u64| (done * 100).checked_div(total).unwrap_or(0);
    let maps = match status.input_bytes {
        0 => of(status.maps.done.into(), status.maps.total.into()),
        bytes => of(status.input_bytes_read.min(bytes), bytes),
    };
    (maps, of(status.reduces.done.into(), status.reduces.total.into()))
}

/// The attempt of an incident, in Hadoop's style without the job, and what it reported.
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

/// Counters by group: what the system counts under the names that Hadoop has for it, then what commands have counted.
fn counters(status: &JobStatus, has_reduces: bool) -> BTreeMap<String, Vec<(String, u64)>> {
    let totals = &status.totals;
    let mut groups: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
    let mut add = |group: &str, name: &str, count: u64| {
        groups.entry(group.to_owned()).or_default().push((name.to_owned(), count));
    };
    add("File Input Format Counters", "Bytes Read", totals.map_bytes_in);
    add("File Output Format Counters", "Bytes Written", totals.bytes_out);
    // Hadoop counts attempts. Those that came back before they began are none of them.
    let attempts = &status.attempts;
    let maps = attempts.maps_launched.saturating_sub(attempts.returned);
    let reduces = attempts.launched.saturating_sub(attempts.maps_launched);
    add("Job Counters", "Launched map tasks", u64::from(maps));
    add("Job Counters", "Launched reduce tasks", u64::from(reduces));
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
        // Programs that read this take no negative number.
        if let Ok(sum) = u64::try_from(sum) {
            add(&group, &name, sum);
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

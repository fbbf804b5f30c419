//! Why a job waits, and why a task ran where and when it did: sentences from what the master knows.
//!
//! What the policy thinks of waiting jobs is the core's to say.

use super::MasterState;
use super::job::JobEntry;
use crate::api::{AttemptEnd, AttemptRecord, JobState};
use gristmill_scheduler::ids::{JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;

/// A task of a job: its kind and index.
pub(crate) type TaskName = (TaskKind, u32);

/// Earlier attempts of a task that are told of, the last ones.
const EARLIER_ATTEMPTS_MAX: usize = 8;

impl MasterState {
    /// Why a job waits or how it went, or why a task of it ran where and when it did; the answer first. `None`: there
    /// is no such job or task.
    pub(crate) fn explain(&mut self, now: Time, id: JobId, task: Option<TaskName>) -> Option<Vec<String>> {
        let job = self.jobs.get(&id)?;
        match task {
            None => {
                let facts = about_job(now, id, job);
                let mut sentences = if job.state.ended() { Vec::new() } else { self.core.explain(id) };
                sentences.extend(facts);
                Some(sentences)
            }
            Some((kind, index)) => {
                let tasks = if kind == TaskKind::Map { job.maps } else { job.submission.reduces };
                (index < tasks).then(|| self.explain_task(now, TaskId { job: id, kind, index }))
            }
        }
    }

    fn explain_task(&mut self, now: Time, task: TaskId) -> Vec<String> {
        let Some(job) = self.jobs.get(&task.job) else { return Vec::new() };
        let attempts = job.records.attempts_of(task, now);
        let mut sentences = Vec::new();
        if let Some((last, before)) = attempts.split_last() {
            sentences.extend(self.about_attempt(job, last));
            if EARLIER_ATTEMPTS_MAX < before.len() {
                sentences.push(format!(
                    "before that, {} attempts are not told of here",
                    before.len() - EARLIER_ATTEMPTS_MAX
                ));
            }
            for earlier in before.iter().rev().take(EARLIER_ATTEMPTS_MAX) {
                sentences.push(format!("before that, {}", self.ending(earlier)));
            }
        } else if 0 < job.records.omitted {
            sentences.push(format!("nothing is kept of {task}: the job's trace is too long, or too old"));
        } else {
            sentences.push(format!("{task} has not been launched"));
        }
        let waits = attempts.last().is_none_or(|last| match last.end {
            AttemptEnd::HandedOver | AttemptEnd::Returned | AttemptEnd::Failed { .. } | AttemptEnd::Lost => {
                true
            }
            AttemptEnd::Running | AttemptEnd::Succeeded => false,
        });
        if waits && !job.state.ended() {
            if task.kind == TaskKind::Reduce
                && let Some(home) = self.core.home(task.job, task.index)
            {
                sentences.push(format!("its segments are gathered at {}", self.place(home)));
            }
            sentences.extend(self.core.explain(task.job));
        }
        sentences
    }

    fn about_attempt(&self, job: &JobEntry, record: &AttemptRecord) -> Vec<String> {
        let mut sentences = vec![format!("{}; reason: {}", self.ending(record), record.reason)];
        let after = |from: u64, what: &str| {
            format!("it was launched {} after {what}", seconds(record.launched_ns.saturating_sub(from)))
        };
        let ready = job.times.shuffle_done.map(|at| at.0).filter(|at| *at <= record.launched_ns);
        sentences.push(match (record.attempt.task.kind, ready) {
            (TaskKind::Reduce, Some(ready)) => after(ready, "the job's last segment was in"),
            _ => after(job.times.arrived.0, "the job's arrival"),
        });
        if let Some(started) = record.started_ns {
            let queued = seconds(started.saturating_sub(record.launched_ns));
            sentences.push(format!("it began on the worker {queued} after the order"));
        }
        if !record.suspensions.is_empty() {
            let spans = record.suspensions.iter().map(|(from, until)| until.saturating_sub(*from));
            let (times, span) = (record.suspensions.len(), seconds(spans.sum()));
            sentences.push(format!("it was suspended {times} times, for {span} in all"));
        }
        if let Some(report) = record.report.as_ref().filter(|report| 0 < report.paced_ns) {
            let paced = seconds(report.paced_ns);
            sentences
                .push(format!("of its time {paced} were waiting, because its worker is made to be slow"));
        }
        sentences
    }

    /// What became of an attempt.
    fn ending(&self, record: &AttemptRecord) -> String {
        let (attempt, worker) = (record.attempt, self.place(record.worker));
        let began = record.started_ns.unwrap_or(record.launched_ns);
        let ran = record.ended_ns.map_or_else(String::new, |end| seconds(end.saturating_sub(began)));
        match &record.end {
            AttemptEnd::Running if record.suspended => format!("{attempt} is suspended on {worker}"),
            AttemptEnd::Running => format!("{attempt} runs on {worker}"),
            AttemptEnd::Succeeded => format!("{attempt} ran on {worker} for {ran} and succeeded"),
            end @ (AttemptEnd::HandedOver | AttemptEnd::Returned | AttemptEnd::Failed { .. }) => {
                let (class, message) = end.shown().unwrap_or_default();
                format!("{attempt} ended on {worker} after {ran} ({class}): {message}")
            }
            AttemptEnd::Lost => format!("{attempt} was lost with {worker} after {ran}"),
        }
    }

    fn place(&self, worker: WorkerId) -> String {
        match self.workers.get(&worker) {
            Some(live) => format!("{worker} ({})", live.hello.host),
            None => format!("{worker} (gone since)"),
        }
    }
}

/// What the master knows of a job as a whole.
fn about_job(now: Time, id: JobId, job: &JobEntry) -> Vec<String> {
    let mut sentences = Vec::new();
    let span = |from: Time, until: Option<Time>| seconds(until.unwrap_or(now).since(from).0);
    let flow = span(job.times.arrived, job.times.ended);
    sentences.push(match job.shown_state() {
        JobState::Waiting => format!("{id} arrived {flow} ago and nothing of it has been launched"),
        JobState::Running => format!("{id} arrived {flow} ago"),
        JobState::Publishing => {
            format!("{id} arrived {flow} before its last task was done; its output is being published")
        }
        JobState::Succeeded => format!("{id} succeeded {flow} after its arrival"),
        JobState::Failed => {
            let why = job.failures.of_job.as_ref().map_or("", |failure| failure.message.as_str());
            format!("{id} failed {flow} after its arrival: {why}")
        }
        JobState::Cancelled => format!("{id} was cancelled {flow} after its arrival"),
    });
    if let Some(started) = job.times.started {
        sentences.push(format!(
            "its first task was launched {} after its arrival",
            span(job.times.arrived, Some(started))
        ));
    }
    let attempts = &job.records.counts;
    let failed = attempts.failed_user + attempts.failed_other;
    if 0 < failed + attempts.lost + attempts.maps_rerun {
        sentences.push(format!(
            "{failed} of its {} attempts failed, {} were lost with their worker, and {} maps ran again",
            attempts.launched, attempts.lost, attempts.maps_rerun
        ));
    }
    if 0 < attempts.backups {
        sentences.push(format!(
            "{} backups of slow attempts were launched, of which {} ended first",
            attempts.backups, attempts.backups_won
        ));
    }
    if let Some(outlook) = &job.outlook {
        sentences.push(format!("when it arrived: {}", outlook.words));
    }
    sentences
}

fn seconds(nanoseconds: u64) -> String {
    format!("{:.3} s", nanoseconds as f64 / 1e9)
}

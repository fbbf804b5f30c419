//! Explanations: why a job waits, and why a task ran where and when it did, as sentences from the master's records.
//!
//! The policy's view of waiting jobs comes from the core.

use super::fleet::Fleet;
use super::job::JobEntry;
use super::jobs::Jobs;
use super::query::Queries;
use crate::api::{
    AttemptEnd, AttemptRecord, FlowParts, JobState, JobStatus, JobTrace, JobTurn, SCHEMA, Turns,
};
use crate::plural::counted;
use gristmill_scheduler::core::Core;
use gristmill_scheduler::ids::{JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::station::Station;
use gristmill_scheduler::units::Time;

/// A task of a job: its kind and index.
pub(crate) type TaskName = (TaskKind, u32);

/// Number of earlier attempts of a task that are listed, the latest ones.
const EARLIER_ATTEMPTS_MAX: usize = 8;

/// Maximum number of slots assigned in simulation to find the next jobs in the queue. A client that polls repeats this
/// every few seconds.
const SLOTS_OF_TURNS_MAX: u32 = 1_000;
/// Maximum number of queue entries listed.
const TURNS_MAX: usize = 100;

/// Explains why a job waits or how it went, or why a task of it ran where and when it did. The most direct reason
/// is the first sentence. `None` if the job or task does not exist.
pub(super) fn explain(
    now: Time,
    id: JobId,
    task: Option<TaskName>,
    core: &mut Core,
    (jobs, fleet): (&Jobs, &Fleet),
) -> Option<Vec<String>> {
    let job = jobs.get(id)?;
    let status = Queries { core, jobs, fleet, forecast: None }.status_without_parts(now, id)?;
    match task {
        None => {
            let mut sentences = if job.state.ended() { Vec::new() } else { core.explain(id) };
            sentences.extend(about_job(&status));
            Some(sentences)
        }
        Some((kind, index)) => {
            let tasks = if kind == TaskKind::Map { job.maps } else { job.reduces() };
            (index < tasks).then(|| explain_task(now, (&status, kind, index), job, core, fleet))
        }
    }
}

/// Lists the jobs that would get the next slots in order, with reasons.
pub(super) fn turns(core: &mut Core) -> Turns {
    let all = core.turns(SLOTS_OF_TURNS_MAX);
    let found = all.iter().take(TURNS_MAX).filter_map(|turn| {
        let kind = match turn.station {
            Station::Map => TaskKind::Map,
            Station::Reduce => TaskKind::Reduce,
            Station::Shuffle => return None,
        };
        Some(JobTurn { job: turn.job, kind, tasks: turn.slots, reason: turn.reason.to_string() })
    });
    let turns = found.collect();
    Turns { schema: SCHEMA, turns, omitted: all.len().saturating_sub(TURNS_MAX) as u64 }
}

fn explain_task(
    now: Time,
    (status, kind, index): (&JobStatus, TaskKind, u32),
    job: &JobEntry,
    core: &mut Core,
    fleet: &Fleet,
) -> Vec<String> {
    let task = TaskId { job: status.job, kind, index };
    let attempts = job.records.attempts_of(task, now);
    let place = |worker: WorkerId| place_of(worker, fleet);
    let mut sentences =
        TaskFacts { status, task, omitted: job.records.omitted, place: &place }.about(&attempts);
    let waits = attempts.last().is_none_or(|last| match last.end {
        AttemptEnd::Failed(..) | AttemptEnd::Lost => true,
        AttemptEnd::Running | AttemptEnd::Succeeded => false,
    });
    if waits && !job.state.ended() {
        if task.kind == TaskKind::Reduce
            && let Some(home) = core.home(task.job, task.index)
        {
            sentences.push(format!("its segments are gathered at {}", place(home)));
        }
        sentences.extend(core.explain(task.job));
    }
    sentences
}

fn place_of(worker: WorkerId, fleet: &Fleet) -> String {
    match fleet.get(worker) {
        Some(live) => format!("{worker} ({})", live.hello.host),
        None => format!("{worker} (gone since)"),
    }
}

/// Explains a job that ended long ago, or under an earlier master, from its archived trace.
pub(crate) fn explain_kept(trace: &JobTrace, task: Option<TaskName>) -> Option<Vec<String>> {
    let status = &trace.status;
    let Some((kind, index)) = task else { return Some(about_job(status)) };
    let tasks = if kind == TaskKind::Map { status.maps.total } else { status.reduces.total };
    let task = TaskId { job: status.job, kind, index };
    let of_task = trace.attempts.iter().filter(|record| record.attempt.task == task);
    let attempts: Vec<AttemptRecord> = of_task.cloned().collect();
    // The worker's description is not archived.
    let place = |worker: WorkerId| worker.to_string();
    let found = TaskFacts { status, task, omitted: trace.omitted, place: &place };
    (index < tasks).then(|| found.about(&attempts))
}

/// Input of the sentences about a task, in addition to its attempts.
struct TaskFacts<'a> {
    /// Status of its job.
    status: &'a JobStatus,
    task: TaskId,
    /// Number of records that the job's trace has no room for.
    omitted: u64,
    /// Returns the description of a worker.
    place: &'a dyn Fn(WorkerId) -> String,
}

impl TaskFacts<'_> {
    /// Sentences about the attempts, the last attempt first.
    fn about(&self, attempts: &[AttemptRecord]) -> Vec<String> {
        let Some((last, before)) = attempts.split_last() else {
            let task = self.task;
            return vec![match self.omitted {
                0 => format!("{task} has not been launched"),
                _ => format!("nothing is kept of {task}: the job's trace is too long, or too old"),
            }];
        };
        let mut sentences = self.about_attempt(last);
        if EARLIER_ATTEMPTS_MAX < before.len() {
            sentences.push(format!(
                "before that, {} not told of here",
                counted((before.len() - EARLIER_ATTEMPTS_MAX) as u64, "attempt is", "attempts are")
            ));
        }
        for earlier in before.iter().rev().take(EARLIER_ATTEMPTS_MAX) {
            sentences.push(format!("before that, {}", self.ending(earlier)));
        }
        sentences
    }

    fn about_attempt(&self, record: &AttemptRecord) -> Vec<String> {
        let mut sentences = vec![format!("{}; reason: {}", self.ending(record), record.reason)];
        let after = |from: u64, what: &str| {
            format!("it was launched {} after {what}", seconds(record.launched_ns.saturating_sub(from)))
        };
        let ready = self.status.shuffle_done_ns.filter(|at| *at <= record.launched_ns);
        sentences.push(match (record.attempt.task.kind, ready) {
            (TaskKind::Reduce, Some(ready)) => after(ready, "the job's last segment was in"),
            _ => after(self.status.arrived_ns, "the job's arrival"),
        });
        if let Some(started) = record.started_ns {
            let queued = seconds(started.saturating_sub(record.launched_ns));
            sentences.push(format!("it began on the worker {queued} after the order"));
        }
        if !record.suspensions.is_empty() {
            let spans = record.suspensions.iter().map(|(from, until)| until.saturating_sub(*from));
            let (times, span) = (record.suspensions.len() as u64, seconds(spans.sum()));
            let times = counted(times, "time", "times");
            sentences.push(format!("it was suspended {times}, for {span} in all"));
        }
        if let Some(report) = record.report.as_ref().filter(|report| 0 < report.paced_ns) {
            let paced = seconds(report.paced_ns);
            sentences
                .push(format!("of its time {paced} were waiting, because its worker is made to be slow"));
        }
        sentences
    }

    /// Sentence about the end of an attempt.
    fn ending(&self, record: &AttemptRecord) -> String {
        let (attempt, worker) = (record.attempt, (self.place)(record.worker));
        let began = record.started_ns.unwrap_or(record.launched_ns);
        let ran = record.ended_ns.map_or_else(String::new, |end| seconds(end.saturating_sub(began)));
        match &record.end {
            AttemptEnd::Running if record.suspended => format!("{attempt} is suspended on {worker}"),
            AttemptEnd::Running => format!("{attempt} runs on {worker}"),
            AttemptEnd::Succeeded => format!("{attempt} ran on {worker} for {ran} and succeeded"),
            end @ AttemptEnd::Failed(..) => {
                let (class, message) = end.shown().unwrap_or_default();
                // A line from a worker must not look like a sentence of the master.
                let message = message.replace('\n', "\n    ");
                format!("{attempt} ended on {worker} after {ran} ({class}): {message}")
            }
            AttemptEnd::Lost => format!("{attempt} was lost with {worker} after {ran}"),
        }
    }
}

/// Sentences about a job as a whole.
fn about_job(status: &JobStatus) -> Vec<String> {
    let mut sentences = Vec::new();
    let (id, flow) = (status.job, seconds(status.flow_ns()));
    let failure = status.failure.as_ref().map_or("", |failure| &failure.message);
    sentences.push(match status.state {
        JobState::Waiting => format!("{id} arrived {flow} ago and nothing of it has been launched"),
        JobState::Running => format!("{id} arrived {flow} ago"),
        JobState::Publishing => {
            format!("{id} arrived {flow} before its last task was done; its output is being published")
        }
        JobState::Succeeded => format!("{id} succeeded {flow} after its arrival"),
        JobState::Failed => format!("{id} failed {flow} after its arrival: {failure}"),
        JobState::Cancelled => format!("{id} was cancelled {flow} after its arrival"),
    });
    if let Some(started) = status.started_ns.map(|at| at.saturating_sub(status.arrived_ns)) {
        sentences.push(format!("its first task was launched {} after its arrival", seconds(started)));
    }
    let FlowParts { running_ns, waiting_ns, blocked_ns } = status.flow_parts;
    if 0 < running_ns + waiting_ns + blocked_ns {
        sentences.push(format!(
            "of that time it ran for {}, waited for slots for {} and was blocked for {} by its shuffle or its output",
            seconds(running_ns),
            seconds(waiting_ns),
            seconds(blocked_ns)
        ));
    }
    let attempts = &status.attempts;
    let failed = attempts.failed_user + attempts.failed_other;
    if 0 < failed + attempts.lost + attempts.maps_rerun {
        sentences.push(format!(
            "of its {} {failed} failed, {} ended with their worker, and maps ran again {}",
            counted(attempts.launched.into(), "attempt", "attempts"),
            attempts.lost,
            counted(attempts.maps_rerun.into(), "time", "times")
        ));
    }
    if 0 < attempts.backups {
        sentences.push(format!(
            "{} launched, of which {} ended first",
            counted(attempts.backups.into(), "speculative attempt was", "speculative attempts were"),
            attempts.backups_won
        ));
    }
    if let Some(outlook) = &status.deadline_outlook {
        sentences.push(format!("when it arrived: {}", outlook.words));
    }
    sentences
}

fn seconds(nanoseconds: u64) -> String {
    format!("{:.3} s", nanoseconds as f64 / 1e9)
}

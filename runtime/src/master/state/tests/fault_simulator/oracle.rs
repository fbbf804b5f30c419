//! Invariants of every run, checked from outside: on the output files, the frames sent, and the expected results of the
//! jobs.

use super::process::ProcessId;
use super::scenario::JobPlan;
use super::slots::{GROUPS, Group};
use super::world::SPLIT_BYTES;
use crate::api::{FailureCode, JobState, JobStatus};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::protocol::AddedMap;
use std::collections::{BTreeMap, BTreeSet};

/// Number of failures of one task, or of its workers, from which on it is acceptable that its job fails.
const FAILURES_MIN: u32 = 8;

/// Number of failures of one worker at one job, by the worker's fault, from which on it is acceptable that the job
/// fails: no other worker was better by then.
const FAILURES_AT_WORKER_MIN: u32 = 24;

/// Tasks that divisions added to a job.
#[derive(Clone, Copy)]
pub(super) struct AddedTasks<'a> {
    pub maps: &'a [AddedMap],
    pub reduces: u32,
}

/// Observations of a run.
#[derive(Default)]
pub(super) struct Oracle {
    /// Attempts whose part was reported by a worker that was not lost.
    pub reported: BTreeSet<AttemptId>,
    /// Maps that succeeded, as reported by workers in service.
    pub ended: BTreeSet<AttemptId>,
    /// Bytes that map attempts which succeeded have read.
    pub read: BTreeMap<AttemptId, u64>,
    /// Attempt that built each part that counts.
    parts: BTreeMap<TaskId, AttemptId>,
    /// Attempts that received a permit to publish.
    pub granted: BTreeSet<AttemptId>,
    /// Intended failures of user code, by task.
    pub user_failures: BTreeMap<TaskId, u32>,
    /// Other reported failures, by task; failed fetches count for their map.
    failures: BTreeMap<TaskId, u32>,
    /// The same by job and worker.
    failures_at: BTreeMap<(JobId, WorkerId), u32>,
    /// Number of processes that the master has lost.
    pub losses: u32,
    /// Jobs that were cancelled.
    pub cancelled: BTreeSet<JobId>,
    /// Since when the master has no worker, and the longest such time.
    deserted: Option<Time>,
    deserted_longest: Span,
    /// Jobs that succeeded.
    pub succeeded: BTreeSet<JobId>,
}

impl Oracle {
    /// Enters a failure reported by a worker that is not caused by user code.
    pub fn failed(&mut self, task: TaskId, worker: WorkerId) {
        *self.failures.entry(task).or_default() += 1;
        *self.failures_at.entry((task.job, worker)).or_default() += 1;
    }

    pub fn workers(&mut self, now: Time, count: usize) {
        if 0 < count {
            self.deserted = None;
            return;
        }
        let since = *self.deserted.get_or_insert(now);
        self.deserted_longest = self.deserted_longest.max(now.since(since));
    }

    /// Returns the parts that count for a job now.
    pub fn parts(
        &mut self,
        job: JobId,
        parts: impl Iterator<Item = (u32, AttemptId)>,
        done: (u32, u32),
    ) -> Result<(), String> {
        let mut count = 0;
        for (index, attempt) in parts {
            count += 1;
            let right = attempt.task.job == job && attempt.task.index == index;
            let before = *self.parts.entry(attempt.task).or_insert(attempt);
            if !right {
                return Err(format!("part {index} of {job} was built by {attempt}"));
            }
            if before != attempt {
                return Err(format!("part {index} of {job} was committed by {before} and by {attempt}"));
            }
            if !self.reported.contains(&attempt) {
                return Err(format!("{attempt} counts, which no worker in service has reported"));
            }
            if !self.granted.contains(&attempt) {
                return Err(format!("{attempt} counts, which was not told to publish"));
            }
        }
        let (reduces, reduces_done) = done;
        match 0 < reduces && count != reduces_done {
            true => Err(format!("{job} has {count} parts and says that {reduces_done} reduces are done")),
            false => Ok(()),
        }
    }

    /// Checks a job that has ended.
    pub fn ended(
        &mut self,
        (plan, added): (&JobPlan, AddedTasks<'_>),
        status: &JobStatus,
        files: &BTreeMap<AttemptId, Vec<Group>>,
    ) -> Result<(), String> {
        match status.state {
            JobState::Succeeded | JobState::Publishing => {
                self.succeeded.insert(status.job);
                self.output_is_right((plan, added), status, files)?;
                counters_are_exact((plan, added), status)
            }
            JobState::Cancelled if self.cancelled.contains(&status.job) => Ok(()),
            JobState::Failed => self.failure_has_a_reason(plan, status),
            state => Err(format!("{} ended as {state:?} for no reason", status.job)),
        }
    }

    fn output_is_right(
        &self,
        (plan, added): (&JobPlan, AddedTasks<'_>),
        status: &JobStatus,
        files: &BTreeMap<AttemptId, Vec<Group>>,
    ) -> Result<(), String> {
        let job = status.job;
        let parts = if plan.reduces == 0 { plan.maps } else { plan.reduces };
        let built: Vec<u32> = status.built.iter().map(|built| built.attempt.task.index).collect();
        if built != (0..parts).collect::<Vec<_>>() {
            return Err(format!("{job} succeeded with the parts {built:?} of {parts}"));
        }
        let places = (0..plan.maps).map(|root| AddedMap { root, start: 0 }).chain(added.maps.iter().copied());
        let mut in_order: Vec<(AddedMap, u32)> = places.zip(0..).collect();
        in_order.sort_unstable();
        // The attempt of each map whose output was used, if its attempts have different output.
        let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
        for built in &status.built {
            let attempt = built.attempt;
            let expected: Vec<u32> = match attempt.task.kind {
                TaskKind::Map => vec![attempt.task.index],
                TaskKind::Reduce => {
                    let maps = in_order.iter().map(|(_, map)| *map);
                    maps.filter(|map| JobPlan::has_pair(*map, attempt.task.index)).collect()
                }
            };
            let pieces: Vec<AttemptId> = match built.pieces.is_empty() {
                true => vec![attempt],
                false => built.pieces.iter().map(|piece| piece.attempt).collect(),
            };
            let mut groups: Vec<&Group> = Vec::new();
            for piece in pieces {
                groups.extend(files.get(&piece).ok_or_else(|| format!("the file of {piece} is not there"))?);
            }
            let count = if attempt.task.kind == TaskKind::Map { 1 } else { GROUPS };
            let numbers: Vec<usize> = groups.iter().map(|(number, _)| *number).collect();
            if numbers != (0..count).collect::<Vec<_>>() {
                return Err(format!("the part of {attempt} has the groups {numbers:?} of {count}"));
            }
            for (_, group) in groups {
                let maps: Vec<u32> = group.iter().map(|(map, _)| *map).collect();
                if maps != expected {
                    return Err(format!("{attempt} took segments of {maps:?} instead of {expected:?}"));
                }
                for &(map, epoch) in group.iter().filter(|_| 0 < plan.reduces) {
                    // A piece ends where the next one of the same split starts.
                    let place =
                        in_order.iter().position(|(_, other)| *other == map).ok_or("an unknown map")?;
                    let AddedMap { root, start } = in_order[place].0;
                    let next = in_order.get(place + 1).filter(|(next, _)| next.root == root);
                    let wanted = next.map_or(SPLIT_BYTES, |(next, _)| next.start) - start;
                    let read = self.read.get(&TaskId::map(job, map).attempt(epoch));
                    if read != Some(&wanted) {
                        return Err(format!(
                            "{attempt} took the output of {read:?} bytes of map {map}, whose split has {wanted:?}"
                        ));
                    }
                }
                for &(map, epoch) in group.iter().filter(|_| plan.whimsical && 0 < plan.reduces) {
                    let before = *taken.entry(map).or_insert(epoch);
                    if before != epoch {
                        return Err(format!(
                            "{attempt} took from epoch {epoch} of map {map}, and others of epoch {before}, whose \
                             output was another"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn failure_has_a_reason(&self, plan: &JobPlan, status: &JobStatus) -> Result<(), String> {
        let Some(failure) = &status.failure else { return Err(format!("{} failed wordlessly", status.job)) };
        let most = |failures: &BTreeMap<TaskId, u32>| {
            let of_job = failures.iter().filter(|(task, _)| task.job == status.job);
            of_job.map(|(_, count)| *count).max().unwrap_or(0)
        };
        let at_workers = self.failures_at.iter().filter(|((job, _), _)| *job == status.job);
        let most_at_worker = at_workers.map(|(_, count)| *count).max().unwrap_or(0);
        let justified = match failure.code {
            FailureCode::UserCode => 4 <= most(&self.user_failures),
            FailureCode::NotDeterministic => plan.whimsical,
            FailureCode::NoWorkers => Span::whole_seconds(29) <= self.deserted_longest,
            FailureCode::WorkersLost => FAILURES_MIN <= self.losses,
            FailureCode::WorkersUnfit if FAILURES_AT_WORKER_MIN <= most_at_worker => true,
            FailureCode::WorkersUnfit
            | FailureCode::Unreachable
            | FailureCode::Engine
            | FailureCode::OutputUnreadable
            | FailureCode::OutputCorrupt => FAILURES_MIN <= most(&self.failures),
            _ => false,
        };
        match justified {
            true => Ok(()),
            false => Err(format!(
                "{} failed for no reason that it was given: {failure:?}; most user failures {}, others {}, at one \
                 worker {most_at_worker}, lost workers {}, longest without any {:.1} s",
                status.job,
                most(&self.user_failures),
                most(&self.failures),
                self.losses,
                self.deserted_longest.seconds()
            )),
        }
    }
}

/// Checks that each task counts once, however often it was retried.
fn counters_are_exact((plan, added): (&JobPlan, AddedTasks<'_>), status: &JobStatus) -> Result<(), String> {
    let maps = u64::from(plan.maps) + added.maps.len() as u64;
    let pairs = (1..=maps).sum();
    let groups = u64::from(plan.reduces) * GROUPS as u64;
    let counter = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let records = if plan.reduces == 0 { u64::from(plan.maps) } else { groups };
    for (what, found, expected) in [
        ("pairs", counter("pairs"), pairs),
        ("groups", counter("groups"), groups),
        ("records out", status.totals.records_out, records),
        ("bytes out", status.totals.bytes_out, 10 * records),
        (
            "bytes in",
            status.totals.map_bytes_in,
            if plan.reduces == 0 { 0 } else { SPLIT_BYTES * u64::from(plan.maps) },
        ),
        ("maps done", u64::from(status.maps.done), maps),
        ("reduces done", u64::from(status.reduces.done), u64::from(plan.reduces + added.reduces)),
    ] {
        // A map whose output was lost after all its segments were fetched may be running again when the job ends.
        let may_be_less = what == "maps done";
        if found != expected && !(may_be_less && found < expected) {
            return Err(format!("{} counts {found} {what} instead of {expected}", status.job));
        }
    }
    Ok(())
}

/// Checks that a process holds nothing of a job that is over.
pub(super) fn leaves_nothing(id: ProcessId, left: &[(&str, usize)]) -> Result<(), String> {
    match left.iter().find(|(_, count)| 0 < *count) {
        Some((what, count)) => Err(format!("{id} still has {count} {what} when all jobs are over")),
        None => Ok(()),
    }
}

//! Speculative attempts: which running tasks are slow enough for one, and where it runs.
//!
//! They may use slots that the policy left free in its plan, up to a fraction of all slots at once, on workers that are
//! not slow themselves. The task with the longest time left comes first. Clones of small jobs' tasks, if they are on, come
//! last and stop at a smaller fraction.
//!
//! [`ledger::backups`](crate::ledger) defines what happens when one of the two attempts ends.

use crate::command::{Command, LaunchReason};
use crate::core::Core;
use crate::core::rehome::moves_cheaply;
use crate::core::time_left::RunningMeasurements;
use crate::ids::{AttemptId, TaskKind, WorkerId};
use crate::job::Locality;
use crate::ledger::attempts::SlotHold;
use crate::ledger::attempts::{Attempt, DivisionState};
use crate::ledger::quotas;
use crate::ledger::{BackupLimits, CloneLimits, Job, Ledger, Worker, places};
use crate::plan::Reason;
use crate::units::{Span, Time};
use std::collections::BTreeSet;

/// A running attempt whose task is to have another one.
struct Candidate {
    attempt: AttemptId,
    /// Estimated time left in seconds; 0 for a clone.
    left: f64,
    reason: Reason,
    /// Slots per speculative attempt above which it gets none.
    slots_per_backup: u32,
}

/// Result of a search for slow attempts and those to be cloned.
#[derive(Default)]
struct SlowSearch {
    candidates: Vec<Candidate>,
    /// Slow workers.
    slow: BTreeSet<WorkerId>,
    /// Time when another attempt could become slow without a report from its worker.
    again: Option<Time>,
}

impl Core {
    /// Launches speculative attempts where needed. Returns the time of the next search.
    pub(super) fn back_up(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        let ledger = &mut self.ledger;
        let limits = ledger.config.backups.clone()?;
        let free = ledger.workers.free_of(TaskKind::Map) + ledger.workers.free_of(TaskKind::Reduce);
        if free == 0 || ledger.attempts.is_empty() {
            return None;
        }
        if ledger.now < ledger.backups.next_look {
            return Some(ledger.backups.next_look);
        }
        ledger.backups.next_look = ledger.now + limits.look_after;
        let SlowSearch { mut candidates, slow, again } = find_slow_attempts(ledger, &limits);
        candidates.sort_by(|one, two| two.left.total_cmp(&one.left).then(one.attempt.cmp(&two.attempt)));
        let anywhere = BTreeSet::new();
        for candidate in candidates {
            let task = candidate.attempt.task;
            // A task that is not slow says nothing about workers: its clone may run on any of them.
            let avoided = if candidate.reason == Reason::Clone { &anywhere } else { &slow };
            let Some(worker) = prepare_backup(ledger, &candidate, avoided, commands) else { continue };
            let locality = match task.kind {
                TaskKind::Map => ledger.jobs[&task.job].locality(task.index, worker, &ledger.workers),
                TaskKind::Reduce => Locality::Local,
            };
            let attempt = ledger.launch_backup(task, worker, locality);
            let reason = LaunchReason { grant: candidate.reason, locality };
            commands.push(Command::Launch { attempt, worker, reason });
        }
        again.map(|again| again.max(ledger.backups.next_look))
    }
}

/// Returns where the speculative attempt for this candidate starts now, if it may. A reduce first waits for its
/// segments at a second home, which is chosen here.
fn prepare_backup(
    ledger: &mut Ledger,
    candidate: &Candidate,
    slow: &BTreeSet<WorkerId>,
    commands: &mut Vec<Command>,
) -> Option<WorkerId> {
    let (first, task) = (candidate.attempt, candidate.attempt.task);
    let job = &ledger.jobs[&task.job];
    if !quotas::has_room(ledger, job) {
        return None;
    }
    if job.homes.second.contains_key(&task.index) && task.kind == TaskKind::Reduce {
        let free = |&at: &WorkerId| ledger.workers.get(at).is_some_and(|worker| 0 < worker.free(task.kind));
        return job.second_is_complete(task.index).filter(free);
    }
    if backups_max(ledger, candidate.slots_per_backup) <= backups_started(ledger) {
        return None;
    }
    match task.kind {
        TaskKind::Map => backup_place(ledger, first, slow),
        TaskKind::Reduce => {
            let at = second_place(ledger, first, slow)?;
            let job = ledger.jobs.get_mut(&task.job)?;
            job.open_second(task.index, at, &mut ledger.workers, commands);
            None
        }
    }
}

/// Number of speculative attempts that run or wait for their segments.
fn backups_started(ledger: &Ledger) -> usize {
    let maps = ledger.backups.racing.iter().filter(|task| task.kind == TaskKind::Map).count();
    maps + ledger.jobs.values().map(|job| job.homes.second.len()).sum::<usize>()
}

/// Returns the emptiest worker that is not slow and where this reduce may also run.
fn second_place(ledger: &Ledger, first: AttemptId, slow: &BTreeSet<WorkerId>) -> Option<WorkerId> {
    let task = first.task;
    let job = &ledger.jobs[&task.job];
    let own = ledger.attempts[&first].worker;
    if !moves_cheaply(ledger, job) {
        return None;
    }
    let fits = |id: &WorkerId| {
        *id != own
            && !slow.contains(id)
            && job.may_use(*id, &ledger.workers)
            && !job.avoids(task.kind, task.index, *id)
    };
    ledger.workers.idle(task.kind).map(Worker::id).find(fits)
}

/// Maximum number of speculative attempts at once.
fn backups_max(ledger: &Ledger, slots_per_backup: u32) -> usize {
    let slots: u32 = ledger.workers.sums.slots.iter().sum();
    slots.div_ceil(slots_per_backup.max(1)).max(1) as usize
}

/// Returns the limits if this attempt of a small job is to be cloned.
fn cloned<'a>(
    ledger: &Ledger,
    attempt: AttemptId,
    record: &Attempt,
    limits: &'a BackupLimits,
) -> Option<&'a CloneLimits> {
    let clones = limits.clones.as_ref().filter(|_| !record.queued && !record.dying)?;
    let job = ledger.jobs.get(&attempt.task.job)?;
    let small = job.maps.len() + job.reduces.len() <= clones.tasks_max as usize;
    let held = attempt.task.kind == TaskKind::Map || record.hold == SlotHold::Suspendable;
    (small && held && job.may_be_backed_up(attempt, limits)).then_some(clones)
}

/// Searches for slow attempts. The cost is linear in the number of attempts.
fn find_slow_attempts(ledger: &Ledger, limits: &BackupLimits) -> SlowSearch {
    let mut look =
        SlowSearch { slow: ledger.workers.slow.keys().copied().collect(), ..SlowSearch::default() };
    for (&attempt, record) in &ledger.attempts {
        let clone = || {
            let slots_per_backup = cloned(ledger, attempt, record, limits)?.slots_per_clone;
            Some(Candidate { attempt, left: 0.0, reason: Reason::Clone, slots_per_backup })
        };
        let slow = look.slow_attempt(ledger, attempt, record, limits);
        look.candidates.extend(slow.or_else(clone));
    }
    look
}

impl SlowSearch {
    /// Returns this attempt if it lags; else enters the time when it could.
    fn slow_attempt(
        &mut self,
        ledger: &Ledger,
        attempt: AttemptId,
        record: &Attempt,
        limits: &BackupLimits,
    ) -> Option<Candidate> {
        let slow_times = f64::from(limits.slow_times);
        let (job, running) = running(ledger, attempt, record, limits)?;
        if slow_times <= running.times_usual() {
            self.slow.insert(record.worker);
        }
        let began = Time(ledger.now.0 - running.ran.0.min(ledger.now.0));
        if ledger.now < began + limits.run_min || !job.may_be_backed_up(attempt, limits) {
            self.wait_until(ledger.now, began + limits.run_min);
            return None;
        }
        let Some(left) = running.lags(slow_times) else {
            let span = Span(running.usual.0.saturating_mul(u64::from(limits.slow_times)));
            self.wait_until(ledger.now, began + span);
            return None;
        };
        let reason = Reason::Backup { left, usual: running.usual.seconds() };
        Some(Candidate { attempt, left, reason, slots_per_backup: limits.slots_per_backup })
    }

    fn wait_until(&mut self, now: Time, time: Time) {
        if now < time {
            self.again = Some(self.again.map_or(time, |again| again.min(time)));
        }
    }
}

/// Returns the measurements of an attempt that holds a slot, if enough of its peers have ended. Reduces that
/// are about to be suspended are excluded.
fn running<'a>(
    ledger: &'a Ledger,
    attempt: AttemptId,
    record: &Attempt,
    limits: &BackupLimits,
) -> Option<(&'a Job, RunningMeasurements)> {
    // An order to divide is answered within a block, if the attempt makes progress.
    let divides = matches!(record.division, DivisionState::Ordered(at) if ledger.now < at + limits.run_min);
    if record.queued || record.dying || divides {
        return None;
    }
    let job = ledger.jobs.get(&attempt.task.job)?;
    let reduces = attempt.task.kind == TaskKind::Reduce;
    if reduces && record.hold != SlotHold::Suspendable {
        return None;
    }
    let input = job.input_of(attempt.task);
    let usual = job.attempts.usual[attempt.task.kind as usize].span(input, limits.peers_min)?;
    let share = |bytes: u64| bytes as f64 / input.0.max(1) as f64;
    let read = record.read.filter(|_| !reduces);
    let read = read.map(|(at, bytes)| (at.since(record.started), share(bytes.0)));
    let slowness = ledger.workers.get(record.worker).map_or(1.0, Worker::slowness);
    Some((
        job,
        RunningMeasurements { ran: record.ran + ledger.now.since(record.since), read, usual, slowness },
    ))
}

/// Returns the emptiest worker that is not slow and on which a speculative attempt of this map may run. Ties go to
/// the worker nearest to its input.
fn backup_place(ledger: &Ledger, first: AttemptId, slow: &BTreeSet<WorkerId>) -> Option<WorkerId> {
    let task = first.task;
    let job = &ledger.jobs[&task.job];
    let spec = job.map_spec(task.index);
    let own = ledger.attempts[&first].worker;
    let allowed = spec.pinned.then(|| places(spec, &ledger.workers));
    let fits = |worker: &&Worker| {
        let id = worker.id();
        id != own
            && !slow.contains(&id)
            && job.may_use(id, &ledger.workers)
            && !job.avoids(task.kind, task.index, id)
            && allowed.as_ref().is_none_or(|allowed| allowed.contains(&id))
    };
    let idle = ledger.workers.idle(task.kind).filter(fits);
    idle.map(Worker::id).min_by_key(|&id| job.locality(task.index, id, &ledger.workers))
}

impl Job {
    /// True if this attempt is the only one of its task and does not hold the permit to publish.
    fn may_be_backed_up(&self, attempt: AttemptId, limits: &BackupLimits) -> bool {
        let tries = self.tries(attempt.task);
        tries.backup.is_none() && tries.permit.is_none() && tries.backups_failed < limits.failures_max
    }
}

//! Divides running tasks for slots that the plan left idle, so that no job waits for its longest map or reduce. Maps
//! that make way for a more urgent job are chosen by `core/preempt`.
//!
//! An idle slot takes half of what is left of the running task that would end last, by time. The worker of that task
//! chooses the place ([`Command::Divide`]); the rest is a new task of the job, for which the policy grants a slot as for
//! any other. A division pays if each of the two parts takes at least [`DivideLimits::part_min`], a multiple of the time
//! that a task costs besides its input. The rest of a map can run anywhere, that of a reduce where its segments are:
//! simulated on networks of 100 MB/s for each worker, fetching them again costs others more than it saves.
//!
//! The time left follows from the reported progress of the attempt; that of a map else from the finished maps of its
//! job. Otherwise it is unknown, and the task is left alone.

use crate::command::Command;
use crate::core::Core;
use crate::core::time_left::RunningMeasurements;
use crate::ids::{AttemptId, TaskKind};
use crate::ledger::attempts::{Attempt, DivisionState};
use crate::ledger::{DivideLimits, Ledger, Worker};
use crate::units::{Span, Time};

impl Core {
    /// Orders divisions for idle slots. Returns the time of the next search.
    pub(super) fn divide(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        let ledger = &mut self.ledger;
        let limits = ledger.config.dividing.clone()?;
        let kinds = [TaskKind::Map, TaskKind::Reduce];
        let pools = kinds.map(|kind| ledger.workers.pool(kind));
        let mut wanted = [0; 2];
        for kind in kinds {
            wanted[pools[kind as usize]] = ledger.workers.free_of(kind) as usize;
        }
        if wanted == [0; 2] || ledger.attempts.is_empty() {
            return None;
        }
        if ledger.now < ledger.waits.next_division {
            return Some(ledger.waits.next_division);
        }
        let ordered = |record: &Attempt| {
            matches!(record.division, DivisionState::Ordered(_)) && !record.hold.is_parked()
        };
        for (attempt, _) in ledger.attempts.iter().filter(|(_, record)| ordered(record)) {
            let wanted = &mut wanted[pools[attempt.task.kind as usize]];
            *wanted = wanted.saturating_sub(1);
        }
        let mut found = candidates(ledger, &limits);
        found.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        ledger.waits.next_division = ledger.now + limits.look_after;
        for (_, attempt) in found {
            let wanted = &mut wanted[pools[attempt.task.kind as usize]];
            if *wanted == 0 {
                continue;
            }
            *wanted -= 1;
            ledger.order_division(attempt);
            let worker = ledger.attempts[&attempt].worker;
            commands.push(Command::Divide { attempt, worker, at_once: false });
        }
        None
    }
}

/// Returns the running tasks that are worth a division and whose rest an idle slot may run, with their time left in
/// seconds. The cost is linear in the numbers of attempts and of idle workers.
fn candidates(ledger: &Ledger, limits: &DivideLimits) -> Vec<(f64, AttemptId)> {
    let worth = 2.0 * limits.part_min.seconds();
    let left = |attempt: AttemptId, record: &Attempt| match attempt.task.kind {
        TaskKind::Map if !ledger.may_divide(attempt, record, limits.added_max) => None,
        TaskKind::Map if !map_fits(ledger, attempt) => None,
        TaskKind::Map => seconds_left(ledger, attempt, record),
        TaskKind::Reduce if !ledger.may_divide_reduce(attempt, record, limits.added_max) => None,
        TaskKind::Reduce => seconds_left(ledger, attempt, record),
    };
    let all = ledger.attempts.iter().filter_map(|(&attempt, record)| Some((left(attempt, record)?, attempt)));
    all.filter(|(left, _)| worth <= *left).collect()
}

/// True if an idle worker may run the rest of this map.
fn map_fits(ledger: &Ledger, attempt: AttemptId) -> bool {
    let job = &ledger.jobs[&attempt.task.job];
    let mut idle = ledger.workers.idle(TaskKind::Map).map(Worker::id);
    idle.any(|at| job.fits(attempt.task.index, at, &ledger.workers))
}

/// Estimated time left of a running task in seconds; `None` if neither it nor, for a map, one of its job has shown a rate.
pub(super) fn seconds_left(ledger: &Ledger, attempt: AttemptId, record: &Attempt) -> Option<f64> {
    let job = &ledger.jobs[&attempt.task.job];
    let (exact, place) = (job.spec.exact.as_ref(), attempt.task.index as usize);
    let (input, usual) = match attempt.task.kind {
        TaskKind::Map => {
            let input = job.input_of(attempt.task).0 as f64;
            let (time, done) = (job.work.maps_done.took.seconds(), job.work.input_done.0 as f64);
            let by_peers = || (0.0 < done).then(|| time / done * input);
            (input, exact.map(|exact| exact.maps[place]).or_else(by_peers))
        }
        TaskKind::Reduce => (record.reads.0 as f64, exact.map(|exact| exact.reduces[place])),
    };
    let ran_at = |at: Time| record.ran + at.since(record.since);
    let running = RunningMeasurements {
        ran: ran_at(ledger.now),
        read: record.read.map(|(at, bytes)| (ran_at(at), bytes.0 as f64 / input.max(1.0))),
        usual: Span((usual.unwrap_or(0.0) * 1e9) as u64),
        slowness: ledger.workers.get(record.worker).map_or(1.0, Worker::slowness),
    };
    (usual.is_some() || running.shows_rate()).then(|| running.remaining_seconds())
}

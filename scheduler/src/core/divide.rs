//! Divides running maps for slots that the plan left idle, so that no job waits for its longest map.
//!
//! An idle slot takes half of what is left of the running map that would end last, by time. The worker of that map
//! chooses the place ([`Command::Divide`]); the rest is a new map of the job, for which the policy grants a slot as for
//! any other. A division pays if each of the two parts takes at least [`DivideLimits::part_min`], a multiple of the time
//! that a map costs besides its input.
//!
//! The time left follows from the reported progress of the attempt, else from the finished maps of its job. Without
//! either it is unknown, and the map is left alone.

use crate::command::Command;
use crate::core::Core;
use crate::ids::{AttemptId, TaskKind};
use crate::ledger::attempts::{Attempt, DivisionState};
use crate::ledger::{DivideLimits, Ledger, Worker};
use crate::units::Time;

/// Smallest fraction of the input from which a rate is estimated.
const SHARE_MIN: f64 = 0.01;

impl Core {
    /// Orders divisions for idle slots. Returns the time of the next search.
    pub(super) fn divide(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        let ledger = &mut self.ledger;
        let limits = ledger.config.dividing.clone()?;
        let idle = ledger.workers.free_of(TaskKind::Map) as usize;
        if idle == 0 || ledger.attempts.is_empty() {
            return None;
        }
        let ordered = ledger
            .attempts
            .values()
            .filter(|record| matches!(record.division, DivisionState::Ordered(_)))
            .count();
        let wanted = idle.saturating_sub(ordered);
        if wanted == 0 {
            return None;
        }
        if ledger.now < ledger.waits.next_division {
            return Some(ledger.waits.next_division);
        }
        let mut found = candidates(ledger, &limits);
        found.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        if !found.is_empty() {
            ledger.waits.next_division = ledger.now + limits.look_after;
        }
        for (_, attempt) in found.into_iter().take(wanted) {
            ledger.order_division(attempt);
            let worker = ledger.attempts[&attempt].worker;
            commands.push(Command::Divide { attempt, worker });
        }
        None
    }
}

/// Returns the running maps that are worth a division and whose rest an idle worker may run, with their time left in
/// seconds. The cost is linear in the numbers of attempts and of idle workers.
fn candidates(ledger: &Ledger, limits: &DivideLimits) -> Vec<(f64, AttemptId)> {
    let worth = 2.0 * limits.part_min.seconds();
    let running = ledger.attempts.iter().filter(|(attempt, record)| {
        ledger.may_divide(**attempt, record, limits.added_max) && {
            let job = &ledger.jobs[&attempt.task.job];
            let index = attempt.task.index;
            ledger.workers.idle(TaskKind::Map).map(Worker::id).any(|at| job.fits(index, at, &ledger.workers))
        }
    });
    let left =
        running.filter_map(|(&attempt, record)| Some((seconds_left(ledger, attempt, record)?, attempt)));
    left.filter(|(left, _)| worth <= *left).collect()
}

/// Estimated time left of a running map in seconds. A map that has taken longer than estimated is expected to take as
/// long again.
fn seconds_left(ledger: &Ledger, attempt: AttemptId, record: &Attempt) -> Option<f64> {
    let job = &ledger.jobs[&attempt.task.job];
    let input = job.input_of(attempt.task).0 as f64;
    let ran = ledger.now.since(record.since).seconds();
    let exact = job.spec.exact.as_ref().map(|exact| exact.maps[attempt.task.index as usize]);
    let by_rate = || {
        let (at, read) = record.read?;
        let share = read.0 as f64 / input.max(1.0);
        (SHARE_MIN <= share).then(|| at.since(record.since).seconds() / share)
    };
    let by_peers = || {
        let (time, read) = (job.work.maps_done.took.seconds(), job.work.input_done.0 as f64);
        let slowness = ledger.workers.get(record.worker).map_or(1.0, Worker::slowness);
        (0.0 < read).then(|| time / read * input * slowness.max(1.0))
    };
    let whole = exact.or_else(by_rate).or_else(by_peers)?;
    Some(if ran < whole { whole - ran } else { ran })
}

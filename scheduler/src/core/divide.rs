//! Divides running maps for slots that the plan left idle, so that no job waits for its longest map. Maps that make way
//! for a more urgent job are chosen by `core/preempt`.
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
        let idle = ledger.workers.free_of(TaskKind::Map) as usize;
        if idle == 0 || ledger.attempts.is_empty() {
            return None;
        }
        if ledger.now < ledger.waits.next_division {
            return Some(ledger.waits.next_division);
        }
        ledger.waits.next_division = ledger.now + limits.look_after;
        let ordered = |record: &&Attempt| matches!(record.division, DivisionState::Ordered(_));
        let wanted = idle.saturating_sub(ledger.attempts.values().filter(ordered).count());
        let mut found = candidates(ledger, &limits);
        found.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        for (_, attempt) in found.into_iter().take(wanted) {
            ledger.order_division(attempt);
            let worker = ledger.attempts[&attempt].worker;
            commands.push(Command::Divide { attempt, worker, at_once: false });
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

/// Estimated time left of a running map in seconds; `None` if neither it nor a map of its job has shown a rate.
pub(super) fn seconds_left(ledger: &Ledger, attempt: AttemptId, record: &Attempt) -> Option<f64> {
    let job = &ledger.jobs[&attempt.task.job];
    let input = job.input_of(attempt.task).0 as f64;
    let exact = job.spec.exact.as_ref().map(|exact| exact.maps[attempt.task.index as usize]);
    let (time, done) = (job.work.maps_done.took.seconds(), job.work.input_done.0 as f64);
    let usual = exact.or_else(|| (0.0 < done).then(|| time / done * input));
    let read = record.read.map(|(at, bytes)| (at.since(record.since), bytes.0 as f64 / input.max(1.0)));
    let running = RunningMeasurements {
        ran: ledger.now.since(record.since),
        read,
        usual: Span((usual.unwrap_or(0.0) * 1e9) as u64),
        slowness: ledger.workers.get(record.worker).map_or(1.0, Worker::slowness),
    };
    (usual.is_some() || running.shows_rate()).then(|| running.remaining_seconds())
}

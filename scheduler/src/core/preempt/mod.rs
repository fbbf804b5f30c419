//! Preempts slots for preemptive policies: which running reduces are suspended, which running maps make way, and which
//! suspended reduces continue elsewhere.
//!
//! Before the plan is executed, the policy makes a hypothetical plan in which every suspendable attempt has released its
//! slot. A job that gets more slots in it than it holds, and can use them where they are, takes them from jobs that get
//! fewer. The executed plan then fills the slots that are free by now. A map makes way by a division: it ends with what
//! it has read, and the rest is a new map. Without divisions maps run to their end.
//!
//! A suspended reduce whose worker has no free slot for a while is handed over to a worker that has one. Its
//! segments are collected there, and the next attempt fetches the output so far and continues after its last
//! key.

mod what_if;

use crate::command::Command;
use crate::core::Core;
use crate::core::show::view_of;
use crate::ids::{TaskId, TaskKind};
use crate::ledger::attempts::SlotHold;
use crate::ledger::tasks::ReduceState;
use crate::ledger::{Job, Ledger, Worker};
use crate::plan::Plan;
use crate::units::Time;
use what_if::WhatIf;

impl Core {
    /// Preempts attempts whose slots the policy would give to other jobs. Returns the time of the next check.
    pub(super) fn preempt(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        let ledger = &self.ledger;
        let pool = ledger.workers.pool(TaskKind::Reduce);
        let unbound = !ledger.workers.pooled && 0 < ledger.workers.unbound;
        let wanted = unbound || 0 < ledger.workers.sums.awaited[pool];
        if !ledger.preempts || ledger.suspensions.suspendable.is_empty() || !wanted {
            return None;
        }
        let mut floor = WhatIf::new(ledger, &self.handles);
        let view = view_of(ledger, (&self.rows, &self.runs), &[]);
        let mut plan = Plan::new(&mut floor);
        self.policy.plan(view, &mut plan);
        plan.finish();
        let (victims, again) = floor.victims(&ledger.config);
        for attempt in victims {
            self.ledger.set_hold(attempt, SlotHold::Leaving);
            let worker = self.ledger.attempts[&attempt].worker;
            if attempt.task.kind == TaskKind::Map {
                self.ledger.order_division(attempt);
                commands.push(Command::Divide { attempt, worker, at_once: true });
            } else {
                commands.push(Command::Suspend { attempt, worker });
            }
        }
        again
    }

    /// Hands over suspended reduces that have waited long for a slot of their worker while the plan left a slot idle
    /// elsewhere. Returns the time of the next check.
    pub(super) fn hand_over(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        let ledger = &mut self.ledger;
        if ledger.suspensions.stranded.is_empty() {
            return None;
        }
        let mut moving = std::mem::take(&mut ledger.suspensions.moving);
        moving.retain(|&task| is_moving(ledger, task));
        let mut room = ledger.workers.free_of(TaskKind::Reduce).saturating_sub(moving.len() as u32);
        ledger.suspensions.moving = moving;
        let (mut again, mut due_now) = (None, Vec::new());
        for (&attempt, since) in &mut ledger.suspensions.stranded {
            let home = ledger.attempts[&attempt].worker;
            let stays = ledger.workers.get(home).is_none_or(|worker| 0 < worker.free(TaskKind::Reduce));
            let job = &ledger.jobs[&attempt.task.job];
            let elsewhere = |worker: &Worker| {
                worker.id() != home
                    && job.may_use(worker.id(), &ledger.workers)
                    && !job.avoids(TaskKind::Reduce, attempt.task.index, worker.id())
            };
            if stays || !ledger.workers.idle(TaskKind::Reduce).any(elsewhere) {
                *since = None;
                continue;
            }
            let due = *since.get_or_insert(ledger.now) + ledger.config.suspending.hand_over_after;
            if ledger.now < due {
                again = Some(again.map_or(due, |again: Time| again.min(due)));
            } else if 0 < room {
                room -= 1;
                due_now.push(attempt);
            }
        }
        for attempt in due_now {
            let worker = ledger.ask_to_hand_over(attempt);
            commands.push(Command::HandOver { attempt, worker });
        }
        again
    }

    /// Recalls the oldest queued maps for idle slots. Returns the time of the next check.
    pub(super) fn recall(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        let ledger = &mut self.ledger;
        let free = ledger.workers.free_of(TaskKind::Map) as usize;
        while ledger.ahead.recalled.len() < free {
            let &(queued, attempt) = ledger.ahead.waiting.first()?;
            let due = queued + ledger.config.ahead.patience;
            if ledger.now < due {
                return Some(due);
            }
            ledger.ahead.waiting.pop_first();
            let job = ledger.jobs.get(&attempt.task.job);
            let usable = |job: &Job| {
                ledger.workers.idle(TaskKind::Map).any(|worker| job.may_use(worker.id(), &ledger.workers))
            };
            if job.is_some_and(usable) {
                ledger.ahead.recalled.insert(attempt);
                let worker = ledger.attempts[&attempt].worker;
                commands.push(Command::Recall { attempt, worker });
            }
        }
        None
    }
}

/// True if this task is to continue on another worker and has not got a slot there yet.
fn is_moving(ledger: &Ledger, task: TaskId) -> bool {
    let Some(job) = ledger.jobs.get(&task.job) else { return false };
    let reduce = &job.reduces[task.index as usize];
    match reduce.state {
        ReduceState::Suspended => {
            let attempt = ledger.attempts.get(&job.current_reduce(task.index));
            attempt.is_some_and(|record| record.hold == SlotHold::HandingOver)
        }
        ReduceState::Gathering | ReduceState::Ready => reduce.continues.is_some(),
        ReduceState::Running | ReduceState::Done => false,
    }
}

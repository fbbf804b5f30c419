//! Preempts slots for preemptive policies: which running reduces are suspended, and which running maps make way.
//!
//! Before the plan is executed, the policy makes a hypothetical plan in which every suspendable attempt has released its
//! slot. A job that gets more slots in it than it holds, and can use them where they are, takes them from jobs that get
//! fewer. The executed plan then fills the slots that are free by now. A map makes way by a division: it ends with what
//! it has read, and the rest is a new map. Without divisions maps run to their end.
//!
//! A suspended reduce continues only on its worker. To start it again on an idle one, or to carry its output there, costs
//! more of a slow network than it saves (docs/decisions/preemption.md).

mod what_if;

use crate::command::Command;
use crate::core::Core;
use crate::core::show::view_of;
use crate::ids::{AttemptId, TaskKind};
use crate::ledger::attempts::SlotHold;
use crate::ledger::{Job, Worker};
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

    /// Lets suspended reduces of draining workers start again elsewhere, as they get no slot there any more.
    pub(super) fn leave_draining(&mut self, commands: &mut Vec<Command>) {
        let ledger = &mut self.ledger;
        let drains = |worker: &&Worker| worker.draining.is_some();
        let aside = ledger.routes.aside().iter().filter_map(|&worker| ledger.workers.get(worker));
        let there = aside.filter(drains).flat_map(|worker| &worker.suspended);
        let stranded: Vec<AttemptId> =
            there.filter(|attempt| !ledger.attempts[*attempt].dying).copied().collect();
        if stranded.is_empty() || ledger.workers.iter().all(|worker| drains(&worker)) {
            return;
        }
        for attempt in stranded {
            ledger.give_up_suspended(attempt, commands);
        }
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

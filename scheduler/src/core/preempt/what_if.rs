//! Hypothetical plan in which every suspendable attempt has released its slot.

use crate::core::CoreConfig;
use crate::core::divide::seconds_left;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::ledger::attempts::SlotHold;
use crate::ledger::quotas;
use crate::ledger::{Job, Ledger, Worker};
use crate::plan::{Floor, Line, Reason, Share};
use crate::units::Time;
use crate::view::{Handle, Station};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Worker in the hypothetical plan.
#[derive(Clone, Copy)]
struct WorkerRoom {
    /// Slots that the plan may give, and slots given to tasks bound to this worker.
    slots: u32,
    given: u32,
    /// Part of `given` that went to tasks that do not run here.
    new: u32,
}

/// Workers where tasks of a job wait, with their number. After sorting, the worker nearest to a free slot comes first.
type Waiting = Vec<(WorkerId, u32)>;

/// Job in the hypothetical plan.
struct JobClaim {
    /// Rank in the order of first grants.
    rank: u32,
    maps: u32,
    reduces: u32,
    /// Maps that may run anywhere and have not got a slot.
    unbound: u32,
    /// Last of its running attempts that was examined, by kind.
    looked_at: [Option<AttemptId>; 2],
    assigned: Waiting,
    bound: Waiting,
}

/// Execution of grants with all suspendable slots free.
pub(super) struct WhatIf<'a> {
    ledger: &'a Ledger,
    handles: &'a [Option<JobId>],
    pub(super) unified: bool,
    left: u32,
    rooms: BTreeMap<WorkerId, WorkerRoom>,
    claims: BTreeMap<JobId, JobClaim>,
    /// Running attempts that keep their slot.
    kept: BTreeSet<AttemptId>,
    /// Slots given to maps that may run anywhere.
    floating: u32,
}

impl<'a> WhatIf<'a> {
    pub(super) fn new(ledger: &'a Ledger, handles: &'a [Option<JobId>]) -> Self {
        let workers = &ledger.workers;
        Self {
            ledger,
            handles,
            unified: !workers.pooled,
            left: workers.free_of(TaskKind::Reduce) + workers.suspendable + workers.leaving,
            rooms: BTreeMap::new(),
            claims: BTreeMap::new(),
            kept: BTreeSet::new(),
            floating: 0,
        }
    }

    fn job(&self, handle: Handle) -> Option<&'a Job> {
        self.ledger.jobs.get(&self.handles.get(handle.index()).copied().flatten()?)
    }

    fn claim(&mut self, job: &Job) -> &mut JobClaim {
        let rank = self.claims.len() as u32;
        let (ledger, unified) = (self.ledger, self.unified);
        self.claims.entry(job.id).or_insert_with(|| {
            let free =
                |id: WorkerId| ledger.workers.get(id).map_or(0, |worker| worker.free(TaskKind::Reduce));
            let waiting = |bounds: &[&crate::ledger::Bound]| {
                let at = bounds.iter().flat_map(|bound| &bound.at);
                let mut waiting: Waiting = at.map(|(&id, line)| (id, line.len() as u32)).collect();
                // Entries are taken from the end.
                waiting.sort_unstable_by_key(|&(id, _)| (free(id), Reverse(id)));
                waiting
            };
            // Tasks that a retry or an excluded worker would prevent do not justify a suspension. Pinned maps usually
            // name one worker. A map that names several counts at each, which causes at most one unneeded suspension.
            let anywhere = unified && job.workers.excluded.is_empty();
            let unbound = if anywhere { job.queue.open.len() + job.queue.preferring.len() } else { 0 };
            JobClaim {
                rank,
                maps: 0,
                reduces: 0,
                unbound: unbound as u32,
                looked_at: [None; 2],
                assigned: match (unified, anywhere) {
                    (true, true) => waiting(&[&job.queue.assigned, &job.queue.pinned]),
                    (true, false) => waiting(&[&job.queue.assigned]),
                    (false, _) => Vec::new(),
                },
                bound: waiting(&[&job.reduce_queue.ready, &job.reduce_queue.parked]),
            }
        })
    }

    /// Gives a slot of this worker, if one is free.
    fn grant_slot(&mut self, id: WorkerId, new: bool) -> bool {
        let slots = |worker: &Worker| worker.free(TaskKind::Reduce) + worker.yielding(TaskKind::Reduce);
        let slots = self.ledger.workers.get(id).map_or(0, slots);
        let room = self.rooms.entry(id).or_insert(WorkerRoom { slots, given: 0, new: 0 });
        if self.left == 0 || room.given == room.slots {
            return false;
        }
        room.given += 1;
        room.new += u32::from(new);
        self.left -= 1;
        true
    }

    /// Lets the job's next running attempt of this kind keep its slot, or gives the slot back to a reduce that is
    /// leaving it.
    fn keep(&mut self, job: &Job, kind: TaskKind) -> bool {
        let first = TaskId { job: job.id, kind, index: 0 }.attempt(0);
        loop {
            let looked_at = self.claim(job).looked_at[kind as usize];
            let from = looked_at.map_or(Bound::Included(first), Bound::Excluded);
            let next = job.attempts.live.range((from, Bound::Unbounded)).next();
            let Some(&attempt) = next.filter(|attempt| attempt.task.kind == kind) else { return false };
            self.claim(job).looked_at[kind as usize] = Some(attempt);
            let record = &self.ledger.attempts[&attempt];
            if record.hold.yields(kind) && self.grant_slot(record.worker, record.hold == SlotHold::Leaving) {
                self.kept.insert(attempt);
                return true;
            }
        }
    }

    /// Gives a slot to a task that waits for one worker.
    fn take_bound(&mut self, job: &Job, kind: TaskKind) -> bool {
        loop {
            let claim = self.claim(job);
            let waiting = if kind == TaskKind::Map { &mut claim.assigned } else { &mut claim.bound };
            let Some(last) = waiting.last_mut() else { return false };
            let id = last.0;
            last.1 -= 1;
            if last.1 == 0 {
                waiting.pop();
            }
            if self.grant_slot(id, true) {
                return true;
            }
            let claim = self.claim(job);
            let waiting = if kind == TaskKind::Map { &mut claim.assigned } else { &mut claim.bound };
            waiting.pop_if(|(other, _)| *other == id);
        }
    }

    fn start_map(&mut self, job: &Job) -> bool {
        let claim = self.claim(job);
        if 0 < claim.unbound {
            claim.unbound -= 1;
            self.left -= 1;
            self.floating += 1;
        } else if !self.take_bound(job, TaskKind::Map) {
            return false;
        }
        self.claim(job).maps += 1;
        true
    }

    /// Returns the attempts to suspend, and the time of the next check for one that got its slot too recently.
    pub(super) fn victims(&self, config: &CoreConfig) -> (Vec<AttemptId>, Option<Time>) {
        let workers = &self.ledger.workers;
        let soon_free = |worker: &Worker| worker.free(TaskKind::Reduce) + worker.leaving;
        let mut needs: BTreeMap<WorkerId, u32> = BTreeMap::new();
        let mut idle = workers.free_of(TaskKind::Reduce) + workers.leaving;
        for (&id, room) in &self.rooms {
            let free = workers.get(id).map_or(0, soon_free);
            idle -= room.new.min(free);
            if free < room.new {
                needs.insert(id, room.new - free);
            }
        }
        let mut anywhere = self.floating.saturating_sub(idle);
        let mut victims = Victims {
            now: self.ledger.now,
            config,
            again: None,
            chosen: Vec::new(),
            leaving: BTreeMap::new(),
        };
        if needs.is_empty() && anywhere == 0 {
            return (victims.chosen, None);
        }
        let rank =
            |attempt: &AttemptId| self.claims.get(&attempt.task.job).map_or(u32::MAX, |claim| claim.rank);
        let mut displaced: Vec<AttemptId> =
            self.ledger.suspensions.suspendable.difference(&self.kept).copied().collect();
        displaced.sort_unstable_by_key(|attempt| {
            (Reverse(rank(attempt)), Reverse(slot_since(self.ledger, *attempt)), Reverse(*attempt))
        });
        displaced.retain(|&attempt| {
            let worker = self.ledger.attempts[&attempt].worker;
            let Some(need) = needs.get_mut(&worker).filter(|need| 0 < **need) else { return true };
            let gone = victims.choose(self.ledger, attempt);
            *need -= u32::from(gone);
            !gone
        });
        for attempt in displaced {
            if anywhere == 0 {
                break;
            }
            anywhere -= u32::from(victims.choose(self.ledger, attempt));
        }
        (victims.chosen, victims.again)
    }
}

impl Floor for WhatIf<'_> {
    fn unified(&self) -> bool {
        self.unified
    }

    fn remaining(&self, station: Station) -> f64 {
        match station {
            Station::Map if !self.unified => 0.0,
            Station::Shuffle => 0.0,
            Station::Map | Station::Reduce => f64::from(self.left),
        }
    }

    fn held(&self, job: Handle, station: Station) -> f64 {
        let Some(job) = self.job(job) else { return 0.0 };
        let claim = self.claims.get(&job.id);
        f64::from(match station {
            Station::Map => job.maps_firm() + claim.map_or(0, |claim| claim.maps),
            Station::Shuffle => 0,
            Station::Reduce => job.reduces_firm() + claim.map_or(0, |claim| claim.reduces),
        })
    }

    fn start(&mut self, job: Handle, station: Station, _: Option<Line>, _: Reason) -> bool {
        let Some(job) = self.job(job).filter(|_| 0 < self.left) else { return false };
        // A slot that the job could not use does not justify a suspension.
        let room = quotas::has_room(self.ledger, job);
        match station {
            Station::Map => {
                let kept = self.unified && self.keep(job, TaskKind::Map);
                self.claim(job).maps += u32::from(kept);
                kept || room && self.unified && self.start_map(job)
            }
            Station::Shuffle => false,
            Station::Reduce => {
                let started =
                    self.keep(job, TaskKind::Reduce) || room && self.take_bound(job, TaskKind::Reduce);
                self.claim(job).reduces += u32::from(started);
                started
            }
        }
    }

    /// Lines apply to the executed plan only.
    fn line_open(&self, _: Station, _: Line) -> bool {
        0 < self.left
    }

    fn lane(&mut self, _: Handle, _: Share) -> Option<bool> {
        Some(false)
    }
}

/// Attempts chosen so far.
struct Victims<'a> {
    now: Time,
    config: &'a CoreConfig,
    again: Option<Time>,
    chosen: Vec<AttemptId>,
    leaving: BTreeMap<WorkerId, u32>,
}

impl Victims<'_> {
    /// Chooses this attempt, unless it got its slot recently, its worker has too many suspended attempts, or it is a map
    /// that ends soon.
    fn choose(&mut self, ledger: &Ledger, attempt: AttemptId) -> bool {
        let record = &ledger.attempts[&attempt];
        let dividing = self.config.dividing.as_ref().filter(|_| attempt.task.kind == TaskKind::Map);
        let held_min =
            dividing.map_or(self.config.suspending.suspend_after_min, |dividing| dividing.part_min);
        let due = record.since + held_min;
        if self.now < due {
            self.again = Some(self.again.map_or(due, |again| again.min(due)));
            return false;
        }
        if let Some(limits) = dividing {
            let gains = |left| limits.part_min.seconds() <= left;
            let makes_way = ledger.is_divisible(attempt, record, limits.added_max)
                && seconds_left(ledger, attempt, record).is_some_and(gains);
            self.chosen.extend(makes_way.then_some(attempt));
            return makes_way;
        }
        let leaving = self.leaving.entry(record.worker).or_default();
        let kept = ledger
            .workers
            .get(record.worker)
            .map_or(0, |worker| worker.suspended.len() as u32 + worker.leaving);
        if self.config.suspending.suspended_per_worker_max <= kept + *leaving {
            return false;
        }
        *leaving += 1;
        self.chosen.push(attempt);
        true
    }
}

/// Returns the time since which the attempt holds its slot.
fn slot_since(ledger: &Ledger, attempt: AttemptId) -> Time {
    ledger.attempts.get(&attempt).map_or(ledger.now, |record| record.since)
}

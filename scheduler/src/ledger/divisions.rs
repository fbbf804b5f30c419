//! Divisions of running maps: the end of a map's split becomes a new map, which any worker can run.
//!
//! `core/divide` decides which maps are divided. The worker chooses the place, so that no record is read twice, and
//! reports it before the end of its attempt. If that report never arrives, nothing has changed.
//!
//! A division gives an idle slot half of what is left to read, or it makes way for a more urgent job: then the attempt
//! keeps only what it has read, and ends.
//!
//! Invariant: only maps that have never succeeded are divided, so that no reduce has records of the end twice.

use crate::command::{Command, Outcome};
use crate::event::Failure;
use crate::ids::{AttemptId, JobId, TaskKind};
use crate::job::{Exact, MapSpec, SEGMENTS_MAX};
use crate::ledger::attempts::{Attempt, DivisionState, SlotHold};
use crate::ledger::quotas;
use crate::ledger::tasks::MapTask;
use crate::ledger::{Job, Ledger};
use crate::units::{Bytes, MAPS_MAX};
use std::sync::Arc;

impl Ledger {
    /// True if this attempt may be ordered to divide its split for another slot.
    pub(crate) fn may_divide(&self, attempt: AttemptId, record: &Attempt, added_max: u32) -> bool {
        let waits = |job: &Job| job.counts.maps_waiting == 0 && quotas::has_room(self, job);
        self.jobs.get(&attempt.task.job).is_some_and(waits) && self.is_divisible(attempt, record, added_max)
    }

    /// True if this attempt may be ordered to give up a part of its split.
    pub(crate) fn is_divisible(&self, attempt: AttemptId, record: &Attempt, added_max: u32) -> bool {
        let Some(job) = self.jobs.get(&attempt.task.job) else { return false };
        let is_first_try = || {
            let map = &job.maps[attempt.task.index as usize];
            map.fingerprint.is_none()
                && map.lacking as usize == job.reduces.len()
                && map.tries.backup.is_none()
        };
        let segments = (job.maps.len() as u64 + 1) * job.reduces.len() as u64;
        attempt.task.kind == TaskKind::Map
            && !(record.queued || record.dying)
            && record.division == DivisionState::Possible
            && !job.map_only()
            && job.added < added_max
            && segments <= SEGMENTS_MAX
            && (job.maps.len() as u64) < u64::from(MAPS_MAX)
            && is_first_try()
    }

    /// Lets preemptive policies see the slot of this map as free, if its job has shown how long its maps take and the
    /// map may be divided. Slots for maps alone and short maps are left out: they are soon free anyway.
    pub(crate) fn may_make_way(&mut self, attempt: AttemptId) {
        let Some(limits) = self.config.dividing.as_ref().filter(|_| !self.workers.pooled) else { return };
        let Some(record) = self.attempts.get(&attempt) else { return };
        let known = self.jobs.get(&attempt.task.job).is_some_and(|job| 0 < job.counts.maps_done);
        let free = record.hold == SlotHold::Firm && !record.quick;
        if known && free && self.is_divisible(attempt, record, limits.added_max) {
            self.set_hold(attempt, SlotHold::Suspendable);
        }
    }

    /// Lets the running maps of a job make way, as its first map has ended.
    pub(crate) fn all_may_make_way(&mut self, job: JobId) {
        if self.config.dividing.is_none() {
            return;
        }
        let live = self.jobs.get(&job).map(|job| job.attempts.live.iter().copied().collect::<Vec<_>>());
        for attempt in live.into_iter().flatten() {
            self.may_make_way(attempt);
        }
    }

    /// Records that this attempt was ordered to divide its input.
    pub(crate) fn order_division(&mut self, attempt: AttemptId) {
        if let Some(record) = self.attempts.get_mut(&attempt) {
            record.division = DivisionState::Ordered(self.now);
        }
    }

    /// Enters that an attempt has given up the end of its split: a new map waits.
    pub(crate) fn divided(
        &mut self,
        attempt: AttemptId,
        kept: Bytes,
        work: Option<f64>,
        out: &mut Vec<Command>,
    ) {
        if !self.takes_division(attempt, out) {
            return;
        }
        let record = self.attempts.get_mut(&attempt).expect("it takes the division");
        // One that makes way ends with what it has read.
        let ends = record.hold == SlotHold::Leaving;
        record.division = if ends { DivisionState::Refused } else { DivisionState::Possible };
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of ended jobs are dying");
        let Some(rest) = job.divide(attempt.task.index, kept, work) else {
            return self.discard(attempt, Failure::Worker, out);
        };
        self.unseen.dirty.insert(attempt.task.job);
        out.push(Command::MapAdded { attempt, kept, rest });
        if let Err(cause) = job.map_waits(rest, &mut self.workers) {
            self.end(attempt.task.job, Outcome::Failed { cause }, out);
        }
    }

    /// True if the division that this attempt reports counts. One without an order is not read by another task, so that
    /// the attempt is stopped.
    pub(crate) fn takes_division(&mut self, attempt: AttemptId, out: &mut Vec<Command>) -> bool {
        let Some(record) = self.attempts.get(&attempt).filter(|record| !record.dying) else {
            self.late();
            return false;
        };
        let counts = match record.division {
            DivisionState::Ordered(_) => true,
            DivisionState::Withdrawn => self.keep_first(attempt, out),
            DivisionState::Possible | DivisionState::Refused => false,
        };
        if !counts {
            self.discard(attempt, Failure::Cancelled, out);
        }
        counts
    }

    /// Stops an attempt that has given up a part of its input which no other task reads, so that its output must not
    /// count. Its task runs again. The attempt keeps its slot until its worker reports its end.
    pub(crate) fn discard(&mut self, attempt: AttemptId, class: Failure, out: &mut Vec<Command>) {
        self.set_hold(attempt, SlotHold::Firm);
        let record = self.attempts.get_mut(&attempt).expect("attempts of the table are discarded");
        record.dying = true;
        let (worker, place) = (record.worker, record.place.take());
        let stopped = Attempt::running(worker, record.started);
        out.push(Command::Kill { attempt, worker });
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.attempts.live.remove(&attempt);
        }
        if let Some(place) = place {
            self.end_run(attempt.task.job, place);
        }
        self.stopped(attempt, &stopped, class, out);
    }

    /// Enters that an attempt cannot give up a part of its input. A map that cannot does not make way either.
    pub(crate) fn division_refused(&mut self, attempt: AttemptId) {
        match self.attempts.get_mut(&attempt) {
            // It was answered before.
            Some(record) if matches!(record.division, DivisionState::Possible | DivisionState::Refused) => {
                self.late();
            }
            Some(record) => {
                record.division = DivisionState::Refused;
                let makes_way = matches!(record.hold, SlotHold::Suspendable | SlotHold::Leaving);
                if makes_way && attempt.task.kind == TaskKind::Map {
                    self.set_hold(attempt, SlotHold::Staying);
                }
            }
            None => self.late(),
        }
    }
}

impl Job {
    /// Makes the end of a map's split a new map. Returns its index; `None` if the map has fewer bytes.
    fn divide(&mut self, index: u32, kept: Bytes, work: Option<f64>) -> Option<u32> {
        let place = index as usize;
        let whole = self.spec.maps[place].bytes;
        if whole < kept {
            return None;
        }
        let spec = Arc::make_mut(&mut self.spec);
        let rest = MapSpec { bytes: Bytes(whole.0 - kept.0), ..spec.maps[place].clone() };
        spec.maps[place].bytes = kept;
        spec.maps.push(rest);
        if let Some(exact) = &mut spec.exact {
            let mut maps = exact.maps.to_vec();
            let share = kept.0 as f64 / whole.0.max(1) as f64;
            let front = work.unwrap_or(maps[place] * share).clamp(0.0, maps[place]);
            maps.push(maps[place] - front);
            maps[place] = front;
            *exact = Exact { maps: maps.into(), ..exact.clone() };
        }
        self.maps.push(MapTask::new(self.reduces.len() as u32));
        self.counts.maps_waiting += 1;
        self.added += 1;
        Some(self.maps.len() as u32 - 1)
    }
}

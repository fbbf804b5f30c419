//! Divisions of running maps: the end of a map's split becomes a new map, which any worker can run.
//!
//! `core/divide` decides which maps are divided. The worker chooses the place, so that no record is read twice, and
//! reports it before the end of its attempt. If that report never arrives, nothing has changed.
//!
//! Invariant: only maps that have never succeeded are divided, so that no reduce has records of the end twice.

use crate::command::{Command, Outcome};
use crate::event::Failure;
use crate::ids::{AttemptId, TaskKind};
use crate::job::{Exact, MapSpec, SEGMENTS_MAX};
use crate::ledger::attempts::{Attempt, DivisionState};
use crate::ledger::quotas;
use crate::ledger::tasks::MapTask;
use crate::ledger::{Job, Ledger};
use crate::units::{Bytes, MAPS_MAX};
use std::sync::Arc;

impl Ledger {
    /// True if this attempt may be ordered to divide its split.
    pub(crate) fn may_divide(&self, attempt: AttemptId, record: &Attempt, added_max: u32) -> bool {
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
            && job.counts.maps_waiting == 0
            && quotas::has_room(self, job)
            && is_first_try()
    }

    /// Records that this attempt was ordered to divide its split.
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
        let record = self.attempts.get_mut(&attempt).filter(|record| !record.dying);
        let Some(record) = record else { return self.late() };
        let worker = record.worker;
        if !matches!(record.division, DivisionState::Ordered(_)) {
            // Nobody reads what it has given up, so its output must not count.
            out.push(Command::Kill { attempt, worker });
            return self.failed(attempt, Failure::Cancelled, out);
        }
        record.division = DivisionState::Possible;
        let job = self.jobs.get_mut(&attempt.task.job).expect("attempts of ended jobs are dying");
        let Some(rest) = job.divide(attempt.task.index, kept, work) else {
            out.push(Command::Kill { attempt, worker });
            return self.failed(attempt, Failure::Worker, out);
        };
        self.unseen.dirty.insert(attempt.task.job);
        out.push(Command::MapAdded { attempt, kept, rest });
        if let Err(cause) = job.map_waits(rest, &mut self.workers) {
            self.end(attempt.task.job, Outcome::Failed { cause }, out);
        }
    }

    /// Enters that an attempt cannot give up a part of its split.
    pub(crate) fn division_refused(&mut self, attempt: AttemptId) {
        match self.attempts.get_mut(&attempt) {
            // It was withdrawn or answered in the meantime.
            Some(record) if !matches!(record.division, DivisionState::Ordered(_)) => self.late(),
            Some(record) => record.division = DivisionState::Refused,
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

//! Divisions of running reduces: the keys of a reduce from some key on become a new reduce of the same partition.
//!
//! The worker chooses the key, so that about half of the pairs that are left are on each side. It reports it before the
//! end of its attempt. If that report never arrives, nothing has changed. The new reduce runs in another slot of the
//! same worker, where its segments are. If it has to run elsewhere, it gathers the whole partition as other reduces do.
//!
//! Invariant: all attempts of a divided reduce stop before the same key, so that its part and that of the new reduce
//! have each group once.

use crate::command::Command;
use crate::ids::{AttemptId, TaskKind};
use crate::job::{Exact, SEGMENTS_MAX};
use crate::ledger::attempts::{Attempt, DivisionState, SlotHold};
use crate::ledger::tasks::{ReduceState, ReduceTask};
use crate::ledger::{Job, Ledger, quotas};
use crate::units::{Bytes, REDUCES_MAX};
use std::sync::Arc;

impl Ledger {
    /// True if this running reduce may be ordered to divide its keys for another slot of its worker.
    pub(crate) fn may_divide_reduce(&self, attempt: AttemptId, record: &Attempt, added_max: u32) -> bool {
        let Some(job) = self.jobs.get(&attempt.task.job) else { return false };
        let reduces = job.reduces.len() as u64 + 1;
        let tries = job.tries(attempt.task);
        attempt.task.kind == TaskKind::Reduce
            && !record.dying
            && record.division == DivisionState::Possible
            && matches!(record.hold, SlotHold::Firm | SlotHold::Suspendable)
            && Bytes::ZERO < record.reads
            && tries.backup.is_none()
            && tries.permit.is_none()
            && self.workers.get(record.worker).is_some_and(|worker| 0 < worker.free(TaskKind::Reduce))
            && !job.homes.second.contains_key(&attempt.task.index)
            && job.reduces_added() < added_max
            && reduces <= u64::from(REDUCES_MAX)
            && job.maps.len() as u64 * reduces <= SEGMENTS_MAX
            && quotas::has_room(self, job)
    }

    /// Enters that an attempt stops before a key: the rest is a new reduce with the same home.
    pub(crate) fn reduce_divided(
        &mut self,
        attempt: AttemptId,
        key: &[u8],
        (left, work): ([Bytes; 2], Option<f64>),
        out: &mut Vec<Command>,
    ) {
        let id = attempt.task.job;
        if !self.takes_division(attempt, out) {
            return;
        }
        let record = self.attempts.get_mut(&attempt).expect("it takes the division");
        record.division = DivisionState::Possible;
        let before = record.reads.max(left[0] + left[1]);
        record.reads = Bytes(before.0 - left[1].0);
        let share = record.reads.0 as f64 / before.0.max(1) as f64;
        let worker = record.worker;
        let job = self.jobs.get_mut(&id).expect("attempts of ended jobs are dying");
        let rest = job.divide_reduce(attempt.task.index, share, work);
        self.unseen.dirty.insert(id);
        out.push(Command::ReduceAdded { attempt, worker, key: key.to_vec(), rest });
        job.enter_home(rest, worker, &mut self.workers);
        // The worker may have been excluded since it was asked; a reduce that runs may end there, its rest may not start.
        job.leave_excluded(&mut self.workers, out);
    }
}

impl Job {
    /// Number of reduces that divisions added.
    pub(crate) fn reduces_added(&self) -> u32 {
        self.reduces.len() as u32 - self.spec.reduces
    }

    /// Makes the end of a running reduce's keys a new reduce, which has the same segments. Returns its index. `share` of
    /// the pairs stay, or `work` of the exact work.
    fn divide_reduce(&mut self, index: u32, share: f64, work: Option<f64>) -> u32 {
        let rest = self.reduces.len() as u32;
        let front = &self.reduces[index as usize];
        let gathered = front.gathered.clone();
        self.counts.segments_fetched += u64::from(gathered.count());
        self.counts.reduces[ReduceState::Gathering as usize] += 1;
        let home = front.home.expect("a running reduce has a home");
        let arrivals = self.homes.gathered.entry(home).or_default();
        for map in gathered.iter().filter(|&map| !self.outputs.empty.get(map)) {
            arrivals.add(map);
        }
        self.reduces.push(ReduceTask { gathered, ..ReduceTask::default() });
        if let Some(exact) = &mut Arc::make_mut(&mut self.spec).exact {
            let mut reduces = exact.reduces.to_vec();
            let whole = reduces[index as usize];
            let front = work.unwrap_or(whole * share).clamp(0.0, whole);
            reduces[index as usize] = front;
            reduces.push(whole - front);
            *exact = Exact { reduces: reduces.into(), ..exact.clone() };
        }
        rest
    }
}

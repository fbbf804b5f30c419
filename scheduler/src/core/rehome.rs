//! Ready reduces whose home is busy while other workers stay idle: those with a small input move.
//!
//! A home that is slower than the others, or has a long task, would hold up its reduces for as long. Moving costs the
//! transfer of what was gathered, so it is done when slots have stood idle for a while, once for each reduce, and only
//! where no map would have to run again.

use crate::command::{Command, Outcome};
use crate::core::Core;
use crate::ids::{JobId, TaskKind, WorkerId};
use crate::ledger::{Job, Ledger};
use crate::units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// A partition that moves, and where to.
type Move = (JobId, u32, WorkerId);

impl Core {
    /// Moves what is due. Answers when to look again.
    pub(super) fn rehome(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        let ledger = &mut self.ledger;
        if ledger.workers.holding_up.is_empty() || ledger.workers.free_of(TaskKind::Reduce) == 0 {
            ledger.waits.idle_since = None;
            return None;
        }
        let due = *ledger.waits.idle_since.get_or_insert(ledger.now) + ledger.config.moving.move_after;
        if ledger.now < due {
            return Some(due);
        }
        ledger.waits.idle_since = Some(ledger.now);
        let mut new: BTreeMap<JobId, BTreeSet<WorkerId>> = BTreeMap::new();
        for (id, partition, to) in ledger.moves() {
            let job = ledger.jobs.get_mut(&id).expect("only live jobs have ready reduces");
            job.unhome(partition, &mut ledger.workers, commands);
            job.reduces[partition as usize].moved = true;
            job.set_home(partition, to, &mut ledger.workers, commands);
            new.entry(id).or_default().insert(to);
        }
        for (id, homes) in new {
            ledger.unseen.dirty.insert(id);
            let job = ledger.jobs.get_mut(&id).expect("it was live a moment ago");
            match job.supply(&homes, &mut ledger.workers, commands) {
                Err(cause) => ledger.end(id, Outcome::Failed { cause }, commands),
                Ok(()) => ledger.give_up_cut_off(id, commands),
            }
        }
        None
    }
}

impl Ledger {
    /// What moves where: at most one for each idle slot.
    fn moves(&self) -> Vec<Move> {
        let free = |worker: &crate::ledger::Worker| worker.free(TaskKind::Reduce);
        let mut idle: BTreeMap<WorkerId, u32> =
            self.workers.idle(TaskKind::Reduce).map(|worker| (worker.id(), free(worker))).collect();
        let mut moves = Vec::new();
        for job in self.jobs.values().filter(|job| self.moves_cheaply(job)) {
            for (&home, line) in &job.reduce_queue.ready.at {
                if self.workers.get(home).is_none_or(|worker| 0 < free(worker)) {
                    continue;
                }
                // The home goes on with the first.
                for &partition in line.iter().rev() {
                    let reduce = &job.reduces[partition as usize];
                    let fits = |worker: WorkerId| {
                        job.may_use(worker, &self.workers) && !reduce.tries.avoids.contains(&worker)
                    };
                    let best = idle.iter().filter(|&(&worker, &slots)| 0 < slots && fits(worker));
                    let best = best.max_by_key(|&(&worker, &slots)| (slots, std::cmp::Reverse(worker)));
                    let Some((&to, _)) = best else { break };
                    if !reduce.moved && reduce.continues.is_none() {
                        moves.push((job.id, partition, to));
                        idle.entry(to).and_modify(|slots| *slots -= 1);
                    }
                }
            }
        }
        moves
    }

    /// Whether a partition of the job is small, and all of its segments are still to be had.
    fn moves_cheaply(&self, job: &Job) -> bool {
        let kept: usize = job.outputs.kept.values().map(BTreeSet::len).sum();
        let small = || job.tally.map_bytes.0 / (job.reduces.len() as u64).max(1);
        !job.reduce_queue.ready.at.is_empty()
            && kept + job.outputs.empty.count() as usize == job.maps.len()
            && small() <= self.config.moving.move_bytes_max.0
    }
}

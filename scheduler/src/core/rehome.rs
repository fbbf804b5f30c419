//! Moves partitions whose reduces have not started away from slow homes, and ready ones away from busy homes while
//! other workers are idle.
//!
//! A move costs the transfer of what was gathered. So each reduce moves only once, and only where reduces are small and
//! no map would have to run again. It leaves a busy home when slots have been idle for as long as the transfer would
//! take, so waiting and moving together cost at most twice the better of the two. It leaves a slow home if the new home
//! would finish all of its partitions sooner.

use crate::command::{Command, Outcome};
use crate::core::Core;
use crate::ids::{JobId, TaskKind, WorkerId};
use crate::ledger::tasks::ReduceState;
use crate::ledger::{Job, Ledger, Worker};
use crate::placement::pull::homes_load;
use crate::units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Partition to move, with its new home.
type HomeMove = (JobId, u32, WorkerId);

impl Core {
    /// Moves partitions that should move now. Returns the time of the next check.
    pub(super) fn rehome(&mut self, commands: &mut Vec<Command>) -> Option<Time> {
        let ledger = &mut self.ledger;
        if ledger.workers.holding_up.is_empty() || ledger.workers.free_of(TaskKind::Reduce) == 0 {
            ledger.waits.idle_slots = None;
            return None;
        }
        let again = ledger.now + ledger.config.moving.move_after;
        let (since, due) = *ledger.waits.idle_slots.get_or_insert((ledger.now, again));
        if ledger.now < due {
            return Some(due);
        }
        let moves = moves(ledger, ledger.now.since(since));
        let stay = moves.is_empty();
        ledger.waits.idle_slots = Some((if stay { since } else { ledger.now }, again));
        carry_out(ledger, moves, commands);
        stay.then_some(again)
    }

    /// Moves partitions away from slow homes.
    pub(super) fn leave_slow_homes(&mut self, commands: &mut Vec<Command>) {
        let ledger = &mut self.ledger;
        let Some(limits) = ledger.config.backups.as_ref().filter(|_| !ledger.workers.slow.is_empty()) else {
            return;
        };
        if ledger.now < ledger.waits.slow_looked_at + limits.look_after {
            return;
        }
        ledger.waits.slow_looked_at = ledger.now;
        let moves = moves_from_slow(ledger);
        carry_out(ledger, moves, commands);
    }
}

fn carry_out(ledger: &mut Ledger, moves: Vec<HomeMove>, commands: &mut Vec<Command>) {
    let mut new: BTreeMap<JobId, BTreeSet<WorkerId>> = BTreeMap::new();
    for (id, partition, to) in moves {
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
}

/// Returns the moves away from slow homes.
fn moves_from_slow(ledger: &Ledger) -> Vec<HomeMove> {
    let mut moves = Vec::new();
    for job in ledger.jobs.values().filter(|job| moves_cheaply(ledger, job)) {
        for &home in ledger.workers.slow.keys() {
            moves_of_job_from(ledger, job, home, &mut moves);
        }
    }
    moves
}

fn moves_of_job_from(ledger: &Ledger, job: &Job, home: WorkerId, moves: &mut Vec<HomeMove>) {
    let Some(partitions) = job.homes.at.get(&home) else { return };
    let slots =
        |id: WorkerId| ledger.workers.get(id).map_or(0, |worker| worker.slots().count(TaskKind::Reduce));
    let load = |id: WorkerId, homes: u32| homes_load(homes, slots(id), ledger.workers.delay(id));
    let mut given: BTreeMap<WorkerId, u32> = BTreeMap::new();
    let mut left = partitions.len() as u32;
    for &partition in partitions.iter().rev() {
        let reduce = &job.reduces[partition as usize];
        let begun = !matches!(reduce.state, ReduceState::Gathering | ReduceState::Ready);
        if begun || reduce.moved {
            continue;
        }
        let fits = |id: &WorkerId| {
            *id != home && job.may_use(*id, &ledger.workers) && !reduce.tries.avoids.contains(id)
        };
        let after = |id: WorkerId| load(id, job.homes_at(id) + 1 + given.get(&id).copied().unwrap_or(0));
        let others = ledger.workers.iter().map(Worker::id).filter(fits);
        let Some(to) = others.min_by_key(|&id| (after(id), id)) else { continue };
        if after(to) < load(home, left) {
            moves.push((job.id, partition, to));
            *given.entry(to).or_default() += 1;
            left -= 1;
        }
    }
}

/// Returns the moves from busy homes after this wait: at most one for each idle slot.
fn moves(ledger: &Ledger, waited: Span) -> Vec<HomeMove> {
    let free = |worker: &crate::ledger::Worker| worker.free(TaskKind::Reduce);
    let mut idle: BTreeMap<WorkerId, u32> =
        ledger.workers.idle(TaskKind::Reduce).map(|worker| (worker.id(), free(worker))).collect();
    let mut moves = Vec::new();
    let pays = |job: &&Job| moves_cheaply(ledger, job) && arrives_within(ledger, job, waited);
    for job in ledger.jobs.values().filter(pays) {
        for (&home, line) in &job.reduce_queue.ready.at {
            if ledger.workers.get(home).is_none_or(|worker| 0 < free(worker)) {
                continue;
            }
            // The home continues with the first.
            for (place, &partition) in line.iter().enumerate().rev() {
                let reduce = &job.reduces[partition as usize];
                let fits = |worker: WorkerId| {
                    job.may_use(worker, &ledger.workers)
                        && !reduce.tries.avoids.contains(&worker)
                        && is_sooner(ledger, worker, home, place as u32)
                };
                let best = idle.iter().filter(|&(&worker, &slots)| 0 < slots && fits(worker));
                let best = best.max_by_key(|&(&worker, &slots)| (slots, std::cmp::Reverse(worker)));
                let Some((&to, _)) = best else { break };
                if !reduce.moved {
                    moves.push((job.id, partition, to));
                    idle.entry(to).and_modify(|slots| *slots -= 1);
                }
            }
        }
    }
    moves
}

/// True if an idle worker would finish a reduce before its keep. The idle worker has an idle slot, which may be slow.
/// At the keep this many tasks come before the reduce, and at least one of them runs.
fn is_sooner(ledger: &Ledger, idle: WorkerId, home: WorkerId, before: u32) -> bool {
    let slots = ledger.workers.get(home).map_or(1, |worker| worker.slots().count(TaskKind::Reduce));
    let (here, there) = (ledger.workers.delay(home), ledger.workers.delay(idle));
    there <= 1.0 || homes_load(1, 1, there) < homes_load(before + 2, slots, here)
}

/// True if a partition of the job is small so far, and all of its existing segments are still available.
pub(super) fn moves_cheaply(ledger: &Ledger, job: &Job) -> bool {
    let kept: usize = job.outputs.kept.values().map(BTreeSet::len).sum();
    !job.homes.at.is_empty()
        && kept + job.outputs.empty.count() as usize == job.counts.maps_done as usize
        && gathered(job) <= ledger.config.moving.move_bytes_max.0
}

/// Returns the mean input of the job's reduces so far, in bytes.
fn gathered(job: &Job) -> u64 {
    job.work.maps_done.output.0 / (job.reduces.len() as u64).max(1)
}

/// True if a new home can receive what a partition of the job has gathered within this time; also if the rate of the
/// network is unknown.
fn arrives_within(ledger: &Ledger, job: &Job, time: Span) -> bool {
    ledger.inbound().is_none_or(|rate| gathered(job) as f64 <= rate * time.seconds())
}

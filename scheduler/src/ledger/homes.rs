//! Homes of a job's partitions: how they are assigned and lost, and the effects on the reduce.

use crate::command::{Cause, Command};
use crate::event::Failure;
use crate::ids::{TaskKind, WorkerId};
use crate::ledger::jobs::Job;
use crate::ledger::tasks::{MapState, ReduceState};
use crate::ledger::workers::Workers;
use std::collections::BTreeSet;

impl Job {
    pub(super) fn make_ready(&mut self, partition: u32, home: WorkerId, workers: &mut Workers) {
        self.set_reduce(partition, ReduceState::Ready);
        self.reduce_queue.ready.insert(self.id, home, partition, workers);
    }

    /// Gives an unassigned partition a home, which has no segments yet.
    pub(crate) fn set_home(
        &mut self,
        partition: u32,
        worker: WorkerId,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) {
        assert!(self.homes.unassigned.remove(&partition), "{}: partition {partition} has a home", self.id);
        out.push(Command::Home { job: self.id, partition, worker });
        self.enter_home(partition, worker, workers);
    }

    /// Enters the home of a partition, which is ready if its home has all segments.
    pub(super) fn enter_home(&mut self, partition: u32, worker: WorkerId, workers: &mut Workers) {
        self.reduces[partition as usize].home = Some(worker);
        self.homes.at.entry(worker).or_default().insert(partition);
        self.workers.informed.insert(worker);
        workers.mark_informed(worker, self.id);
        if self.has_all(partition) {
            self.make_ready(partition, worker, workers);
        }
    }

    /// Announces existing outputs to homes that took over partitions, and makes lost outputs again.
    ///
    /// # Errors
    /// If the job cannot continue: a map cannot run again.
    pub(crate) fn supply(
        &mut self,
        homes: &BTreeSet<WorkerId>,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        if self.counts.maps_done == 0 {
            return Ok(());
        }
        for map in 0..self.maps.len() as u32 {
            match self.maps[map as usize].state {
                MapState::Done { output: Some(from) } => {
                    let attempt = self.current_map(map);
                    for &to in homes {
                        out.push(Command::Announce { job: self.id, map: attempt, from, to });
                    }
                }
                MapState::Done { output: None } if 0 < self.maps[map as usize].lacking => {
                    self.map_waits(map, workers)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes a partition from its home with all gathered segments. A live home is notified.
    pub(crate) fn unhome(&mut self, partition: u32, workers: &mut Workers, out: &mut Vec<Command>) {
        self.close_second(partition, workers, out);
        let reduce = &mut self.reduces[partition as usize];
        assert!(reduce.state != ReduceState::Done, "{}: finished partition {partition} moved", self.id);
        let home = reduce.home.take().expect("only partitions with a home lose it");
        let gathered = std::mem::replace(&mut reduce.gathered, self.outputs.empty.clone());
        self.counts.segments_fetched -= u64::from(gathered.count() - self.outputs.empty.count());
        for map in gathered.iter().filter(|&map| !self.outputs.empty.get(map)) {
            self.maps[map as usize].lacking += 1;
            if let Some(arrivals) = self.homes.gathered.get_mut(&home) {
                arrivals.remove(map);
            }
        }
        self.set_reduce(partition, ReduceState::Gathering);
        self.reduce_queue.ready.remove(home, partition, workers);
        self.reduce_queue.backing_off.remove(&partition);
        self.leave_home(home, partition);
        self.homes.unassigned.insert(partition);
        if workers.is_live(home) {
            out.push(Command::Unhome { job: self.id, partition, worker: home });
        }
    }

    pub(crate) fn leave_home(&mut self, home: WorkerId, partition: u32) {
        if let Some(partitions) = self.homes.at.get_mut(&home) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                self.homes.at.remove(&home);
            }
        }
    }

    /// Stops gathering for a reduce that is done.
    pub(crate) fn finish_reduce(&mut self, partition: u32) {
        self.set_reduce(partition, ReduceState::Done);
        let home = self.reduces[partition as usize].home.take().expect("a running reduce has a home");
        self.homes.gathered.entry(home).or_default().ended += 1;
        self.leave_home(home, partition);
    }

    /// Handles a reduce attempt that ended without a result. It runs again where its segments are, or moves if that
    /// place is unfit.
    pub(crate) fn reduce_stopped(
        &mut self,
        partition: u32,
        class: Failure,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) {
        self.close_second(partition, workers, out);
        let home = self.reduces[partition as usize].home.expect("a running reduce has a home");
        let gathered_is_bad = matches!(class, Failure::Fetch | Failure::Corrupt);
        if gathered_is_bad {
            self.reduces[partition as usize].tries.avoid(home);
        }
        let tries = &self.reduces[partition as usize].tries;
        // The first retry stays with the segments. After that the worker itself is suspect.
        let try_elsewhere =
            class == Failure::User && 2 <= tries.charged && self.has_elsewhere(tries, Some(home), workers);
        let home_is_good = workers.is_live(home) && self.may_use(home, workers);
        if home_is_good && class.avoids_worker() {
            self.set_reduce(partition, ReduceState::Ready);
            self.reduce_queue.backing_off.insert(partition);
        } else if home_is_good && !gathered_is_bad && !try_elsewhere {
            self.make_ready(partition, home, workers);
        } else {
            self.unhome(partition, workers, out);
        }
    }

    /// Moves partitions to a worker that has just joined, while no map has finished and a move is free.
    pub(crate) fn share_homes(&mut self, with: WorkerId, workers: &mut Workers, out: &mut Vec<Command>) {
        let begun = 0 < self.counts.maps_done || 0 < self.counts.segments_fetched;
        if begun || self.maps.is_empty() || !self.homes.unassigned.is_empty() {
            return;
        }
        let slots = |worker: WorkerId, workers: &Workers| {
            workers.get(worker).map_or(0, |worker| worker.slots().count(TaskKind::Reduce))
        };
        let load = |homes: u32, worker: WorkerId, workers: &Workers| {
            (u64::from(homes) << 32) / u64::from(slots(worker, workers).max(1))
        };
        let mut given = 0;
        let at = |job: &Self, home: WorkerId, workers: &Workers| load(job.homes_at(home), home, workers);
        while let Some((_, from)) = self.homes.at.keys().map(|&w| (at(self, w, workers), w)).max() {
            // After a move the source must be at least as loaded as the target, or partitions would move back and
            // forth.
            if load(self.homes_at(from) - 1, from, workers) < load(given + 1, with, workers) {
                return;
            }
            let last = self.homes.at[&from].last().copied().expect("a home without partitions is removed");
            self.unhome(last, workers, out);
            given += 1;
        }
    }
}

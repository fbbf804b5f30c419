//! Map outputs and segments: who keeps them, who lacks them, and which must be made again.
//!
//! Invariant: `lacking` of a map is the number of partitions without its segment. A lost output that a partition lacks
//! is waiting, running, or lacked by unassigned partitions only.

use crate::command::{Cause, Command};
use crate::event::{Failure, Fingerprint};
use crate::ids::{AttemptId, WorkerId};
use crate::ledger::jobs::Job;
use crate::ledger::tasks::MapState;
use crate::ledger::workers::Workers;
use crate::rules::{Rule, holds};

impl Job {
    /// Records that a worker keeps a map's output. Homes that lack it are notified.
    pub(crate) fn gain_output(&mut self, map: u32, worker: WorkerId, out: &mut Vec<Command>) {
        self.set_map(map, MapState::Done { output: Some(worker) });
        self.outputs.kept.entry(worker).or_default().insert(map);
        let attempt = self.current_map(map);
        for to in self.lacking_homes(map) {
            out.push(Command::Announce { job: self.id, map: attempt, from: worker, to });
        }
    }

    /// Records that a map's output is empty: there is nothing to keep or to fetch.
    pub(crate) fn gain_nothing(&mut self, map: u32, workers: &mut Workers) {
        self.set_map(map, MapState::Done { output: None });
        self.outputs.empty.set(map);
        self.maps[map as usize].lacking = 0;
        for partition in 0..self.reduces.len() as u32 {
            let reduce = &mut self.reduces[partition as usize];
            if reduce.gathered.set(map) {
                self.counts.segments_fetched += 1;
                if let Some(home) = reduce.home.filter(|_| self.has_all(partition)) {
                    self.make_ready(partition, home, workers);
                }
            }
        }
    }

    /// True if all segments of this partition are at its home.
    pub(super) fn has_all(&self, partition: u32) -> bool {
        self.reduces[partition as usize].gathered.count() as usize == self.maps.len()
    }

    /// Records that a map's output is lost. It is made again if any partition lacks it.
    ///
    /// # Errors
    /// If the job cannot continue: the map cannot run again.
    pub(crate) fn lose_output(
        &mut self,
        map: u32,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<(), Cause> {
        let MapState::Done { output: Some(worker) } = self.maps[map as usize].state else {
            panic!("{}: map {map} lost an output that it does not have", self.id);
        };
        if let Some(maps) = self.outputs.kept.get_mut(&worker) {
            maps.remove(&map);
            if maps.is_empty() {
                self.outputs.kept.remove(&worker);
            }
        }
        self.set_map(map, MapState::Done { output: None });
        self.close_seconds_without(map, workers, out);
        if self.maps[map as usize].lacking == 0 || !holds(Rule::LostOutputsAreMadeAgain) {
            return Ok(());
        }
        let attempt = self.current_map(map);
        for to in self.lacking_homes(map) {
            out.push(Command::Retract { job: self.id, map: attempt, to });
        }
        self.map_waits(map, workers)
    }

    /// Returns the homes with a partition that lacks this map.
    fn lacking_homes(&self, map: u32) -> Vec<WorkerId> {
        if self.maps[map as usize].lacking == 0 {
            return Vec::new();
        }
        self.homes.at.keys().copied().filter(|&home| self.home_lacks(home, map)).collect()
    }

    /// True if a partition at this home lacks its segment of this map. The cost is independent of the number of
    /// partitions.
    pub(crate) fn home_lacks(&self, home: WorkerId, map: u32) -> bool {
        let Some(partitions) = self.homes.at.get(&home) else { return false };
        let (came, ended) =
            self.homes.gathered.get(&home).map_or((0, 0), |arrivals| (arrivals.count(map), arrivals.ended));
        !self.outputs.empty.get(map) && came < partitions.len() as u32 + ended
    }

    /// True if this map attempt made an output of which this home lacks the segment of a partition.
    pub(crate) fn lacks(&self, home: WorkerId, map: AttemptId, partition: u32) -> bool {
        let reduce = self.reduces.get(partition as usize);
        self.was_made(map)
            && (reduce
                .is_some_and(|reduce| reduce.home == Some(home) && !reduce.gathered.get(map.task.index))
                || self.second_lacks(home, map.task.index, partition))
    }

    /// True if this map attempt was launched and no longer runs.
    fn was_made(&self, map: AttemptId) -> bool {
        let Some(task) = self.maps.get(map.task.index as usize) else { return false };
        let still_running = task.tries.concerns(map.epoch) && task.state == MapState::Running;
        map.epoch < task.tries.launched && !still_running
    }

    /// Returns the worker that holds the output of this map attempt, if it is the attempt that counts.
    pub(crate) fn held_at(&self, map: AttemptId) -> Option<WorkerId> {
        let task = self.maps.get(map.task.index as usize)?;
        let MapState::Done { output } = task.state else { return None };
        output.filter(|_| map.epoch == task.tries.current)
    }

    /// Compares the output of a successful map attempt with that of earlier attempts that reduces have read. They must
    /// consist of the same pairs.
    ///
    /// # Errors
    /// If the outputs differ: reduces would lose and duplicate records.
    pub(crate) fn compare(
        &mut self,
        attempt: AttemptId,
        fingerprint: Option<Fingerprint>,
    ) -> Result<(), Cause> {
        let reduces = self.reduces.len() as u32;
        let map = &mut self.maps[attempt.task.index as usize];
        let Some(fingerprint) = fingerprint else { return Ok(()) };
        let before = map.fingerprint.replace(fingerprint);
        if before.is_none_or(|before| before.agrees_with(&fingerprint)) {
            return Ok(());
        }
        map.alike_since = attempt.epoch;
        if map.lacking < reduces {
            return Err(Cause::NotDeterministic { task: attempt.task });
        }
        Ok(())
    }

    /// Records segments at a home. Returns true if any of them was new. Segments of an earlier attempt of the map count
    /// as well: the home has verified bytes, and every attempt of a map makes the same output, or the job fails.
    ///
    /// # Errors
    /// If they belong to an attempt whose output differs from that of the last.
    pub(crate) fn fetched(
        &mut self,
        home: WorkerId,
        map: AttemptId,
        partitions: &[u32],
        workers: &mut Workers,
    ) -> Result<bool, Cause> {
        let index = map.task.index;
        if !self.was_made(map) {
            return Ok(false);
        }
        let (alike_since, task) = (self.maps[index as usize].alike_since, map.task);
        let mut news = false;
        for &partition in partitions {
            if let Some(second) = self.homes.second.get_mut(&partition).filter(|second| second.at == home) {
                second.gathered.set(index);
                continue;
            }
            let Some(reduce) = self.reduces.get_mut(partition as usize) else { continue };
            if reduce.home != Some(home) || reduce.gathered.get(index) {
                continue;
            }
            if map.epoch < alike_since && holds(Rule::StaleSegmentsAreRefused) {
                return Err(Cause::NotDeterministic { task });
            }
            reduce.gathered.set(index);
            news = true;
            self.homes.gathered.entry(home).or_default().add(index);
            self.maps[index as usize].lacking -= 1;
            self.counts.segments_fetched += 1;
            if self.has_all(partition) {
                self.make_ready(partition, home, workers);
            }
        }
        let task = &self.maps[index as usize];
        if news && task.lacking == 0 && task.state == MapState::Waiting {
            // It waited to be made again for homes that have now received the old output.
            self.leave_line(index, workers);
            self.set_map(index, MapState::Done { output: None });
        }
        Ok(news)
    }

    /// Handles a failed read of an output over a working route. The output is at fault, unless the home's own disk is.
    /// Returns `None` if the report is too old to matter.
    pub(crate) fn fetch_failed(
        &mut self,
        (home, map): (WorkerId, AttemptId),
        class: Failure,
        (rereads_max, worker_failures): (u32, (u32, u32)),
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Option<Result<(), Cause>> {
        let index = map.task.index;
        let from = self.held_at(map).filter(|_| self.home_lacks(home, index))?;
        if class == Failure::Worker {
            let blame = self.worker_failed(home, map.task, worker_failures, workers, out);
            if blame.is_ok() && self.home_lacks(home, index) {
                out.push(Command::Announce { job: self.id, map, from, to: home });
            }
            return Some(blame);
        }
        let task = &mut self.maps[index as usize];
        task.unreadable += 1;
        task.tries.avoid(from);
        if rereads_max < task.unreadable {
            return Some(Err(Cause::OutputUnreadable { task: map.task }));
        }
        Some(self.lose_output(index, workers, out))
    }
}

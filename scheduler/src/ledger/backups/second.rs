//! Second homes: workers that gather the segments of a running reduce again, for its speculative attempt.
//!
//! A second home is optional. Maps are not run again for it, and any obstacle ends it. Segments that it received are
//! not counted elsewhere.
//!
//! Invariant: only reduces that run or are suspended have a second home, on a live worker that is not their home. Once
//! the speculative attempt has started, the second home has all segments.

use crate::command::Command;
use crate::ids::WorkerId;
use crate::ledger::job_parts::SecondHome;
use crate::ledger::jobs::Job;
use crate::ledger::tasks::MapState;
use crate::ledger::workers::Workers;

impl Job {
    /// Makes another worker gather a partition as well. All outputs must be available.
    pub(crate) fn open_second(
        &mut self,
        partition: u32,
        at: WorkerId,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) {
        let second = SecondHome { at, gathered: self.outputs.empty.clone() };
        let before = self.homes.second.insert(partition, second);
        assert!(before.is_none(), "{}: partition {partition} has a second home", self.id);
        self.workers.informed.insert(at);
        workers.mark_informed(at, self.id);
        out.push(Command::Home { job: self.id, partition, worker: at });
        for map in 0..self.maps.len() as u32 {
            if let MapState::Done { output: Some(from) } = self.maps[map as usize].state {
                out.push(Command::Announce { job: self.id, map: self.current_map(map), from, to: at });
            }
        }
    }

    /// Closes the second home of a partition, if it has one.
    pub(crate) fn close_second(&mut self, partition: u32, workers: &Workers, out: &mut Vec<Command>) {
        if let Some(second) = self.homes.second.remove(&partition).filter(|second| workers.is_live(second.at))
        {
            out.push(Command::Unhome { job: self.id, partition, worker: second.at });
        }
    }

    /// Closes the second homes that still wait for this map.
    pub(crate) fn close_seconds_without(&mut self, map: u32, workers: &Workers, out: &mut Vec<Command>) {
        let lacks = self.homes.second.iter().filter(|(_, second)| !second.gathered.get(map));
        for partition in lacks.map(|(partition, _)| *partition).collect::<Vec<_>>() {
            self.close_second(partition, workers, out);
        }
    }

    /// Removes the second homes on a lost worker.
    pub(crate) fn lose_seconds(&mut self, worker: WorkerId) {
        self.homes.second.retain(|_, second| second.at != worker);
    }

    /// Returns the second home of a partition once it has all segments.
    pub(crate) fn second_is_complete(&self, partition: u32) -> Option<WorkerId> {
        let second = self.homes.second.get(&partition)?;
        (second.gathered.count() as usize == self.maps.len()).then_some(second.at)
    }

    /// True if this worker, as the second home of a partition, lacks its segment of a map.
    pub(crate) fn second_lacks(&self, worker: WorkerId, map: u32, partition: u32) -> bool {
        let second = self.homes.second.get(&partition).filter(|second| second.at == worker);
        second.is_some_and(|second| !second.gathered.get(map))
    }

    /// Makes the second home of a partition its home, because only the speculative attempt of its reduce still counts.
    pub(crate) fn second_becomes_home(&mut self, partition: u32, workers: &Workers, out: &mut Vec<Command>) {
        let second = self.homes.second.remove(&partition).expect("a reduce's backup runs at its second home");
        let reduce = &mut self.reduces[partition as usize];
        let old = reduce.home.replace(second.at).expect("a reduce that runs has a home");
        let before = std::mem::replace(&mut reduce.gathered, second.gathered);
        for map in before.iter().filter(|&map| !self.outputs.empty.get(map)) {
            if let Some(arrivals) = self.homes.gathered.get_mut(&old) {
                arrivals.remove(map);
            }
        }
        let gathered = &self.reduces[partition as usize].gathered;
        let arrivals = self.homes.gathered.entry(second.at).or_default();
        gathered.iter().filter(|&map| !self.outputs.empty.get(map)).for_each(|map| arrivals.add(map));
        self.leave_home(old, partition);
        self.homes.at.entry(second.at).or_default().insert(partition);
        if workers.is_live(old) {
            out.push(Command::Unhome { job: self.id, partition, worker: old });
        }
    }
}

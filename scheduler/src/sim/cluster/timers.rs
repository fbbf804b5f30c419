//! Times at which pieces of work and transfers of the cluster simulator end, and the slots of its workers.

use crate::event::Slots;
use crate::ids::AttemptId;
use crate::sim::cluster::network::Foreseen;
use crate::sim::cluster::pieces::RunningPiece;
use crate::units::Time;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Simulated worker.
pub(super) struct SimMachine {
    /// Attempts launched here that wait for a slot.
    pub(super) queue: VecDeque<AttemptId>,
    /// Free slots, by pool.
    pub(super) free: [Vec<u32>; 2],
}

impl SimMachine {
    pub(super) fn new(slots: Slots) -> Self {
        // The last one is given first.
        let numbers = |from: u32, count: u32| (from..from + count).rev().collect();
        let free = match slots {
            Slots::Unified(slots) => [numbers(0, slots), Vec::new()],
            Slots::Pools { map, reduce } => [numbers(0, map), numbers(map, reduce)],
        };
        Self { queue: VecDeque::new(), free }
    }
}

/// Pending timers. Heap entries contain little more than times, since most of the cost is moving entries.
#[derive(Default)]
pub(super) struct Timers {
    /// Timers by time, then by order of setting, with the index in `running`.
    pub(super) tasks: BinaryHeap<Reverse<(Time, u32, u32)>>,
    pub(super) running: Vec<(u32, RunningPiece)>,
    /// Free indexes in `running`.
    pub(super) spare: Vec<u32>,
    pub(super) set: u32,
    pub(super) transfers: BinaryHeap<Reverse<(Time, Foreseen)>>,
}

impl Timers {
    /// Starts the timer of an attempt. Returns its index.
    pub(super) fn run(&mut self, running: RunningPiece) -> u32 {
        self.set = self.set.wrapping_add(1);
        let entry = (self.set, running);
        let place = match self.spare.pop() {
            Some(place) => {
                self.running[place as usize] = entry;
                place
            }
            None => {
                self.running.push(entry);
                (self.running.len() - 1) as u32
            }
        };
        self.tasks.push(Reverse((running.end, self.set, place)));
        place
    }

    /// Removes the attempt at this index before its end.
    pub(super) fn stop(&mut self, place: u32) -> RunningPiece {
        self.spare.push(place);
        // Changing the number of the timer makes it be ignored when it fires.
        self.set = self.set.wrapping_add(1);
        let (set, running) = &mut self.running[place as usize];
        *set = self.set;
        *running
    }

    /// Returns the attempt at this index, which runs.
    pub(super) fn running(&self, place: u32) -> &RunningPiece {
        &self.running[place as usize].1
    }

    pub(super) fn foresee(&mut self, end: Time, transfer: Foreseen) {
        self.transfers.push(Reverse((end, transfer)));
    }

    pub(super) fn next(&self) -> Option<Time> {
        let task = self.tasks.peek().map(|Reverse((time, ..))| *time);
        let transfer = self.transfers.peek().map(|Reverse((time, _))| *time);
        [task, transfer].into_iter().flatten().min()
    }

    /// Returns the first task that has ended by now.
    pub(super) fn ended(&mut self, now: Time) -> Option<RunningPiece> {
        loop {
            self.tasks.peek().filter(|Reverse((time, ..))| *time <= now)?;
            let Reverse((_, rings, place)) = self.tasks.pop()?;
            let (set, running) = self.running[place as usize];
            if set == rings {
                self.spare.push(place);
                return Some(running);
            }
        }
    }

    /// Returns the first transfer that was predicted to end by now.
    pub(super) fn transferred(&mut self, now: Time) -> Option<Foreseen> {
        self.transfers.peek().filter(|Reverse((time, _))| *time <= now)?;
        let Reverse((_, transfer)) = self.transfers.pop()?;
        Some(transfer)
    }
}

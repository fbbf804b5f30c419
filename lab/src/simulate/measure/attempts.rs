//! Slots held by attempts, from their launch, queueing and suspension to their end.

use super::live::OpenAttempt;
use super::meter::{MAP, REDUCE, RunMeter, SUSPENSION};
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::ids::{AttemptId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Bytes, Span};

impl RunMeter {
    pub(super) fn launch(&mut self, attempt: AttemptId, worker: WorkerId) {
        if let Some(book) = self.jobs.get_mut(&attempt.task.job) {
            book.started.get_or_insert(self.now);
        }
        let Some(station) = self.stations.get_mut(&worker) else { return };
        let held = self.attempts.get(&attempt).map_or(Span(0), |attempt| attempt.held);
        let suspensions = self.attempts.get(&attempt).map_or(0, |attempt| attempt.suspensions);
        let (pool, slots) = pool_of(station.shape.slots, attempt.task.kind);
        let free = station.running[pool] < slots;
        let began = free.then_some(self.now);
        match free {
            true => station.running[pool] += 1,
            false => station.queue.push_back(attempt),
        }
        self.attempts.insert(attempt, OpenAttempt { worker, began, queued: !free, suspensions, held });
    }

    /// Removes the attempt from its worker or its slot, and returns its record.
    pub(super) fn leave(&mut self, attempt: AttemptId) -> Option<OpenAttempt> {
        let record = self.attempts.remove(&attempt)?;
        let station = self.stations.get_mut(&record.worker)?;
        if record.began.is_none() {
            station.queue.retain(|other| *other != attempt);
            return Some(record);
        }
        let slots = station.shape.slots;
        let (pool, _) = pool_of(slots, attempt.task.kind);
        station.running[pool] -= 1;
        let next = station.queue.iter().position(|next| pool_of(slots, next.task.kind).0 == pool);
        if let Some(next) = next.and_then(|place| station.queue.remove(place)) {
            station.running[pool] += 1;
            if let Some(next) = self.attempts.get_mut(&next) {
                next.began = Some(self.now);
            }
        }
        Some(record)
    }

    /// Handles a successful attempt.
    pub(super) fn finished(&mut self, attempt: AttemptId, output_bytes: Bytes, took: Span) {
        let Some(record) = self.leave(attempt) else { return };
        let Some(speed) = self.stations.get(&record.worker).map(|station| station.shape.speed) else {
            return;
        };
        let task = attempt.task;
        let overhead = self.sample(task.kind, &record, took);
        if task.kind == TaskKind::Map {
            self.made.insert(attempt, record.worker);
        }
        let seconds = took.seconds() * speed;
        let Some(book) = self.jobs.get_mut(&task.job).filter(|book| book.ended.is_none()) else { return };
        match task.kind {
            TaskKind::Map => book.map_done(task.index as usize, seconds, output_bytes, (overhead, self.now)),
            TaskKind::Reduce => book.reduce_done(task.index as usize, seconds, overhead),
        }
    }

    /// Records the system's time for an attempt beyond its own time. Returns it if it contains nothing else.
    fn sample(&mut self, kind: TaskKind, record: &OpenAttempt, took: Span) -> Option<f64> {
        let began = record.began.filter(|_| !record.queued);
        let beyond = began.map(|began| (record.held + self.now.since(began)).seconds() - took.seconds());
        // It includes the cost of a suspension, so it shows nothing about the rest.
        let overhead = beyond.filter(|_| record.suspensions == 0);
        self.samples[if kind == TaskKind::Map { MAP } else { REDUCE }].extend(overhead);
        if 0 < record.suspensions {
            self.samples[SUSPENSION].extend(beyond.map(|beyond| beyond / f64::from(record.suspensions)));
        }
        overhead
    }

    /// Handles a suspension: the attempt has left its slot and continues later.
    pub(super) fn suspended(&mut self, attempt: AttemptId) {
        let Some(mut record) = self.leave(attempt) else { return };
        if let Some(began) = record.began.take() {
            record.held += self.now.since(began);
        }
        record.suspensions += 1;
        self.attempts.insert(attempt, record);
    }
}

/// Returns the pool in which attempts of this kind are counted, and how many can run there at once.
fn pool_of(slots: Slots, kind: TaskKind) -> (usize, u32) {
    let pool = usize::from(!slots.unified() && kind == TaskKind::Reduce);
    (pool, slots.count(kind))
}

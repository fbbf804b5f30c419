//! Changes of workers: joining, loss, taken and released slots, queued and parked attempts.

use super::Workers;
use crate::event::Slots;
use crate::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use crate::ledger::attempts::SlotHold;
use crate::ledger::worker::{JobMarks, KINDS, Worker};
use crate::units::{Bytes, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

impl Workers {
    pub(crate) fn join(&mut self, id: WorkerId, host: HostId, slots: Slots) {
        assert!(KINDS.iter().all(|&kind| 0 < slots.count(kind)), "{id} joined without slots");
        let known = self.hosts.insert(id, host);
        assert!(known.is_none(), "{id} joined twice");
        assert!(self.live.is_empty() || self.pooled != slots.unified(), "{id} has slots of another kind");
        self.pooled = !slots.unified();
        let worker = Worker {
            id,
            host,
            slots,
            silent: false,
            disk_full: false,
            draining: None,
            running: BTreeSet::new(),
            used: [0; 2],
            quick: 0,
            suspended: BTreeSet::new(),
            suspendable: 0,
            leaving: 0,
            queued: VecDeque::new(),
            awaited: [0; 2],
            ready: 0,
            marks: JobMarks::default(),
            shown_idle: [false; 2],
            slot_rate: None,
            slowness: None,
        };
        self.live.insert(id, worker);
        self.by_host.entry(host).or_default().insert(id);
        for (pool, &kind) in KINDS.iter().enumerate().take(self.pools()) {
            let slots = slots.count(kind);
            self.idle[pool].insert((Reverse(slots), id));
            self.sums.slots[pool] += slots;
            self.sums.free[pool] += slots;
        }
        self.moved.insert(id);
    }

    pub(crate) fn lose(&mut self, id: WorkerId) -> Option<Worker> {
        let worker = self.live.remove(&id)?;
        for (pool, &kind) in KINDS.iter().enumerate().take(self.pools()) {
            self.idle[pool].remove(&(Reverse(worker.free(kind)), id));
            self.sums.slots[pool] -= worker.slots.count(kind);
            self.sums.free[pool] -= worker.free(kind);
            self.sums.usable[pool] -= worker.usable(kind);
            self.sums.awaited[pool] -= worker.awaited[pool];
        }
        self.suspendable -= worker.suspendable;
        self.leaving -= worker.leaving;
        if let Some(level) = worker.level() {
            self.behind.remove(&(level, id));
        }
        if let Some(others) = self.by_host.get_mut(&worker.host) {
            others.remove(&id);
            if others.is_empty() {
                self.by_host.remove(&worker.host);
            }
        }
        self.holding_up.remove(&id);
        self.slow.remove(&id);
        self.moved.remove(&id);
        self.rates.forget(id);
        Some(worker)
    }

    /// Marks a worker as silent, or clears the mark. Returns true if the worker is live.
    pub(crate) fn fall_silent(&mut self, id: WorkerId, silent: bool) -> bool {
        let live = self.is_live(id);
        if live {
            self.change(id, |worker| worker.silent = silent);
        }
        live
    }

    /// Updates the free space of a worker's spill disks. Returns true if they became full or stopped being full.
    pub(crate) fn has_room(&mut self, id: WorkerId, free: Bytes, reserve: Bytes) -> bool {
        let Some(worker) = self.live.get_mut(&id) else { return false };
        let full = worker.is_full_with(free, reserve);
        std::mem::replace(&mut worker.disk_full, full) != full
    }

    /// Starts to drain a worker. Returns true if it is live and was not draining.
    pub(crate) fn drain(&mut self, id: WorkerId, now: Time) -> bool {
        let news = self.live.get(&id).is_some_and(|worker| worker.draining.is_none());
        if news {
            self.change(id, |worker| worker.draining = Some(now));
        }
        news
    }

    pub(crate) fn take_slot(&mut self, id: WorkerId, attempt: AttemptId, quick: bool) {
        let kind = attempt.task.kind;
        self.change(id, |worker| {
            assert!(0 < worker.free(kind), "{attempt} launched on {id} without a free slot");
            assert!(worker.running.insert(attempt), "{attempt} launched twice");
            worker.used[worker.pool(kind)] += 1;
            worker.quick += u32::from(quick);
        });
    }

    /// Queues a map behind the running attempts.
    pub(crate) fn queue(&mut self, id: WorkerId, attempt: AttemptId) {
        self.change(id, |worker| {
            let full = worker.free(TaskKind::Map) == 0;
            assert!(full, "{attempt} queued on {id}, which has a free slot");
            worker.queued.push_back(attempt);
        });
    }

    /// Removes an attempt with its slot or its place in the queue; `quick` as when it took the slot. Returns the
    /// attempt that has the slot next, which the caller judges with [`Workers::judge`].
    pub(crate) fn leave(&mut self, id: WorkerId, attempt: AttemptId, quick: bool) -> Option<AttemptId> {
        let kind = attempt.task.kind;
        self.change(id, |worker| {
            if !worker.running.remove(&attempt) {
                let place = worker.queued.iter().position(|&other| other == attempt);
                worker.queued.remove(place.expect("an attempt of the table runs or is queued"));
                return None;
            }
            worker.quick -= u32::from(quick);
            let pool = worker.pool(kind);
            worker.used[pool] -= 1;
            // The queue holds only maps, so it only gets slots for maps.
            let next = (pool == worker.pool(TaskKind::Map)).then(|| worker.queued.pop_front()).flatten()?;
            worker.running.insert(next);
            worker.used[pool] += 1;
            Some(next)
        })
    }

    /// Records a map that succeeded there after this time in its slot.
    pub(crate) fn measure(&mut self, id: WorkerId, took: Span) {
        if let Some(worker) = self.live.get_mut(&id) {
            self.rates.finished(id, took.seconds());
            worker.slot_rate = self.rates.rate(id);
        }
    }

    /// Records a task that took this many times as long as its peers. A worker with a factor of `slow_times` is slow.
    pub(crate) fn compare(&mut self, id: WorkerId, times: f64, slow_times: u32) {
        let Some(worker) = self.live.get_mut(&id) else { return };
        let slowness = worker.slowness.map_or(times, |before| (before + times) / 2.0);
        worker.slowness = Some(slowness);
        if f64::from(slow_times) <= slowness {
            self.slow.insert(id, slowness);
        } else {
            self.slow.remove(&id);
        }
    }

    /// Records a task that runs, or ran until it was stopped, for this many times the full time of its peers.
    pub(crate) fn lags(&mut self, id: WorkerId, times: f64, slow_times: u32) {
        if self.get(id).is_some_and(|worker| worker.slowness() < times) {
            self.compare(id, times, slow_times);
        }
    }

    /// Changes the number of tasks of this kind that wait for this worker alone; `ready` reduces may move.
    pub(crate) fn await_slot(&mut self, id: WorkerId, kind: TaskKind, tasks: i32, ready: bool) {
        if self.is_live(id) {
            let pool = self.pool(kind);
            self.sums.awaited[pool] = self.sums.awaited[pool].saturating_add_signed(tasks);
            self.change(id, |worker| {
                let awaited = &mut worker.awaited[pool];
                *awaited = awaited.saturating_add_signed(tasks);
                if ready {
                    worker.ready = worker.ready.saturating_add_signed(tasks);
                }
            });
        }
    }

    /// Makes a running attempt leave its slot and stay on the worker. Returns the next attempt in the slot, as
    /// [`Workers::leave`].
    pub(crate) fn park(&mut self, id: WorkerId, attempt: AttemptId) -> Option<AttemptId> {
        let next = self.leave(id, attempt, false);
        self.live.get_mut(&id).expect("attempts are suspended on live workers").suspended.insert(attempt);
        next
    }

    /// Gives a suspended attempt a slot again.
    pub(crate) fn unpark(&mut self, id: WorkerId, attempt: AttemptId) {
        self.forget_parked(id, attempt);
        self.take_slot(id, attempt, false);
    }

    /// Removes a suspended attempt that is over.
    pub(crate) fn forget_parked(&mut self, id: WorkerId, attempt: AttemptId) {
        let worker = self.live.get_mut(&id).expect("attempts are suspended on live workers");
        assert!(worker.suspended.remove(&attempt), "{attempt} is not suspended on {id}");
    }

    /// Updates the counts after an attempt changed how it holds its slot.
    pub(crate) fn count_hold(&mut self, id: WorkerId, before: SlotHold, now: SlotHold) {
        let Some(worker) = self.live.get_mut(&id) else { return };
        for (counts, hold) in [
            ([&mut worker.suspendable, &mut self.suspendable], SlotHold::Suspendable),
            ([&mut worker.leaving, &mut self.leaving], SlotHold::Leaving),
        ] {
            for count in counts {
                *count = *count + u32::from(now == hold) - u32::from(before == hold);
            }
        }
        self.moved.insert(id);
    }

    /// Records if an attempt that just got its slot from the queue is quick.
    pub(crate) fn judge(&mut self, id: WorkerId, quick: bool) {
        self.change(id, |worker| worker.quick += u32::from(quick));
    }

    /// Changes a worker and updates the indexes.
    fn change<T>(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker) -> T) -> T {
        let pools = self.pools();
        let worker = self.live.get_mut(&id).expect("attempts run on live workers");
        let count = |worker: &Worker| {
            let of = |kind: TaskKind| (worker.free(kind), worker.usable(kind));
            // An unused second pool never changes.
            [of(TaskKind::Map), if pools == 2 { of(TaskKind::Reduce) } else { (0, 0) }]
        };
        let (before, level) = (count(worker), worker.level());
        let result = change(worker);
        let (after, level_now) = (count(worker), worker.level());
        if worker.holds_up() {
            self.holding_up.insert(id);
        } else {
            self.holding_up.remove(&id);
        }
        for (pool, ((free, usable), (free_now, usable_now))) in before.into_iter().zip(after).enumerate() {
            self.sums.usable[pool] = self.sums.usable[pool] + usable_now - usable;
            if free != free_now {
                self.sums.free[pool] = self.sums.free[pool] + free_now - free;
                self.idle[pool].remove(&(Reverse(free), id));
                if 0 < free_now {
                    self.idle[pool].insert((Reverse(free_now), id));
                }
                self.moved.insert(id);
            }
        }
        if level != level_now {
            if let Some(level) = level {
                self.behind.remove(&(level, id));
            }
            if let Some(level) = level_now {
                self.behind.insert((level, id));
            }
        }
        result
    }

    /// True if the rows count this worker as idle for this kind.
    pub(crate) fn shown_idle(&self, id: WorkerId, kind: TaskKind) -> bool {
        self.live.get(&id).is_some_and(|worker| worker.shown_idle[worker.pool(kind)])
    }

    /// Records that the worker was notified of this job.
    pub(crate) fn mark_informed(&mut self, id: WorkerId, job: JobId) {
        self.live.get_mut(&id).expect("only live workers know jobs").marks.jobs.insert(job);
    }

    /// Removes a job that ended from these workers.
    pub(crate) fn forget(&mut self, job: JobId, from: impl Iterator<Item = WorkerId>) {
        for worker in from {
            if let Some(worker) = self.live.get_mut(&worker) {
                worker.marks.jobs.remove(&job);
                worker.marks.bound.remove(&job);
                worker.marks.named.remove(&job);
            }
        }
    }
}

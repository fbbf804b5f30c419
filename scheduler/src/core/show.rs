//! Keeps the rows that policies see and tells the policy what changed.
//!
//! Not here: the sizes an estimator would find; work is counted in tasks and segments.

use crate::core::Core;
use crate::ids::JobId;
use crate::ledger::Job;
use crate::ledger::tasks::ReduceState;
use crate::units::Time;
use crate::view::{Change, Handle, Row, View};

/// The view at one instant. Slots are unified for now.
pub(super) fn view<'a>(now: Time, rows: &'a [Row], touched: &'a [Handle], cap: [f64; 3]) -> View<'a> {
    View { now, rows, touched, cap, unified: true }
}

impl Core {
    /// Counts the rows of what changed and lets the policy look: first who left, then who is new, then all
    /// other changes, then the tick. A handle is used again only after the policy saw its job leave.
    pub(super) fn observe(&mut self, ticked: bool) {
        self.flip_workers();
        for handle in std::mem::take(&mut self.books.left) {
            self.rows[handle.index()].live = false;
            self.handles[handle.index()] = None;
            self.tell(&[], Change::Left(handle));
            self.spare.push(handle.0);
        }
        for id in std::mem::take(&mut self.books.arrived) {
            self.books.dirty.remove(&id);
            let handle = self.take_handle(id);
            self.tell(&[handle], Change::Arrived(handle));
        }
        let mut touched = Vec::with_capacity(self.books.dirty.len());
        for id in std::mem::take(&mut self.books.dirty) {
            let job = self.books.jobs.get(&id).expect("jobs that ended are not dirty");
            let handle = job.handle.expect("jobs that arrived have a handle by now");
            let row = &mut self.rows[handle.index()];
            *row = row_of(job, row.seq);
            touched.push(handle);
        }
        if !touched.is_empty() {
            self.tell(&touched, Change::Progress);
        }
        if ticked {
            self.tell(&[], Change::Tick);
        }
    }

    fn tell(&mut self, touched: &[Handle], change: Change) {
        let capacity = Self::capacity(&self.books);
        self.policy.observe(view(self.books.now, &self.rows, touched, capacity), change);
    }

    /// Workers that became idle or busy change what jobs bound to them can start.
    fn flip_workers(&mut self) {
        let books = &mut self.books;
        for id in std::mem::take(&mut books.workers.moved) {
            let Some(worker) = books.workers.live.get_mut(&id) else { continue };
            let idle = 0 < worker.free();
            if worker.shown_idle == idle {
                continue;
            }
            worker.shown_idle = idle;
            let jobs = &mut books.jobs;
            let dirty = &mut books.dirty;
            worker.bound.retain(|job| {
                let Some(record) = jobs.get_mut(job) else { return false };
                let bound = [&mut record.ready, &mut record.queue.pinned];
                let mut any = false;
                for line in bound {
                    any |= line.at.contains_key(&id);
                    line.flip(id, idle);
                }
                if any {
                    dirty.insert(*job);
                }
                any
            });
        }
    }

    fn take_handle(&mut self, id: JobId) -> Handle {
        let handle = match self.spare.pop() {
            Some(spare) => Handle(spare),
            None => {
                self.rows.push(Row::default());
                self.handles.push(None);
                Handle((self.rows.len() - 1) as u32)
            }
        };
        let job = self.books.jobs.get_mut(&id).expect("jobs that ended did not arrive");
        job.handle = Some(handle);
        self.rows[handle.index()] = row_of(job, self.next_seq);
        self.handles[handle.index()] = Some(id);
        self.next_seq += 1;
        handle
    }
}

/// What policies see of a job.
fn row_of(job: &Job, seq: u64) -> Row {
    let maps = job.maps.len() as f64;
    let reduces = job.reduces.len() as f64;
    let count = |state: ReduceState| job.reduce_counts[state as usize];
    let segments = job.maps.len() as u64 * job.reduces.len() as u64;
    let segments_left = (segments - job.segments_fetched) as f64;
    let has_output = !job.outputs.is_empty();
    Row {
        seq,
        arrival: job.arrival,
        goal: job.goal,
        weight: job.weight,
        pool: job.pool,
        started: 0 < job.tally.launched,
        live: true,
        whole: [maps, segments as f64, reduces],
        left: [maps - f64::from(job.maps_done), segments_left, reduces - f64::from(count(ReduceState::Done))],
        can: [
            f64::from(job.queue.startable()),
            if has_output { segments_left } else { 0.0 },
            f64::from(job.ready.startable),
        ],
        held: [f64::from(job.maps_running), 0.0, f64::from(count(ReduceState::Running))],
        pend: [
            job.maps_waiting,
            segments_left.min(f64::from(u32::MAX)) as u32,
            count(ReduceState::Gathering) + count(ReduceState::Ready),
        ],
        done: job.maps_done,
        done_time: job.tally.map_time.seconds(),
        feed: reduces,
    }
}

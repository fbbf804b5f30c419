//! List `S` of SRPT in its virtual run: the machines that each job would get in each slot.
//!
//! Work is counted in whole units, each of which takes one machine one slot. The smallest remainder is served first,
//! ties to the older, maps of a job before its reduces, on any number of machines at once. So in every slot all served
//! jobs except the last one end, and a slot costs O(log n) for each of them.

use crate::units::{Span, Time};
use crate::view::{Change, Handle, Row, Station, View};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum units of a job; more than any list completes.
const UNITS_MAX: f64 = 1e15;

/// Service of a job in a slot of the virtual run, in units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VirtuallyServed {
    /// Seq of the job.
    pub(crate) seq: u64,
    /// Units of its maps.
    pub(crate) maps: u64,
    /// Units of its reduces.
    pub(crate) reduces: u64,
    /// True if it ended in the virtual run.
    pub(crate) ends: bool,
}

#[derive(Clone, Copy, Debug)]
struct VirtualJob {
    /// Units of maps and of reduces.
    whole: [u64; 2],
    served: [u64; 2],
    /// True if the job is still live in reality.
    present: bool,
}

impl VirtualJob {
    fn remaining(&self) -> [u64; 2] {
        [self.whole[0].saturating_sub(self.served[0]), self.whole[1].saturating_sub(self.served[1])]
    }

    fn total(&self) -> u64 {
        self.remaining().iter().sum()
    }
}

/// Jobs of the virtual run.
#[derive(Debug, Default)]
pub(crate) struct VirtualList {
    /// Jobs with units left: their number, then the seq.
    order: BTreeSet<(u64, u64)>,
    /// Jobs by seq, while in `order` or live in reality.
    jobs: BTreeMap<u64, VirtualJob>,
}

impl VirtualList {
    /// Adds a job or updates its size: total units of maps and of reduces, including those served.
    pub(crate) fn place(&mut self, seq: u64, whole: [u64; 2]) {
        let new = VirtualJob { whole, served: [0; 2], present: true };
        let job = self.jobs.entry(seq).or_insert(new);
        self.order.remove(&(job.total(), seq));
        job.whole = whole;
        if 0 < job.total() {
            self.order.insert((job.total(), seq));
        }
    }

    /// Records that the job has ended in reality; in the virtual run it continues, unless it was abandoned.
    pub(crate) fn leave(&mut self, seq: u64, abandoned: bool) {
        if let Some(job) = self.jobs.get_mut(&seq) {
            job.present = false;
            let total = job.total();
            if abandoned {
                self.order.remove(&(total, seq));
            }
            if abandoned || total == 0 {
                self.jobs.remove(&seq);
            }
        }
    }

    /// True if no job has units left.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Serves one slot on this many machines; appends the served jobs.
    pub(crate) fn serve(&mut self, machines: u64, served: &mut Vec<VirtuallyServed>) {
        let mut free = machines;
        while 0 < free
            && let Some((total, seq)) = self.order.pop_first()
        {
            let job = self.jobs.get_mut(&seq).expect("a job in the order has its record");
            let [maps, reduces] = job.remaining();
            let maps = maps.min(free);
            let reduces = reduces.min(free - maps);
            free -= maps + reduces;
            job.served[0] += maps;
            job.served[1] += reduces;
            let ends = maps + reduces == total;
            served.push(VirtuallyServed { seq, maps, reduces, ends });
            match ends {
                false => _ = self.order.insert((total - maps - reduces, seq)),
                true if !job.present => _ = self.jobs.remove(&seq),
                true => {}
            }
        }
    }
}

/// Virtual run in parallel to a real one. A policy forwards jobs and ticks to it, and it advances slot by slot.
///
/// Slots of this length follow each other from time 0. A slot is served at the first tick in it or after it. Jobs that
/// arrive within a slot count from the next one on.
#[derive(Debug)]
pub(crate) struct VirtualRun {
    slot: Span,
    list: VirtualList,
    /// Number of the first slot that was not served, from 0.
    next: u64,
    /// Last counted units of each job that is live in reality, by seq, with the handle of its row.
    present: BTreeMap<u64, (Handle, [u64; 2])>,
    served: Vec<VirtuallyServed>,
}

impl VirtualRun {
    /// # Panics
    /// If the slot has no length.
    pub(crate) fn new(slot: Span) -> Self {
        assert!(0 < slot.0, "slots of no length");
        Self { slot, list: VirtualList::default(), next: 0, present: BTreeMap::new(), served: Vec::new() }
    }

    /// Returns the handle of the row of this job, if it is still live.
    pub(crate) fn handle(&self, seq: u64) -> Option<Handle> {
        self.present.get(&seq).map(|&(handle, _)| handle)
    }

    /// Returns the time of the next tick: the start of the first unserved slot. If that slot has started, the tick is
    /// right after now, since a wake at this very instant would be too late.
    pub(crate) fn wake(&self, now: Time) -> Time {
        Time(self.next.saturating_mul(self.slot.0).max(now.0 + 1))
    }

    /// True if no job has units left.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Handles what a policy observes. `each` receives the served jobs and the number of machines of every served slot.
    /// It returns true if it waits for further slots even without jobs to serve.
    pub(crate) fn observe(
        &mut self,
        view: View<'_>,
        change: Change,
        mut each: impl FnMut(&[VirtuallyServed], u64) -> bool,
    ) {
        match change {
            Change::Arrived(_) | Change::Progress => {
                for &handle in view.touched {
                    self.place(view, handle);
                }
            }
            Change::Left(handle) => {
                let row = view.row(handle);
                self.present.remove(&row.seq);
                self.list.leave(row.seq, row.abandoned);
            }
            Change::Tick => {
                let machines = view.cap[Station::Map] as u64;
                let now = view.now.0 / self.slot.0;
                while self.next <= now {
                    self.next += 1;
                    self.served.clear();
                    self.list.serve(machines, &mut self.served);
                    let waits = each(&self.served, machines);
                    // Further slots change nothing.
                    if !waits && (self.list.is_empty() || machines == 0) && self.served.is_empty() {
                        self.next = self.next.max(now + 1);
                    }
                }
            }
        }
    }

    fn place(&mut self, view: View<'_>, handle: Handle) {
        let row = view.row(handle);
        let units = self.units(row);
        if self.list.is_empty() {
            self.next = self.next.max(view.now.0.div_ceil(self.slot.0));
        }
        if self.present.insert(row.seq, (handle, units)) != Some((handle, units)) {
            self.list.place(row.seq, units);
        }
    }

    /// Returns a job's maps and reduces in whole units.
    fn units(&self, row: &Row) -> [u64; 2] {
        [Station::Map, Station::Reduce].map(|station| {
            let units = row.whole[station] / self.slot.seconds();
            // An estimate of NaN counts as 0.
            units.ceil().clamp(0.0, UNITS_MAX) as u64
        })
    }
}

#[cfg(test)]
mod tests;

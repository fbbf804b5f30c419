//! The list `S` of SRPT in its virtual run: which job would get how many machines in which slot.
//!
//! Work is counted in whole units, each of which one machine works off in one slot. The smallest remainder is served
//! first, ties to the older, maps of a job before its reduces, any number of machines at once. So in every slot all
//! jobs served but the last one end, and a slot costs O(log n) for each of them.

use crate::units::{Span, Time};
use crate::view::{Change, Handle, Row, Station, View};
use std::collections::{BTreeMap, BTreeSet};

/// Most units that a job counts for; more than any list works off.
const UNITS_MAX: f64 = 1e15;

/// What a job got in a slot of the virtual run, in units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VirtuallyServed {
    /// The job.
    pub(crate) seq: u64,
    /// Units of its maps.
    pub(crate) maps: u64,
    /// Units of its reduces.
    pub(crate) reduces: u64,
    /// Whether it ended in the virtual run.
    pub(crate) ends: bool,
}

#[derive(Clone, Copy, Debug)]
struct VirtualJob {
    /// Units of maps and of reduces.
    whole: [u64; 2],
    served: [u64; 2],
    /// Whether the job is still there in truth.
    present: bool,
}

impl VirtualJob {
    fn left(&self) -> [u64; 2] {
        [self.whole[0].saturating_sub(self.served[0]), self.whole[1].saturating_sub(self.served[1])]
    }

    fn total(&self) -> u64 {
        self.left().iter().sum()
    }
}

/// The jobs of the virtual run.
#[derive(Debug, Default)]
pub(crate) struct VirtualList {
    /// Jobs with units left: how many, then the seq.
    order: BTreeSet<(u64, u64)>,
    /// By seq, as long as a job is in `order` or there in truth.
    jobs: BTreeMap<u64, VirtualJob>,
}

impl VirtualList {
    /// A job comes, or its size is known better: this many units of maps and of reduces, those served included.
    pub(crate) fn place(&mut self, seq: u64, whole: [u64; 2]) {
        let new = VirtualJob { whole, served: [0; 2], present: true };
        let job = self.jobs.entry(seq).or_insert(new);
        self.order.remove(&(job.total(), seq));
        job.whole = whole;
        if 0 < job.total() {
            self.order.insert((job.total(), seq));
        }
    }

    /// The job is gone in truth; in the virtual run it goes on.
    pub(crate) fn leave(&mut self, seq: u64) {
        if let Some(job) = self.jobs.get_mut(&seq) {
            job.present = false;
            if job.total() == 0 {
                self.jobs.remove(&seq);
            }
        }
    }

    /// Whether no job has units left.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// One slot on this many machines; appends who was served.
    pub(crate) fn serve(&mut self, machines: u64, served: &mut Vec<VirtuallyServed>) {
        let mut free = machines;
        while 0 < free
            && let Some((total, seq)) = self.order.pop_first()
        {
            let job = self.jobs.get_mut(&seq).expect("a job in the order has its record");
            let [maps, reduces] = job.left();
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

/// The virtual run beside a real one: told of jobs and ticks by a policy, it goes on slot by slot.
///
/// Slots of this length follow each other from time 0. A slot is worked off at the first tick in it or after it;
/// jobs that arrive within a slot count from the next one on.
#[derive(Debug)]
pub(crate) struct VirtualRun {
    slot: Span,
    list: VirtualList,
    /// Number of the first slot that was not worked off, from 0.
    next: u64,
    /// Units of each job as they were counted last, by seq, and where its row is; jobs that are there in truth.
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

    /// Where the row of this job is, if it is still there.
    pub(crate) fn handle(&self, seq: u64) -> Option<Handle> {
        self.present.get(&seq).map(|&(handle, _)| handle)
    }

    /// When the next tick is due: at the start of the first slot that was not worked off, or right after now if that
    /// has begun, since a wish for this very instant comes too late.
    pub(crate) fn wake(&self, now: Time) -> Time {
        Time(self.next.saturating_mul(self.slot.0).max(now.0 + 1))
    }

    /// Whether no job has units left.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Follows what a policy observes. `each` is told of every slot worked off who was served and by how many
    /// machines, and says whether it waits for further slots even if nobody is left to serve.
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
                let seq = view.row(handle).seq;
                self.present.remove(&seq);
                self.list.leave(seq);
            }
            Change::Tick => {
                let machines = view.cap[Station::Map] as u64;
                let now = view.now.0 / self.slot.0;
                while self.next <= now {
                    self.next += 1;
                    self.served.clear();
                    self.list.serve(machines, &mut self.served);
                    let waits = each(&self.served, machines);
                    // Nothing changes in the slots from here on.
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

    /// A job's maps and reduces in whole units.
    fn units(&self, row: &Row) -> [u64; 2] {
        [Station::Map, Station::Reduce].map(|station| {
            let units = row.whole[station] / self.slot.seconds();
            // An estimate that is no number counts as nothing.
            units.ceil().clamp(0.0, UNITS_MAX) as u64
        })
    }
}

#[cfg(test)]
mod tests;

//! Delayed shortest remaining processing time: the schedule of the virtual SRPT, with every reduce a slot later.
//!
//! Paper: ASRPT, section VI B, Theorem 4. Rule: each slot runs the maps that SRPT serves in it. Reduce units that SRPT
//! served in the previous slot join a FIFO queue, which is served by the machines that SRPT gives to no map in this
//! slot.
//! Required: the work of every job when it arrives, in slot-seconds.
//! Favours and harms the same jobs as SRPT. It is a tool of the proof, and `asrpt` is never worse.
//! Deviations: none; reduces of a slot join the queue in the order in which SRPT serves them.
//! Parameters: `slot`, length of a slot (1s).
//! Limits: it is not work-conserving and requires preemption, since every slot assigns the machines again.

use crate::catalogue::{Entry, Parameter};
use crate::plan::{Plan, Reason, Share};
use crate::policy::asrpt::slot_length;
use crate::policy::interface::Policy;
use crate::policy::srpt::virtual_list::{VirtualRun, VirtuallyServed};
use crate::units::Span;
use crate::view::{Change, Station, View};
use std::collections::VecDeque;

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "ASRPT VI B, Theorem 4",
    parameters: &[Parameter { name: "slot", default: "1s", meaning: "length of a slot" }],
    only_simulated: Some(
        "it assigns all machines again in every slot, and running maps cannot be suspended; `asrpt` is never worse",
    ),
    ..Entry::new("dsrpt", "the virtual SRPT with every reduce one slot later; preemptive", |arguments| {
        Ok(Box::new(Dsrpt::new(slot_length(arguments)?)))
    })
}];

/// SRPT's schedule with delayed reduces.
#[derive(Debug)]
pub struct Dsrpt {
    srpt: VirtualRun,
    slot: QueueSlot,
}

/// Work of the current slot, and waiting work.
#[derive(Debug, Default)]
struct QueueSlot {
    /// Waiting reduce units in the order in which SRPT served them: seq and number.
    waiting: VecDeque<(u64, u64)>,
    /// Machines for maps in this slot: seq and number.
    maps: Vec<(u64, u64)>,
    /// Machines for reduces in this slot, one entry per job.
    reduces: Vec<(u64, u64)>,
}

impl QueueSlot {
    /// Advances by one slot. Returns true if any unit waits.
    fn pass(&mut self, served: &[VirtuallyServed], machines: u64) -> bool {
        self.maps.clear();
        self.maps.extend(served.iter().filter(|job| 0 < job.maps).map(|job| (job.seq, job.maps)));
        self.reduces.clear();
        let mut free = machines - self.maps.iter().map(|&(_, maps)| maps).sum::<u64>();
        while 0 < free
            && let Some((seq, units)) = self.waiting.pop_front()
        {
            let now = units.min(free);
            free -= now;
            match self.reduces.iter_mut().find(|(other, _)| *other == seq) {
                Some((_, machines)) => *machines += now,
                None => self.reduces.push((seq, now)),
            }
            if now < units {
                self.waiting.push_front((seq, units - now));
            }
        }
        let delayed = served.iter().filter(|job| 0 < job.reduces);
        self.waiting.extend(delayed.map(|job| (job.seq, job.reduces)));
        !self.waiting.is_empty()
    }
}

impl Dsrpt {
    /// Creates a policy without jobs, with slots of this length.
    ///
    /// # Panics
    /// If the slot has no length.
    #[must_use]
    pub fn new(slot: Span) -> Self {
        Self { srpt: VirtualRun::new(slot), slot: QueueSlot::default() }
    }
}

impl Policy for Dsrpt {
    fn name(&self) -> &'static str {
        "dsrpt"
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn preempts(&self) -> bool {
        true
    }

    fn suspends_maps(&self) -> bool {
        true
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        self.srpt.observe(view, change, |served, machines| self.slot.pass(served, machines));
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let maps = (Station::Map, &self.slot.maps, "machines that SRPT gives its maps");
        let reduces = (Station::Reduce, &self.slot.reduces, "machines for reduces that SRPT served before");
        for (station, jobs, what) in [maps, reduces] {
            for &(seq, units) in jobs {
                if let Some(job) = self.srpt.handle(seq) {
                    let share = Share::Slots(u32::try_from(units).unwrap_or(u32::MAX));
                    plan.grant(job, station, share, Reason::Target { what, slots: units as f64 });
                }
            }
        }
        if !self.srpt.is_empty() || !self.slot.waiting.is_empty() {
            plan.wake(self.srpt.wake(view.now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(seq: u64, maps: u64, reduces: u64) -> VirtuallyServed {
        VirtuallyServed { seq, maps, reduces, ends: false }
    }

    #[test]
    fn reduces_follow_a_slot_later_in_their_order_on_machines_without_a_map() {
        let mut slot = QueueSlot::default();
        assert!(slot.pass(&[served(0, 1, 2), served(1, 0, 1)], 4));
        assert_eq!((&slot.maps[..], &slot.reduces[..]), (&[(0, 1)][..], &[][..]));
        // Three maps leave one machine: one of two units is done, the other stays first in the queue.
        assert!(slot.pass(&[served(2, 3, 1)], 4));
        assert_eq!((&slot.maps[..], &slot.reduces[..]), (&[(2, 3)][..], &[(0, 1)][..]));
        assert!(!slot.pass(&[], 4));
        assert_eq!((&slot.maps[..], &slot.reduces[..]), (&[][..], &[(0, 1), (1, 1), (2, 1)][..]));
    }

    #[test]
    fn units_of_one_job_from_two_slots_are_one_target() {
        let mut slot = QueueSlot::default();
        assert!(slot.pass(&[served(0, 0, 3), served(1, 1, 0)], 4));
        assert!(slot.pass(&[served(1, 4, 0)], 4));
        assert!(slot.pass(&[served(0, 0, 2), served(1, 2, 0)], 4));
        assert_eq!(slot.reduces, [(0, 2)]);
        assert!(!slot.pass(&[], 4));
        assert_eq!(slot.reduces, [(0, 3)]);
    }
}

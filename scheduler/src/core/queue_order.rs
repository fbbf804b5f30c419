//! Order in which jobs would get slots: the policy plans on hypothetical free slots, and the order of its grants is the
//! order of the jobs. This changes no state.

use crate::core::Core;
use crate::core::show::view_of;
use crate::ids::JobId;
use crate::ledger::quotas;
use crate::plan::{Floor, Line, Plan, Reason, Share};
use crate::station::Station;
use crate::view::{Handle, Row};
use std::collections::BTreeMap;

/// Maximum number of hypothetical slots. Jobs beyond them are not distinguished.
pub(super) const SLOTS_MAX: u32 = 10_000;

/// Consecutive slots for one job.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Turn {
    pub job: JobId,
    pub station: Station,
    pub slots: u32,
    /// Policy's reason for the first of them.
    pub reason: Reason,
}

impl Core {
    /// Returns the order in which jobs would get at most this many slots if they were free. Changes nothing. Cost:
    /// linear in live jobs and hypothetical slots.
    pub fn turns(&mut self, slots_max: u32) -> Vec<Turn> {
        let rows = self.rows_now();
        let turns = self.turns_among(&rows, slots_max);
        turns.into_iter().filter_map(|turn| turn.named(&self.handles)).collect()
    }

    /// Returns the rows of all jobs with the slots held now. The rows that the policy saw lack the launches of this
    /// instant's plan. Slots count as held even if the policy could preempt them.
    pub(super) fn rows_now(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        let all = self.ledger.preempts;
        let seen = self.ledger.jobs.values().filter(|job| all || self.ledger.unseen.dirty.contains(&job.id));
        for job in seen {
            if let Some(row) = job.handle.and_then(|handle| rows.get_mut(handle.index())) {
                let seen = row.clone();
                *row = super::show::row_of(job, seen.seq, false, quotas::room(&self.ledger, job));
                (row.whole, row.left, row.feed) = (seen.whole, seen.left, seen.feed);
            }
        }
        rows
    }

    /// Returns the policy's order of jobs with these rows.
    pub(super) fn turns_among(&mut self, rows: &[Row], slots_max: u32) -> Vec<SlotRange> {
        let view = view_of(&self.ledger, (rows, &self.runs), &[]);
        let mut listing = UnlimitedSlots { slots_max, ..UnlimitedSlots::new(rows, view.unified) };
        let mut plan = Plan::new(&mut listing);
        self.policy.plan(view, &mut plan);
        plan.finish();
        listing.turns
    }
}

/// Consecutive slots that a policy gave to a job.
pub(super) struct SlotRange {
    pub(super) job: Handle,
    pub(super) station: Station,
    pub(super) slots: u32,
    pub(super) reason: Reason,
}

impl SlotRange {
    /// Returns it with the id of its job, if that is live.
    pub(super) fn named(self, handles: &[Option<JobId>]) -> Option<Turn> {
        let job = handles.get(self.job.index()).copied().flatten()?;
        Some(Turn { job, station: self.station, slots: self.slots, reason: self.reason })
    }
}

/// Unlimited hypothetical slots.
pub(super) struct UnlimitedSlots<'a> {
    rows: &'a [Row],
    unified: bool,
    given: BTreeMap<(Handle, Station), u32>,
    total: u32,
    slots_max: u32,
    /// Jobs that got slots, in order.
    pub(super) turns: Vec<SlotRange>,
}

impl<'a> UnlimitedSlots<'a> {
    pub(super) fn new(rows: &'a [Row], unified: bool) -> Self {
        Self { rows, unified, given: BTreeMap::new(), total: 0, slots_max: SLOTS_MAX, turns: Vec::new() }
    }
}

impl Floor for UnlimitedSlots<'_> {
    fn unified(&self) -> bool {
        self.unified
    }

    fn remaining(&self, station: Station) -> f64 {
        match station {
            Station::Shuffle => 0.0,
            _ => f64::from(self.slots_max - self.total),
        }
    }

    fn held(&self, job: Handle, station: Station) -> f64 {
        let given = self.given.get(&(job, station)).copied().unwrap_or(0);
        self.rows[job.index()].held[station] + f64::from(given)
    }

    fn start(&mut self, job: Handle, station: Station, _line: Option<Line>, reason: Reason) -> bool {
        let given = self.given.entry((job, station)).or_default();
        if self.total == self.slots_max || self.rows[job.index()].can[station] <= f64::from(*given) {
            return false;
        }
        *given += 1;
        self.total += 1;
        match self.turns.last_mut().filter(|turn| turn.job == job && turn.station == station) {
            Some(turn) => turn.slots += 1,
            None => self.turns.push(SlotRange { job, station, slots: 1, reason }),
        }
        true
    }

    fn line_open(&self, _station: Station, _line: Line) -> bool {
        true
    }

    fn lane(&mut self, _job: Handle, _share: Share) -> Option<bool> {
        Some(true)
    }
}

//! Who would get slots one after the other: the policy plans on slots that are free on paper, and the order of its grants is
//! the order in which jobs would get slots now. Nothing is changed by that.

use crate::core::Core;
use crate::ids::JobId;
use crate::plan::{Line, Plan, Reason, Share, SlotFloor};
use crate::station::Station;
use crate::view::{Handle, Row, View};
use std::collections::BTreeMap;

/// Slots given away to find a line; who would come later is not distinguished.
pub(super) const SLOTS_MAX: u32 = 10_000;

/// Slots for one job, one after the other.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Turn {
    pub job: JobId,
    pub station: Station,
    pub slots: u32,
    /// The policy's reason for the first of them.
    pub reason: Reason,
}

impl Core {
    /// Who would get slots one after the other by the policy, were they free: of so many slots at most. Changes nothing.
    /// Cost: all live jobs, and the slots that are given on paper.
    pub fn turns(&mut self, slots_max: u32) -> Vec<Turn> {
        let rows = self.rows_now();
        let turns = self.turns_among(&rows, slots_max);
        let told = |turn: Stretch| {
            let job = self.handles.get(turn.job.index()).copied().flatten()?;
            Some(Turn { job, station: turn.station, slots: turn.slots, reason: turn.reason })
        };
        turns.into_iter().filter_map(told).collect()
    }

    /// The rows of all jobs as slots are held now. What this instant's own plan has launched is not in those that the
    /// policy saw; slots are counted as held also where the policy could take them back.
    pub(super) fn rows_now(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        let all = self.ledger.preempts;
        let seen = self.ledger.jobs.values().filter(|job| all || self.ledger.unseen.dirty.contains(&job.id));
        for job in seen {
            if let Some(row) = job.handle.and_then(|handle| rows.get_mut(handle.index())) {
                let seen = row.clone();
                *row = super::show::row_of(job, seen.seq, false, self.ledger.room(job));
                (row.whole, row.left, row.feed) = (seen.whole, seen.left, seen.feed);
            }
        }
        rows
    }

    /// The policy's line of jobs with these rows.
    pub(super) fn turns_among(&mut self, rows: &[Row], slots_max: u32) -> Vec<Stretch> {
        let unified = !self.ledger.workers.pooled;
        let cap = Self::capacity(&self.ledger);
        let mut listing = UnlimitedSlots { slots_max, ..UnlimitedSlots::new(rows, unified) };
        let view = View { now: self.ledger.now, rows, touched: &[], cap, unified, runs: &self.runs };
        let mut plan = Plan::new(&mut listing);
        self.policy.plan(view, &mut plan);
        plan.finish();
        listing.turns
    }
}

/// One stretch of slots that a policy gave a job.
pub(super) struct Stretch {
    pub(super) job: Handle,
    pub(super) station: Station,
    pub(super) slots: u32,
    pub(super) reason: Reason,
}

/// Slots without end, given away on paper.
pub(super) struct UnlimitedSlots<'a> {
    rows: &'a [Row],
    unified: bool,
    given: BTreeMap<(Handle, Station), u32>,
    total: u32,
    slots_max: u32,
    /// Who got them, one after the other.
    pub(super) turns: Vec<Stretch>,
}

impl<'a> UnlimitedSlots<'a> {
    pub(super) fn new(rows: &'a [Row], unified: bool) -> Self {
        Self { rows, unified, given: BTreeMap::new(), total: 0, slots_max: SLOTS_MAX, turns: Vec::new() }
    }
}

impl SlotFloor for UnlimitedSlots<'_> {
    fn unified(&self) -> bool {
        self.unified
    }

    fn left(&self, station: Station) -> f64 {
        match station {
            Station::Shuffle => 0.0,
            _ => f64::from(self.slots_max - self.total),
        }
    }

    fn held(&self, job: Handle, station: Station) -> u32 {
        let given = self.given.get(&(job, station)).copied().unwrap_or(0);
        self.rows[job.index()].held[station] as u32 + given
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
            None => self.turns.push(Stretch { job, station, slots: 1, reason }),
        }
        true
    }

    fn lines(&mut self, _station: Station, _fractions: &[f64]) {}

    fn line_open(&self, _station: Station, _line: Line) -> bool {
        true
    }

    fn lane(&mut self, _job: Handle, _share: Share) -> Option<bool> {
        Some(true)
    }
}

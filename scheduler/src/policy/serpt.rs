//! Monotonic shortest expected remaining processing time, from the sizes of jobs that have ended.
//!
//! Paper: Scully, Harchol-Balter and Scheller-Wolf, *Simple Near-Optimal Scheduling for the M/G/1* (POMACS 2020),
//! section 2. Rule: a job that has had `a` slot-seconds has the rank `max over b <= a of E[S - b | S > b]`, least first;
//! ties to the older. S is the empirical distribution of the sizes of the last thousand jobs. The maximum is what makes
//! it monotonic: a job that outlives its estimate does not come nearer to service, where SERPT lets it. In an M/G/1
//! queue its mean response time is at most 5 times that of the best policy that knows no sizes.
//! Required: nothing. Favours jobs that are likely to end soon. Harms those larger than most.
//! Parameters: `preemptive` (no): allows suspending running reduces.
//! Deviations: many slots, tasks that are not interrupted, and a distribution that is learned: before any job has ended,
//! and for jobs larger than all of them, least attained service decides, as `las`. The shuffle follows the same order.

use crate::catalogue::Entry;
use crate::plan::{Plan, Reason, order_of};
use crate::policy::asrpt::PREEMPTIVE;
use crate::policy::attained::attained;
use crate::policy::interface::Policy;
use crate::policy::ordered::{Ordered, ShuffleRule, turn};
use crate::station::Station;
use crate::view::{Change, Handle, View};
use std::collections::VecDeque;

/// Number of ended jobs whose sizes are remembered.
const SIZES_MAX: usize = 1000;

/// Growth of their number after which ranks are computed again. When full, they are after as many new jobs as this part.
const GROWTH: f64 = 0.1;

/// Catalogue entry of the policy.
pub(super) const ENTRIES: &[Entry<dyn Policy>] = &[Entry {
    paper: "Scully et al. 2020",
    parameters: &[PREEMPTIVE],
    ..Entry::new("m-serpt", "least expected work left first, by the sizes of ended jobs", |arguments| {
        Ok(Box::new(MonotonicSerpt {
            preemptive: arguments.flag("preemptive")?,
            ..MonotonicSerpt::default()
        }))
    })
}];

/// Ranks by attained service.
#[derive(Debug, Default)]
struct RankTable {
    /// Attained service from which a rank holds, ascending, and the rank in slot-seconds.
    steps: Vec<(f64, f64)>,
}

impl RankTable {
    fn learn(sizes: &VecDeque<f64>) -> Self {
        let mut sorted: Vec<f64> = sizes.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let mut steps: Vec<(f64, f64)> = Vec::new();
        let mut sum: f64 = sorted.iter().sum();
        for place in 0..=sorted.len() {
            // Between two sizes the expectation falls, so the maximum changes right after a size only.
            let from = if place == 0 { 0.0 } else { sorted[place - 1] };
            sum -= if place == 0 { 0.0 } else { from };
            let longer = (sorted.len() - place) as f64;
            let expected = if 0.0 < longer { sum / longer - from } else { f64::INFINITY };
            // Equal sizes: the last of them leaves those that are longer.
            steps.pop_if(|(same, _)| *same == from);
            steps.push((from, steps.last().map_or(expected, |&(_, rank)| rank.max(expected))));
        }
        Self { steps }
    }

    /// Returns the rank of a job that has had this much, infinite if all known jobs are smaller.
    fn rank(&self, attained: f64) -> f64 {
        let above = self.steps.partition_point(|&(from, _)| from <= attained);
        above.checked_sub(1).map_or(f64::INFINITY, |place| self.steps[place].1)
    }
}

/// Jobs by rank, then age; those without a finite rank by attained service.
#[derive(Debug, Default)]
struct MonotonicSerpt {
    preemptive: bool,
    sizes: VecDeque<f64>,
    /// Jobs that ended since the table was computed.
    new: usize,
    table: RankTable,
    jobs: Ordered<(u64, u64, u64)>,
}

impl MonotonicSerpt {
    /// Remembers the size of an ended job. Returns true if ranks have changed.
    fn remember(&mut self, size: f64) -> bool {
        if self.sizes.len() == SIZES_MAX {
            self.sizes.pop_front();
        }
        self.sizes.push_back(size);
        self.new += 1;
        let learns = GROWTH * (self.sizes.len() as f64) <= self.new as f64;
        if learns {
            self.new = 0;
            self.table = RankTable::learn(&self.sizes);
        }
        learns
    }
}

impl Policy for MonotonicSerpt {
    fn name(&self) -> &'static str {
        "m-serpt"
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn preempts(&self) -> bool {
        self.preemptive
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        let mut all = Vec::new();
        if let Change::Left(job) = change
            && let row = view.row(job)
            && !row.abandoned
            && self.remember(row.whole[Station::Map] + row.whole[Station::Reduce])
        {
            let others = (0..view.rows.len() as u32).map(Handle).filter(|&other| other != job);
            all.extend(others.filter(|&other| view.row(other).live));
        }
        let view = if all.is_empty() { view } else { View { touched: &all, ..view } };
        let table = &self.table;
        self.jobs.observe(view, change, |view, job| {
            let row = view.row(job);
            let rank = table.rank(attained(row));
            let unknown = if rank.is_finite() { 0 } else { order_of(attained(row)) };
            (order_of(rank), unknown, turn(row))
        });
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        let table = &self.table;
        let reason = |view: View<'_>, job| Reason::Smallest {
            what: "expected work left",
            value: table.rank(attained(view.row(job))),
            unit: "slot-seconds, by the sizes of ended jobs",
        };
        self.jobs.plan(view, plan, ShuffleRule::All, reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the rank by its definition, at all places where the maximum can be.
    fn by_definition(sizes: &[f64], attained: f64) -> f64 {
        let expected = |from: f64| {
            let longer: Vec<f64> =
                sizes.iter().filter(|&&size| from < size).map(|size| size - from).collect();
            if longer.is_empty() { f64::INFINITY } else { longer.iter().sum::<f64>() / longer.len() as f64 }
        };
        let places = sizes.iter().copied().filter(|&size| size <= attained).chain([0.0]);
        places.map(expected).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_the_definition_and_never_fall(
            sizes in prop::collection::vec((1..50_u32).prop_map(f64::from), 1..40),
        ) {
            let table = RankTable::learn(&sizes.iter().copied().collect());
            let mut last = 0.0;
            for half in 0..110 {
                let attained = f64::from(half) / 2.0;
                let rank = table.rank(attained);
                let wanted = by_definition(&sizes, attained);
                prop_assert!(rank == wanted || (rank - wanted).abs() < 1e-9, "{rank} at {attained}, not {wanted}");
                prop_assert!(last <= rank);
                last = rank;
            }
        }
    }

    #[test]
    fn half_of_the_jobs_being_short_a_job_that_outlives_them_comes_last() {
        let mut policy = MonotonicSerpt::default();
        assert_eq!(policy.table.rank(3.0), f64::INFINITY, "nothing is known: attained service decides");
        for size in [1.0, 1.0, 9.0, 9.0] {
            policy.remember(size);
        }
        // A new job has 5 to go on average, one beyond 1 has 8, however near to 9 it is.
        assert_eq!(
            [0.0, 0.5, 1.0, 8.0, 9.0].map(|had| policy.table.rank(had)),
            [5.0, 5.0, 8.0, 8.0, f64::INFINITY]
        );
    }
}

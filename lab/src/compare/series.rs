//! Curves of runs over time: utilisation of stations, slots of each job, attempts in each slot.
//!
//! Not here: the drawing of curves, and numbers that are not over time (`summary`).

use super::record::{RunRecord, SlotSpan};
use gristmill_scheduler::metrics::comparable::{SATURATED_MIN, WORKING_MIN};
use std::collections::BTreeMap;

/// Returns the end of the last job.
#[must_use]
pub fn makespan(run: &RunRecord) -> f64 {
    run.jobs.iter().map(|job| job.ended).fold(0.0, f64::max)
}

/// Returns a level that changes over time: (time, level from then on). Changes are (time, difference).
#[must_use]
pub fn level(mut changes: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut steps: Vec<(f64, f64)> = vec![(0.0, 0.0)];
    let mut now = 0.0;
    for (time, change) in changes {
        now += change;
        // Remainders of rounding count as zero.
        let value = if f64::abs(now) < 1e-9 { 0.0 } else { now };
        match steps.last_mut() {
            Some(last) if last.0 == time => last.1 = value,
            _ => steps.push((time, value)),
        }
    }
    steps
}

/// Returns intervals as changes of a level by `height`.
pub(super) fn changes(intervals: impl IntoIterator<Item = (f64, f64, f64)>) -> Vec<(f64, f64)> {
    intervals.into_iter().flat_map(|(from, to, height)| [(from, height), (to, -height)]).collect()
}

/// Returns the mean of a level over each of `bins` equal parts of the time to `end`, at the middle of each.
#[must_use]
pub(crate) fn binned(steps: &[(f64, f64)], end: f64, bins: usize) -> Vec<(f64, f64)> {
    let width = end / bins.max(1) as f64;
    if width <= 0.0 || !width.is_finite() {
        return Vec::new();
    }
    let mut sums = vec![0.0; bins];
    for (place, &(from, value)) in steps.iter().enumerate() {
        let (from, to) = (from.max(0.0), steps.get(place + 1).map_or(end, |next| next.0).min(end));
        // One bin earlier, because of rounding. A bin without overlap adds nothing.
        let first = ((from / width) as usize).saturating_sub(1);
        for (bin, sum) in sums.iter_mut().enumerate().skip(first) {
            let (low, high) = (bin as f64 * width, (bin + 1) as f64 * width);
            if value == 0.0 || to <= low {
                break;
            }
            *sum += value * (to.min(high) - from.max(low)).max(0.0);
        }
    }
    sums.into_iter().enumerate().map(|(bin, sum)| ((bin as f64 + 0.5) * width, sum / width)).collect()
}

/// Returns the mean of a level from 0 to `end`.
#[must_use]
pub fn average(steps: &[(f64, f64)], end: f64) -> f64 {
    binned(steps, end, 1).first().map_or(0.0, |&(_, mean)| mean)
}

/// Returns the share of the time to `end` in which a level is above `limit`.
#[must_use]
pub(crate) fn share_above(steps: &[(f64, f64)], end: f64, limit: f64) -> f64 {
    let above = steps
        .iter()
        .map(|&(time, value)| (time, f64::from(u8::from(limit + 1e-9 < value))))
        .collect::<Vec<_>>();
    average(&above, end)
}

/// Returns busy slots over time, of maps (`true`) or reduces.
#[must_use]
pub fn busy_slots(run: &RunRecord, maps: bool) -> Vec<(f64, f64)> {
    let spans = run.spans.iter().filter(|span| span.map == maps);
    level(changes(spans.map(|span| (span.from, span.to, 1.0))))
}

/// Returns the slots that a job holds over time.
#[must_use]
pub fn slots_of(run: &RunRecord, job: u32) -> Vec<(f64, f64)> {
    let spans = run.spans.iter().filter(|span| span.job == job);
    level(changes(spans.map(|span| (span.from, span.to, 1.0))))
}

/// Returns the number of receiving workers over time.
#[must_use]
pub fn receiving(run: &RunRecord) -> Vec<(f64, f64)> {
    let mut by_worker: BTreeMap<u32, Vec<(f64, f64, f64)>> = BTreeMap::new();
    for transfer in &run.transfers {
        by_worker.entry(transfer.to_worker).or_default().push((transfer.from, transfer.to, 1.0));
    }
    let unions = by_worker.into_values().flat_map(|intervals| {
        let steps = level(changes(intervals));
        let mut before = 0.0;
        let mut own = Vec::new();
        for (time, count) in steps {
            let now = f64::from(u8::from(0.0 < count));
            own.push((time, now - before));
            before = now;
        }
        own
    });
    level(unions.collect())
}

/// Returns the bytes per second that workers receive together, with each transfer spread evenly over its
/// time.
#[must_use]
pub(crate) fn received_bytes(run: &RunRecord) -> Vec<(f64, f64)> {
    let transfers = run.transfers.iter().filter(|transfer| transfer.from < transfer.to);
    level(changes(transfers.map(|one| (one.from, one.to, one.bytes as f64 / (one.to - one.from)))))
}

/// Returns the number of jobs that have arrived and not ended, over time.
#[must_use]
pub fn live_jobs(run: &RunRecord) -> Vec<(f64, f64)> {
    level(changes(run.jobs.iter().map(|job| (job.arrived, job.ended, 1.0))))
}

/// Returns the share of the time to `end` in which slots competed for this many processors. Either more
/// slots worked, or all processors were used while more slots held attempts that were not clearly asleep.
/// Paced attempts do not count.
#[must_use]
pub fn overcommitted(run: &RunRecord, end: f64, cores: f64) -> f64 {
    let slots: u32 = run.workers.iter().map(|worker| worker.slots).sum();
    // Half of the share of each attempt when all slots share the processors.
    let awake = WORKING_MIN.min(0.5 * cores / f64::from(slots.max(1)));
    let mut changes: Vec<(f64, [f64; 3])> = Vec::with_capacity(2 * run.spans.len());
    for span in &run.spans {
        let height = 1.0 - span.paced;
        let at_least = |share: f64| if share <= span.busy { height } else { 0.0 };
        let heights = [at_least(WORKING_MIN), at_least(awake), height * span.busy];
        changes.push((span.from, heights));
        changes.push((span.to, heights.map(|height| -height)));
    }
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut levels, mut since, mut sum) = ([0.0_f64; 3], 0.0_f64, 0.0);
    for (time, heights) in changes.into_iter().chain([(end, [0.0; 3])]) {
        let [working, awake, used] = levels;
        let more = |level: f64| cores + 1e-9 < level;
        if more(working) || more(awake) && SATURATED_MIN * cores <= used {
            sum += (time.min(end) - since).max(0.0);
        }
        since = time;
        levels = std::array::from_fn(|place| levels[place] + heights[place]);
    }
    if 0.0 < end { sum / end } else { 0.0 }
}

/// Row of a chart of slots: its name, and (job, from, to).
pub type SlotRow = (String, Vec<(u32, f64, f64)>);

/// Returns a row for each slot of each worker. Slot numbers are not recorded, so each attempt is assigned
/// the lowest free slot.
#[must_use]
pub(crate) fn slot_rows(run: &RunRecord) -> Vec<SlotRow> {
    let shared = run.workers.iter().all(|worker| worker.map_slots == worker.slots);
    let mut groups: BTreeMap<(u32, bool), Vec<SlotSpan>> = BTreeMap::new();
    for span in &run.spans {
        groups.entry((span.worker, !shared && !span.map)).or_default().push(*span);
    }
    let mut rows = Vec::new();
    for ((worker, reduces), mut spans) in groups {
        spans.sort_by(|one, other| one.from.total_cmp(&other.from));
        let kind = match (shared, reduces) {
            (true, _) => "",
            (false, false) => "map ",
            (false, true) => "reduce ",
        };
        for (place, row) in
            stacked(spans.iter().map(|span| (span.job, span.from, span.to))).into_iter().enumerate()
        {
            rows.push((format!("{worker}: {kind}{}", place + 1), row));
        }
    }
    rows
}

/// Returns a row for the data that each worker receives, with jobs stacked.
#[must_use]
pub(crate) fn lane_rows(run: &RunRecord) -> Vec<SlotRow> {
    let mut by_worker: BTreeMap<u32, Vec<(u32, f64, f64)>> = BTreeMap::new();
    for transfer in &run.transfers {
        by_worker.entry(transfer.to_worker).or_default().push((transfer.job, transfer.from, transfer.to));
    }
    by_worker.into_iter().map(|(worker, row)| (format!("{worker}: in"), row)).collect()
}

/// Assigns intervals, ordered by start, to the smallest number of rows.
fn stacked(intervals: impl Iterator<Item = (u32, f64, f64)>) -> Vec<Vec<(u32, f64, f64)>> {
    let mut rows: Vec<Vec<(u32, f64, f64)>> = Vec::new();
    for interval in intervals {
        // The clocks of workers are known to about a tenth of a millisecond.
        const SLACK: f64 = 5e-4;
        let free = rows.iter_mut().find(|row| row.last().is_none_or(|last| last.2 <= interval.1 + SLACK));
        match free {
            Some(row) => row.push(interval),
            None => rows.push(vec![interval]),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{job, run, span};
    use proptest::prelude::*;

    #[test]
    fn levels_add_up_and_come_back_to_nothing() {
        let steps = level(changes([(0.0, 2.0, 1.0), (1.0, 3.0, 1.0)]));
        assert_eq!(steps, [(0.0, 1.0), (1.0, 2.0), (2.0, 1.0), (3.0, 0.0)]);
        assert_eq!(average(&steps, 4.0), 1.0);
        assert_eq!(binned(&steps, 4.0, 2), [(1.0, 1.5), (3.0, 0.5)]);
        assert_eq!(share_above(&steps, 4.0, 1.0), 0.25);
    }

    #[test]
    fn slots_that_fight_for_processors_are_told_from_those_that_sleep() {
        let with = |count: u32, busy: f64| {
            let mut one = run("fifo", 0, vec![job(0, 0.0, 4.0)]);
            let slots = |worker| SlotSpan { busy, ..span(0, worker, 0.0, 2.0) };
            one.spans = (1..=count).map(slots).collect();
            one.workers.truncate(1);
            one.workers[0].slots = count;
            overcommitted(&one, 4.0, 2.0)
        };
        assert_eq!(with(3, 0.6), 0.5, "three that get two thirds each");
        assert_eq!(with(16, 0.125), 0.5, "sixteen that get an eighth each");
        assert_eq!(with(2, 1.0), 0.0, "two on two processors");
        assert_eq!(with(100, 0.002), 0.0, "a hundred that sleep");
    }

    #[test]
    fn attempts_take_the_lowest_free_slot() {
        let mut one = run("fifo", 0, vec![job(0, 0.0, 5.0)]);
        one.spans =
            vec![span(0, 1, 0.0, 2.0), span(0, 1, 1.0, 3.0), span(0, 1, 2.0, 4.0), span(0, 2, 0.0, 1.0)];
        let rows = slot_rows(&one);
        let names: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(names, ["1: 1", "1: 2", "2: 1"]);
        assert_eq!(rows[0].1, [(0, 0.0, 2.0), (0, 2.0, 4.0)]);
    }

    #[test]
    fn worker_that_receives_twice_at_once_counts_once() {
        use crate::compare::record::Transfer;
        let mut one = run("fifo", 0, vec![job(0, 0.0, 5.0)]);
        let transfer = |from, to| Transfer { job: 0, from_worker: 1, to_worker: 2, bytes: 10, from, to };
        one.transfers = vec![transfer(0.0, 2.0), transfer(1.0, 3.0)];
        assert_eq!(average(&receiving(&one), 4.0), 0.75);
        assert_eq!(average(&received_bytes(&one), 4.0), 5.0);
    }

    proptest! {
        #[test]
        fn bins_keep_the_area(intervals in prop::collection::vec((0.0..50.0_f64, 0.0..50.0_f64), 0..20), bins in 1..40_usize) {
            let intervals: Vec<(f64, f64, f64)> =
                intervals.into_iter().map(|(from, length)| (from, (from + length).min(60.0), 1.0)).collect();
            let area: f64 = intervals.iter().map(|(from, to, _)| to - from).sum();
            let found: f64 = binned(&level(changes(intervals)), 60.0, bins).iter().map(|(_, mean)| mean * 60.0 / bins as f64).sum();
            prop_assert!((area - found).abs() < 1e-6 * area.max(1.0), "{area} became {found}");
        }
    }
}

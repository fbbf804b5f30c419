//! Attempts of one worker laid into its slots, as its page and `top` draw them.
//!
//! A worker does not say which of its slots runs what, nor, until it ends, when an attempt that was queued ahead has begun.
//! So each attempt goes into the first slot that was free when it began. One that found none when it was launched began
//! when a slot became free, or waits still.

use super::model::Attempt;
use gristmill_runtime::api::FeedEnd;
use gristmill_worker::protocol::SlotCounts;

/// An attempt may begin so long before the one before it is known to have ended, nanoseconds.
const OVERLAP_NS: u64 = 200_000;

/// Who began so soon after its launch was not queued, nanoseconds: orders take their time.
const QUEUED_MIN_NS: u64 = 20_000_000;

/// What a lane is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LaneKind {
    /// A slot for whatever.
    Slot(u32),
    /// A slot for maps alone.
    Map(u32),
    /// A slot for reduces alone.
    Reduce(u32),
    /// Launched and not begun.
    Queued,
    /// Begun, and made to wait.
    Suspended,
}

/// One row of the strip.
pub(super) struct Lane {
    pub(super) kind: LaneKind,
    pub(super) bars: Vec<Bar>,
}

/// An attempt in its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar {
    pub(super) job: u32,
    pub(super) is_reduce: bool,
    pub(super) from_ns: u64,
    /// `None` while it goes on.
    pub(super) until_ns: Option<u64>,
    pub(super) end: FeedEnd,
}

impl Bar {
    fn of(attempt: &Attempt, from_ns: u64) -> Self {
        let (job, kind, ..) = attempt.name;
        let Attempt { ended_ns: until_ns, end, .. } = *attempt;
        Self { job, is_reduce: kind != 0, from_ns, until_ns, end }
    }
}

/// Lays attempts into lanes: one for each slot, and one each for what is queued or suspended, if anything is.
pub(super) fn lay<'a>(slots: SlotCounts, attempts: impl Iterator<Item = &'a Attempt>) -> Vec<Lane> {
    let lane = |kind| Lane { kind, bars: Vec::new() };
    let mut lanes: Vec<Lane> = match slots {
        SlotCounts::Unified(slots) => (0..slots).map(|slot| lane(LaneKind::Slot(slot))).collect(),
        SlotCounts::Pools { map, reduce } => {
            let maps = (0..map).map(|slot| lane(LaneKind::Map(slot)));
            maps.chain((0..reduce).map(|slot| lane(LaneKind::Reduce(slot)))).collect()
        }
    };
    let (mut queued, mut suspended) = (lane(LaneKind::Queued), lane(LaneKind::Suspended));
    let mut sorted: Vec<Attempt> = attempts.copied().collect();
    sorted.sort_by_key(|attempt| (attempt.started_ns.unwrap_or(attempt.launched_ns), attempt.name));
    let mut free_ns = vec![0; lanes.len()];
    let mut late = Vec::new();
    for mut attempt in sorted {
        // It came back from the queue, or was lost there.
        if attempt.started_ns.is_none() && attempt.end == FeedEnd::Returned {
            queued.bars.push(Bar::of(&attempt, attempt.launched_ns));
            continue;
        }
        if let Some(since_ns) = attempt.suspended_ns {
            suspended.bars.push(Bar::of(&attempt, since_ns));
            // Its slot is free from then on.
            attempt.ended_ns = Some(since_ns);
        }
        let from_ns = attempt.started_ns.unwrap_or(attempt.launched_ns);
        if let Some(started_ns) = attempt.started_ns.filter(|at| attempt.launched_ns + QUEUED_MIN_NS < *at) {
            queued.bars.push(Bar { until_ns: Some(started_ns), ..Bar::of(&attempt, attempt.launched_ns) });
        }
        let fits =
            |slot: &usize| is_for(lanes[*slot].kind, &attempt) && free_ns[*slot] <= from_ns + OVERLAP_NS;
        match (0..lanes.len()).find(fits) {
            Some(slot) => {
                free_ns[slot] = attempt.ended_ns.unwrap_or(u64::MAX);
                lanes[slot].bars.push(Bar::of(&attempt, from_ns));
            }
            None if attempt.suspended_ns.is_some() => {}
            None => late.push(attempt),
        }
    }
    for attempt in late {
        let of_kind = (0..lanes.len()).filter(|slot| is_for(lanes[*slot].kind, &attempt));
        let first = of_kind.min_by_key(|slot| free_ns[*slot]).filter(|slot| free_ns[*slot] < u64::MAX);
        match first {
            Some(slot) => {
                let from_ns = attempt.started_ns.unwrap_or(attempt.launched_ns).max(free_ns[slot]);
                free_ns[slot] = attempt.ended_ns.unwrap_or(u64::MAX);
                lanes[slot].bars.push(Bar::of(&attempt, from_ns));
            }
            None => queued.bars.push(Bar::of(&attempt, attempt.launched_ns)),
        }
    }
    lanes.extend([queued, suspended].into_iter().filter(|lane| !lane.bars.is_empty()));
    lanes
}

fn is_for(kind: LaneKind, attempt: &Attempt) -> bool {
    match kind {
        LaneKind::Slot(_) => true,
        LaneKind::Map(_) => attempt.name.1 == 0,
        LaneKind::Reduce(_) => attempt.name.1 != 0,
        LaneKind::Queued | LaneKind::Suspended => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(kind: u8, index: u32, times: (u64, Option<u64>, Option<u64>)) -> Attempt {
        let (launched_ns, started_ns, ended_ns) = times;
        let end = if ended_ns.is_some() { FeedEnd::Succeeded } else { FeedEnd::Running };
        Attempt { name: (1, kind, index, 0), launched_ns, started_ns, ended_ns, end, suspended_ns: None }
    }

    /// Lanes in short: what each is for, and from when on its attempts are drawn, in tenths of a second.
    fn check(slots: SlotCounts, attempts: &[Attempt], expected: &[(LaneKind, &[u64])]) {
        let lanes = lay(slots, attempts.iter());
        let found: Vec<(LaneKind, Vec<u64>)> = lanes
            .iter()
            .map(|lane| (lane.kind, lane.bars.iter().map(|bar| bar.from_ns / TENTH).collect()))
            .collect();
        let expected: Vec<_> = expected.iter().map(|(kind, bars)| (*kind, bars.to_vec())).collect();
        assert_eq!(found, expected);
    }

    const TENTH: u64 = 100_000_000;

    #[test]
    fn attempts_go_into_the_first_slot_that_is_free_when_they_begin() {
        let ended = |index, from: u64, until: u64| {
            attempt(0, index, (from * TENTH, Some(from * TENTH), Some(until * TENTH)))
        };
        let attempts =
            [ended(0, 10, 15), ended(1, 10, 16), attempt(0, 2, (15 * TENTH, None, None)), ended(3, 16, 17)];
        check(
            SlotCounts::Unified(3),
            &attempts,
            &[(LaneKind::Slot(0), &[10, 15]), (LaneKind::Slot(1), &[10, 16]), (LaneKind::Slot(2), &[])],
        );
    }

    #[test]
    fn what_is_queued_ahead_begins_when_a_slot_becomes_free_and_waits_in_a_lane_of_its_own_until_then() {
        let first = attempt(0, 0, (10 * TENTH, None, None));
        let second = attempt(0, 1, (11 * TENTH, None, None));
        let one = SlotCounts::Unified(1);
        check(one, &[first, second], &[(LaneKind::Slot(0), &[10]), (LaneKind::Queued, &[11])]);
        let first = attempt(0, 0, (10 * TENTH, Some(10 * TENTH), Some(20 * TENTH)));
        check(one, &[first, second], &[(LaneKind::Slot(0), &[10, 20])]);
        let second = attempt(0, 1, (11 * TENTH, Some(21 * TENTH), Some(30 * TENTH)));
        check(one, &[first, second], &[(LaneKind::Slot(0), &[10, 21]), (LaneKind::Queued, &[11])]);
    }

    #[test]
    fn pools_have_lanes_of_their_own_and_so_has_what_is_suspended() {
        let suspended = Attempt {
            end: FeedEnd::Suspended,
            suspended_ns: Some(14 * TENTH),
            ..attempt(1, 1, (12 * TENTH, None, None))
        };
        check(
            SlotCounts::Pools { map: 1, reduce: 1 },
            &[attempt(1, 0, (10 * TENTH, None, None)), attempt(0, 0, (11 * TENTH, None, None)), suspended],
            &[(LaneKind::Map(0), &[11]), (LaneKind::Reduce(0), &[10]), (LaneKind::Suspended, &[14])],
        );
    }
}

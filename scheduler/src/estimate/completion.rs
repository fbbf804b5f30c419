//! Completion time of a job, and the slots that it needs to end in time, estimated from its finished maps.
//!
//! Paper: deadlines, III-B to III-D. Equation 1 is [`mean_task_length`]; equation 2 is the same over the
//! tasks of one worker (the paper's scheduler does not use it); equation 3 is `Remaining::required_slots`.
//! Equation 4, the slots that no job requires, is part of the min-scheduler. Unknown values are estimated by
//! the mean: running and future tasks take as long as the finished ones. A reduce takes as long as a map
//! unless the user gives the ratio of their costs.
//!
//! Deviation: an overdue task, which has run longer than the mean, has zero time left instead of a negative time.

use crate::station::PerStation;
use crate::units::Time;

/// Minimum mean length of tasks, in seconds. With 0, a job whose first tasks took no time would seem to need nothing.
pub(crate) const MEAN_MIN: f64 = 1e-9;

/// Returns the mean length of the finished tasks, in seconds (equation 1: `mu = sum of lengths / number`); `None`
/// before the first.
#[must_use]
pub fn mean_task_length(finished: u32, seconds: f64) -> Option<f64> {
    (0 < finished).then(|| (seconds / f64::from(finished)).max(MEAN_MIN))
}

/// Time left of running tasks, in slot-seconds: for each the mean length minus the time it has run, at least 0.
///
/// The sum decreases linearly until the first task becomes overdue, so that an update costs O(1) until then.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunningLeft {
    /// Sum at time 0 of the linear function.
    at_zero: f64,
    /// Number of tasks that are not overdue, by which the sum decreases per second.
    slope: f64,
    /// End of the linear range, in seconds; infinite if the sum is constant.
    until: f64,
}

impl RunningLeft {
    /// No running tasks.
    pub const NONE: RunningLeft = RunningLeft { at_zero: 0.0, slope: 0.0, until: f64::INFINITY };

    /// Sums the time left of tasks that started at these times, and of `just_started` others that start now. O(tasks).
    #[must_use]
    pub fn count(mean: f64, now: Time, began: &[Time], just_started: u32) -> Self {
        let mut left = RunningLeft::NONE;
        let mut add = |ends: f64, tasks: f64| {
            if now.seconds() < ends {
                left.at_zero += ends * tasks;
                left.slope += tasks;
                left.until = left.until.min(ends);
            }
        };
        for begin in began {
            add(begin.seconds() + mean, 1.0);
        }
        if 0 < just_started {
            add(now.seconds() + mean, f64::from(just_started));
        }
        left
    }

    /// Returns the time left at a later time, in seconds; `None` if a task has become overdue and all must be summed
    /// again.
    #[must_use]
    pub fn at(&self, now: f64) -> Option<f64> {
        (now <= self.until).then_some(self.at_zero - self.slope * now)
    }
}

/// Work left of a job, with mean lengths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Remaining {
    /// Mean length of a task, in seconds, above 0.
    pub mean: f64,
    /// Number of tasks that hold a slot.
    pub running: u32,
    /// Time left of these tasks, in slot-seconds.
    pub running_left: f64,
    /// Number of tasks not started, each weighted by its cost relative to a map.
    pub pending: f64,
}

impl Remaining {
    /// Returns the total work left, in slot-seconds.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.running_left + self.pending * self.mean
    }

    /// Returns the slots to add so that the work is done at the deadline, in `seconds` above 0; negative if there are
    /// more than needed. Equation 3: `(sum of what running tasks have left / mu + pending) mu / (deadline - now) -
    /// running`.
    #[must_use]
    pub(crate) fn required_slots(&self, seconds: f64) -> f64 {
        self.work() / seconds - f64::from(self.running)
    }

    /// Returns the seconds until the work is done on this many slots; infinite on none.
    #[must_use]
    pub fn seconds_on(&self, slots: f64) -> f64 {
        if 0.0 < slots { self.work() / slots } else { f64::INFINITY }
    }
}

/// Slots that a job needs to end in time if its reduces follow its maps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Need {
    /// Map slots from now until its maps are done.
    pub map_slots: f64,
    /// Reduce slots from then on.
    pub reduce_slots: f64,
    /// True if some number of slots suffices: no single task is too long.
    pub possible: bool,
}

/// Returns the minimum total number of slots with which work of `left` ends within `seconds`, if the shuffle
/// overlaps with the maps and the reduces follow them. `left` is in slot-seconds of maps, seconds of the
/// network, and slot-seconds of reduces. `tasks` are the numbers of maps and reduces left, which cannot be
/// split further.
///
/// With maps of work M on m slots and reduces of work R on r slots, `M / m + R / r = seconds`. Then `m + r`
/// is minimal for `m = sqrt(M) (sqrt(M) + sqrt(R)) / seconds`, and similarly for `r`. This estimate is not
/// from the paper, whose equation 3 counts maps and reduces alike.
#[must_use]
pub fn need(left: PerStation<f64>, tasks: [f64; 2], seconds: f64) -> Need {
    let PerStation([maps, shuffle, reduces]) = left;
    if seconds <= 0.0 {
        return Need { map_slots: f64::INFINITY, reduce_slots: f64::INFINITY, possible: false };
    }
    let roots = maps.sqrt() + reduces.sqrt();
    let longest = |work: f64, tasks: f64| if 0.0 < tasks { work / tasks } else { 0.0 };
    let at_least = (longest(maps, tasks[0]) + longest(reduces, tasks[1])).max(shuffle);
    Need {
        map_slots: maps.sqrt() * roots / seconds,
        reduce_slots: reduces.sqrt() * roots / seconds,
        possible: at_least <= seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;
    use proptest::prelude::*;

    #[test]
    fn worked_example_of_equation_3_adds_1_72_slots() {
        let mean = mean_task_length(3, 30.0).unwrap();
        let now = Time::ZERO + Span::whole_seconds(100);
        let began = [now - Span::whole_seconds(4), now - Span::whole_seconds(12)];
        let running_left = RunningLeft::count(mean, now, &began, 0).at(now.seconds()).unwrap();
        let remaining = Remaining { mean, running: 2, running_left, pending: 18.0 };
        assert!((remaining.required_slots(50.0) - 1.72).abs() < 1e-12);
        assert!((remaining.seconds_on(2.0) - 93.0).abs() < 1e-12);
        assert_eq!(remaining.seconds_on(0.0), f64::INFINITY);
    }

    #[test]
    fn the_mean_is_unknown_before_the_first_task_and_never_0() {
        assert_eq!(mean_task_length(0, 0.0), None);
        assert_eq!(mean_task_length(4, 10.0), Some(2.5));
        assert_eq!(mean_task_length(4, 0.0), Some(MEAN_MIN));
    }

    proptest! {
        #[test]
        fn what_is_left_later_is_what_a_new_count_would_find(
            mean in 0.1..100.0_f64,
            ages in prop::collection::vec(0..200_000_u64, 0..10),
            fresh in 0..3_u32,
            later in 0..100_000_u64,
        ) {
            let now = Time::ZERO + Span::whole_seconds(200);
            let mut began: Vec<Time> = ages.iter().map(|&age| now - Span::milliseconds(age)).collect();
            let left = RunningLeft::count(mean, now, &began, fresh);
            began.extend(vec![now; fresh as usize]);
            let then = now + Span::milliseconds(later);
            if let Some(seen) = left.at(then.seconds()) {
                let plain: f64 = began.iter().map(|&begin| (mean - then.since(begin).seconds()).max(0.0)).sum();
                prop_assert!((seen - plain).abs() < 1e-6, "{} against {}", seen, plain);
            } else {
                let overdue = |at: Time| began.iter().filter(|&&begin| mean < at.since(begin).seconds()).count();
                prop_assert!(overdue(now) < overdue(then), "counted again without need");
            }
        }
    }
}

//! Schedule model of the pairs paper: one order for both phases, in closed form.
//!
//! Paper: Zheng and Wu, "Joint Scheduling of Overlapping MapReduce Phases", section 3. Maps run one after the other and
//! emit evenly; the shuffle serves the same order. With map time `m_i` and shuffle time `s_i` at full use, in the order
//! of the schedule, maps end at `M_i = M_{i-1} + m_i` and jobs at `F_i = max(F_{i-1} + s_i, M_i)`.

use crate::job::Size;
use std::cmp::Ordering;

/// Orders by value, lowest first; ties go to the lower index.
pub(crate) fn by(value: impl Fn(usize) -> f64) -> impl Fn(&usize, &usize) -> Ordering {
    move |&a, &b| value(a).total_cmp(&value(b)).then(a.cmp(&b))
}

/// Times of a job in a schedule that starts at 0 with all jobs present, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct OrderTimes {
    /// Start of its maps: its waiting time.
    pub start: f64,
    /// End of its shuffle: its makespan in the paper's terms.
    pub end: f64,
}

impl OrderTimes {
    /// Returns the time from the start of its maps to the end of its shuffle.
    #[must_use]
    pub fn execution(self) -> f64 {
        self.end - self.start
    }
}

/// Means over the jobs of a schedule, in seconds; 0 without jobs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Averages {
    /// Mean time before the maps start.
    pub waiting: f64,
    /// Mean time from there to the end of the shuffle.
    pub execution: f64,
    /// Sum of the two.
    pub makespan: f64,
}

/// Returns the times of every job, by index, if run in this order.
///
/// # Panics
/// If `order` is not an order of all jobs.
#[must_use]
pub fn times(jobs: &[Size], order: &[usize]) -> Vec<OrderTimes> {
    assert_eq!(jobs.len(), order.len(), "an order of {} of {} jobs", order.len(), jobs.len());
    let mut times = vec![OrderTimes::default(); jobs.len()];
    let (mut maps_end, mut end) = (0.0_f64, 0.0_f64);
    for &index in order {
        let start = maps_end;
        maps_end += jobs[index].map;
        end = (end + jobs[index].shuffle).max(maps_end);
        times[index] = OrderTimes { start, end };
    }
    times
}

/// Returns the means of these times.
#[must_use]
pub fn averages(times: &[OrderTimes]) -> Averages {
    let mean = |value: fn(&OrderTimes) -> f64| {
        if times.is_empty() { 0.0 } else { times.iter().map(value).sum::<f64>() / times.len() as f64 }
    };
    Averages {
        waiting: mean(|times| times.start),
        execution: mean(|times| times.execution()),
        makespan: mean(|times| times.end),
    }
}

/// Returns the sum of all makespans of this order, in seconds.
#[must_use]
pub fn total(jobs: &[Size], order: &[usize]) -> f64 {
    times(jobs, order).iter().map(|times| times.end).sum()
}

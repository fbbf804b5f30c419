//! The pairs paper's model of a schedule: one order for both phases, in closed form.
//!
//! Paper: Zheng and Wu, "Joint Scheduling of Overlapping MapReduce Phases", section 3. Maps run one after the other
//! and emit evenly; the shuffle serves the same order. With map time `m_i` and shuffle time `s_i` at full use, in the
//! order of the schedule, maps end at `M_i = M_{i-1} + m_i` and jobs at `F_i = max(F_{i-1} + s_i, M_i)`.
//! Not here: how an order is found, and arrivals over time (`sim`).

use std::cmp::Ordering;

/// Work of a job: times that its phases take with the whole station to themselves. At least 0 and finite.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Size {
    /// Seconds of all map slots.
    pub map: f64,
    /// Seconds of the whole network.
    pub shuffle: f64,
}

impl From<(f64, f64)> for Size {
    fn from((map, shuffle): (f64, f64)) -> Self {
        Self { map, shuffle }
    }
}

impl Size {
    /// The dominant workload `max(m, s)`.
    #[must_use]
    pub fn dominant(self) -> f64 {
        self.map.max(self.shuffle)
    }

    /// The total workload `m + s`.
    #[must_use]
    pub fn total(self) -> f64 {
        self.map + self.shuffle
    }

    /// `s - m`: above 0 is shuffle-heavy, 0 balanced, below map-heavy.
    #[must_use]
    pub fn surplus(self) -> f64 {
        self.shuffle - self.map
    }

    /// The priority of Algorithms 3 to 5: `alpha max(m, s) + (1 - alpha) (m + s)`; a lower one goes first.
    #[must_use]
    pub fn blend(self, alpha: f64) -> f64 {
        alpha * self.dominant() + (1.0 - alpha) * self.total()
    }

    /// The matching weight of two jobs, equation 2:
    /// `alpha |m_i + m_j - s_i - s_j| + (1 - alpha) |m_i + s_i - m_j - s_j|`.
    #[must_use]
    pub fn weight(self, other: Size, alpha: f64) -> f64 {
        let pairing = (self.map + other.map - self.shuffle - other.shuffle).abs();
        alpha * pairing + (1.0 - alpha) * (self.total() - other.total()).abs()
    }
}

/// Lowest first; equal values keep the lower index first.
pub(crate) fn by(value: impl Fn(usize) -> f64) -> impl Fn(&usize, &usize) -> Ordering {
    move |&a, &b| value(a).total_cmp(&value(b)).then(a.cmp(&b))
}

/// Times of a job in a schedule that begins at 0 with every job present, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Times {
    /// When its maps begin: its waiting time.
    pub start: f64,
    /// When its shuffle ends: its makespan in the paper's words.
    pub end: f64,
}

impl Times {
    /// From the begin of its maps to the end of its shuffle.
    #[must_use]
    pub fn execution(self) -> f64 {
        self.end - self.start
    }
}

/// Means over the jobs of a schedule, in seconds; 0 for no jobs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Averages {
    /// Before the maps begin.
    pub waiting: f64,
    /// From there to the end of the shuffle.
    pub execution: f64,
    /// Their sum.
    pub makespan: f64,
}

/// The times of every job, by index, when they are run in this order.
///
/// # Panics
/// If `order` is not an order of all jobs.
#[must_use]
pub fn times(jobs: &[Size], order: &[usize]) -> Vec<Times> {
    assert_eq!(jobs.len(), order.len(), "an order of {} of {} jobs", order.len(), jobs.len());
    let mut times = vec![Times::default(); jobs.len()];
    let (mut maps_end, mut end) = (0.0_f64, 0.0_f64);
    for &index in order {
        let start = maps_end;
        maps_end += jobs[index].map;
        end = (end + jobs[index].shuffle).max(maps_end);
        times[index] = Times { start, end };
    }
    times
}

/// Means over these times.
#[must_use]
pub fn averages(times: &[Times]) -> Averages {
    let mean = |value: fn(&Times) -> f64| {
        if times.is_empty() { 0.0 } else { times.iter().map(value).sum::<f64>() / times.len() as f64 }
    };
    Averages {
        waiting: mean(|times| times.start),
        execution: mean(|times| times.execution()),
        makespan: mean(|times| times.end),
    }
}

/// Sum of all makespans of this order, in seconds.
#[must_use]
pub fn total(jobs: &[Size], order: &[usize]) -> f64 {
    times(jobs, order).iter().map(|times| times.end).sum()
}

//! What an independent program found on a stand-in of the same kind: means over ten seeds.
//!
//! Not here: ours.

use super::Scheduler;
use gristmill_scheduler::workload::deadlines::Joins;

/// Mean response in seconds and fraction of seeds that meet the goal, by job.
pub(super) struct Known {
    pub(super) responses: [f64; 4],
    pub(super) met: [f64; 4],
}

const fn known(responses: [f64; 4], met: [f64; 4]) -> Known {
    Known { responses, met }
}

/// In the order of [`Joins::ALL`] and [`Scheduler::ALL`].
const KNOWN: [[Known; 5]; 3] = [
    [
        known([3544.4, 3732.3, 2709.6, 1801.5], [1.0, 0.0, 0.0, 0.0]),
        known([4859.7, 2554.8, 292.2, 292.1], [1.0, 1.0, 0.0, 0.0]),
        known([4859.7, 2175.8, 131.3, 125.9], [1.0, 1.0, 1.0, 1.0]),
        known([6592.0, 3099.5, 147.3, 149.0], [0.0, 0.0, 1.0, 0.8]),
        known([4859.7, 2467.1, 143.6, 139.2], [1.0, 1.0, 1.0, 1.0]),
    ],
    [
        known([3544.4, 3732.3, 2716.0, 1808.3], [1.0, 0.0, 0.0, 0.0]),
        known([4858.9, 2554.5, 294.0, 298.6], [1.0, 1.0, 0.0, 0.0]),
        known([4858.9, 2175.0, 137.5, 133.4], [1.0, 1.0, 1.0, 1.0]),
        known([6590.8, 3107.8, 159.3, 161.5], [0.0, 0.0, 0.0, 0.0]),
        known([4858.9, 2471.4, 158.0, 155.7], [1.0, 1.0, 0.0, 0.0]),
    ],
    [
        known([3544.4, 3732.3, 2716.1, 1807.1], [1.0, 0.0, 0.0, 0.0]),
        known([4854.2, 2547.6, 289.1, 295.2], [1.0, 1.0, 0.0, 0.0]),
        known([4854.1, 2172.4, 137.7, 133.9], [1.0, 1.0, 1.0, 1.0]),
        known([6586.0, 3122.0, 172.1, 176.3], [0.0, 0.0, 0.0, 0.0]),
        known([4854.1, 2486.9, 170.8, 170.6], [1.0, 1.0, 0.0, 0.0]),
    ],
];

pub(super) fn of(joins: Joins, scheduler: Scheduler) -> &'static Known {
    &KNOWN[joins as usize][scheduler as usize]
}

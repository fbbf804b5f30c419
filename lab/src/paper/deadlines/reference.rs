//! What an independent program found on a stand-in of the same kind: means over ten seeds.
//!
//! Not here: ours.

use super::goals::mean;
use super::{Scheduler, Trials};
use crate::paper::Compared;
use crate::paper::judge::{Beside, Known as KnownNumber, Model};
use gristmill_scheduler::workload::deadlines::{Joins, NAMES};

/// Its draws, of which it tells only the mean.
const DRAWS: u64 = 10;

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

/// A mean response of ours beside the reference's, whose draws are taken to vary as ours do.
pub(super) fn beside(
    trials: &Trials,
    (joins, scheduler): (Joins, Scheduler),
    what: String,
    job: usize,
) -> Compared {
    let model = (scheduler != Scheduler::Fifo).then(|| stand_ins_differ(trials, joins, scheduler, job));
    let ours = mean(trials.of(joins, scheduler), |trial| trial.responses[job]);
    let known = KnownNumber::drawn_alike(of(joins, scheduler).responses[job], DRAWS).rounded_to(1);
    let note = "the reference tells no spread: its ten draws are taken to vary as ours do";
    Beside::mean(what, ours, known).model(model.as_ref()).note(note).judged()
}

/// How far the stand-ins are apart before any policy looks at estimates or goals: under FIFO, where only work counts.
fn stand_ins_differ(trials: &Trials, joins: Joins, scheduler: Scheduler, job: usize) -> Model {
    let fifo = trials.of(joins, Scheduler::Fifo);
    let apart = (0..NAMES.len()).map(|job| {
        mean(fifo, |trial| trial.responses[job]).mean / of(joins, Scheduler::Fifo).responses[job] - 1.0
    });
    let most = apart.map(f64::abs).fold(0.0, f64::max);
    let gap = most * of(joins, scheduler).responses[job];
    let why = format!(
        "the reference drew other lengths from a stand-in of its own: under FIFO, where nothing but work counts, the \
         two are up to {:.1} % apart",
        100.0 * most
    );
    Model { gap: [-gap, gap], why }
}

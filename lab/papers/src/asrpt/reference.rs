//! Efficiency ratios of an independent reference implementation, next to ours.

use super::WORDS;
use super::ratios::UNIFORM_SMALL;
use super::runs::{SCHEDULERS, STEP, Scenario};
use crate::Compared;
use crate::judge::{Beside, Known, Model};
use crate::words::holes;
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::asrpt::{Cut, SETTINGS};

/// Means and half widths of an independent reference implementation over 30 seeds, by setting and scheduler.
type References = [[(f64, f64); 4]; 4];

/// Ratios of DSRPT by setting.
const REFERENCE_DSRPT: [(f64, f64); 4] = [(1.48, 0.029), (1.889, 0.032), (1.42, 0.029), (1.568, 0.03)];

/// Ratios of ASRPT, FIFO, Fair and LRPT by setting, for each scenario in the order of [`Scenario::ALL`].
const REFERENCES: [References; 4] = [
    [
        [(1.452, 0.027), (2.9, 0.102), (2.523, 0.109), (6.535, 0.89)],
        [(1.53, 0.025), (2.149, 0.056), (2.424, 0.077), (7.292, 0.897)],
        [(1.388, 0.028), (2.13, 0.042), (2.256, 0.029), (3.237, 0.207)],
        [(1.404, 0.025), (1.524, 0.01), (2.111, 0.026), (3.587, 0.212)],
    ],
    [
        [(6.402, 0.286), (6.704, 0.233), (6.889, 0.215), (8.716, 0.448)],
        [(3.289, 0.105), (3.732, 0.065), (3.801, 0.055), (8.126, 0.843)],
        [(5.623, 0.327), (5.73, 0.309), (6.051, 0.263), (6.379, 0.188)],
        [(2.865, 0.119), (2.966, 0.106), (3.317, 0.079), (4.471, 0.077)],
    ],
    [
        [(10.272, 0.462), (10.484, 0.417), (10.438, 0.424), (11.725, 0.396)],
        [(4.42, 0.14), (4.806, 0.089), (4.819, 0.082), (8.217, 0.445)],
        [(8.603, 0.384), (8.705, 0.369), (8.76, 0.355), (9.165, 0.29)],
        [(3.729, 0.139), (3.824, 0.129), (4.137, 0.113), (5.193, 0.051)],
    ],
    [
        [(3.067, 0.072), (3.525, 0.042), (3.869, 0.058), (6.157, 0.637)],
        [(2.05, 0.057), (2.551, 0.043), (2.701, 0.07), (7.096, 1.068)],
        [(2.603, 0.116), (2.796, 0.095), (3.352, 0.065), (3.907, 0.09)],
        [(1.717, 0.049), (1.858, 0.032), (2.313, 0.015), (3.951, 0.201)],
    ],
];

/// Slots of the reference's convergence.
const REFERENCE_SLOTS: [u32; 6] = [50, 100, 200, 300, 400, 500];

/// Ratios of the reference within the first slots, by preemptive or even, then by scheduler.
const REFERENCE_WITHIN: [[[f64; 6]; 4]; 2] = [
    [
        [1.48, 1.43, 1.41, 1.40, 1.40, 1.40],
        [1.54, 1.53, 1.53, 1.52, 1.52, 1.52],
        [1.96, 2.04, 2.08, 2.10, 2.11, 2.11],
        [2.70, 3.19, 3.46, 3.61, 3.62, 3.58],
    ],
    [
        [3.09, 2.95, 2.89, 2.82, 2.83, 2.85],
        [3.13, 3.03, 2.98, 2.93, 2.93, 2.95],
        [3.35, 3.32, 3.30, 3.27, 3.28, 3.30],
        [3.87, 4.15, 4.35, 4.41, 4.44, 4.44],
    ],
];

/// Largest difference of ratios of drawn cuts where many jobs have fewer than ten units of reduce work.
const DRAWN_GAP: f64 = 0.1;

fn reference(setting: usize, scenario: usize, scheduler: usize) -> Option<(f64, f64)> {
    match SCHEDULERS[scheduler].title {
        "DSRPT" => (scenario == 0).then(|| REFERENCE_DSRPT[setting]),
        _ => Some(REFERENCES[scenario][setting][scheduler]),
    }
}

/// Number of seeds of the reference.
const SEEDS: u64 = 30;

/// Compares the ratio of a scheduler in a setting and scenario; `None` where it does not run.
pub(super) fn of_ratio(
    setting: usize,
    scenario: usize,
    scheduler: usize,
    ours: Interval,
) -> Option<Compared> {
    let what = format!("{}, {}", SCHEDULERS[scheduler].title, Scenario::ALL[scenario].name());
    let drawn = matches!(Scenario::ALL[scenario], Scenario::NonPreemptive(Cut::Even | Cut::Random));
    let cut = Model { gap: [0.0, DRAWN_GAP], why: WORDS.note("drawn", holes![]) };
    let model = (SETTINGS[setting].name == "exp-small" && drawn).then_some(&cut);
    let known = Known::mean(reference(setting, scenario, scheduler)?, SEEDS).rounded_to(3);
    Some(Beside::mean(what, ours, known).model(model).judged())
}

/// Compares the ratios of a scheduler within the first slots, in the setting of figure 9. `ours` is
/// indexed by step.
pub(super) fn of_convergence(
    (scenario, name): (usize, &str),
    scheduler: usize,
    ours: impl Fn(usize) -> Option<Interval>,
) -> Vec<Compared> {
    let half_width = REFERENCES[scenario][UNIFORM_SMALL][scheduler].1;
    let rows =
        REFERENCE_SLOTS.iter().zip(REFERENCE_WITHIN[scenario][scheduler]).filter_map(|(slots, ratio)| {
            let what = format!("{}, {name}, T = {slots}", SCHEDULERS[scheduler].title);
            let known = Known::mean((ratio, half_width), SEEDS).rounded_to(2);
            let beside = Beside::mean(what, ours((slots / STEP) as usize - 1)?, known);
            Some(beside.note(WORDS.note("half-width", holes![])).judged())
        });
    rows.collect()
}

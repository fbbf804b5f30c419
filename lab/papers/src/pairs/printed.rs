//! The printed numbers of Tables 2 and 3, and the comparison of one with ours.
//!
//! The printed sets of jobs are not public, so times are compared as multiples of Match's average makespan. Not here:
//! the runs (`offline`, `online`).

use super::WORDS;
use super::rules::describe;
use crate::prelude::*;
use crate::workload::pairs::SizeLaw;

/// Table 2 as printed, in the order of [`super::rules::OFFLINE`]: waiting, execution and makespan in seconds.
pub(super) const TABLE_2: [[f64; 3]; 10] = [
    [4431.0, 512.0, 4943.0],
    [4619.0, 532.0, 5151.0],
    [4683.0, 560.0, 5243.0],
    [4787.0, 563.0, 5350.0],
    [4809.0, 581.0, 5390.0],
    [4768.0, 840.0, 5608.0],
    [5399.0, 636.0, 6035.0],
    [7929.0, 898.0, 8827.0],
    [8289.0, 149.0, 9138.0],
    [8806.0, 682.0, 9488.0],
];

/// Columns of Table 3; the ends are those of 80 % intervals.
pub(super) const COLUMNS: [&str; 13] = [
    "average waiting",
    "lower end of waiting",
    "upper end of waiting",
    "longest waiting",
    "average execution",
    "lower end of execution",
    "upper end of execution",
    "worst ratio",
    "average makespan",
    "lower end of makespan",
    "upper end of makespan",
    "smallest makespan",
    "largest makespan",
];
pub(super) const WORST_RATIO: usize = 7;
pub(super) const MAKESPAN: usize = 8;
/// Index of Match.
pub(super) const MATCH: usize = 10;

/// Numbers of a policy in Table 3, by column.
pub(super) type StreamRow = [f64; COLUMNS.len()];

/// Table 3 as printed, in the order of the rules: minutes but for the ratio.
pub(super) const TABLE_3: [StreamRow; 12] = [
    [42.0, 1.0, 138.0, 220.0, 5.0, 0.0, 13.0, 239.0, 47.0, 0.0, 138.0, 0.0, 230.0],
    [35.0, 1.0, 103.0, 193.0, 1.0, 0.0, 3.0, 45.0, 36.0, 0.0, 101.0, 0.0, 178.0],
    [23.0, 0.0, 86.0, 176.0, 15.0, 2.0, 37.0, 542.0, 38.0, 3.0, 95.0, 1.0, 154.0],
    [16.0, 0.0, 45.0, 183.0, 13.0, 0.0, 44.0, 220.0, 28.0, 0.0, 74.0, 0.0, 81.0],
    [19.0, 1.0, 51.0, 205.0, 3.0, 0.0, 5.0, 113.0, 22.0, 1.0, 48.0, 1.0, 54.0],
    [18.0, 1.0, 49.0, 195.0, 3.0, 0.0, 5.0, 75.0, 21.0, 1.0, 46.0, 1.0, 49.0],
    [16.0, 1.0, 44.0, 187.0, 3.0, 0.0, 5.0, 69.0, 19.0, 1.0, 45.0, 1.0, 47.0],
    [15.0, 1.0, 41.0, 174.0, 3.0, 0.0, 4.0, 58.0, 18.0, 1.0, 39.0, 1.0, 41.0],
    [16.0, 2.0, 47.0, 185.0, 3.0, 0.0, 5.0, 68.0, 19.0, 1.0, 46.0, 1.0, 48.0],
    [21.0, 2.0, 63.0, 201.0, 1.0, 0.0, 3.0, 51.0, 32.0, 1.0, 56.0, 0.0, 97.0],
    [12.0, 1.0, 38.0, 164.0, 3.0, 0.0, 4.0, 54.0, 15.0, 1.0, 37.0, 1.0, 39.0],
    [13.0, 2.0, 40.0, 178.0, 3.0, 0.0, 4.0, 61.0, 16.0, 1.0, 42.0, 1.0, 44.0],
];

/// Comparison of the numbers of a table for one distribution.
pub(super) type BySizes = (SizeLaw, Vec<Compared>);

/// Compares values with a printed number, by seed as multiples of a unit. Printed ones are rounded to whole ones, and so
/// is their unit unless it is 1.
pub(super) fn compare(
    what: &str,
    sizes: SizeLaw,
    [values, units]: [&[f64]; 2],
    [printed, unit]: [f64; 2],
) -> Compared {
    let (of_unit, over) = if unit == 1.0 { (0.0, "") } else { (printed / unit, " over Match's makespan") };
    let known = Known::drawn_alike(printed / unit, 1).with_rounding_before(0.5 / unit * (1.0 + of_unit));
    let ours: Vec<f64> = values.iter().zip(units).map(|(value, unit)| value / unit).collect();
    let what = format!("{what}{over}, {}", describe(sizes));
    KnownNumber::mean(what, mean_of(&ours), known).note(WORDS.note("single-set", holes![])).judged()
}

/// Describes the verdicts on the numbers of each distribution.
pub(super) fn in_words(compared: &[BySizes]) -> String {
    let one = |(sizes, compared): &BySizes| {
        let count = |wanted: Verdict| compared.iter().filter(|one| one.verdict == wanted).count();
        let [hold, open] = [Verdict::Holds, Verdict::Open].map(count);
        format!("{}: {hold} of {} hold, {open} are open", describe(*sizes), compared.len())
    };
    compared.iter().map(one).collect::<Vec<_>>().join("; ")
}

//! Means over ten seeds from an independent program on a stand-in of the same kind.
//!
//! Not here: our means.

use super::goals::mean;
use super::{Scheduler, Trials, WORDS};
use crate::Compared;
use crate::judge::{Beside, Known as KnownNumber, Model};
use crate::words::holes;
use crate::workload::deadlines::{Joins, NAMES, SLOTS, alone};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::Job;
use std::sync::LazyLock;

/// Number of draws of the reference, which reports only their mean.
const DRAWS: u64 = 10;

/// Mean response in seconds and fraction of seeds that meet the goal, by job.
pub(super) struct Known {
    pub(super) responses: [f64; 4],
    pub(super) met: [f64; 4],
}

const fn known(responses: [f64; 4], met: [f64; 4]) -> Known {
    Known { responses, met }
}

/// Numbers of the reference, in the order of [`Joins::ALL`] and [`Scheduler::ALL`].
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

/// Time each job takes alone in the reference's stand-in, in seconds, as reported there. For the Joins it
/// is the kind whose slow half comes first.
const ALONE: [f64; 4] = [3550.0, 1258.0, 98.0, 98.0];

/// Compares one of our mean responses with the reference's.
pub(super) fn beside(
    trials: &Trials,
    (joins, scheduler): (Joins, Scheduler),
    what: String,
    job: usize,
) -> Compared {
    judged(mean(trials.of(joins, scheduler), |trial| trial.responses[job]), (joins, scheduler), what, job)
}

/// Judges a mean response. The reference's draws are assumed to vary as ours do.
fn judged(ours: Interval, (joins, scheduler): (Joins, Scheduler), what: String, job: usize) -> Compared {
    let model = stand_ins_differ(joins, scheduler, job);
    let known = KnownNumber::drawn_alike(of(joins, scheduler).responses[job], DRAWS).rounded_to(1);
    Beside::mean(what, ours, known).model(model.as_ref()).note(WORDS.note("no-spread", holes![])).judged()
}

/// Returns the expected gap of the two stand-ins, from the time the job takes alone in each. Ours follows
/// from the lengths of its tasks, the reference's is the reported time. No run that is judged enters it,
/// so a simulator that is slow everywhere is not excused. `None` where the reference reports no time.
fn stand_ins_differ(joins: Joins, scheduler: Scheduler, job: usize) -> Option<Model> {
    if NAMES[job] == "Join" && joins != Joins::SlowFirstHalf {
        return None;
    }
    let (ours, theirs) = (OURS_ALONE[job], ALONE[job]);
    let apart = ours / theirs - 1.0;
    let gap = apart * of(joins, scheduler).responses[job];
    let holes = holes![name = NAMES[job], ours, theirs, apart = 100.0 * apart.abs()];
    let why = WORDS.note("other-lengths", holes);
    Some(Model { gap: [gap.min(0.0), gap.max(0.0)], why })
}

/// Number of draws of our stand-in that are examined, and the first of their seeds.
const LOOKED_AT: u64 = 20;
const LOOKED_AT_FROM: u64 = 1 << 63;

/// Time each job takes alone in our stand-in, in seconds, by the lengths of its tasks. It involves no
/// policy and no simulator.
static OURS_ALONE: LazyLock<[f64; 4]> = LazyLock::new(|| {
    std::array::from_fn(|job| {
        let draw = |seed| takes_alone(&alone(job, Joins::SlowFirstHalf, LOOKED_AT_FROM + seed));
        (0..LOOKED_AT).map(draw).sum::<f64>() / LOOKED_AT as f64
    })
});

/// Returns the time a job takes alone. Each map starts on the first free slot, and all reduces start when
/// the last map has ended.
fn takes_alone(job: &Job) -> f64 {
    let mut slots = [0.0_f64; SLOTS as usize];
    for map in &job.maps {
        if let Some(first) = slots.iter_mut().min_by(|a, b| a.total_cmp(b)) {
            *first += map;
        }
    }
    slots.into_iter().fold(0.0, f64::max) + job.reduces.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    /// Returns the verdict on each mean response if it is the reference's times this factor, ± 0.1 %.
    fn verdicts(joins: Joins, factor: impl Fn(usize) -> f64) -> Vec<Verdict> {
        let all = Scheduler::ALL.into_iter().flat_map(|scheduler| (0..4).map(move |job| (scheduler, job)));
        let one = |(scheduler, job): (Scheduler, usize)| {
            let mean = factor(job) * of(joins, scheduler).responses[job];
            let ours = Interval { mean, half_width: Some(1e-3 * mean), samples: 10 };
            judged(ours, (joins, scheduler), String::new(), job).verdict
        };
        all.map(one).collect()
    }

    #[test]
    fn responses_that_are_off_alike_under_every_scheduler_fifo_too_are_not_explained_by_the_stand_ins() {
        for joins in Joins::ALL {
            for factor in [0.95, 1.05] {
                let found = verdicts(joins, |_| factor);
                assert!(found.iter().all(|one| *one == Verdict::Fails), "{joins:?}, {factor}: {found:?}");
            }
        }
    }

    #[test]
    fn responses_are_off_in_part_only_on_the_side_and_as_far_as_the_jobs_are_put_in_shorter() {
        let apart = |job: usize| OURS_ALONE[job] / ALONE[job];
        assert!(apart(1) < 0.98, "WordCount takes {} of the reference's time alone", apart(1));
        let of_word_count = |factor: f64| {
            let found = verdicts(Joins::SlowFirstHalf, |job| if job == 1 { factor } else { 1.0 });
            assert!(found.iter().enumerate().all(|(at, one)| at % 4 == 1 || *one == Verdict::Holds));
            let found: Vec<Verdict> = found.into_iter().skip(1).step_by(4).collect();
            assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
            found[0]
        };
        assert_eq!(of_word_count(1.0), Verdict::Holds);
        assert_eq!(of_word_count(apart(1)), Verdict::Partly);
        assert_eq!(of_word_count(apart(1) - 0.01), Verdict::Fails);
        assert_eq!(of_word_count(2.0 - apart(1)), Verdict::Fails, "they are shorter, and not longer");
    }

    #[test]
    fn joins_of_which_the_reference_tells_nothing_are_explained_by_nothing() {
        for joins in [Joins::SlowFirst120, Joins::Stationary] {
            for job in [2, 3] {
                assert!(stand_ins_differ(joins, Scheduler::Max, job).is_none(), "{joins:?}");
            }
        }
    }

    #[test]
    fn job_alone_ends_with_its_last_map_and_longest_reduce() {
        // 59 slots are busy for 10 s; the last two maps share the other one.
        let maps = [vec![10.0; 59], vec![3.0, 4.0]].concat();
        assert_eq!(takes_alone(&Job { maps, reduces: vec![1.0, 2.0], ..Job::default() }), 12.0);
        let maps = [vec![10.0; 60], vec![3.0]].concat();
        assert_eq!(takes_alone(&Job { maps, reduces: vec![5.0], ..Job::default() }), 18.0);
    }
}

//! What the paper claims of the step, the weight and the number of groups, judged on both distributions.

use super::super::offline::describe;
use super::super::{ALPHA, DELTA};
use super::{Curve, SIZES, STEPS};
use crate::paper::Claim;
use crate::paper::judge::{Seen, by_case, mean_of, paired};
use gristmill_scheduler::metrics::Interval;

const WAITING: usize = 0;
const EXECUTION: usize = 1;
const MAKESPAN: usize = 2;
/// A change by less than this part is said not to matter much, and one that is less than this above the best is good.
const SMALL: f64 = 0.02;
/// What is "much longer" is longer by this part at least.
const MUCH: f64 = 0.1;

/// The curves of one policy, by place in [`SIZES`].
pub(in crate::paper::pairs) type Both<'a> = [&'a Curve; 2];

/// Whether a logarithm of a ratio says "much longer".
fn much_longer(ratio: &Interval) -> Seen {
    Seen::above(ratio, MUCH.ln_1p())
}

/// One sentence for each distribution.
fn for_both(curves: Both<'_>, words: impl Fn(&Curve) -> String) -> String {
    let sentences: Vec<String> = SIZES
        .iter()
        .zip(curves)
        .map(|(&sizes, curve)| format!("{}: {}.", describe(sizes), words(curve)))
        .collect();
    sentences.join(" ")
}

/// A claim that is judged on the curve of each distribution by itself.
fn of_each(
    place: &str,
    statement: &str,
    curves: Both<'_>,
    holds: impl Fn(&Curve) -> Seen,
    words: impl Fn(&Curve) -> String,
) -> Claim {
    Claim::new(place, statement, by_case(curves.map(holds)), for_both(curves, words))
}

pub(in crate::paper::pairs) fn of_figure_2(curves: Both<'_>) -> Vec<Claim> {
    let place = "Section 6.2, figure 2";
    vec![
        of_each(
            place,
            "A small step does not matter much for the waiting time.",
            curves,
            |curve| {
                let change = curve.above(WAITING, curve.place(STEPS[0]), curve.place(DELTA));
                Seen::between(&change, [(1.0 - SMALL).ln(), SMALL.ln_1p()])
            },
            |curve| {
                let [small, usual] = [STEPS[0], DELTA].map(|step| curve.at(WAITING, step));
                format!(
                    "waiting {small:.1} s with a step of 0.001 s, {usual:.1} s with 0.1 s (Generalized; less than {:.0} \
                     % is not much)",
                    100.0 * SMALL
                )
            },
        ),
        of_each(
            place,
            "A large step makes jobs wait much longer.",
            curves,
            |curve| much_longer(&curve.above(WAITING, curve.xs.len() - 1, curve.place(DELTA))),
            |curve| {
                let (usual, large) = (curve.at(WAITING, DELTA), curve.last(WAITING));
                format!("waiting {usual:.1} s with 0.1 s, {large:.1} s with 100 s (a tenth more is much)")
            },
        ),
        of_each(
            place,
            "Steps that are too small and steps that are too large both make the execution longer.",
            curves,
            |curve| {
                let last = curve.xs.len() - 1;
                let between =
                    curve.least_where(EXECUTION, |step| curve.xs[0] < step && step < curve.xs[last]);
                let longer = |end: usize| {
                    between
                        .map_or(Seen::Unclear, |least| Seen::above(&curve.above(EXECUTION, end, least), 0.0))
                };
                Seen::all([longer(0), longer(last)])
            },
            |curve| {
                let (step, least) = curve.least(EXECUTION);
                let (first, last) = (curve.value(EXECUTION, 0), curve.last(EXECUTION));
                format!(
                    "execution {first:.2} s with 0.001 s, least {least:.2} s with {step} s, {last:.2} s \
                     with 100 s"
                )
            },
        ),
        good_steps(place, curves),
    ]
}

/// Every step of the range is as good as the best, and neither end of all that are tried is: where all steps are as good
/// as each other none of them is a good one.
fn good_steps(place: &str, curves: Both<'_>) -> Claim {
    of_each(
        place,
        "Good steps are from 0.01 to 0.1 s: smaller and larger ones make the makespan longer.",
        curves,
        |curve| {
            let last = curve.xs.len() - 1;
            let Some(best) = curve.least_where(MAKESPAN, |_| true) else { return Seen::Unclear };
            let above = |at: usize| curve.above(MAKESPAN, at, best);
            let inside = (0..=last).filter(|&at| (0.01..=0.1).contains(&curve.xs[at]));
            let good = inside.map(|at| Seen::below(&above(at), SMALL.ln_1p()));
            let poor = [0, last].map(|end| Seen::above(&above(end), SMALL.ln_1p()));
            Seen::all(good.chain(poor))
        },
        |curve| {
            let (step, least) = curve.least(MAKESPAN);
            let [smallest, small, large] = [STEPS[0], 0.01, 0.1].map(|step| curve.at(MAKESPAN, step));
            format!(
                "makespan {smallest:.1} s with 0.001 s, {small:.1} s with 0.01 s, {large:.1} s with 0.1 s, {:.1} s with \
                 100 s, least {least:.1} s with {step} s; up to 2 % more than the least counts as good",
                curve.last(MAKESPAN)
            )
        },
    )
}

/// By weight for Generalized, Group with k of 5, 20 and 80, and Match; by number of groups for Group.
pub(in crate::paper::pairs) fn of_figure_3(by_alpha: &[[Curve; 5]; 2], by_k: &[Curve; 2]) -> Vec<Claim> {
    let place = "Section 6.2, figure 3";
    let of = |curve: usize| [&by_alpha[0][curve], &by_alpha[1][curve]];
    let (generalized, group, matched) = (of(0), of(2), of(4));
    vec![
        waits_least(place, "Generalized waits least with alpha about 0.6.", generalized, 0.4..=0.8),
        waits_least(place, "Match waits least with alpha about 0.2.", matched, 0.0..=0.4),
        match_depends_on_alpha(place, matched, generalized, group),
        match_has_a_smaller_makespan(place, matched, generalized, group),
        groups_in_the_middle(place, by_k.each_ref()),
    ]
}

fn waits_least(
    place: &str,
    statement: &str,
    curves: Both<'_>,
    weights: std::ops::RangeInclusive<f64>,
) -> Claim {
    of_each(
        place,
        statement,
        curves,
        |curve| {
            let inside = curve.least_where(WAITING, |alpha| weights.contains(&alpha));
            let outside = curve.least_where(WAITING, |alpha| !weights.contains(&alpha));
            let above = outside.zip(inside).map(|(outside, inside)| curve.above(WAITING, outside, inside));
            above.map_or(Seen::Unclear, |above| Seen::above(&above, 0.0))
        },
        |curve| {
            let (alpha, least) = curve.least(WAITING);
            format!(
                "least waiting {least:.1} s with alpha {alpha} (the best from {} to {} is held against the best of the \
                 others)",
                weights.start(),
                weights.end()
            )
        },
    )
}

fn match_depends_on_alpha(place: &str, matched: Both<'_>, generalized: Both<'_>, group: Both<'_>) -> Claim {
    // By how much the execution time grows from where it is least to where it is largest, seed by seed.
    let swings = |curve: &Curve| -> Vec<f64> {
        let places = 0..curve.xs.len();
        let by_value =
            |a: &usize, b: &usize| curve.value(EXECUTION, *a).total_cmp(&curve.value(EXECUTION, *b));
        let (least, most) = (places.clone().min_by(by_value), places.max_by(by_value));
        let (Some(least), Some(most)) = (least, most) else { return Vec::new() };
        let [least, most] = [least, most].map(|at| &curve.points[at][EXECUTION]);
        most.iter().zip(least).map(|(most, least)| most / least - 1.0).collect()
    };
    let swing = |curve: &Curve| mean_of(&swings(curve)).mean;
    let holds = [0, 1].map(|at| {
        let more = |other: &Curve| Seen::above(&paired(&swings(matched[at]), &swings(other)), 0.0);
        Seen::all([more(generalized[at]), more(group[at])])
    });
    let [matched, generalized, group] =
        [matched, generalized, group].map(|curves| curves.map(|curve| 100.0 * swing(curve)));
    Claim::new(
        place,
        "Alpha matters more for the execution time of Match than of Generalized and Group.",
        by_case(holds),
        format!(
            "From its least to its largest the execution time grows by: Match {:.0} % and {:.0} %, \
             Generalized {:.0} % and {:.0} %, Group {:.0} % and {:.0} % ({} and {}).",
            matched[0],
            matched[1],
            generalized[0],
            generalized[1],
            group[0],
            group[1],
            describe(SIZES[0]),
            describe(SIZES[1])
        ),
    )
}

fn match_has_a_smaller_makespan(
    place: &str,
    matched: Both<'_>,
    generalized: Both<'_>,
    group: Both<'_>,
) -> Claim {
    let holds = [0, 1].map(|at| {
        let samples = |curve: &Curve| curve.points[curve.place(ALPHA)][MAKESPAN].clone();
        let less = |other: &Curve| Seen::above(&paired(&samples(other), &samples(matched[at])), 0.0);
        Seen::all([less(generalized[at]), less(group[at])])
    });
    let [matched, generalized, group] =
        [matched, generalized, group].map(|curves| curves.map(|curve| curve.at(MAKESPAN, ALPHA)));
    Claim::new(
        place,
        "Match has a smaller makespan than Generalized and Group (alpha 0.5, k 20).",
        by_case(holds),
        format!(
            "Match {:.1} s and {:.1} s, Generalized {:.1} s and {:.1} s, Group {:.1} s and {:.1} s ({} and \
             {}).",
            matched[0],
            matched[1],
            generalized[0],
            generalized[1],
            group[0],
            group[1],
            describe(SIZES[0]),
            describe(SIZES[1])
        ),
    )
}

fn groups_in_the_middle(place: &str, curves: Both<'_>) -> Claim {
    of_each(
        place,
        "With too few groups jobs wait long, with too many they execute long; the makespan is least between.",
        curves,
        |curve| {
            let last = curve.xs.len() - 1;
            let between =
                curve.least_where(MAKESPAN, |groups| curve.xs[0] < groups && groups < curve.xs[last]);
            let worse = |end: usize| {
                between.map_or(Seen::Unclear, |best| Seen::above(&curve.above(MAKESPAN, end, best), 0.0))
            };
            let waits = Seen::above(&curve.above(WAITING, 0, last), 0.0);
            let executes = Seen::above(&curve.above(EXECUTION, last, 0), 0.0);
            Seen::all([waits, executes, worse(0), worse(last)])
        },
        |curve| {
            let (groups, least) = curve.least(MAKESPAN);
            format!(
                "waiting {:.1} s with one group and {:.1} s with {}, execution {:.2} s and {:.2} s, least \
                 makespan {least:.1} s with k = {groups}",
                curve.value(WAITING, 0),
                curve.last(WAITING),
                curve.xs[curve.xs.len() - 1],
                curve.value(EXECUTION, 0),
                curve.last(EXECUTION)
            )
        },
    )
}

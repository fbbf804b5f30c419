//! What the paper claims of the step, the weight and the number of groups, judged on both distributions.

use super::super::offline::describe;
use super::super::{ALPHA, DELTA};
use super::{Curve, SIZES, STEPS};
use crate::paper::{Claim, Verdict};

const WAITING: usize = 0;
const EXECUTION: usize = 1;
const MAKESPAN: usize = 2;
/// Differences below this part are small.
const SMALL: f64 = 0.02;

/// The curves of one policy, by place in [`SIZES`].
type Both<'a> = [&'a Curve; 2];

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < SMALL
}

fn clearly_less(a: f64, b: f64) -> bool {
    (1.0 + SMALL) * a < b
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
    holds: impl Fn(&Curve) -> bool,
    words: impl Fn(&Curve) -> String,
) -> Claim {
    Claim::new(place, statement, Verdict::of_all(curves.map(holds)), for_both(curves, words))
}

pub(super) fn of_figure_2(curves: Both<'_>) -> Vec<Claim> {
    let place = "Section 6.2, figure 2";
    vec![
        of_each(
            place,
            "A small step does not matter much for the waiting time.",
            curves,
            |curve| near(curve.at(WAITING, STEPS[0]), curve.at(WAITING, DELTA)),
            |curve| {
                let [small, usual] = [STEPS[0], DELTA].map(|step| curve.at(WAITING, step));
                format!("waiting {small:.1} s with a step of 0.001 s, {usual:.1} s with 0.1 s (Generalized)")
            },
        ),
        of_each(
            place,
            "A large step makes jobs wait much longer.",
            curves,
            |curve| clearly_less(curve.at(WAITING, DELTA), curve.last(WAITING)),
            |curve| {
                let (usual, large) = (curve.at(WAITING, DELTA), curve.last(WAITING));
                format!("waiting {usual:.1} s with 0.1 s, {large:.1} s with 100 s")
            },
        ),
        of_each(
            place,
            "Steps that are too small and steps that are too large both make the execution longer.",
            curves,
            |curve| {
                let (_, least) = curve.least(EXECUTION);
                let ends = [curve.value(EXECUTION, 0), curve.last(EXECUTION)];
                ends.iter().all(|&end| clearly_less(least, end))
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

fn good_steps(place: &str, curves: Both<'_>) -> Claim {
    of_each(
        place,
        "Good steps are from 0.01 to 0.1 s.",
        curves,
        |curve| near(curve.at(MAKESPAN, 0.01).min(curve.at(MAKESPAN, 0.1)), curve.least(MAKESPAN).1),
        |curve| {
            let (step, least) = curve.least(MAKESPAN);
            format!(
                "makespan {:.1} s with 0.01 s, {:.1} s with 0.1 s, least {least:.1} s with {step} s; within \
                 2 % counts as good",
                curve.at(MAKESPAN, 0.01),
                curve.at(MAKESPAN, 0.1)
            )
        },
    )
}

/// By weight for Generalized, Group with k of 5, 20 and 80, and Match; by number of groups for Group.
pub(super) fn of_figure_3(by_alpha: &[[Curve; 5]; 2], by_k: &[Curve; 2]) -> Vec<Claim> {
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
        |curve| weights.contains(&curve.least(WAITING).0),
        |curve| {
            let (alpha, least) = curve.least(WAITING);
            format!("least waiting {least:.1} s with alpha {alpha}")
        },
    )
}

fn match_depends_on_alpha(place: &str, matched: Both<'_>, generalized: Both<'_>, group: Both<'_>) -> Claim {
    let swing = |curve: &Curve| {
        let values = curve.points.iter().map(|point| point[EXECUTION].mean);
        values.clone().fold(0.0, f64::max) / values.fold(f64::INFINITY, f64::min) - 1.0
    };
    let holds = [0, 1].map(|at| swing(generalized[at]).max(swing(group[at])) < swing(matched[at]));
    let [matched, generalized, group] =
        [matched, generalized, group].map(|curves| curves.map(|curve| 100.0 * swing(curve)));
    Claim::new(
        place,
        "Alpha matters more for the execution time of Match than of Generalized and Group.",
        Verdict::of_all(holds),
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
    let [matched, generalized, group] =
        [matched, generalized, group].map(|curves| curves.map(|curve| curve.at(MAKESPAN, ALPHA)));
    Claim::new(
        place,
        "Match has a smaller makespan than Generalized and Group (alpha 0.5, k 20).",
        Verdict::of_all([0, 1].map(|at| matched[at] < generalized[at] && matched[at] < group[at])),
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
            let (best, least) = curve.least(MAKESPAN);
            let inside = curve.xs[0] < best && best < curve.xs[curve.xs.len() - 1];
            let waits = clearly_less(curve.last(WAITING), curve.value(WAITING, 0));
            let executes = clearly_less(curve.value(EXECUTION, 0), curve.last(EXECUTION));
            inside && waits && executes && least < curve.last(MAKESPAN)
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

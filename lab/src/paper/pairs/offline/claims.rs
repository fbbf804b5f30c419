//! What the paper claims of Table 2, judged on every distribution.

use super::super::OFFLINE;
use super::{Outcome, describe};
use crate::paper::Claim;
use crate::paper::judge::{Seen, by_case, paired};
use gristmill_scheduler::policy::pairs::Averages;

/// Judges a claim on every distribution, by the intervals of differences on the same jobs.
fn judged(outcomes: &[Outcome], statement: &str, remark: &str, holds: impl Fn(&Outcome) -> Seen) -> Claim {
    let seen: Vec<Seen> = outcomes.iter().map(holds).collect();
    let verdict = by_case(seen.iter().copied());
    let words = |wanted: Seen, what: &str| {
        let found = outcomes.iter().zip(&seen).filter(|(_, seen)| **seen == wanted);
        let found: Vec<&str> = found.map(|(outcome, _)| describe(outcome.sizes)).collect();
        (!found.is_empty()).then(|| format!("{what}: {}.", found.join("; ")))
    };
    let kinds = [(Seen::Yes, "It holds for"), (Seen::No, "It does not for"), (Seen::Unclear, "Unclear for")];
    let mut evidence =
        kinds.into_iter().filter_map(|(seen, what)| words(seen, what)).collect::<Vec<_>>().join(" ");
    if !remark.is_empty() {
        evidence.push(' ');
        evidence.push_str(remark);
    }
    Claim::new("Section 6.2, Table 2", statement, verdict, evidence)
}

fn place_of(name: &str) -> usize {
    OFFLINE.iter().position(|rule| rule.name() == name).expect("a rule of the table")
}

impl Outcome {
    /// Whether one rule has less of something than each of the others, seed by seed on the same jobs.
    fn less(&self, value: fn(&Averages) -> f64, one: usize, others: &[usize]) -> Seen {
        let of_one = self.samples(one, value);
        let apart = |&other: &usize| Seen::above(&paired(&self.samples(other, value), &of_one), 0.0);
        Seen::all(others.iter().map(apart))
    }

    /// Whether one rule has a smaller average makespan than each of the others.
    fn better(&self, one: &str, others: &[&str]) -> Seen {
        let others: Vec<usize> = others.iter().map(|other| place_of(other)).collect();
        self.less(makespan, place_of(one), &others)
    }
}

fn makespan(averages: &Averages) -> f64 {
    averages.makespan
}

fn waiting(averages: &Averages) -> f64 {
    averages.waiting
}

fn execution(averages: &Averages) -> f64 {
    averages.execution
}

/// All rules but these.
fn all_but(places: &[usize]) -> Vec<usize> {
    (0..OFFLINE.len()).filter(|place| !places.contains(place)).collect()
}

pub(in crate::paper::pairs) fn of(outcomes: &[Outcome]) -> Vec<Claim> {
    let mut claims = blind_to_size(outcomes);
    claims.extend(by_size(outcomes));
    claims
}

/// Of Match, and of the rules that do not look at the size of jobs.
fn blind_to_size(outcomes: &[Outcome]) -> Vec<Claim> {
    let blind = ["max-diff", "pairwise", "max-shuffle"].map(place_of);
    let [pairwise, matched] = ["pairwise", "match"].map(place_of);
    vec![
        judged(outcomes, "Match has the smallest average makespan.", "", |outcome| {
            outcome.less(makespan, matched, &all_but(&[matched]))
        }),
        judged(
            outcomes,
            "MaxDiff, Pairwise and MaxShuffle, which do not look at the size of jobs, are the worst three.",
            "",
            |outcome| {
                Seen::all(all_but(&blind).into_iter().map(|other| outcome.less(makespan, other, &blind)))
            },
        ),
        judged(
            outcomes,
            "MaxShuffle is better than Pairwise and MaxDiff.",
            "With the sum of its own row (8438) Pairwise would beat MaxShuffle in the paper too.",
            |outcome| outcome.better("max-shuffle", &["pairwise", "max-diff"]),
        ),
        judged(outcomes, "Pairwise has the smallest average execution time.", "", |outcome| {
            outcome.less(execution, pairwise, &all_but(&[pairwise]))
        }),
    ]
}

/// Of the rules that look at the size of jobs.
fn by_size(outcomes: &[Outcome]) -> Vec<Claim> {
    let [pair, max_srpt] = ["pair", "max-srpt"].map(place_of);
    let others = ["match", "group", "generalized", "couple", "pair", "max-srpt"];
    vec![
        judged(
            outcomes,
            "Pair waits longer than MaxSRPT because of the steps, and executes in less time.",
            "",
            |outcome| {
                Seen::all([
                    outcome.less(waiting, max_srpt, &[pair]),
                    outcome.less(execution, pair, &[max_srpt]),
                ])
            },
        ),
        judged(outcomes, "Couple is better than Pair, and Generalized better than both.", "", |outcome| {
            Seen::all([
                outcome.better("couple", &["pair"]),
                outcome.better("generalized", &["couple", "pair"]),
            ])
        }),
        judged(
            outcomes,
            "Group is better than Generalized.",
            "Under heavy tails the largest gaps isolate the giants and leave all other jobs in one group.",
            |outcome| outcome.better("group", &["generalized"]),
        ),
        judged(
            outcomes,
            "NCouple is worse than all others that look at the size of jobs.",
            "Where the set consists of exact strong pairs, it finds them as Couple does.",
            |outcome| Seen::all(others.iter().map(|other| outcome.better(other, &["n-couple"]))),
        ),
    ]
}

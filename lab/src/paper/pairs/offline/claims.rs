//! What the paper claims of Table 2, judged on every distribution.

use super::super::{OFFLINE, mean};
use super::{Outcome, describe};
use crate::paper::{Claim, Verdict};

/// Judges a claim on every distribution.
fn judged(outcomes: &[Outcome], statement: &str, remark: &str, holds: impl Fn(&Outcome) -> bool) -> Claim {
    let (yes, no): (Vec<&Outcome>, Vec<&Outcome>) = outcomes.iter().partition(|outcome| holds(outcome));
    let words = |outcomes: &[&Outcome]| {
        outcomes.iter().map(|outcome| describe(outcome.sizes)).collect::<Vec<_>>().join("; ")
    };
    let verdict = Verdict::of_all(outcomes.iter().map(&holds));
    let mut evidence = match verdict {
        Verdict::Holds => "It holds for every distribution.".to_owned(),
        Verdict::Fails => "It holds for none of the distributions.".to_owned(),
        _ => format!("It holds for: {}. It does not for: {}.", words(&yes), words(&no)),
    };
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
    /// Whether one rule has a smaller average makespan than another.
    fn better(&self, one: &str, other: &str) -> bool {
        self.makespan(place_of(one)) < self.makespan(place_of(other))
    }

    fn execution(&self, rule: usize) -> f64 {
        mean(&self.samples(rule, |averages| averages.execution)).mean
    }

    fn waiting(&self, rule: usize) -> f64 {
        mean(&self.samples(rule, |averages| averages.waiting)).mean
    }
}

pub(super) fn of(outcomes: &[Outcome]) -> Vec<Claim> {
    let mut claims = blind_to_size(outcomes);
    claims.extend(by_size(outcomes));
    claims
}

/// Of Match, and of the rules that do not look at the size of jobs.
fn blind_to_size(outcomes: &[Outcome]) -> Vec<Claim> {
    let blind = ["max-diff", "pairwise", "max-shuffle"].map(place_of);
    let pairwise = place_of("pairwise");
    vec![
        judged(outcomes, "Match has the smallest average makespan.", "", |outcome| {
            outcome.ranking()[0] == place_of("match")
        }),
        judged(
            outcomes,
            "MaxDiff, Pairwise and MaxShuffle, which do not look at the size of jobs, are the worst three.",
            "",
            |outcome| {
                outcome.ranking()[OFFLINE.len() - blind.len()..].iter().all(|place| blind.contains(place))
            },
        ),
        judged(
            outcomes,
            "MaxShuffle is better than Pairwise and MaxDiff.",
            "With the sum of its own row (8438) Pairwise would beat MaxShuffle in the paper too.",
            |outcome| outcome.better("max-shuffle", "pairwise") && outcome.better("max-shuffle", "max-diff"),
        ),
        judged(outcomes, "Pairwise has the smallest average execution time.", "", |outcome| {
            (0..OFFLINE.len()).all(|rule| outcome.execution(pairwise) <= outcome.execution(rule))
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
                outcome.waiting(max_srpt) < outcome.waiting(pair)
                    && outcome.execution(pair) < outcome.execution(max_srpt)
            },
        ),
        judged(outcomes, "Couple is better than Pair, and Generalized better than both.", "", |outcome| {
            outcome.better("couple", "pair") && outcome.better("generalized", "couple")
        }),
        judged(
            outcomes,
            "Group is better than Generalized.",
            "Under heavy tails the largest gaps isolate the giants and leave all other jobs in one group.",
            |outcome| outcome.better("group", "generalized"),
        ),
        judged(
            outcomes,
            "NCouple is worse than all others that look at the size of jobs.",
            "Where the set consists of exact strong pairs, it finds them as Couple does.",
            |outcome| others.iter().all(|rule| outcome.better(rule, "n-couple")),
        ),
    ]
}

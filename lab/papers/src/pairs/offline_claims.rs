//! The paper's claims about Table 2, judged on every distribution.

use super::offline::{NUMBERS, Outcome, describe};
use super::{OFFLINE, WORDS};
use crate::Claim;
use crate::judge::{Seen, by_case, keeps};
use crate::words::holes;

/// Claims about Match and the rules that ignore the size of jobs, then about those that use it.
const CLAIMS: [&str; 8] = [
    "match-is-best",
    "worst-three",
    "max-shuffle",
    "pairwise-executes-fastest",
    "pair-waits",
    "couple-and-generalized",
    "group",
    "n-couple",
];

pub(super) fn of(outcomes: &[Outcome]) -> Vec<Claim> {
    CLAIMS.map(|key| judged(outcomes, key)).to_vec()
}

/// Judges a claim on every distribution, by the intervals of differences on the same jobs.
fn judged(outcomes: &[Outcome], key: &str) -> Claim {
    let names: Vec<&str> = OFFLINE.iter().map(|rule| rule.name()).collect();
    let holds = |outcome: &Outcome| {
        keeps(WORDS.rules(key), &names, |number, rule| {
            let place = names.iter().position(|name| *name == rule).expect("a rule of the table");
            let number = NUMBERS.iter().find(|(name, _)| *name == number).expect("a number of the table");
            outcome.samples(place, number.1)
        })
    };
    let seen: Vec<Seen> = outcomes.iter().map(holds).collect();
    let words = |(wanted, what): (Seen, &str)| {
        let found = outcomes.iter().zip(&seen).filter(|(_, seen)| **seen == wanted);
        let found: Vec<&str> = found.map(|(outcome, _)| describe(outcome.sizes)).collect();
        (!found.is_empty()).then(|| format!("{what}: {}.", found.join("; ")))
    };
    let kinds = [(Seen::Yes, "It holds for"), (Seen::No, "It does not for"), (Seen::Unclear, "Unclear for")];
    let found = kinds.into_iter().filter_map(words).collect::<Vec<_>>().join(" ");
    WORDS.claim(key, by_case(seen), holes![found])
}

//! Names and parameters of the rules of the pairs paper, by which `lab order` calls them. A rule orders a set of jobs
//! by their map and shuffle times; all but the last are policies too.

use super::PairsRule;
use crate::catalogue::{ArgumentError, Arguments, Entry, Make, Parameter};

const DELTA: Parameter = Parameter {
    name: "delta",
    default: "0.1",
    meaning: "step within which sizes count as equal, s; 0: exactly",
};

const BLEND: Parameter =
    Parameter { name: "alpha", default: "0.5", meaning: "part of max(map, shuffle) in the priority, 0 to 1" };
const WEIGHT: Parameter =
    Parameter { name: "alpha", default: "0.5", meaning: "part of the pairing degree in the weight, 0 to 1" };
const GROUPS: Parameter = Parameter { name: "k", default: "20", meaning: "number of groups" };
const SEED: Parameter =
    Parameter { name: "seed", default: "0", meaning: "of the draws that reorder everything" };

fn delta(arguments: &mut Arguments<'_>) -> Result<f64, ArgumentError> {
    arguments
        .value("delta", 0.1, "a number of seconds, 0 or more", |value: f64| value.is_finite() && 0.0 <= value)
}

pub(super) fn alpha(arguments: &mut Arguments<'_>) -> Result<f64, ArgumentError> {
    arguments.value("alpha", 0.5, "a number from 0 to 1", |value: f64| (0.0..=1.0).contains(&value))
}

pub(super) fn k(arguments: &mut Arguments<'_>) -> Result<usize, ArgumentError> {
    arguments.value("k", 20, "a whole number above 0", |value| 0 < value)
}

pub(super) fn seed(arguments: &mut Arguments<'_>) -> Result<u64, ArgumentError> {
    arguments.value("seed", 0, "a whole number", |_| true)
}

const fn entry(
    name: &'static str,
    paper: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    make: Make<PairsRule>,
) -> Entry<PairsRule> {
    Entry { paper, parameters, ..Entry::new(name, summary, make) }
}

/// Number of rules that are policies too: the first ones of [`RULES`].
pub(in crate::policy::pairs) const POLICIES: usize = 11;

/// All rules by name; those that are policies come first.
pub const RULES: [Entry<PairsRule>; POLICIES + 1] = [
    entry("max-diff", "pairs 6.1", "shuffle-heavy jobs first, by shuffle - map", &[], |_| {
        Ok(Box::new(PairsRule::MaxDiff))
    }),
    entry("pairwise", "pairs 6.1", "the most shuffle-heavy and the most map-heavy job in turn", &[], |_| {
        Ok(Box::new(PairsRule::Pairwise))
    }),
    entry("max-shuffle", "pairs 6.1", "the largest shuffle first", &[], |_| {
        Ok(Box::new(PairsRule::MaxShuffle))
    }),
    entry(
        "pair",
        "pairs Algorithm 1",
        "least max(map, shuffle) first, equal ones in pairs",
        &[DELTA],
        |arguments| Ok(Box::new(PairsRule::Pair { delta: delta(arguments)? })),
    ),
    entry(
        "couple",
        "pairs Algorithm 2",
        "least map + shuffle first, equal ones in pairs",
        &[DELTA],
        |arguments| Ok(Box::new(PairsRule::Couple { delta: delta(arguments)? })),
    ),
    entry(
        "generalized",
        "pairs Algorithm 3",
        "least mixture of maximum and sum first, equal ones in pairs",
        &[DELTA, BLEND],
        |arguments| {
            Ok(Box::new(PairsRule::Generalized { delta: delta(arguments)?, alpha: alpha(arguments)? }))
        },
    ),
    entry(
        "group",
        "pairs Algorithm 4",
        "groups of like jobs, each in pairs",
        &[BLEND, GROUPS],
        |arguments| Ok(Box::new(PairsRule::Group { alpha: alpha(arguments)?, k: k(arguments)? })),
    ),
    entry(
        "o-group",
        "pairs Algorithm 5",
        "groups of like jobs, to which arrivals are added",
        &[BLEND, GROUPS, SEED],
        |arguments| {
            let (alpha, k, seed) = (alpha(arguments)?, k(arguments)?, seed(arguments)?);
            Ok(Box::new(PairsRule::OnlineGroup { alpha, k, seed }))
        },
    ),
    entry(
        "n-couple",
        "pairs Algorithm 6",
        "pairs that balance each other, smallest first",
        &[DELTA],
        |arguments| Ok(Box::new(PairsRule::NewCouple { delta: delta(arguments)? })),
    ),
    entry(
        "match",
        "pairs Algorithm 7",
        "pairs by a minimum-weight perfect matching",
        &[WEIGHT],
        |arguments| Ok(Box::new(PairsRule::Match { alpha: alpha(arguments)? })),
    ),
    entry(
        "o-match",
        "pairs Algorithm 8",
        "pairs by matching, into which arrivals are put",
        &[WEIGHT, SEED],
        |arguments| Ok(Box::new(PairsRule::OnlineMatch { alpha: alpha(arguments)?, seed: seed(arguments)? })),
    ),
    entry(
        "max-srpt",
        "overlap, as in pairs 6.1",
        "least max(map, shuffle) first, once and for all",
        &[],
        |_| Ok(Box::new(PairsRule::MaxSrpt)),
    ),
];

//! Tests of every rule of a page with made-up results. Some must make its statement fail, others must
//! make it hold: a rule that cannot fail judges nothing. For a rule with several conditions, results that
//! break one of them and meet all others must refute it too ([`only`]), since a condition that never
//! decides judges nothing either.
//!
//! A paper's `made_up` lists its rules. Completeness is checked twice: each statement of a quick page
//! must be in the list (`check_listed`), and also each claim in the words of a paper (`crate::tests`).

use crate::{Block, Claim, Paper, Verdict};

/// Claims that belong together, from results that refute all of them and from results that support them.
pub(crate) struct Rules {
    pub(crate) refuted: Vec<Claim>,
    pub(crate) borne_out: Vec<Claim>,
}

/// Returns those of these claims whose statement starts with `beginning`, for results that break only one
/// condition of a rule.
#[track_caller]
pub(crate) fn only(claims: Vec<Claim>, beginning: &str) -> Vec<Claim> {
    let only: Vec<Claim> =
        claims.into_iter().filter(|claim| claim.statement.starts_with(beginning)).collect();
    assert!(!only.is_empty(), "no claim begins with `{beginning}`");
    only
}

/// Checks that every statement on this page is one of those that fail on made-up results.
#[track_caller]
pub(crate) fn check_listed(paper: &Paper, rules: &[Rules]) {
    let listed: Vec<&str> =
        rules.iter().flat_map(|rules| &rules.refuted).map(|claim| claim.statement.as_str()).collect();
    for block in paper.sections.iter().flat_map(|section| &section.blocks) {
        let Block::Claims(claims) = block else { continue };
        for claim in claims {
            let statement = claim.statement.as_str();
            assert!(listed.contains(&statement), "nothing made up refutes this statement: {statement}");
        }
    }
}

/// Checks that all refuted claims fail, that all supported ones hold, and that they are the same claims.
#[track_caller]
pub(crate) fn check(rules: &[Rules]) {
    for Rules { refuted, borne_out } in rules {
        let statements = |claims: &[Claim]| {
            let mut all: Vec<String> = claims.iter().map(|claim| claim.statement.clone()).collect();
            all.sort();
            all.dedup();
            all
        };
        assert!(!refuted.is_empty(), "a rule has no refuted claim");
        assert_eq!(statements(refuted), statements(borne_out));
        for (claims, wanted) in [(refuted, Verdict::Fails), (borne_out, Verdict::Holds)] {
            for claim in claims {
                let Claim { place, statement, evidence, .. } = claim;
                assert_eq!(claim.verdict, wanted, "{place}: {statement} ({evidence})");
            }
        }
    }
}

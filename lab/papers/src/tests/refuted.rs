//! Every rule of a page with made-up results on which it must say that its statement fails, and with others on which it
//! must hold: a rule that cannot fail judges nothing. Of a rule with several conditions, results that break one of them
//! and meet all others must refute it too ([`only`]), for a condition that never decides judges nothing either.
//!
//! A paper's `made_up` lists its rules. That none is missing is checked twice: each statement of a quick page must be in
//! the list (`check_listed`), and each claim that the words of a paper have (`crate::tests`).

use crate::{Block, Claim, Paper, Verdict};

/// Claims that are made together, of results that refute all of them and of results that bear them out.
pub(crate) struct Rules {
    pub(crate) refuted: Vec<Claim>,
    pub(crate) borne_out: Vec<Claim>,
}

/// Those of these claims whose statement begins so: of results made up to break one condition of a rule and no other.
#[track_caller]
pub(crate) fn only(claims: Vec<Claim>, beginning: &str) -> Vec<Claim> {
    let only: Vec<Claim> =
        claims.into_iter().filter(|claim| claim.statement.starts_with(beginning)).collect();
    assert!(!only.is_empty(), "no claim begins with `{beginning}`");
    only
}

/// Every statement on this page is one of those that fail on made-up results.
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

/// All refuted claims fail, all that are borne out hold, and they are the same.
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

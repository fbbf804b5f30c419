//! The page of a quick run has every figure, and claims that can fail and can hold.

pub(crate) mod made_up;

use super::*;
use crate::PaperScale;
use crate::tests::refuted::{check, check_listed};
use crate::tests::whole::check_whole;

#[test]
fn every_claim_of_the_thesis_can_fail_and_can_hold() {
    check(&made_up::rules());
}

#[test]
fn a_quick_run_gives_every_figure() {
    let context = Context { scale: PaperScale::Quick, first_seed: 1, progress: &|_| {} };
    let paper = run(&context).unwrap();
    let ids: Vec<&str> = paper.sections.iter().map(|section| section.id.as_str()).collect();
    for id in
        ["table-3-1", "figure-4-1", "figure-6-1", "figure-6-3", "figure-6-5", "figure-6-7", "figure-6-8"]
    {
        assert!(ids.contains(&id), "{id} in {ids:?}");
    }
    for id in ["figure-6-9", "figure-7-1", "figure-7-2", "figure-7-3", "figure-7-4", "equations"] {
        assert!(ids.contains(&id), "{id} in {ids:?}");
    }
    check_whole(&paper);
    check_listed(&paper, &made_up::rules());
}

/// Returns the verdict and the evidence of the only claim of this place.
fn claim_of(paper: &Paper, place: &str) -> (Verdict, String) {
    let claims = paper.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
        Block::Claims(claims) => Some(claims),
        _ => None,
    });
    let found: Vec<&Claim> = claims.flatten().filter(|claim| claim.place == place).collect();
    assert_eq!(found.len(), 1, "{place}");
    (found[0].verdict, found[0].evidence.clone())
}

#[test]
fn lemmas_and_transforms_come_out_as_they_are() {
    let sections = vec![lemmas::section(), equations::section().unwrap()];
    let paper = WORDS.paper("stragglers", holes![], sections);
    for (place, verdict) in [
        ("Lemma 1", Verdict::Partly),
        ("Lemma 2", Verdict::Partly),
        ("Lemma 7", Verdict::Fails),
        ("equation 32", Verdict::Fails),
        ("equation 33", Verdict::Fails),
    ] {
        let (found, evidence) = claim_of(&paper, place);
        println!("{place}: {evidence}");
        assert_eq!(found, verdict, "{place}: {evidence}");
    }
}

#[test]
fn completion_in_batches_solves_the_equation_of_g_m_1() {
    // z = A*(mu (1 - z)) for batches of geometric size: gaps are 0 but for one in each batch.
    for lambda in [0.1, 1.0, 1.9] {
        let (mu, whole) = (10.0, 1.0 / lemmas::batch_size(lambda));
        let root = 1.0 - 1.0 / (mu * lemmas::in_batches(lambda));
        let gap = lambda * whole;
        let arrivals = 1.0 - whole + whole * gap / (gap + mu * (1.0 - root));
        assert!((arrivals - root).abs() < 1e-12, "{lambda}: {arrivals} and {root}");
    }
}

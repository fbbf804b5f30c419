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

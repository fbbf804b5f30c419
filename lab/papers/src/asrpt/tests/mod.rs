//! The page's data from few seeds: complete, finite, and equal in two runs.

pub(crate) mod made_up;

use super::*;
use crate::Scale;
use crate::tests::refuted::{check, check_listed};
use crate::tests::whole::check_whole;

/// Page from one seed, which is enough for everything but intervals.
fn small() -> Paper {
    page(&Context { scale: Scale::Quick, first_seed: 1, progress: &|_| {} }, 1).unwrap()
}

#[test]
fn the_page_shows_every_figure_and_is_the_same_twice() {
    let paper = small();
    let ids: Vec<&str> = paper.sections.iter().map(|section| section.id.as_str()).collect();
    let expected = [
        "section-4",
        "figure-4",
        "figure-5",
        "figure-6",
        "figure-7",
        "figure-8",
        "figure-9",
        "figure-10",
        "figure-11",
        "figure-12",
        "figure-13",
        "theorem-4",
        "section-7-c",
        "left-open",
    ];
    assert_eq!(ids, expected);
    assert_eq!(paper, small());
    check_whole(&paper);
    check_listed(&paper, &made_up::rules());
}

#[test]
fn every_claim_of_the_paper_can_fail_and_can_hold() {
    check(&made_up::rules());
}

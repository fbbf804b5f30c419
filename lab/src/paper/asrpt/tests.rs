//! The page's data from few seeds: complete, finite, and the same twice.

use super::*;
use crate::paper::testing::check_whole;
use crate::paper::{Block, Scale, Verdict};

/// From one seed, which is enough for everything but intervals.
fn small() -> Paper {
    page(&Context { scale: Scale::Quick, seed: 1, progress: &|_| {} }, 1).unwrap()
}

#[test]
fn the_page_shows_every_figure_and_what_is_proved_holds_and_is_the_same_twice() {
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
    let claims = paper.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
        Block::Claims(claims) => Some(claims),
        _ => None,
    });
    let proved: Vec<_> = claims
        .flatten()
        .filter(|claim| claim.place.starts_with("Theorem 4") || claim.place.contains("Corollary 2"))
        .collect();
    assert_eq!(proved.len(), 3);
    assert!(proved.iter().all(|claim| claim.verdict == Verdict::Holds), "{proved:#?}");
}

//! The page's data from few seeds: complete, finite, and equal in two runs.

pub(crate) mod made_up;

use super::*;
use crate::tests::whole::check_page;
use crate::{Block, Claim, PaperScale, Verdict};

fn quick() -> Paper {
    run(&Context { scale: PaperScale::Quick, first_seed: 1, progress: &|_| {} }).unwrap()
}

fn claims(paper: &Paper) -> Vec<&Claim> {
    let blocks = paper.sections.iter().flat_map(|section| &section.blocks);
    let claims = blocks.filter_map(|block| match block {
        Block::Claims(claims) => Some(claims),
        _ => None,
    });
    claims.flatten().collect()
}

#[test]
fn page_shows_every_figure_and_table_and_every_claim_can_fail_and_can_hold() {
    let sections = [
        "figure-1",
        "section-5-1",
        "section-5-2",
        "theorems",
        "table-2",
        "figure-2",
        "figure-3",
        "figure-4",
        "table-3",
    ];
    check_page(&sections, quick, &made_up::rules());
}

#[test]
fn examples_come_out_exactly_and_theorems_as_they_are() {
    let paper = quick();
    for section in paper.sections.iter().take(3) {
        for block in &section.blocks {
            if let Block::Comparison(rows) = block {
                assert!(rows.iter().all(|row| row.verdict == Verdict::Holds), "{}", section.id);
            }
        }
    }
    let verdict = |place: &str| {
        let found: Vec<Verdict> =
            claims(&paper).iter().filter(|claim| claim.place == place).map(|claim| claim.verdict).collect();
        assert_eq!(found.len(), 1, "{place}");
        found[0]
    };
    for place in ["Section 5.1", "Section 5.2", "Theorems 1 and 3", "Theorem 2", "Corollary 1"] {
        assert_eq!(verdict(place), Verdict::Holds, "{place}");
    }
    assert_eq!(verdict("Theorem 4"), Verdict::Fails);
}

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

#[test]
fn every_number_of_both_tables_is_compared_but_the_unit() {
    let paper = quick();
    let compared = |id: &str| -> Vec<&crate::Compared> {
        let section = paper.sections.iter().find(|section| section.id == id).unwrap();
        let rows = section.blocks.iter().filter_map(|block| match block {
            Block::Comparison(rows) => Some(rows),
            _ => None,
        });
        rows.flatten().collect()
    };
    let [two, three] = ["table-2", "table-3"].map(compared);
    assert_eq!((two.len(), three.len()), (10 * 3 - 1, 12 * 13 - 1));
    assert!(two.iter().chain(&three).all(|one| one.printed.is_some()));
}

#[test]
fn stream_with_the_printed_numbers_agrees_and_one_of_other_times_does_not() {
    use online::{StreamOutcome, StreamTimes, rules};
    // Jobs that all wait and execute as long: the averages agree where they are printed so.
    let outcomes = |factor: f64| -> Vec<StreamOutcome> {
        let one = |(rule, printed): (_, printed::StreamRow)| {
            let times = StreamTimes {
                arrival: 0.0,
                waiting: factor * printed[0],
                execution: printed[printed::MAKESPAN] - printed[0],
                ratio: factor * printed[7],
            };
            StreamOutcome { rule, runs: vec![vec![times; 10]; 3] }
        };
        rules(0).into_iter().zip(printed::TABLE_3).map(one).collect()
    };
    let verdicts = |factor: f64, column: &str| -> Vec<Verdict> {
        let (_, compared) = online::compared((crate::workload::pairs::SizeLaw::Uniform, &outcomes(factor)));
        compared.iter().filter(|one| one.what.contains(column)).map(|one| one.verdict).collect()
    };
    assert_eq!(verdicts(1.0, "average waiting"), [Verdict::Holds; 12]);
    assert_eq!(verdicts(1.0, "worst ratio"), [Verdict::Holds; 12]);
    assert_eq!(verdicts(2.0, "worst ratio"), [Verdict::Fails; 12]);
    assert!(verdicts(2.0, "average waiting").contains(&Verdict::Fails));
    assert!(verdicts(1.0, "longest waiting").iter().all(|verdict| *verdict == Verdict::Fails));
}

//! The page of the paper with a single seed.

pub(crate) mod made_up;

use super::trial::{Scheduler, simulate};
use super::*;
use crate::tests::refuted::{check, check_listed};
use crate::workload::deadlines::Joins;
use crate::{Block, PaperScale, Verdict};
use gristmill_lab::report::Tally;
use std::sync::LazyLock;

static PAGE: LazyLock<Paper> = LazyLock::new(|| {
    page(&Context { scale: PaperScale::Quick, first_seed: 1, progress: &|_| {} }, &[1]).unwrap()
});

#[test]
fn every_figure_of_the_paper_is_a_section() {
    let ids: Vec<&str> = PAGE.sections.iter().map(|section| section.id.as_str()).collect();
    let figures = ["figure-1", "figure-2", "figure-3", "figure-4", "figure-5", "figure-6", "figure-7"];
    assert_eq!(ids[..7], figures);
    assert_eq!(ids[7..], ["section-5-fifo", "sensitivity"]);
}

#[test]
fn isolated_times_are_input_and_not_counted() {
    for block in PAGE.sections.iter().flat_map(|section| &section.blocks) {
        let Block::Comparison(rows) = block else { continue };
        assert!(rows.iter().all(|row| row.verdict == Verdict::Input), "{rows:?}");
    }
    assert_eq!(Tally::count(&PAGE.sections).printed.total(), 0, "what is put in is not counted");
}

#[test]
fn every_claim_of_the_paper_can_fail_and_can_hold() {
    check(&made_up::rules());
    check_listed(&PAGE, &made_up::rules());
}

#[test]
fn points_of_charts_are_finite_and_on_the_cluster() {
    for block in PAGE.sections.iter().flat_map(|section| &section.blocks) {
        let Block::Chart(chart) = block else { continue };
        assert!(!chart.series.is_empty(), "{} is empty", chart.id);
        for &(x, y) in chart.series.iter().flat_map(|series| &series.points) {
            assert!(x.is_finite() && y.is_finite(), "{}: ({x}, {y})", chart.id);
            assert!(
                !chart.id.ends_with("-slots") || (0.0..=60.0 + 1e-6).contains(&y),
                "{}: {y} slots",
                chart.id
            );
        }
    }
}

#[test]
fn a_seed_gives_the_same_trial_twice() {
    let responses = |_| simulate(Joins::Stationary, Scheduler::Min, 7).unwrap().responses;
    assert_eq!(responses(1), responses(2));
}

//! Shared checks of tests of pages: completeness of a page.
//!
//! Not here: the results of the experiments of a paper.

use super::refuted::{Rules, check, check_listed};
use crate::{Block, Cell, Paper};

/// Checks that every chart has points, all finite, and that tables are full and without NaN. Comparisons
/// must have a number of ours, and a section of claims must have at least one.
#[track_caller]
pub(crate) fn check_whole(paper: &Paper) {
    for block in paper.sections.iter().flat_map(|section| &section.blocks) {
        match block {
            Block::Chart(chart) => {
                assert!(!chart.series.is_empty(), "{}", chart.id);
                for series in &chart.series {
                    let name = format!("{} of {}", series.name, chart.id);
                    assert!(!series.points.is_empty(), "{name}");
                    assert!(series.points.iter().all(|(x, y)| x.is_finite() && y.is_finite()), "{name}");
                    let widths = series.half_widths.len();
                    assert!(widths == 0 || widths == series.points.len(), "{name}");
                }
            }
            Block::Table(table) => {
                for row in &table.rows {
                    assert_eq!(row.len(), table.columns.len(), "{}", table.id);
                    let number = |cell: &Cell| !matches!(cell, Cell::Number { value, .. } if value.is_nan());
                    assert!(row.iter().all(number), "{}", table.id);
                }
            }
            Block::Comparison(rows) => {
                rows.iter().for_each(|row| assert!(row.ours.is_finite(), "{}", row.what));
            }
            Block::Claims(claims) => assert!(!claims.is_empty(), "no claims where some are made"),
        }
    }
}

/// Checks that a paper has these sections and is whole, that it is the same twice, and that all its claims can fail and
/// can hold.
#[track_caller]
pub(crate) fn check_page(sections: &[&str], paper: impl Fn() -> Paper, rules: &[Rules]) {
    let (one, other) = (paper(), paper());
    let ids: Vec<&str> = one.sections.iter().map(|section| section.id.as_str()).collect();
    assert_eq!(ids, sections);
    assert_eq!(one, other);
    check_whole(&one);
    check_listed(&one, rules);
    check(rules);
}

//! Table of metrics of all policies.

use super::text::{columns, scaled, title_and_scale};
use crate::compare::summary::Summary;
use crate::report::{Block, Cell, Column, ReportTable};
use gristmill_scheduler::metrics::Metric;

/// Table of metrics of all policies. Its rows are metrics or policies, whichever are more.
pub(super) fn metric_table(id: &str, caption: &str, names: &[Metric], summaries: &[Summary]) -> Block {
    let metrics = columns(names, summaries);
    let policies = summaries.iter().map(|summary| format!("`{}`", summary.contender.name));
    let head = std::iter::once("metric".to_owned()).chain(policies).map(|name| Column::new(&name, ""));
    let rows = metrics.iter().map(|&metric| {
        let (title, scale) = title_and_scale(metric, summaries);
        let cells = summaries.iter().map(|one| Cell::from(scaled(one, metric, scale)));
        std::iter::once(Cell::text(title)).chain(cells).collect()
    });
    Block::Table(ReportTable::new(id, caption, head.collect(), rows.collect()))
}

//! Description of the runs: arrivals, kinds of jobs, and every metric.

use super::metric_table::metric_table;
use crate::compare::comparison::Comparison;
use crate::compare::statistics::order;
use crate::compare::workload::{Arrivals, JobKind, Order, Workload};
use crate::report::{Block, Cell, Column, ReportTable, Section, number};
use gristmill_scheduler::metrics::Metric;

/// Maximum number of kinds listed. A trace has one for each job.
const KINDS_MAX: usize = 100;

pub(super) fn section(comparison: &Comparison) -> Section {
    let workload = &comparison.workload;
    let rows = order::rows(comparison.contenders.len());
    let orders: Vec<String> = comparison.runs.iter().map(|run| format!("`{}`", run.contender.name)).collect();
    let text = [
        format!("{}, seed {}: {}", workload.name, workload.seed, arrivals(workload)),
        format!(
            "Runs were done in this order: {}. It is a Williams design, drawn from the seed: after each {rows} \
             repetitions every policy was in each place, and right after each other one, equally often.",
            orders.join(", ")
        ),
        format!("Cluster: {}", comparison.setting.get("cluster").map(words).unwrap_or_default()),
        "Outputs of the same job were the same bytes under all policies.".to_owned(),
    ];
    let all = metric_table("all-metrics", "Every metric", Metric::ALL, &comparison.summaries());
    let blocks = vec![Block::Table(kinds(workload)), all];
    Section::new("workload", "What was run", text, blocks)
}

/// Describes the arrival times and the order of jobs.
fn arrivals(workload: &Workload) -> String {
    let arrivals = match &workload.arrivals {
        Arrivals::Batch => "all jobs arrive at once".to_owned(),
        Arrivals::Times(_) | Arrivals::Draws(_) => "jobs arrive at given times".to_owned(),
        Arrivals::Poisson(mean) => {
            format!("pauses between arrivals are exponential with a mean of {} s", number::number(*mean))
        }
    };
    let order = match workload.order {
        Order::Listed => "in the order of the list",
        Order::Shuffled => "in an order drawn from the seed",
    };
    let again = match workload.is_redrawn() {
        true => "Every repetition draws its own jobs and arrivals; its policies meet the same.",
        false => "All repetitions and policies meet the same jobs at the same times.",
    };
    format!("{arrivals}, {order}. {again}")
}

fn kinds(workload: &Workload) -> ReportTable {
    let columns = ["kind", "job", "how many", "arguments", "reduces", "weight", "deadline, s"];
    ReportTable::new(
        "jobs",
        "Kinds of jobs",
        columns.map(|name| Column::new(name, "")).to_vec(),
        workload.kinds.iter().take(KINDS_MAX).map(kind).collect(),
    )
}

fn kind(kind: &JobKind) -> Vec<Cell> {
    vec![
        Cell::text(kind.label.clone()),
        Cell::text(kind.job.clone()),
        Cell::number(f64::from(kind.count)),
        Cell::text(kind.arguments.join(" ")),
        kind.reduces.map(f64::from).into(),
        Cell::number(kind.weight),
        kind.deadline.into(),
    ]
}

/// Formats a small JSON object as words.
fn words(value: &serde_json::Value) -> String {
    let Some(object) = value.as_object() else { return value.to_string() };
    let set = object.iter().filter(|(_, value)| !value.is_null());
    set.map(|(key, value)| format!("{} {value}", key.replace('_', " "))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_says_that_nothing_was_drawn_anew_where_there_is_nothing_to_draw() {
        let mut listed =
            Workload::batch("listed", vec![JobKind::new("sort", &[]), JobKind::new("grep", &[])]);
        listed.redraw = true;
        assert!(
            arrivals(&listed).ends_with("meet the same jobs at the same times."),
            "{}",
            arrivals(&listed)
        );
        listed.order = Order::Shuffled;
        listed.seed = (1..).find(|&seed| Workload { seed, ..listed.clone() }.is_redrawn()).unwrap();
        assert!(arrivals(&listed).contains("its own jobs and arrivals"), "seed {}", listed.seed);
    }
}

//! Page about a simulation: metrics, distribution of flow times, slowdown by size.

use super::model::SimulatedSystem;
use super::output::{self, interval, slowdowns};
use super::{PolicyRuns, SimCommand};
use gristmill_lab::report;
use gristmill_lab::report::{Axis, Block, Cell, Chart, ChartKind, Column, Section, Series, Table};
use gristmill_runtime::plural::counted;
use gristmill_scheduler::metrics::Metric;

/// Returns a page with all metrics and charts.
pub fn page(flags: &SimCommand, system: &SimulatedSystem<'_>, runs: &[PolicyRuns]) -> String {
    let workload = flags.workload.as_deref().unwrap_or_default();
    let title = format!("{workload}, {} model", flags.model.system().name());
    report::page(&title, &sections(flags, system, runs))
}

fn sections(flags: &SimCommand, system: &SimulatedSystem<'_>, runs: &[PolicyRuns]) -> Vec<Section> {
    let section = |id: &str, title: &str, text: String, block: Block| Section {
        id: id.to_owned(),
        title: title.to_owned(),
        text: vec![text],
        blocks: vec![block],
    };
    let stations = ["map", "shuffle", "reduce"];
    let capacity: Vec<String> = system
        .capacity()
        .iter()
        .zip(stations)
        .filter(|(capacity, _)| capacity.is_finite())
        .map(|(capacity, station)| format!("{station} {capacity}"))
        .collect();
    let run = format!(
        "{} from {} on; capacity: {}. Means over the seeds, with half widths of their 95 % intervals.",
        counted(u64::from(flags.seeds), "seed", "seeds"),
        flags.seed,
        capacity.join(", ")
    );
    vec![
        section("metrics", "Metrics", run, Block::Table(metrics_table(runs))),
        section(
            "flow-times",
            "Flow times",
            "The part of all jobs of all seeds that ends within this time of its arrival.".to_owned(),
            Block::Chart(flow_times(runs)),
        ),
        section(
            "slowdown",
            "Slowdown by size",
            "Mean of flow time / time alone, by the time that a job takes when no other is there.".to_owned(),
            Block::Chart(slowdown_chart(runs)),
        ),
    ]
}

fn metrics_table(runs: &[PolicyRuns]) -> Table {
    let known = |metric: &&Metric| runs.iter().any(|runs| interval(runs, **metric).is_some());
    let mut columns = vec![Column::new("metric", ""), Column::new("unit", ""), Column::new("meaning", "")];
    columns.extend(runs.iter().map(|runs| Column::new(&runs.policy, "")));
    let rows = Metric::ALL.iter().filter(known).map(|&metric| {
        let declaration = metric.declaration();
        let mut row = [declaration.name, declaration.unit, declaration.meaning].map(Cell::text).to_vec();
        row.extend(runs.iter().map(|runs| match interval(runs, metric) {
            Some(interval) => Cell::Number { value: interval.mean, half_width: interval.half_width },
            None => Cell::Empty,
        }));
        row
    });
    Table { id: "metrics".to_owned(), caption: "All metrics".to_owned(), columns, rows: rows.collect() }
}

fn flow_times(runs: &[PolicyRuns]) -> Chart {
    let series = runs.iter().map(|runs| {
        // A logarithmic axis has no 0.
        let points =
            output::flow_times(runs).distribution().into_iter().filter(|&(value, _)| 0.0 < value).collect();
        Series { name: runs.policy.clone(), points, ..Series::default() }
    });
    Chart {
        id: "flow-times".to_owned(),
        caption: "Distribution of flow times".to_owned(),
        x: Axis::logarithmic("flow time, s"),
        y: Axis::linear("part of the jobs"),
        kind: ChartKind::Steps,
        series: series.collect(),
    }
}

fn slowdown_chart(runs: &[PolicyRuns]) -> Chart {
    let name = |from: f64, to: f64| match to.is_finite() {
        true => format!("{from}–{to}"),
        false => format!("from {from}"),
    };
    let buckets = runs.first().map(slowdowns).unwrap_or_default();
    let names = buckets.iter().map(|bucket| name(bucket.from, bucket.to));
    let series = runs.iter().map(|runs| {
        let buckets = slowdowns(runs);
        let points = buckets.iter().enumerate().filter_map(|(place, bucket)| {
            let mean = bucket.mean.filter(|&mean| 0.0 < mean)?;
            Some((place as f64, mean))
        });
        Series { name: runs.policy.clone(), points: points.collect(), ..Series::default() }
    });
    Chart {
        id: "slowdown".to_owned(),
        caption: "Mean slowdown by size".to_owned(),
        x: Axis::names("time alone, s", names),
        y: Axis::logarithmic("mean slowdown"),
        kind: ChartKind::Lines,
        series: series.collect(),
    }
}

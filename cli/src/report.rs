//! `job report JOB`: all records of a job on one self-contained page, to be sent to a colleague.

use crate::advice::advice;
use crate::summary;
use crate::trace::{LANES_FROM, Rows};
use gristmill_lab::report::{
    Axis, Block, Cell, Chart, ChartKind, Column, ReportTable, Section, Series, page,
};
use gristmill_runtime::api::{AttemptEnd, AttemptRecord, JobTrace, PathStep};
use gristmill_scheduler::ids::{TaskKind, WorkerId};
use gristmill_scheduler::units::Span;
use gristmill_worker::sanitize;
use std::collections::BTreeMap;

/// Bars of a chart and rows of a table: more are unreadable.
const BARS_MAX: usize = 2_000;
const ROWS_MAX: usize = 500;

/// The page.
pub fn html(trace: &JobTrace) -> String {
    let status = &trace.status;
    let title = format!("{} {}: {}", status.job, sanitize::line(&status.name, 100), status.state.word());
    let mut sections = vec![summary_section(trace)];
    let advice = advice(trace);
    if !advice.is_empty() {
        let rows = advice.into_iter().map(|words| vec![Cell::text(words)]).collect();
        let table =
            ReportTable::new("advice", "Where the numbers show it", Column::list(&[("advice", "")]), rows);
        sections.push(Section::new(
            "advice",
            "What could be done better",
            [""; 0],
            vec![Block::Table(table)],
        ));
    }
    sections
        .extend([path_section(trace), slots_section(trace), attempts_section(trace)].into_iter().flatten());
    page(&title, &sections)
}

/// The lines of the summary in a terminal.
fn summary_section(trace: &JobTrace) -> Section {
    let lines = summary::lines(&trace.status, Some(&trace.status.output.to_string()));
    let rows =
        lines.into_iter().map(|(name, value)| vec![Cell::text(name), Cell::text(sanitize::message(&value))]);
    let columns = Column::list(&[("", ""), ("", "")]);
    let table = ReportTable::new("summary", "As the master counted it", columns, rows.collect());
    let parameters = format!("Parameters: `{}`", sanitize::line(&trace.status.parameters, 1000));
    Section::new("summary", "The job", [parameters], vec![Block::Table(table)])
}

/// Parts of the flow time.
fn path_section(trace: &JobTrace) -> Option<Section> {
    if trace.path.is_empty() {
        return None;
    }
    let columns = Column::list(&[("from", ""), ("took", ""), ("", "")]);
    let row = |step: &PathStep| {
        let took = step.until_ns.saturating_sub(step.from_ns);
        vec![span(step.from_ns), span(took), Cell::text(sanitize::message(&step.what))]
    };
    let rows = trace.path.iter().map(row).collect();
    let table = ReportTable::new("path", "Each step waited for the one before it", columns, rows);
    Some(Section::new("path", "Critical path", [""; 0], vec![Block::Table(table)]))
}

/// Attempts by slot and fetches by worker.
fn slots_section(trace: &JobTrace) -> Option<Section> {
    let arrived = trace.status.arrived_ns;
    let end = trace.status.ended_ns.unwrap_or(trace.status.now_ns);
    let mut rows = Rows::default();
    let mut bars: Vec<(&str, WorkerId, usize, u64, u64)> = Vec::new();
    for record in trace.attempts.iter().take(BARS_MAX) {
        let from = record.started_ns.unwrap_or(record.launched_ns);
        let until = record.ended_ns.unwrap_or(end).max(from);
        let name = match (&record.end, record.attempt.task.kind) {
            (AttemptEnd::Succeeded | AttemptEnd::Running, TaskKind::Map) => "map",
            (AttemptEnd::Succeeded | AttemptEnd::Running, TaskKind::Reduce) => "reduce",
            _ => "discarded",
        };
        bars.push((name, record.worker, rows.place(record.worker, 0, from, until), from, until));
    }
    let carried = trace.fetches.iter().filter(|fetch| 0 < fetch.bytes);
    for fetch in carried.take(BARS_MAX) {
        let until = fetch.ended_ns.max(fetch.started_ns);
        let row = rows.place(fetch.to, LANES_FROM, fetch.started_ns, until);
        bars.push(("fetch", fetch.to, row, fetch.started_ns, until));
    }
    if bars.is_empty() {
        return None;
    }
    let mut keys: Vec<(WorkerId, usize)> = bars.iter().map(|bar| (bar.1, bar.2)).collect();
    keys.sort_unstable();
    keys.dedup();
    let name = |(worker, row): &(WorkerId, usize)| match row.checked_sub(LANES_FROM) {
        None => format!("{worker} slot {row}"),
        Some(lane) => format!("{worker} lane {lane}"),
    };
    let seconds = |ns: u64| ns.saturating_sub(arrived) as f64 / 1e9;
    let mut points: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (kind, worker, row, from, until) in bars {
        let height = keys.binary_search(&(worker, row)).unwrap_or_default() as f64;
        points.entry(kind).or_default().extend([(seconds(from), height), (seconds(until), height)]);
    }
    let axes =
        [Axis::linear("time since the job's arrival, s"), Axis::names("slot or lane", keys.iter().map(name))];
    let series = points.into_iter().map(|(name, points)| Series::new(name, points)).collect();
    let caption = "Attempts in slots, and transfers in lanes";
    let chart = Chart::new(ChartKind::Spans, "slots", caption, axes, series);
    let text = match BARS_MAX < trace.attempts.len().max(trace.fetches.len()) {
        true => vec![format!("The first {BARS_MAX} attempts and transfers.")],
        false => Vec::new(),
    };
    Some(Section::new("slots", "What ran where and when", text, vec![Block::Chart(chart)]))
}

fn attempts_section(trace: &JobTrace) -> Option<Section> {
    if trace.attempts.is_empty() {
        return None;
    }
    let columns = Column::list(&[
        ("attempt", ""),
        ("worker", ""),
        ("started", ""),
        ("took", ""),
        ("read", "records"),
        ("end", ""),
        ("why then and there", ""),
    ]);
    let arrived = trace.status.arrived_ns;
    let rows = trace.attempts.iter().take(ROWS_MAX).map(|record| attempt_row(record, arrived)).collect();
    let table = ReportTable::new("attempts", "Attempts in the order of launching", columns, rows);
    let text = match ROWS_MAX < trace.attempts.len() || 0 < trace.omitted {
        true => vec![format!("The first {ROWS_MAX} of {}.", trace.attempts.len() as u64 + trace.omitted)],
        false => Vec::new(),
    };
    Some(Section::new("attempts", "Attempts", text, vec![Block::Table(table)]))
}

/// A time in units that people read.
fn span(ns: u64) -> Cell {
    Cell::text(Span(ns).to_string())
}

fn attempt_row(record: &AttemptRecord, arrived: u64) -> Vec<Cell> {
    let began = record.started_ns.unwrap_or(record.launched_ns);
    let end = match &record.end {
        AttemptEnd::Running => "running".to_owned(),
        AttemptEnd::Succeeded => "succeeded".to_owned(),
        AttemptEnd::Lost => "lost with its worker".to_owned(),
        end => end.shown().map(|(class, words)| format!("{class}: {words}")).unwrap_or_default(),
    };
    vec![
        Cell::text(record.attempt.file_name()),
        Cell::text(record.worker.to_string()),
        span(began.saturating_sub(arrived)),
        record.ended_ns.map_or(Cell::Empty, |ended| span(ended.saturating_sub(began))),
        record.report.as_ref().map(|report| Cell::number(report.records_in as f64)).unwrap_or(Cell::Empty),
        Cell::text(sanitize::message(&end)),
        Cell::text(sanitize::message(&record.reason)),
    ]
}

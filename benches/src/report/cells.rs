//! Formats the Markdown tables of the benchmark report, and the figures in their cells: mostly medians over runs,
//! without the warm-up.

use crate::archive::{ArchiveEntry, Finding};
use crate::measure::MeasuredRun;
use crate::stats::{median, range};

/// Formats a table in Markdown, with columns aligned for readers of the plain text.
pub(super) fn table(header: &[&str], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let padded = cells.zip(&widths).map(|(cell, &width)| format!(" {cell:<width$} "));
        format!("|{}|\n", padded.collect::<Vec<_>>().join("|"))
    };
    let mut text = line(&mut header.iter().map(|cell| (*cell).to_owned()));
    text.push_str(&line(&mut widths.iter().map(|&width| "-".repeat(width))));
    for cells in lines {
        text.push_str(&line(&mut cells.iter().cloned()));
    }
    text
}

/// Returns names in the order of their first entry.
pub(super) fn names(entries: &[ArchiveEntry], of: impl Fn(&ArchiveEntry) -> &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        if names.iter().all(|name| name != of(entry)) {
            names.push(of(entry).to_owned());
        }
    }
    names
}

/// Returns all entries of a contestant in a row.
pub(super) fn entries_of<'a>(
    entries: &'a [ArchiveEntry],
    row: &str,
    contestant: &str,
) -> Vec<&'a ArchiveEntry> {
    entries.iter().filter(|entry| entry.label.row == row && entry.label.contestant == contestant).collect()
}

/// Returns the runs that count.
pub(super) fn counted<'a>(entries: &[&'a ArchiveEntry]) -> Vec<&'a MeasuredRun> {
    let measured = entries.iter().map(|entry| match &entry.finding {
        Finding::Run { round: 1.., measured, .. } => Some(&**measured),
        _ => None,
    });
    measured.flatten().collect()
}

/// Returns the last reason why a measurement was not possible.
pub(super) fn absent<'a>(entries: &[&'a ArchiveEntry]) -> Option<&'a str> {
    let mut reasons = entries.iter().filter_map(|entry| match &entry.finding {
        Finding::Absent { reason } => Some(reason.as_str()),
        _ => None,
    });
    reasons.next_back()
}

/// Returns the times that a command measured itself, with the tasks in each.
pub(super) fn samples<'a>(entries: &[&'a ArchiveEntry]) -> Option<(&'a [f64], u64)> {
    let mut samples = entries.iter().filter_map(|entry| match &entry.finding {
        Finding::Samples { seconds, tasks } => Some((seconds.as_slice(), *tasks)),
        _ => None,
    });
    samples.next_back()
}

/// Returns the median of one figure over runs.
pub(super) fn middle(runs: &[&MeasuredRun], figure: impl Fn(&MeasuredRun) -> f64) -> Option<f64> {
    median(&runs.iter().map(|run| figure(run)).collect::<Vec<_>>())
}

/// Formats the range of the wall times, seconds.
pub(super) fn spread(runs: &[&MeasuredRun]) -> String {
    let walls: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
    range(&walls)
        .map_or_else(String::new, |(least, greatest)| format!("{}..{}", seconds(least), seconds(greatest)))
}

/// Formats seconds with three significant digits.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        0.0..0.1 => format!("{seconds:.3}"),
        0.1..10.0 => format!("{seconds:.2}"),
        _ => format!("{seconds:.1}"),
    }
}

pub(super) fn optional(value: Option<f64>, write: impl Fn(f64) -> String) -> String {
    value.map_or_else(String::new, write)
}

pub(super) fn mebibytes(bytes: f64) -> String {
    format!("{:.0}", bytes / f64::from(1 << 20))
}

pub(super) fn verdict(is_met: bool) -> String {
    if is_met { "met" } else { "**not met**" }.to_owned()
}

/// Shortens a reason to one line.
pub(super) fn short(reason: &str) -> String {
    reason.lines().map(str::trim).collect::<Vec<_>>().join(" / ")
}

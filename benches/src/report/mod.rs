//! Report of the archive: Markdown with each figure next to the command that produced it.
//!
//! A pure function of the archive and the machine, so it can be created again at any time.

mod others;
mod rows;

use crate::archive::{ArchiveEntry, BenchSection, Finding};
use crate::machine::MachineFacts;
use crate::measure::MeasuredRun;
use crate::stats::{median, range};
use gristmill::scheduler::units::Bytes;
use std::fmt::Write;

/// Function that writes one section.
type Writer = fn(&[ArchiveEntry]) -> String;

/// Returns the whole report.
pub fn report(entries: &[ArchiveEntry], machine: &MachineFacts, legend: &[(&str, &str)]) -> String {
    let mut text = format!("# Measurements of {}\n\n{}", machine.day, machine_text(machine));
    let sections: [(BenchSection, Writer); 3] = [
        (BenchSection::Table, rows::section),
        (BenchSection::Latency, others::latency),
        (BenchSection::Scaling, others::scaling),
    ];
    for (section, write) in sections {
        let own: Vec<ArchiveEntry> =
            entries.iter().filter(|entry| entry.label.section == section).cloned().collect();
        if !own.is_empty() {
            text.push_str(&write(&own));
        }
    }
    text.push_str("\n## Variables in commands\n\n");
    for (name, what) in legend {
        let _ = writeln!(text, "- `{name}`: {what}");
    }
    text
}

fn machine_text(machine: &MachineFacts) -> String {
    let changed = if machine.changed { ", with changes" } else { "" };
    let commit = machine.commit.as_deref().unwrap_or("unknown");
    let kind = if machine.is_virtual { "virtual machine, " } else { "" };
    let versions: Vec<String> =
        machine.versions.iter().map(|(name, version)| format!("{name}: {version}")).collect();
    format!(
        "Commit {commit}{changed}.\n{kind}{}, {} cores, {} of memory, {}, outputs on {}.\n{}.\n\n\
         Made by `scripts/bench.sh`; every single run is in `runs.jsonl`, the machine in `machine.json`.\n\
         Wall time is from before the fork until the process is reaped; processor time is that of all descendants; \
         private memory is the peak of anonymous and shared memory over all live descendants, looked at every 20 ms, \
         with spills in memory-backed file systems.\n\
         Inputs are in the page cache, outputs are removed and the disk is synced before each run, outside the clock.\n",
        machine.processor,
        machine.cores,
        Bytes(machine.memory_bytes),
        machine.kernel,
        machine.output_file_system,
        versions.join("; "),
    )
}

/// Formats a table in Markdown, with columns aligned for readers of the plain text.
fn table(header: &[&str], lines: &[Vec<String>]) -> String {
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
fn names(entries: &[ArchiveEntry], of: impl Fn(&ArchiveEntry) -> &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        if names.iter().all(|name| name != of(entry)) {
            names.push(of(entry).to_owned());
        }
    }
    names
}

/// Returns all entries of a contestant in a row.
fn of<'a>(entries: &'a [ArchiveEntry], row: &str, contestant: &str) -> Vec<&'a ArchiveEntry> {
    entries.iter().filter(|entry| entry.label.row == row && entry.label.contestant == contestant).collect()
}

/// Returns the runs that count.
fn counted<'a>(entries: &[&'a ArchiveEntry]) -> Vec<&'a MeasuredRun> {
    let measured = entries.iter().map(|entry| match &entry.finding {
        Finding::Run { round: 1.., measured, .. } => Some(&**measured),
        _ => None,
    });
    measured.flatten().collect()
}

/// Returns the last reason why a measurement was not possible.
fn absent<'a>(entries: &[&'a ArchiveEntry]) -> Option<&'a str> {
    let mut reasons = entries.iter().filter_map(|entry| match &entry.finding {
        Finding::Absent { reason } => Some(reason.as_str()),
        _ => None,
    });
    reasons.next_back()
}

/// Returns the times that a command measured itself, with the tasks in each.
fn samples<'a>(entries: &[&'a ArchiveEntry]) -> Option<(&'a [f64], u64)> {
    let mut samples = entries.iter().filter_map(|entry| match &entry.finding {
        Finding::Samples { seconds, tasks } => Some((seconds.as_slice(), *tasks)),
        _ => None,
    });
    samples.next_back()
}

/// Returns the median of one figure over runs.
fn middle(runs: &[&MeasuredRun], figure: impl Fn(&MeasuredRun) -> f64) -> Option<f64> {
    median(&runs.iter().map(|run| figure(run)).collect::<Vec<_>>())
}

/// Formats the range of the wall times, seconds.
fn spread(runs: &[&MeasuredRun]) -> String {
    let walls: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
    range(&walls)
        .map_or_else(String::new, |(least, greatest)| format!("{}..{}", seconds(least), seconds(greatest)))
}

/// Formats seconds with three significant digits.
fn seconds(seconds: f64) -> String {
    match seconds {
        0.0..0.1 => format!("{seconds:.3}"),
        0.1..10.0 => format!("{seconds:.2}"),
        _ => format!("{seconds:.1}"),
    }
}

fn optional(value: Option<f64>, write: impl Fn(f64) -> String) -> String {
    value.map_or_else(String::new, write)
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.0}", bytes / f64::from(1 << 20))
}

fn verdict(is_met: bool) -> String {
    if is_met { "met" } else { "**not met**" }.to_owned()
}

/// Shortens a reason to one line.
fn short(reason: &str) -> String {
    reason.lines().map(str::trim).collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests;

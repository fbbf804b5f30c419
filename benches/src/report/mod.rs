//! Report of the archive: Markdown with each figure next to the command that produced it.
//!
//! A pure function of the archive and the machine, so it can be created again at any time.

mod cells;
mod others;
mod rows;

use crate::archive::{ArchiveEntry, BenchSection};
use crate::machine::MachineFacts;
use gristmill::scheduler::units::Bytes;
use std::fmt::Write;

/// Function that writes one section.
type Writer = fn(&[ArchiveEntry]) -> String;

/// Returns the whole report.
pub fn report(entries: &[ArchiveEntry], machine: &MachineFacts, legend: &[(&str, &str)]) -> String {
    let mut text = format!("# Measurements of {}\n\n{}", machine.day, machine_text(machine));
    let sections: [(BenchSection, Writer); 2] =
        [(BenchSection::Table, rows::section), (BenchSection::Latency, others::latency)];
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

#[cfg(test)]
mod tests;

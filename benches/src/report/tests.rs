//! Tests of the report of benchmarks, on measurements that are written down here.

use super::cells::*;
use super::*;
use crate::archive::Finding;
use crate::archive::RunLabel;
use crate::measure::CommandEnd;
use crate::measure::MeasuredRun;
use std::collections::BTreeMap;

fn machine() -> MachineFacts {
    MachineFacts {
        day: "2026-03-31".to_owned(),
        processor: "Mill 3000".to_owned(),
        cores: 2,
        is_virtual: true,
        memory_bytes: 8 << 30,
        kernel: "Linux 6".to_owned(),
        output_file_system: "ext4".to_owned(),
        huge_pages: String::new(),
        commit: None,
        changed: false,
        versions: BTreeMap::new(),
        data_bytes: BTreeMap::new(),
        data_maker: String::new(),
    }
}

fn measured(wall_s: f64) -> MeasuredRun {
    MeasuredRun {
        ended: CommandEnd::Exited(0),
        wall_s,
        user_s: wall_s,
        system_s: 0.0,
        peak_resident_bytes: 20 << 20,
        peak_private_bytes: 10 << 20,
        samples: 1,
        others_cpu_s: 0.0,
        stolen_s: 0.0,
    }
}

fn label(section: BenchSection, row: &str, contestant: &str) -> RunLabel {
    let command = format!("run-{contestant}");
    RunLabel { invocation: 1, section, row: row.to_owned(), contestant: contestant.to_owned(), command }
}

fn run(section: BenchSection, row: &str, contestant: &str, round: u32, wall_s: f64) -> ArchiveEntry {
    let measured = measured(wall_s);
    let finding = Finding::Run { round, measured: Box::new(measured), digest: None, input_bytes: None };
    ArchiveEntry { label: label(section, row, contestant), finding }
}

fn report_of(entries: &[ArchiveEntry]) -> String {
    report(entries, &machine(), &[("$OUT", "output")])
}

/// Returns the line of a report that contains all of these.
fn line<'a>(report: &'a str, parts: &[&str]) -> &'a str {
    let found = report.lines().find(|line| parts.iter().all(|part| line.contains(part)));
    found.unwrap_or_else(|| panic!("no line with {parts:?} in:\n{report}"))
}

#[test]
fn tables_are_aligned() {
    let text = table(&["a", "long"], &[vec!["1234".to_owned(), "x".to_owned()]]);
    assert_eq!(text, "| a    | long |\n| ---- | ---- |\n| 1234 | x    |\n");
}

#[test]
fn summary_compares_medians_and_leaves_out_the_warm_up() {
    let row = "join-repartition";
    let runs = |who: &str, walls: [f64; 4]| {
        let one = |(round, wall_s): (usize, f64)| run(BenchSection::Table, row, who, round as u32, wall_s);
        walls.into_iter().enumerate().map(one).collect::<Vec<_>>()
    };
    let entries =
        [runs("ours", [99.0, 3.0, 2.0, 9.0]), runs("limit", [99.0, 2.0, 2.0, 1.0]), runs("DuckDB", [9.0; 4])];
    let report = report_of(&entries.concat());
    let summary = line(&report, &["join-repartition", "2 x limit"]);
    assert!(
        summary.contains("| 1.50 ") && summary.contains("| met, few runs ") && !summary.contains("not met"),
        "{summary}"
    );
    assert!(summary.contains("DuckDB 9.00 s") && summary.contains("| 3.00 "), "{summary}");
    line(&report, &["ours", "2.00..9.00"]);
    line(&report, &["- ours: `run-ours`"]);
}

#[test]
fn wall_times_that_spread_widely_are_called_noisy() {
    let runs = |who: &str, walls: [f64; 5]| {
        let one = |wall_s| run(BenchSection::Table, "join-repartition", who, 1, wall_s);
        walls.map(one).to_vec()
    };
    let of = |limit| report_of(&[runs("ours", [1.0; 5]), runs("limit", limit)].concat());
    line(&of([1.0, 1.0, 1.0, 1.0, 1.6]), &["| met, noisy", "| met "]);
    line(&of([1.0, 1.0, 1.0, 1.0, 1.4]), &["2 x limit", "| met  "]);
}

#[test]
fn target_that_is_missed_is_said_to_be() {
    let entries =
        [run(BenchSection::Table, "sort", "ours", 1, 5.0), run(BenchSection::Table, "sort", "limit", 1, 1.0)];
    line(&report_of(&entries), &["sort", "5.00", "**not met**"]);
}

#[test]
fn row_without_a_limit_program_is_judged_by_its_own_reference() {
    let of = |row: &str, against: &str, wall_s| {
        let one = |who: &str, wall_s| run(BenchSection::Table, row, who, 1, wall_s);
        report_of(&[one("ours", wall_s), one(against, 1.0)])
    };
    line(&of("grep-small-files", "ripgrep", 1.1), &["1 x ripgrep", "1.10", "**not met**"]);
    line(&of("grep-small-files", "ripgrep", 0.9), &["1 x ripgrep", "0.90", "| met, few runs"]);
    line(&of("wordcount-gzip", "unpacking, then ours", 1.3), &["1.2 x unpacking, then ours", "**not met**"]);
    line(&of("wordcount-distinct", "ours, ample memory", 1.4), &["1.3 x ours, ample memory", "**not met**"]);
}

#[test]
fn row_without_its_reference_is_not_judged() {
    let reason = Finding::Absent { reason: "$LIMIT is not there".to_owned() };
    let absent = ArchiveEntry { label: label(BenchSection::Table, "sort", "limit"), finding: reason };
    let report = report_of(&[run(BenchSection::Table, "sort", "ours", 1, 5.0), absent]);
    line(&report, &["sort", "1.3 x limit", "not measured"]);
    line(&report, &["- limit: `run-limit` — not measured: $LIMIT is not there"]);
}

#[test]
fn latency_is_judged_by_the_median_and_rates_by_tasks() {
    let samples = |row: &str, seconds: Vec<f64>, tasks| ArchiveEntry {
        label: label(BenchSection::Latency, row, "ours"),
        finding: Finding::Samples { seconds, tasks },
    };
    let report = report_of(&[
        samples("warm-job", vec![0.002, 0.001, 0.020], 2),
        samples("tasks-10000", vec![1.0, 1.0, 1.0], 10_001),
    ]);
    line(&report, &["< 2.5 ms", "2.00 ms", "20.00 ms", " met "]);
    line(&report, &["> 20000 tasks/s", "10001 tasks/s", "**not met**"]);
}

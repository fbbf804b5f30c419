//! Table of whole jobs compared with other systems.

use super::cells::{
    absent, counted, entries_of, mebibytes, middle, names, optional, seconds, short, spread, table, verdict,
};
use crate::archive::ArchiveEntry;
use crate::measure::MeasuredRun;
use crate::rows::{BenchRow, NOT_PEERS, ROWS};
use crate::stats::range;
use std::fmt::Write;

/// Minimum number of runs of each contestant for a ratio.
const RUNS_MIN: usize = 5;

/// Ratio of the slowest run to the fastest above which wall times are noisy.
const SPREAD_MAX: f64 = 1.5;

/// Returns the summary first, then each row with all contestants.
pub fn section(entries: &[ArchiveEntry]) -> String {
    let measured = names(entries, |entry| &entry.label.row);
    let rows = || ROWS.into_iter().filter(|row| measured.iter().any(|name| name == row.name));
    let header = [
        "job",
        "target: ours at most",
        "ours s",
        "wall ratio",
        "user CPU ratio",
        "by wall time",
        "by user CPU",
        "strongest peer",
        "peer / ours",
        "synced / limit synced",
    ];
    let lines: Vec<Vec<String>> = rows().map(|row| summary(entries, &row)).collect();
    let mut text = format!("\n## Whole jobs\n\n{}", table(&header, &lines));
    for row in rows() {
        text.push_str(&one(entries, &row));
    }
    text
}

/// Returns the runs of one contestant that count.
fn runs<'a>(entries: &'a [ArchiveEntry], row: &BenchRow, contestant: &str) -> Vec<&'a MeasuredRun> {
    counted(&entries_of(entries, row.name, contestant))
}

/// Returns the ratio of our median to that of another contestant.
fn ratio(
    entries: &[ArchiveEntry],
    row: &BenchRow,
    pair: [&str; 2],
    figure: fn(&MeasuredRun) -> f64,
) -> Option<f64> {
    let [ours, other] = pair.map(|who| middle(&runs(entries, row, who), figure));
    Some(ours? / other?)
}

/// Returns the peer with the smallest median wall time, and that time.
fn strongest(entries: &[ArchiveEntry], row: &BenchRow) -> Option<(String, f64)> {
    let peers = names(entries, |entry| &entry.label.contestant);
    let peers = peers.into_iter().filter(|name| !NOT_PEERS.contains(&name.as_str()));
    let timed = peers
        .filter_map(|name| middle(&runs(entries, row, &name), |run| run.wall_s).map(|wall| (name, wall)));
    timed.min_by(|one, other| one.1.total_cmp(&other.1))
}

fn summary(entries: &[ArchiveEntry], row: &BenchRow) -> Vec<String> {
    let target = row.target;
    let against = ["ours", target.against];
    let ours = middle(&runs(entries, row, "ours"), |run| run.wall_s);
    let wall = ratio(entries, row, against, |run| run.wall_s);
    let user = ratio(entries, row, against, |run| run.user_s);
    let synced = ratio(entries, row, ["ours, synced", "limit, synced"], |run| run.wall_s);
    let peer = strongest(entries, row);
    vec![
        row.name.to_owned(),
        format!("{} x {}", target.times, target.against),
        optional(ours, seconds),
        optional(wall, times),
        optional(user, times),
        judged(wall, target.times, doubt(entries, row)),
        judged(user, target.times, ""),
        peer.as_ref().map_or_else(String::new, |(name, wall)| format!("{name} {} s", seconds(*wall))),
        optional(peer.zip(ours).map(|((_, wall), ours)| wall / ours), times),
        optional(synced, times),
    ]
}

fn judged(ratio: Option<f64>, most: f64, doubt: &str) -> String {
    ratio.map_or_else(|| "not measured".to_owned(), |ratio| verdict(ratio <= most) + doubt)
}

/// Returns a reason to doubt a ratio of wall times.
fn doubt(entries: &[ArchiveEntry], row: &BenchRow) -> &'static str {
    let both = ["ours", row.target.against].map(|who| runs(entries, row, who));
    let is_wide = |runs: &Vec<&MeasuredRun>| {
        let walls: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
        range(&walls).is_some_and(|(least, greatest)| SPREAD_MAX * least < greatest)
    };
    if both.iter().any(|runs| runs.len() < RUNS_MIN) {
        ", few runs"
    } else if both.iter().any(is_wide) {
        ", noisy"
    } else {
        ""
    }
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// Table of all contestants of a row, fastest first, with their commands.
fn one(entries: &[ArchiveEntry], row: &BenchRow) -> String {
    let own: Vec<ArchiveEntry> =
        entries.iter().filter(|entry| entry.label.row == row.name).cloned().collect();
    let mut contestants: Vec<(String, Vec<&MeasuredRun>)> = names(&own, |entry| &entry.label.contestant)
        .into_iter()
        .map(|name| (name.clone(), runs(entries, row, &name)))
        .collect();
    let wall = |runs: &[&MeasuredRun]| middle(runs, |run| run.wall_s).unwrap_or(f64::INFINITY);
    contestants.sort_by(|one, other| wall(&one.1).total_cmp(&wall(&other.1)));
    let limit = runs(entries, row, "limit");
    let header = [
        "who",
        "wall s",
        "min..max",
        "user s",
        "system s",
        "private MiB",
        "resident MiB",
        "wall / limit",
        "user / limit",
        "runs",
        "others' CPU s",
        "stolen s",
    ];
    let lines = contestants.iter().filter(|(_, runs)| !runs.is_empty()).map(|(name, runs)| {
        let text =
            |figure: fn(&MeasuredRun) -> f64, write: fn(f64) -> String| optional(middle(runs, figure), write);
        let over = |figure: fn(&MeasuredRun) -> f64| {
            optional(middle(runs, figure).zip(middle(&limit, figure)).map(|(one, limit)| one / limit), times)
        };
        vec![
            name.clone(),
            text(|run| run.wall_s, seconds),
            spread(runs),
            text(|run| run.user_s, seconds),
            text(|run| run.system_s, seconds),
            text(|run| run.peak_private_bytes as f64, mebibytes),
            text(|run| run.peak_resident_bytes as f64, mebibytes),
            over(|run| run.wall_s),
            over(|run| run.user_s),
            runs.len().to_string(),
            text(|run| run.others_cpu_s, seconds),
            text(|run| run.stolen_s, seconds),
        ]
    });
    let mut text =
        format!("\n### {}: {}\n\n{}\n", row.name, row.title, table(&header, &lines.collect::<Vec<_>>()));
    for (name, _) in &contestants {
        let entries = entries_of(&own, row.name, name);
        let Some(first) = entries.first() else { continue };
        let _ = write!(text, "- {name}: `{}`", first.label.command);
        match absent(&entries) {
            Some(reason) => writeln!(text, " — not measured: {}", short(reason)),
            None => writeln!(text),
        }
        .unwrap_or_default();
    }
    let quoted: Vec<String> =
        row.quoted.iter().map(|quoted| format!("{} {} s", quoted.system, quoted.wall_s)).collect();
    if quoted.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "- Quoted, not run here (RESULTS.md of `$PEERS`, two cores, the same files): {}.",
        quoted.join(", ")
    );
    text
}

//! Sections of the benchmark report on small jobs and on scaling, as Markdown tables: latency and tasks per second,
//! then growth of time and memory. The section on whole jobs is in `rows`.

use super::cells::{
    absent, counted, entries_of, mebibytes, middle, names, optional, samples, seconds, short, spread, table,
    verdict,
};
use crate::archive::{ArchiveEntry, Finding};
use crate::latency::{ALL, Goal, Small};
use crate::scaling::SERIES;
use crate::stats::{median, percentile};
use std::fmt::Write;

/// Table of small jobs and many tasks.
pub fn latency(entries: &[ArchiveEntry]) -> String {
    let header =
        ["what", "who", "target", "median", "95 % within", "", "times", "quoted (RESULTS.md of `$PEERS`)"];
    let (mut lines, mut commands) = (Vec::new(), String::new());
    for small in ALL {
        let own: Vec<ArchiveEntry> =
            entries.iter().filter(|entry| entry.label.row == small.name).cloned().collect();
        for who in names(&own, |entry| &entry.label.contestant) {
            let entries = entries_of(&own, small.name, &who);
            if let Some(first) = entries.first() {
                let _ = writeln!(commands, "- {}, {who}: `{}`", small.name, first.label.command);
            }
            lines.push(latency_line(small, &who, &entries));
        }
    }
    format!("\n## Small jobs and many tasks\n\n{}\n{commands}", table(&header, &lines))
}

fn latency_line(small: Small, who: &str, entries: &[&ArchiveEntry]) -> Vec<String> {
    let runs = counted(entries);
    let walls: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
    let (times, tasks) = samples(entries).unwrap_or((&walls, 0));
    // A high rate is a short time: 95 % of the rates are above that of the 95th percentile of times.
    let (middle, most) = (median(times), percentile(times, 95.0));
    let rate = |seconds: f64| format!("{:.0} tasks/s", tasks as f64 / seconds);
    let milliseconds = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let write = |value| if tasks < 100 { optional(value, milliseconds) } else { optional(value, rate) };
    let (target, is_met) = match (small.goal, middle) {
        (Goal::MillisecondsMax(most), middle) => {
            (format!("< {most} ms"), middle.map(|middle| middle * 1e3 < most))
        }
        (Goal::TasksPerSecondMin(least), middle) => {
            (format!("> {least} tasks/s"), middle.map(|middle| least < tasks as f64 / middle))
        }
    };
    let is_ours = who == "ours";
    vec![
        small.title.to_owned(),
        who.to_owned(),
        if is_ours { target } else { String::new() },
        absent(entries).map_or_else(|| write(middle), |reason| format!("not measured: {}", short(reason))),
        write(most),
        is_met.filter(|_| is_ours).map_or_else(String::new, verdict),
        times.len().to_string(),
        if is_ours { small.quoted.to_owned() } else { String::new() },
    ]
}

/// Tables of scaling, one for each series and job.
pub fn scaling(entries: &[ArchiveEntry]) -> String {
    let mut text = String::from("\n## Growth\n");
    let rows = names(entries, |entry| &entry.label.row);
    for series in SERIES {
        let is_own = |row: &&String| {
            row.strip_prefix(series.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        for row in rows.iter().filter(is_own) {
            let _ = write!(text, "\n### {row}: {}\n\n", series.title);
            text.push_str(&growth(entries, row));
        }
    }
    text
}

/// Table of the points of one row.
fn growth(entries: &[ArchiveEntry], row: &str) -> String {
    let header = ["setting", "wall s", "min..max", "user s/GB", "MB/s", "tasks/s", "private MiB"];
    let own: Vec<ArchiveEntry> = entries.iter().filter(|entry| entry.label.row == row).cloned().collect();
    let mut lines = Vec::new();
    let mut commands = String::new();
    for setting in names(&own, |entry| &entry.label.contestant) {
        let entries = entries_of(&own, row, &setting);
        let Some(first) = entries.first() else { continue };
        let _ = writeln!(commands, "- {setting}: `{}`", first.label.command);
        let runs = counted(&entries);
        if let Some(reason) = absent(&entries).filter(|_| runs.is_empty()) {
            lines.push(vec![setting, format!("not measured: {}", short(reason))]);
            continue;
        }
        let gigabytes = gigabytes(&entries);
        let wall = middle(&runs, |run| run.wall_s);
        let rate = samples(&entries).and_then(|(times, tasks)| Some(tasks as f64 / median(times)?));
        lines.push(vec![
            setting,
            optional(wall, seconds),
            spread(&runs),
            optional(middle(&runs, |run| run.user_s).zip(gigabytes).map(|(user, size)| user / size), seconds),
            optional(wall.zip(gigabytes).map(|(wall, size)| size * 1e3 / wall), |rate| format!("{rate:.0}")),
            optional(rate, |rate| format!("{rate:.0}")),
            optional(middle(&runs, |run| run.peak_private_bytes as f64), mebibytes),
        ]);
    }
    format!("{}\n{commands}", table(&header, &lines))
}

/// Returns gigabytes (10^9) of input of the runs.
fn gigabytes(entries: &[&ArchiveEntry]) -> Option<f64> {
    entries.iter().find_map(|entry| match &entry.finding {
        Finding::Run { input_bytes, .. } => input_bytes.map(|bytes| bytes as f64 / 1e9),
        _ => None,
    })
}

//! Section of the benchmark report on small jobs, as a Markdown table: latency and tasks per second. The section on
//! whole jobs is in `rows`.

use super::cells::{absent, counted, entries_of, names, optional, samples, short, table, verdict};
use crate::archive::ArchiveEntry;
use crate::latency::{ALL, Goal, Small};
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

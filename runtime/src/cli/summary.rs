//! What a person reads when a job has ended.

use crate::api::{JobState, JobStatus};
use gristmill_scheduler::units::{Bytes, Span};
use std::fmt::Write;

/// Incidents in a summary: the first ones tell most.
const INCIDENTS_SHOWN: usize = 8;

/// One line, for a job among several.
pub fn line(status: &JobStatus) -> String {
    format!(
        "{} {}: {} of input, {} records out, flow {}",
        status.job,
        status.name,
        Bytes(status.totals.map_bytes_in),
        grouped(status.totals.records_out),
        Span(status.flow_ns())
    )
}

/// The summary, several lines, each with its unit.
pub fn text(status: &JobStatus, output: Option<&str>) -> String {
    let mut out = String::new();
    let state = match status.state {
        JobState::Succeeded => "succeeded",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
        JobState::Waiting | JobState::Running => "running",
    };
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<10} {value}");
    };
    let totals = &status.totals;
    line("time", times(status));
    line(
        "input",
        format!(
            "{} records, {} in {} split(s): {}",
            grouped(totals.map_records_in),
            Bytes(totals.map_bytes_in),
            status.maps.total,
            locality(status)
        ),
    );
    if 0 < status.reduces.total {
        line(
            "shuffle",
            format!(
                "{} pairs emitted, {} of map output, {} over HTTP",
                grouped(totals.map_records_out),
                Bytes(totals.map_bytes_out),
                Bytes(totals.shuffle_bytes)
            ),
        );
    }
    let place = output.map_or_else(String::new, |output| format!(" in {output}"));
    line(
        "output",
        format!(
            "{} records, {} in {} part(s){place}",
            grouped(totals.records_out),
            Bytes(totals.bytes_out),
            status.parts.len()
        ),
    );
    line("attempts", attempts(status));
    line(
        "resources",
        format!(
            "{} of slot CPU, worker peak {}, {} spill(s) of {}",
            Span(totals.cpu_ns),
            Bytes(totals.worker_memory_peak_bytes),
            totals.spills,
            Bytes(totals.spilled_bytes)
        ),
    );
    line(
        "memory",
        format!(
            "budget {} a worker, at most {} of it kept between tasks",
            Bytes(totals.worker_memory_budget_bytes),
            Bytes(totals.worker_kept_peak_bytes)
        ),
    );
    for (name, count) in &status.counters {
        line("counter", format!("{name} = {}", grouped(*count)));
    }
    for remark in &status.remarks {
        line("remark", remark.clone());
    }
    for incident in status.incidents.iter().take(INCIDENTS_SHOWN) {
        line("incident", incident.clone());
    }
    let more = status.incidents.len().saturating_sub(INCIDENTS_SHOWN) as u64 + status.incidents_omitted;
    if 0 < more {
        line("incident", format!("{more} more; --json lists the last {}", status.incidents.len()));
    }
    format!("{} {} {state}\n{out}", status.job, status.name)
}

/// Flow time and its parts.
fn times(status: &JobStatus) -> String {
    let since = |later: Option<u64>, earlier: Option<u64>| match (later, earlier) {
        (Some(later), Some(earlier)) => Some(Span(later.saturating_sub(earlier))),
        _ => None,
    };
    let mut text = format!("flow {}, waiting {}", Span(status.flow_ns()), Span(status.waiting_ns()));
    if let Some(map) = since(status.maps_done_ns, status.started_ns) {
        let _ = write!(text, ", map {map}");
    }
    let maps_done = status.maps_done_ns;
    if let Some(rest) = since(status.shuffle_done_ns.max(maps_done), maps_done)
        && 0 < status.reduces.total
    {
        let _ = write!(text, ", rest of shuffle {rest}");
    }
    if let Some(reduce) = since(status.ended_ns, status.shuffle_done_ns.max(maps_done))
        && 0 < status.reduces.total
    {
        let _ = write!(text, ", reduce {reduce}");
    }
    text
}

fn locality(status: &JobStatus) -> String {
    let totals = &status.totals;
    format!(
        "{} local, {} same host, {} remote",
        totals.splits_local, totals.splits_same_host, totals.splits_remote
    )
}

fn attempts(status: &JobStatus) -> String {
    let attempts = &status.attempts;
    let mut text = format!("{} launched", attempts.launched);
    let mut add = |count: u32, what: &str| {
        if 0 < count {
            let _ = write!(text, ", {count} {what}");
        }
    };
    add(attempts.failed_user, "failed in user code");
    add(attempts.failed_other, "failed otherwise");
    add(attempts.lost, "lost with a worker");
    add(attempts.cancelled, "cancelled");
    add(attempts.maps_rerun, "map(s) run again");
    text
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if 0 < at && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(123_456_789), "123,456,789");
    }
}

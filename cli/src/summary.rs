//! Summary of a job that has ended.

use gristmill_runtime::api::{JobState, JobStatus, JobTotals, NamedBadRecord};
use gristmill_runtime::output_dir::BAD_RECORDS;
use gristmill_runtime::plural::{counted, noun};
use gristmill_scheduler::units::{Bytes, Span};
use std::fmt::Write;

/// Incidents in a summary: the first ones matter most.
const INCIDENTS_SHOWN: usize = 8;

/// Bad records in the summary of a job that failed.
const BAD_RECORDS_SHOWN: usize = 100;

/// Returns one line, for a job among several.
pub fn line(status: &JobStatus) -> String {
    format!(
        "{} {}: {} of input, {} out, flow {}",
        status.job,
        status.name,
        Bytes(status.totals.map_bytes_in),
        records(status.totals.records_out),
        Span(status.flow_ns())
    )
}

fn records(number: u64) -> String {
    format!("{} {}", grouped(number), noun(number, "record", "records"))
}

/// Tardiness of a job, now or at its end, nanoseconds; `None` without a deadline.
pub fn tardiness_ns(status: &JobStatus) -> Option<u64> {
    let at = status.ended_ns.unwrap_or(status.now_ns);
    status.deadline_ns.map(|deadline| at.saturating_sub(deadline))
}

/// Returns the summary in several lines, each with its unit.
pub fn text(status: &JobStatus, output: Option<&str>) -> String {
    let mut out = format!("{} {} {}\n", status.job, status.name, status.state.word());
    for (name, value) in lines(status, output) {
        // Further lines are below the first.
        let _ = writeln!(out, "  {name:<10} {}", value.replace('\n', "\n             "));
    }
    out
}

/// Returns the lines of the summary with their names.
pub fn lines(status: &JobStatus, output: Option<&str>) -> Vec<SummaryLine> {
    [data(status, output), costs(status), remarks(status)].concat()
}

/// Line of the summary: its name and its text.
pub type SummaryLine = (&'static str, String);

/// Times, input and output.
fn data(status: &JobStatus, output: Option<&str>) -> Vec<SummaryLine> {
    let totals = &status.totals;
    let mut lines = vec![("time", times(status))];
    lines.extend(wall_times(status).map(|words| ("at", words)));
    lines.extend(deadline(status).map(|words| ("deadline", words)));
    if ended_badly(status) && totals.map_records_in == 0 {
        return lines;
    }
    let input = format!(
        "{}, {} in {}: {}",
        records(totals.map_records_in),
        Bytes(totals.map_bytes_in),
        counted(status.maps.total.into(), "split", "splits"),
        locality(status)
    );
    lines.push(("input", input));
    if 0 < status.reduces.total {
        let shuffle = format!(
            "{} {} emitted, {} of map output, {} over HTTP",
            grouped(totals.map_records_out),
            noun(totals.map_records_out, "pair", "pairs"),
            Bytes(totals.map_bytes_out),
            Bytes(totals.shuffle_bytes)
        );
        lines.push(("shuffle", shuffle));
    }
    if ended_badly(status) {
        return lines;
    }
    let place = output.map_or_else(String::new, |output| format!(" in {output}"));
    let output = format!(
        "{}, {} in {}{place}",
        records(totals.records_out),
        Bytes(totals.bytes_out),
        counted(status.parts.len() as u64, "part", "parts")
    );
    lines.push(("output", output));
    lines
}

/// True if the job has no result: then lines of zeros are left out.
fn ended_badly(status: &JobStatus) -> bool {
    matches!(status.state, JobState::Failed | JobState::Cancelled)
}

/// Resources that the job used.
fn costs(status: &JobStatus) -> Vec<SummaryLine> {
    let totals = &status.totals;
    let resources = format!(
        "{} of slot CPU, worker peak {}, {} of {}",
        Span(totals.cpu_ns),
        Bytes(totals.worker_memory_peak_bytes),
        counted(totals.spills, "spill", "spills"),
        Bytes(totals.spilled_bytes)
    );
    let mut lines = vec![("attempts", attempts(status))];
    if ended_badly(status) && totals.slot_ns == 0 {
        return if status.attempts.launched == 0 { Vec::new() } else { lines };
    }
    lines.extend([("resources", resources), ("slots", slots(totals))]);
    if 0 < totals.suspensions {
        let suspended =
            format!("{}, {} in all", counted(totals.suspensions, "time", "times"), Span(totals.suspended_ns));
        lines.push(("suspended", suspended));
    }
    if 0 < totals.transfers_damaged {
        let repeated = counted(
            totals.transfers_damaged,
            "damaged transfer was repeated",
            "damaged transfers were repeated",
        );
        lines.push(("network", repeated));
    }
    let memory = format!(
        "budget {} a worker, at most {} of it kept between tasks",
        Bytes(totals.worker_memory_budget_bytes),
        Bytes(totals.worker_kept_peak_bytes)
    );
    lines.push(("memory", memory));
    lines
}

/// Counters, remarks and incidents.
fn remarks(status: &JobStatus) -> Vec<SummaryLine> {
    let counters =
        status.counters.iter().map(|(name, count)| ("counter", format!("{name} = {}", grouped(*count))));
    let remarks = status.remarks.iter().map(|remark| ("remark", remark.clone()));
    let incidents =
        status.incidents.iter().take(INCIDENTS_SHOWN).map(|incident| ("incident", incident.clone()));
    let bad = bad_records(status);
    let mut lines: Vec<SummaryLine> = counters.chain(bad).chain(remarks).chain(incidents).collect();
    let more = status.incidents.len().saturating_sub(INCIDENTS_SHOWN) as u64 + status.incidents_omitted;
    if 0 < more {
        let words = format!("{more} more; --json lists the last {}", status.incidents.len());
        lines.push(("incident", words));
    }
    lines
}

/// Records that were skipped: the file that lists them or, if the job failed, the list.
fn bad_records(status: &JobStatus) -> Vec<SummaryLine> {
    let bad = &status.bad_records;
    if bad.is_empty() {
        return Vec::new();
    }
    if status.state == JobState::Succeeded {
        let place = status.output.to_path().join(BAD_RECORDS);
        return vec![("bad records", format!("{}, named in {}", bad.len(), place.display()))];
    }
    let name = |bad: &NamedBadRecord| format!("byte {} of {}: {}", bad.offset, bad.path, bad.reason);
    let mut lines: Vec<SummaryLine> =
        bad.iter().take(BAD_RECORDS_SHOWN).map(|bad| ("bad record", name(bad))).collect();
    if BAD_RECORDS_SHOWN < bad.len() {
        lines.push(("bad record", format!("{} more; --json lists all", bad.len() - BAD_RECORDS_SHOWN)));
    }
    lines
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

/// Wall times of submission, start and end.
fn wall_times(status: &JobStatus) -> Option<String> {
    let mut text = format!("submitted {}", status.submitted_at.as_ref()?);
    for (what, at) in [("started", &status.started_at), ("ended", &status.ended_at)] {
        if let Some(at) = at {
            let _ = write!(text, ", {what} {at}");
        }
    }
    Some(text)
}

/// Deadline, whether it was met, and the estimate at the job's arrival.
fn deadline(status: &JobStatus) -> Option<String> {
    let deadline_ns = status.deadline_ns?;
    let span = Span(deadline_ns.saturating_sub(status.arrived_ns));
    let mut text = match (status.ended_ns, tardiness_ns(status)?) {
        (Some(ended_ns), 0) => format!("{span} met, {} to spare", Span(deadline_ns - ended_ns)),
        (Some(_), late) => format!("{span} missed, tardiness {}", Span(late)),
        (None, 0) => format!("{span}, {} left", Span(deadline_ns.saturating_sub(status.now_ns))),
        (None, late) => format!("{span}, late by {} so far", Span(late)),
    };
    if let Some(outlook) = &status.deadline_outlook {
        let _ = write!(text, "; at arrival: {}", outlook.words);
    }
    Some(text)
}

/// Shares of the time of slots. Time that is neither work nor pacing is waiting: asleep, for a disk or for a core.
fn slots(totals: &JobTotals) -> String {
    let JobTotals { slot_ns, paced_ns, cpu_ns, .. } = *totals;
    let waiting = slot_ns.saturating_sub(cpu_ns).saturating_sub(paced_ns);
    let share = |ns: u64| 100.0 * ns as f64 / (slot_ns.max(1)) as f64;
    let mut text = format!("{} held: {:.0} % working", Span(slot_ns), share(cpu_ns));
    if 0 < paced_ns {
        let _ = write!(text, ", {:.0} % paced", share(paced_ns));
    }
    let _ = write!(text, ", {:.0} % waiting (asleep, or for a disk or a core)", share(waiting));
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
    add(attempts.failed_other, "failed outside user code");
    add(attempts.lost, "lost with a worker");
    add(attempts.cancelled, "cancelled");
    add(attempts.maps_rerun, noun(attempts.maps_rerun.into(), "map run again", "maps run again"));
    if 0 < attempts.backups {
        let spent = Span(attempts.backup_slot_ns);
        let _ = write!(
            text,
            "; {}, of which {} ended first, for {spent} of slots",
            counted(attempts.backups.into(), "speculative attempt", "speculative attempts"),
            attempts.backups_won
        );
    }
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
    use super::*;
    use serde_json::json;

    const SECOND: u64 = 1_000_000_000;

    /// A job that arrived after one second, started at once and ended after eleven; all other values are
    /// zero.
    fn status(totals: &JobTotals, deadline_ns: Option<u64>) -> JobStatus {
        let counts = json!({"total": 1, "running": 0, "done": 1});
        let attempts = json!({
            "launched": 1, "failed_user": 0, "failed_other": 0, "lost": 0, "cancelled": 0, "maps_rerun": 0
        });
        let status = json!({
            "schema": 1, "job": 1, "name": "test", "parameters": "{}", "state": "succeeded", "maps": counts,
            "reduces": counts, "segments_total": 1, "input_bytes": 0, "input_bytes_read": 0, "arrived_ns": SECOND,
            "started_ns": SECOND, "maps_done_ns": SECOND, "shuffle_done_ns": SECOND, "ended_ns": 11 * SECOND,
            "now_ns": 11 * SECOND, "totals": totals, "attempts": attempts, "counters": {}, "parts": [],
            "incidents": [], "incidents_omitted": 0, "failure": null, "remarks": [], "workers": 1, "slots": 4,
            "output": "/out", "deadline_ns": deadline_ns,
        });
        serde_json::from_value(status).unwrap()
    }

    fn totals(slot: u64, cpu: u64, paced: u64) -> JobTotals {
        let [slot_ns, cpu_ns, paced_ns] = [slot, cpu, paced].map(|seconds| seconds * SECOND);
        JobTotals { slot_ns, cpu_ns, paced_ns, ..JobTotals::default() }
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(123_456_789), "123,456,789");
    }

    #[test]
    fn a_job_that_failed_has_no_lines_of_nothing() {
        let failed = |totals: &JobTotals| JobStatus { state: JobState::Failed, ..status(totals, None) };
        let zero = JobTotals::default();
        let nothing = text(&JobStatus { attempts: Default::default(), ..failed(&zero) }, None);
        assert_eq!(
            nothing,
            "job-1 test failed\n  time       flow 10.00 s, waiting 0 ns, map 0 ns, rest of shuffle 0 ns, reduce 10.00 s\n"
        );
        let some = JobTotals { map_records_in: 7, ..totals(20, 5, 5) };
        let some = text(&failed(&some), None);
        assert!(
            some.contains("  input      7 records")
                && some.contains("  attempts ")
                && some.contains("  slots ")
        );
        assert!(!some.contains("  output "), "{some}");
        assert!(text(&status(&JobTotals::default(), None), None).contains("  output     0 records"));
    }

    #[test]
    fn deadline_is_met_or_missed_by_a_time() {
        let words = |deadline_ns| deadline(&status(&JobTotals::default(), deadline_ns));
        assert_eq!(words(None), None);
        assert_eq!(words(Some(13 * SECOND)).unwrap(), "12.00 s met, 2.00 s to spare");
        assert_eq!(words(Some(11 * SECOND)).unwrap(), "10.00 s met, 0 ns to spare");
        assert_eq!(words(Some(8 * SECOND)).unwrap(), "7.00 s missed, tardiness 3.00 s");
        let running = JobStatus { ended_ns: None, ..status(&JobTotals::default(), Some(8 * SECOND)) };
        assert_eq!(deadline(&running).unwrap(), "7.00 s, late by 3.00 s so far");
    }

    #[test]
    fn slot_time_is_work_pacing_and_waiting() {
        let words = slots(&totals(20, 5, 5));
        assert_eq!(
            words,
            "20.00 s held: 25 % working, 25 % paced, 50 % waiting (asleep, or for a disk or a core)"
        );
        assert!(!slots(&totals(20, 5, 0)).contains("paced"));
    }
}

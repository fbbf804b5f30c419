//! Advice on a job that has ended, each with the number that supports it.
//!
//! A pure function of the job's trace. It gives none where a number is missing or small: users stop reading advice that
//! was wrong once.

use gristmill_runtime::api::{AttemptEnd, AttemptRecord, JobState, JobTrace};
use gristmill_runtime::plural::counted;
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::units::{Bytes, Span};
use std::collections::BTreeMap;

/// Flow time below which a job gets no advice.
pub const FLOW_MIN: Span = Span::whole_seconds(1);

/// Smallest ratio of a skewed partition to the mean of the others, and smallest difference in bytes.
const SKEW_MIN: f64 = 2.0;
const SKEW_BYTES_MIN: f64 = (1 << 20) as f64;

/// Smallest ratio of a straggler's time to the median, smallest difference, and largest ratio of its input to the median
/// input.
const STRAGGLER_MIN: f64 = 2.0;
const STRAGGLER_SPAN_MIN: u64 = 1_000_000_000;
const STRAGGLER_INPUT_MAX: f64 = 1.5;
/// Smallest number of tasks for a median.
const MEDIAN_OF_MIN: usize = 4;

/// Bytes of input below which the number of splits does not matter.
const SPLIT_BYTES_MIN: u64 = 16 << 20;

/// Smallest number of spilled bytes that is reported.
const SPILLED_MIN: u64 = 1 << 20;

/// Returns the advice on a job, the most important first.
pub fn advice(trace: &JobTrace) -> Vec<String> {
    let status = &trace.status;
    if status.state != JobState::Succeeded || status.flow_ns() < FLOW_MIN.0 {
        return Vec::new();
    }
    let single = [
        skew(trace),
        straggler(trace, TaskKind::Map),
        straggler(trace, TaskKind::Reduce),
        few_splits(trace),
        spills(trace),
    ];
    single.into_iter().flatten().collect()
}

/// Successful attempts, one for each task of a kind.
fn winners(trace: &JobTrace, kind: TaskKind) -> BTreeMap<u32, &AttemptRecord> {
    let of_kind = trace.attempts.iter().filter(|record| record.attempt.task.kind == kind);
    let well = of_kind.filter(|record| matches!(record.end, AttemptEnd::Succeeded));
    well.map(|record| (record.attempt.task.index, record)).collect()
}

/// Time that an attempt worked, without pacing and suspensions.
fn worked_ns(record: &AttemptRecord) -> Option<u64> {
    let span = record.ended_ns?.saturating_sub(record.started_ns?);
    let report = record.report.as_ref()?;
    Some(span.saturating_sub(report.paced_ns).saturating_sub(report.suspended_ns))
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

fn skew(trace: &JobTrace) -> Option<String> {
    let reduces = winners(trace, TaskKind::Reduce);
    let read: Vec<(u32, f64)> = reduces
        .iter()
        .filter_map(|(index, record)| Some((*index, record.report.as_ref()?.bytes_in as f64)))
        .collect();
    if read.len() < 2 || read.len() != trace.status.reduces.total as usize {
        return None;
    }
    // A skewed partition that was divided delayed nothing, and its reduces have parts of it.
    if trace.status.segments_total != u64::from(trace.status.maps.total) * read.len() as u64 {
        return None;
    }
    let all: f64 = read.iter().map(|(_, bytes)| bytes).sum();
    let others = read.len() - 1;
    let (index, most) = read.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    // The mean of the others: with itself included, one of two partitions could never be twice as large.
    let mean = (all - most) / others as f64;
    let more = match mean {
        0.0 => "all that there was".to_owned(),
        mean => format!("{:.1} times the mean of the other {others}", most / mean),
    };
    (SKEW_MIN * mean <= most && SKEW_BYTES_MIN <= most - mean).then(|| {
        format!(
            "reduce-{index} read {}, {more}: look for a key that many records share; where the job allows it, a combiner or \
             a key with a second component spreads it",
            Bytes(most as u64),
        )
    })
}

fn straggler(trace: &JobTrace, kind: TaskKind) -> Option<String> {
    let tasks = winners(trace, kind);
    let known: Vec<(u32, &AttemptRecord, u64, u64)> = tasks
        .into_iter()
        .filter_map(|(index, record)| {
            Some((index, record, worked_ns(record)?, record.report.as_ref()?.bytes_in))
        })
        .collect();
    if known.len() < MEDIAN_OF_MIN {
        return None;
    }
    let usual = median(known.iter().map(|task| task.2).collect());
    let usual_bytes = median(known.iter().map(|task| task.3).collect());
    let (index, record, took, bytes) =
        known.into_iter().max_by_key(|task| (task.2, std::cmp::Reverse(task.0)))?;
    let slow = STRAGGLER_MIN * usual as f64 <= took as f64 && STRAGGLER_SPAN_MIN <= took - usual;
    (slow && bytes as f64 <= STRAGGLER_INPUT_MAX * usual_bytes as f64).then(|| {
        format!(
            "{kind}-{index} took {} on {}, where the median is {}, though it read no more than others: look at that worker, or \
             at what its records ask of the code",
            Span(took),
            record.worker,
            Span(usual)
        )
    })
}

fn few_splits(trace: &JobTrace) -> Option<String> {
    let status = &trace.status;
    // A compressed file is always one split, and tasks that generate records have none: no size would help.
    let cuttable = trace.cuttable_bytes.filter(|_| trace.had_all_slots)?;
    (0 < status.maps.total && status.maps.total < status.slots && SPLIT_BYTES_MIN <= cuttable).then(|| {
        format!(
            "{} for {} slots: the others had no map to run. --split-size {} would make about one for each",
            counted(u64::from(status.maps.total), "split", "splits"),
            status.slots,
            // Rounded up: the remainder would be one split more.
            cuttable.div_ceil(u64::from(status.slots)).max(1)
        )
    })
}

fn spills(trace: &JobTrace) -> Option<String> {
    let totals = &trace.status.totals;
    (0 < totals.spills && SPILLED_MIN <= totals.spilled_bytes).then(|| {
        format!(
            "{} went to disk, {} in all, with a budget of {} for each worker: more --memory keeps them in memory",
            counted(totals.spills, "run", "runs"),
            Bytes(totals.spilled_bytes),
            Bytes(totals.worker_memory_budget_bytes)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const SECOND: u64 = 1_000_000_000;
    const MIB: u64 = 1 << 20;

    /// A job that needs no advice: ten seconds, of which maps took seven, on four slots that were always
    /// held. Eight maps of three seconds read 64 MiB each, and four reduces of three seconds read 8 MiB each.
    fn calm() -> Value {
        let attempt = |kind: &str, index: u32, (from, until): (u64, u64), bytes: u64| {
            let report = json!({
                "started_ns": from, "ended_ns": until, "records_in": 1, "bytes_in": bytes, "records_out": 1, "bytes_out": 1,
                "spills": 0, "spilled_bytes": 0, "local_bytes": 0, "counters": [], "cpu_ns": until - from,
                "memory": {"peak_bytes": 1, "budget_bytes": 1, "kept_peak_bytes": 1}, "paced_ns": 0, "suspended_ns": 0,
                "suspensions": 0, "bad_records": [],
            });
            json!({
                "attempt": {"task": {"job": 1, "kind": kind, "index": index}, "epoch": 0}, "worker": 1, "launched_ns": from,
                "started_ns": from, "ended_ns": until, "end": "succeeded", "reason": "", "report": report,
            })
        };
        let maps = (0..8).map(|map| attempt("Map", map, (SECOND, 4 * SECOND), 64 * MIB));
        let reduces = (0..4).map(|index| attempt("Reduce", index, (8 * SECOND, 11 * SECOND), 8 * MIB));
        let counts = |total: u32| json!({"total": total, "running": 0, "done": total});
        let mut totals = serde_json::to_value(gristmill_runtime::api::JobTotals::default()).unwrap();
        totals["slot_ns"] = json!(36 * SECOND);
        totals["map_records_out"] = json!(1_000_000);
        totals["reduce_records_in"] = json!(1_000_000);
        let status = json!({
            "schema": 1, "job": 1, "name": "calm", "parameters": "{}", "state": "succeeded", "maps": counts(8),
            "reduces": counts(4), "segments_total": 32, "input_bytes": 512 * MIB, "input_bytes_read": 512 * MIB,
            "arrived_ns": SECOND, "started_ns": SECOND, "maps_done_ns": 8 * SECOND, "shuffle_done_ns": 8 * SECOND,
            "ended_ns": 11 * SECOND, "now_ns": 11 * SECOND, "totals": totals, "attempts": {
                "launched": 12, "failed_user": 0, "failed_other": 0, "lost": 0, "cancelled": 0, "maps_rerun": 0
            }, "counters": {}, "parts": [], "incidents": [], "incidents_omitted": 0, "failure": null, "remarks": [],
            "workers": 4, "slots": 4, "output": "/out",
        });
        json!({
            "status": status, "attempts": maps.chain(reduces).collect::<Vec<_>>(), "fetches": [], "omitted": 0,
            "combines": false, "cuttable_bytes": 512 * MIB, "had_all_slots": true,
        })
    }

    /// Returns the advice on the calm job with one change.
    fn advice_with(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut trace = calm();
        change(&mut trace);
        advice(&serde_json::from_value(trace).unwrap())
    }

    /// Checks that a change gives one piece of advice with this figure, and a smaller change none.
    fn check(figure: &str, loud: impl FnOnce(&mut Value), quiet: impl FnOnce(&mut Value)) {
        let said = advice_with(loud);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(figure), "{said:?}");
        assert_eq!(advice_with(quiet), [""; 0]);
    }

    #[test]
    fn a_calm_job_a_quick_one_and_a_failed_one_get_no_advice() {
        assert_eq!(advice_with(|_| ()), [""; 0]);
        let skewed = |trace: &mut Value| trace["attempts"][8]["report"]["bytes_in"] = json!(800 * MIB);
        assert_eq!(advice_with(skewed).len(), 1);
        let quick = |trace: &mut Value| {
            skewed(trace);
            trace["status"]["arrived_ns"] = json!(11 * SECOND - FLOW_MIN.0 + 1);
        };
        assert_eq!(advice_with(quick), [""; 0]);
        let failed = |trace: &mut Value| {
            skewed(trace);
            trace["status"]["state"] = json!("failed");
        };
        assert_eq!(advice_with(failed), [""; 0]);
    }

    #[test]
    fn skew_is_told_with_the_partition_and_how_far_it_is_from_the_mean() {
        let bytes =
            |mib: u64| move |trace: &mut Value| trace["attempts"][9]["report"]["bytes_in"] = json!(mib * MIB);
        check("reduce-1 read 40.0 MiB, 5.0 times the mean of the other 3", bytes(40), bytes(15));
    }

    #[test]
    fn skew_of_one_of_two_partitions_is_told_by_the_other_one() {
        let two = |mib: [u64; 2]| {
            move |trace: &mut Value| {
                trace["status"]["reduces"]["total"] = json!(2);
                trace["status"]["segments_total"] = json!(16);
                trace["attempts"].as_array_mut().unwrap().truncate(10);
                for (at, mib) in (8_usize..).zip(mib) {
                    trace["attempts"][at]["report"]["bytes_in"] = json!(mib * MIB);
                }
            }
        };
        check("reduce-0 read 30.0 MiB, 3.0 times the mean of the other 1", two([30, 10]), two([10, 10]));
        let divided = |trace: &mut Value| {
            two([0, 30])(trace);
            trace["status"]["segments_total"] = json!(8);
        };
        check("reduce-1 read 30.0 MiB, all that there was", two([0, 30]), two([16, 30]));
        assert_eq!(advice_with(divided), [""; 0], "both reduces have parts of one partition");
    }

    #[test]
    fn straggler_is_told_unless_it_had_more_to_read() {
        let slow = |trace: &mut Value| trace["attempts"][2]["ended_ns"] = json!(8 * SECOND);
        check("map-2 took 7.00 s on worker-1, where the median is 3.00 s", slow, |trace| {
            slow(trace);
            trace["attempts"][2]["report"]["bytes_in"] = json!(150 * MIB);
        });
        let paced = |trace: &mut Value| {
            slow(trace);
            trace["attempts"][2]["report"]["paced_ns"] = json!(4 * SECOND);
        };
        assert_eq!(advice_with(paced), [""; 0], "it was made to wait");
    }

    #[test]
    fn number_of_splits_is_told_where_slots_stay_empty() {
        let few = |bytes: u64| {
            move |trace: &mut Value| {
                trace["status"]["maps"]["total"] = json!(3);
                trace["cuttable_bytes"] = json!(bytes);
            }
        };
        check("3 splits for 4 slots", few(100 * MIB), few(MIB));
        check("--split-size 25000001 would make", few(100_000_001), few(MIB));
        let beside_others = |trace: &mut Value| {
            few(100 * MIB)(trace);
            trace["had_all_slots"] = json!(false);
        };
        assert_eq!(advice_with(beside_others), [""; 0], "others had the slots");
        assert_eq!(advice_with(few(0)), [""; 0], "no size cuts compressed files");
        let unknown = |trace: &mut Value| {
            few(100 * MIB)(trace);
            trace["cuttable_bytes"] = json!(null);
        };
        assert_eq!(advice_with(unknown), [""; 0], "an older master did not tell");
    }

    #[test]
    fn spills_are_told_with_their_bytes() {
        let spilled = |bytes: u64| {
            move |trace: &mut Value| {
                trace["status"]["totals"]["spills"] = json!(3);
                trace["status"]["totals"]["spilled_bytes"] = json!(bytes);
            }
        };
        check("3 runs went to disk, 64.0 MiB in all", spilled(64 * MIB), spilled(100));
    }
}

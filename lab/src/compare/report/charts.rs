//! Charts of a comparison.
//!
//! Not here: the text around them.

use super::text::SIMULATIONS;
use crate::compare::comparison::Comparison;
use crate::compare::record::{JobRun, RunRecord};
use crate::compare::series::{
    SlotRow, binned, busy_slots, lane_rows, makespan, received_bytes, receiving, slot_rows, slots_of,
};
use crate::compare::simulation_error::PHASES;
use crate::compare::statistics::{mean, sorted};
use crate::compare::summary::Summary;
use crate::report::{Axis, Chart, ChartKind, Series};
use gristmill_scheduler::metrics::{Metric, quantile};
use std::collections::BTreeMap;

/// Number of intervals into which a run is divided for curves over time.
const BINS: usize = 120;

/// Maximum number of jobs with a curve of their own. More jobs are grouped by kind.
const CURVES_MAX: usize = 8;

/// Number of classes of size.
const CLASSES: usize = 4;

/// Smallest visible gap, as a share of the run. Neighbours in a chart of slots are joined over smaller gaps.
const SEEN_LEAST: f64 = 1.0 / 1500.0;

/// Maximum number of rows of a chart of slots.
const ROWS_MAX: usize = 60;

/// Chart of the mean flow time, its 95 % quantile and its maximum under each policy.
pub(super) fn flow_times(summaries: &[Summary]) -> Chart {
    const SHOWN: [(Metric, &str); 3] =
        [(Metric::Flow, "mean"), (Metric::FlowP95, "95 % quantile"), (Metric::FlowMax, "maximum")];
    let series = summaries.iter().map(|summary| {
        let known = SHOWN
            .iter()
            .enumerate()
            .filter_map(|(place, (metric, _))| Some((place as f64, *summary.metrics.get(metric)?)));
        Series::means(&*summary.contender.name, known)
    });
    Chart::new(
        ChartKind::Bars,
        "flow-times",
        "Flow time under each policy, with intervals of 95 %",
        [Axis::names("", SHOWN.map(|(_, name)| name.to_owned())), Axis::linear("flow time, s")],
        series.collect(),
    )
}

/// Chart of the distribution of the flow times of all jobs of all repetitions.
pub(super) fn distribution(comparison: &Comparison) -> Chart {
    let series = comparison.contenders.iter().map(|contender| {
        let runs = comparison.runs_of(contender);
        let flows = sorted(runs.iter().flat_map(|run| run.jobs.iter().map(JobRun::flow)));
        let count = flows.len() as f64;
        let mut points: Vec<(f64, f64)> = flows.first().map(|&first| (first, 0.0)).into_iter().collect();
        points.extend(flows.iter().enumerate().map(|(place, &flow)| (flow, (place + 1) as f64 / count)));
        Series::new(&*contender.name, points)
    });
    Chart::new(
        ChartKind::Steps,
        "flow-time-distribution",
        "Flow time: share of the jobs that have ended within it",
        [Axis::linear("flow time, s"), Axis::linear("share of the jobs")],
        series.filter(|series| !series.points.is_empty()).collect(),
    )
}

/// Chart of the slowdown of small and large jobs, or of flow time if jobs alone were not measured.
pub(super) fn by_size(comparison: &Comparison) -> Option<Chart> {
    let slowdown = !comparison.alone.is_empty();
    let mut all: Vec<(&str, f64, f64)> = Vec::new();
    for run in &comparison.runs {
        let alone = if slowdown { comparison.alone_of(run.repetition) } else { BTreeMap::new() };
        for job in &run.jobs {
            let size = alone.get(&job.index).copied().unwrap_or(job.usage.work_seconds.iter().sum());
            let value = if slowdown { job.flow() / alone.get(&job.index)? } else { job.flow() };
            all.push((&run.contender.name, size, value));
        }
    }
    let sizes = sorted(all.iter().map(|job| job.1));
    let mut edges: Vec<f64> =
        (1..CLASSES).filter_map(|class| quantile(&sizes, class as f64 / CLASSES as f64)).collect();
    // Classes that differ by less than a tenth are merged.
    edges.dedup_by(|one, other| (*one - *other).abs() <= 0.1 * other.abs());
    let class_of = |size: f64| edges.iter().filter(|&&edge| edge < size).count();
    let names = (0..=edges.len()).map(|class| {
        let number = crate::report::number::number;
        match (class.checked_sub(1).map(|before| edges[before]), edges.get(class)) {
            (None, Some(&to)) => format!("to {}", number(to)),
            (Some(from), Some(&to)) => format!("{} to {}", number(from), number(to)),
            (Some(from), None) => format!("over {}", number(from)),
            (None, None) => "all".to_owned(),
        }
    });
    let series = comparison.contenders.iter().map(|contender| {
        let points = (0..=edges.len()).filter_map(|class| {
            let of = all.iter().filter(|job| job.0 == contender.name && class_of(job.1) == class);
            Some((class as f64, mean(of.map(|job| job.2))?))
        });
        Series::new(&*contender.name, points.collect())
    });
    let (what, unit, size) = match slowdown {
        true => ("Slowdown", "mean slowdown", "time alone on the cluster, s"),
        false => ("Flow time", "mean flow time, s", "slot-seconds of the job"),
    };
    Some(Chart::new(
        ChartKind::Bars,
        if slowdown { "slowdown-by-size" } else { "flow-time-by-size" }.to_owned(),
        format!("{what} by the size of the job, a quarter of the jobs in each class"),
        [Axis::names(size, names), Axis::linear(unit)],
        series.filter(|series| !series.points.is_empty()).collect(),
    ))
}

/// Chart of the phases of flow time, measured and simulated.
pub(super) fn phases(summaries: &[Summary]) -> Chart {
    let names = PHASES.map(str::to_owned);
    let bars =
        |phases: &[f64; 4]| phases.iter().enumerate().map(|(place, &phase)| (place as f64, phase)).collect();
    let mut series: Vec<Series> = Vec::new();
    for summary in summaries {
        series.push(Series::new(&*summary.contender.name, bars(&summary.phases)));
        for (what, of) in SIMULATIONS {
            let Some(error) = of(summary) else { continue };
            let name = format!("{} ({what})", summary.contender.name);
            series.push(Series::new(name, bars(&error.phases)).as_reference());
        }
    }
    Chart::new(
        ChartKind::Bars,
        "phases",
        "Where the mean flow time goes; dashed bars are simulated",
        [Axis::names("", names), Axis::linear("s")],
        series,
    )
}

/// Chart of the utilisation of the three stations over the time of a run.
pub(super) fn utilisation(run: &RunRecord) -> Chart {
    let end = makespan(run);
    let slots: f64 = run.workers.iter().map(|worker| f64::from(worker.slots)).sum::<f64>().max(1.0);
    let rates: Option<Vec<u64>> = run.workers.iter().map(|worker| worker.nic_bytes_per_second).collect();
    let rate: Option<u64> = rates.map(|rates| rates.iter().sum());
    let share = |steps: Vec<(f64, f64)>, of: f64| {
        binned(&steps, end, BINS).into_iter().map(|(time, value)| (time, 100.0 * value / of)).collect()
    };
    let network = match rate {
        Some(rate) if 0 < rate => share(received_bytes(run), rate as f64),
        _ => share(receiving(run), run.workers.len().max(1) as f64),
    };
    Chart::new(
        ChartKind::Lines,
        format!("stations-{}", run.contender.name),
        format!("How busy the stations are under `{}`", run.contender.name),
        [Axis::linear("time since the first arrival, s"), Axis::linear("share of the station, %")],
        vec![
            Series::new("maps", share(busy_slots(run, true), slots)),
            Series::new("shuffle", network),
            Series::new("reduces", share(busy_slots(run, false), slots)),
        ],
    )
}

/// Returns the name of a job in charts: its own while jobs are few, else that of its kind.
fn name_of(run: &RunRecord, job: &JobRun) -> String {
    match run.jobs.len() {
        count if count <= CURVES_MAX => format!("{} {}", job.index + 1, job.label),
        _ => job.label.clone(),
    }
}

/// Chart of the slots that each job, or each kind of job, holds over time.
pub(super) fn slots_per_job(run: &RunRecord) -> Chart {
    let mut changes: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for job in &run.jobs {
        let name = name_of(run, job);
        let mut before = 0.0;
        let own: Vec<(f64, f64)> = slots_of(run, job.index as u32)
            .into_iter()
            .map(|(time, now)| (time, now - std::mem::replace(&mut before, now)))
            .collect();
        match changes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.extend(own),
            None => changes.push((name, own)),
        }
    }
    Chart::new(
        ChartKind::Steps,
        format!("slots-per-job-{}", run.contender.name),
        format!("Slots held over time under `{}`", run.contender.name),
        [Axis::linear("time since the first arrival, s"), Axis::linear("slots")],
        changes
            .into_iter()
            .map(|(name, changes)| Series::new(name, crate::compare::series::level(changes)))
            .collect(),
    )
}

/// Chart of the attempts in each slot, and of the data that each worker received.
pub(super) fn slots_and_lanes(run: &RunRecord) -> Chart {
    let mut rows: Vec<SlotRow> = slot_rows(run).into_iter().chain(lane_rows(run)).collect();
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    // The first row is at the top.
    rows.reverse();
    let gap = makespan(run) * SEEN_LEAST;
    let mut series: Vec<Series> = Vec::new();
    for (height, (_, spans)) in rows.iter().enumerate() {
        for (name, from, to) in joined(run, spans, gap) {
            let place = series.iter().position(|one| one.name == name).unwrap_or_else(|| {
                series.push(Series::new(&*name, Vec::new()));
                series.len() - 1
            });
            series[place].points.extend([(from, height as f64), (to, height as f64)]);
        }
    }
    let order: Vec<String> = run.jobs.iter().map(|job| name_of(run, job)).collect();
    series.sort_by_key(|one| order.iter().position(|name| *name == one.name));
    let remark = if 0 < left_out { format!("; {left_out} more rows are not shown") } else { String::new() };
    Chart::new(
        ChartKind::Spans,
        format!("slots-and-lanes-{}", run.contender.name),
        format!(
            "Slots (`worker: slot`) and what workers receive (`worker: in`) under `{}`{remark}",
            run.contender.name
        ),
        [
            Axis::linear("time since the first arrival, s"),
            Axis::names("", rows.into_iter().map(|(name, _)| name)),
        ],
        series,
    )
}

/// Joins neighbours of one name whose gap is too small to be visible.
fn joined(run: &RunRecord, spans: &[(u32, f64, f64)], gap: f64) -> Vec<(String, f64, f64)> {
    let mut joined: Vec<(String, f64, f64)> = Vec::new();
    let mut spans = spans.to_vec();
    spans.sort_by(|one, other| one.1.total_cmp(&other.1));
    for (job, from, to) in spans {
        let Some(job) = run.jobs.get(job as usize) else { continue };
        let name = name_of(run, job);
        match joined.iter_mut().rev().take(CURVES_MAX).find(|last| last.0 == name && from <= last.2 + gap) {
            Some(last) => last.2 = last.2.max(to),
            None => joined.push((name, from, to)),
        }
    }
    joined
}

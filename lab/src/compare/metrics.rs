//! The metrics of a run, each declared once.
//!
//! Not here: means over the repetitions of a policy (`summary`), and curves (`series`).

use super::bound;
use super::record::{JobRun, RunRecord};
use super::series::{average, busy_slots, live_jobs, makespan, overcommitted, receiving, share_above};
use super::statistics::{mean, quantile, sorted};
use std::collections::BTreeMap;

/// A metric of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// For programs.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Its unit; empty for none.
    pub unit: &'static str,
    /// Of a run; `None` where it means nothing.
    of: fn(&Measures<'_>) -> Option<f64>,
}

/// What metrics are made of.
struct Measures<'a> {
    run: &'a RunRecord,
    flows: Vec<f64>,
    makespan: f64,
    slots: f64,
    /// Flow time alone, by index of the job.
    alone: &'a BTreeMap<usize, f64>,
    cores: Option<f64>,
}

impl Measures<'_> {
    fn mean(&self, of: impl Fn(&JobRun) -> f64) -> Option<f64> {
        mean(self.run.jobs.iter().map(of))
    }

    fn slowdowns(&self) -> Vec<f64> {
        sorted(self.run.jobs.iter().filter_map(|job| Some(job.flow() / self.alone.get(&job.index)?)))
    }

    fn slot_seconds(&self) -> f64 {
        self.run.spans.iter().map(|span| span.to - span.from).sum()
    }

    fn sum(&self, of: impl Fn(&JobRun) -> f64) -> f64 {
        self.run.jobs.iter().map(of).sum()
    }

    fn share_of_slots(&self, seconds: f64) -> Option<f64> {
        let all = self.slot_seconds();
        (0.0 < all).then(|| (100.0 * seconds / all).clamp(0.0, 100.0))
    }

    /// Jobs with a goal, and how late each was.
    fn tardiness(&self) -> Vec<f64> {
        self.run.jobs.iter().filter_map(JobRun::tardiness).collect()
    }
}

/// All metrics, in the order of the table.
pub const METRICS: &[Metric] = &[
    Metric { name: "flow_mean", title: "mean flow", unit: "s", of: |of| mean(of.flows.iter().copied()) },
    Metric { name: "flow_p50", title: "median flow", unit: "s", of: |of| quantile(&of.flows, 0.5) },
    Metric { name: "flow_p95", title: "p95 flow", unit: "s", of: |of| quantile(&of.flows, 0.95) },
    Metric { name: "flow_p99", title: "p99 flow", unit: "s", of: |of| quantile(&of.flows, 0.99) },
    Metric { name: "makespan", title: "makespan", unit: "s", of: |of| Some(of.makespan) },
    Metric { name: "waiting", title: "mean waiting", unit: "s", of: |of| of.mean(JobRun::waiting) },
    Metric { name: "execution", title: "mean execution", unit: "s", of: |of| of.mean(JobRun::execution) },
    Metric { name: "slowdown_mean", title: "mean slowdown", unit: "", of: |of| mean(of.slowdowns()) },
    Metric {
        name: "slowdown_p99",
        title: "p99 slowdown",
        unit: "",
        of: |of| quantile(&of.slowdowns(), 0.99),
    },
    Metric {
        name: "deadlines_met",
        title: "deadlines met",
        unit: "%",
        of: |of| mean(of.tardiness().into_iter().map(|late| if late <= 0.0 { 100.0 } else { 0.0 })),
    },
    Metric { name: "tardiness", title: "mean tardiness", unit: "s", of: |of| mean(of.tardiness()) },
    Metric {
        name: "efficiency_ratio",
        title: "total flow / SRPT bound",
        unit: "",
        of: |of| bound::efficiency(of.run),
    },
    Metric {
        name: "busy_maps",
        title: "slots busy with maps",
        unit: "%",
        of: |of| Some(100.0 * average(&busy_slots(of.run, true), of.makespan) / of.slots),
    },
    Metric {
        name: "busy_network",
        title: "workers receiving",
        unit: "%",
        of: |of| {
            let workers = of.run.workers.len().max(1) as f64;
            Some(100.0 * average(&receiving(of.run), of.makespan) / workers)
        },
    },
    Metric {
        name: "busy_reduces",
        title: "slots busy with reduces",
        unit: "%",
        of: |of| Some(100.0 * average(&busy_slots(of.run, false), of.makespan) / of.slots),
    },
    Metric {
        name: "free_slots",
        title: "slots free while jobs are there",
        unit: "",
        of: |of| {
            let live = 1.0 - share_of_time_empty(of.run, of.makespan);
            let busy = of.slot_seconds() / of.makespan;
            (0.0 < live && 0.0 < of.makespan).then(|| (of.slots - busy / live).max(0.0))
        },
    },
    Metric {
        name: "suspensions",
        title: "suspensions",
        unit: "",
        of: |of| Some(of.sum(|job| f64::from(job.usage.suspensions))),
    },
    Metric {
        name: "suspended",
        title: "suspended",
        unit: "s",
        of: |of| Some(of.sum(|job| job.usage.suspended_seconds)),
    },
    Metric {
        name: "slot_cpu",
        title: "slot time on a processor",
        unit: "%",
        of: |of| of.share_of_slots(of.sum(|job| job.usage.cpu_seconds)),
    },
    Metric {
        name: "slot_paced",
        title: "slot time paced",
        unit: "%",
        of: |of| of.share_of_slots(of.sum(|job| job.usage.paced_seconds)),
    },
    Metric {
        name: "slot_waiting",
        title: "slot time waiting or asleep",
        unit: "%",
        of: |of| {
            let all = of.slot_seconds();
            of.share_of_slots(all - of.sum(|job| job.usage.cpu_seconds + job.usage.paced_seconds))
        },
    },
    Metric {
        name: "overcommitted",
        title: "time with more working slots than cores",
        unit: "%",
        of: |of| Some(100.0 * overcommitted(of.run, of.makespan, of.cores?)),
    },
    Metric {
        name: "others_busy",
        title: "cores used by others than slots",
        unit: "%",
        of: |of| of.run.others_busy.map(|share| 100.0 * share),
    },
    Metric {
        name: "lateness",
        title: "latest arrival",
        unit: "ms",
        of: |of| of.run.jobs.iter().map(|job| 1e3 * (job.arrived - job.planned)).reduce(f64::max),
    },
    Metric {
        name: "wasted_attempts",
        title: "attempts wasted",
        unit: "",
        of: |of| Some(of.sum(|job| f64::from(job.usage.wasted_attempts))),
    },
];

fn share_of_time_empty(run: &RunRecord, makespan: f64) -> f64 {
    1.0 - share_above(&live_jobs(run), makespan, 0.0)
}

/// The place of a metric in [`METRICS`].
#[must_use]
pub fn place_of(name: &str) -> Option<usize> {
    METRICS.iter().position(|metric| metric.name == name)
}

/// All metrics of a run that mean something.
#[must_use]
pub fn metrics(run: &RunRecord, alone: &BTreeMap<usize, f64>) -> BTreeMap<&'static str, f64> {
    let measures = Measures {
        run,
        flows: sorted(run.jobs.iter().map(JobRun::flow)),
        makespan: makespan(run),
        slots: run.workers.iter().map(|worker| f64::from(worker.slots)).sum::<f64>().max(1.0),
        alone,
        cores: run.cores.map(f64::from),
    };
    let value =
        |metric: &Metric| Some((metric.name, (metric.of)(&measures).filter(|value| value.is_finite())?));
    METRICS.iter().filter_map(value).collect()
}

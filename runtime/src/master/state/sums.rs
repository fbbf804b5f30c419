//! Sums and counters over the attempts of one job.

use crate::api::JobTotals;
use gristmill_worker::clean;
use gristmill_worker::protocol::{AttemptReport, Measures};
use std::collections::BTreeMap;

/// Names of counters kept for one job; what later ones count is left out.
pub(super) const COUNTERS_MAX: usize = 1000;

/// Where a map read its split, seen from its worker.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(super) enum Nearness {
    /// From a disk that the worker sees.
    Local,
    /// Over HTTP from a process on the same host.
    SameHost,
    /// Over HTTP from another host.
    Remote,
}

/// Over the last good attempt of each map, and over everything else that was added.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Sums {
    pub(super) totals: JobTotals,
    pub(super) counters: BTreeMap<String, u64>,
    pub(super) measures: Measures,
    /// Counters were left out, and whether that has been reported.
    left_out: bool,
    left_out_reported: bool,
}

impl Sums {
    /// Adds a map to the sums, or takes it out again.
    pub(super) fn count_map(&mut self, report: &AttemptReport, nearness: Option<Nearness>, add: bool) {
        let totals = &mut self.totals;
        let numbers = [
            (&mut totals.map_records_in, report.records_in),
            (&mut totals.map_bytes_in, report.bytes_in),
            (&mut totals.map_records_out, report.records_out),
            (&mut totals.map_bytes_out, report.bytes_out),
        ];
        for (sum, number) in numbers {
            *sum = if add { sum.saturating_add(number) } else { sum.saturating_sub(number) };
        }
        let splits = match nearness {
            Some(Nearness::Local) => Some(&mut totals.splits_local),
            Some(Nearness::SameHost) => Some(&mut totals.splits_same_host),
            Some(Nearness::Remote) => Some(&mut totals.splits_remote),
            None => None,
        };
        if let Some(splits) = splits {
            *splits = if add { *splits + 1 } else { *splits - 1 };
        }
        if add {
            self.add(report);
        } else {
            self.subtract(report);
        }
    }

    /// Cleans the names of a report's counters, and leaves out more than a job may have.
    pub(super) fn tidy(&mut self, report: &mut AttemptReport) {
        self.left_out |= COUNTERS_MAX < report.counters.len();
        report.counters.truncate(COUNTERS_MAX);
        for (name, _) in &mut report.counters {
            if clean::check_name("the counter", name).is_err() {
                *name = clean::line(name, clean::NAME_BYTES_MAX);
            }
        }
        if !report.measures.is_empty() {
            report.measures = std::mem::take(&mut report.measures).tidied(|name| {
                match clean::check_name("the measure", &name) {
                    Ok(()) => name,
                    Err(_) => clean::line(&name, clean::NAME_BYTES_MAX),
                }
            });
        }
    }

    /// Whether counters were left out; true once.
    pub(super) fn begins_to_leave_out_counters(&mut self) -> bool {
        self.left_out && !std::mem::replace(&mut self.left_out_reported, true)
    }

    pub(super) fn add(&mut self, report: &AttemptReport) {
        for (sum, number) in [
            (&mut self.totals.spills, report.spills),
            (&mut self.totals.spilled_bytes, report.spilled_bytes),
            (&mut self.totals.cpu_ns, report.cpu_ns),
            (&mut self.totals.slot_ns, slot_ns(report)),
            (&mut self.totals.paced_ns, report.paced_ns),
            (&mut self.totals.suspended_ns, report.suspended_ns),
            (&mut self.totals.suspensions, u64::from(report.suspensions)),
        ] {
            // A worker may say what it likes.
            *sum = sum.saturating_add(number);
        }
        let peak = self.totals.worker_memory_peak_bytes.max(report.memory.peak_bytes);
        self.totals.worker_memory_peak_bytes = peak;
        let budget = &mut self.totals.worker_memory_budget_bytes;
        *budget = (*budget).max(report.memory.budget_bytes);
        let kept = &mut self.totals.worker_kept_peak_bytes;
        *kept = (*kept).max(report.memory.kept_peak_bytes);
        self.measures.merge(&report.measures, true);
        for (name, count) in &report.counters {
            let full = COUNTERS_MAX <= self.counters.len();
            match self.counters.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(*count),
                // No name ever goes, so what was left out does not come in later, and is not taken out again.
                None if full => self.left_out = true,
                None => drop(self.counters.insert(name.clone(), *count)),
            }
        }
    }

    fn subtract(&mut self, report: &AttemptReport) {
        self.totals.spills = self.totals.spills.saturating_sub(report.spills);
        self.totals.spilled_bytes = self.totals.spilled_bytes.saturating_sub(report.spilled_bytes);
        for (sum, number) in [
            (&mut self.totals.cpu_ns, report.cpu_ns),
            (&mut self.totals.slot_ns, slot_ns(report)),
            (&mut self.totals.paced_ns, report.paced_ns),
            (&mut self.totals.suspended_ns, report.suspended_ns),
            (&mut self.totals.suspensions, u64::from(report.suspensions)),
        ] {
            *sum = sum.saturating_sub(number);
        }
        self.measures.merge(&report.measures, false);
        for (name, count) in &report.counters {
            if let Some(sum) = self.counters.get_mut(name) {
                *sum = sum.saturating_sub(*count);
            }
        }
    }
}

/// How long an attempt held its slot, nanoseconds: while it was suspended it had none.
pub(super) fn slot_ns(report: &AttemptReport) -> u64 {
    report.ended_ns.saturating_sub(report.started_ns).saturating_sub(report.suspended_ns)
}

//! Sums and counters over the attempts of one job.

use crate::api::JobTotals;
use gristmill_worker::protocol::AttemptReport;
use gristmill_worker::sanitize;
use std::collections::BTreeMap;

/// Maximum number of counter names kept for one job. Further names are dropped.
pub(super) const COUNTERS_MAX: usize = 1000;

/// Distance between a map's worker and the split it read.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(super) enum Nearness {
    /// Read from a disk of the worker.
    Local,
    /// Read over HTTP from a process on the same host.
    SameHost,
    /// Read over HTTP from another host.
    Remote,
}

/// Sums over the last successful attempt of each map, and over every other report that was added.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Sums {
    pub(super) totals: JobTotals,
    pub(super) counters: BTreeMap<String, u64>,
    /// True if counters were dropped; `left_out_reported` is true once that was reported.
    left_out: bool,
    left_out_reported: bool,
}

impl Sums {
    /// Adds a map to the sums, or subtracts it again.
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

    /// Sanitizes the names of a report's counters, and drops those beyond a job's maximum.
    pub(super) fn tidy(&mut self, report: &mut AttemptReport) {
        self.left_out |= COUNTERS_MAX < report.counters.len();
        report.counters.truncate(COUNTERS_MAX);
        for (name, _) in &mut report.counters {
            if sanitize::check_name("the counter", name).is_err() {
                *name = sanitize::line(name, sanitize::NAME_BYTES_MAX);
            }
        }
    }

    /// Returns true once, when counters were dropped for the first time.
    pub(super) fn leaves_out_counters(&mut self) -> bool {
        self.left_out && !std::mem::replace(&mut self.left_out_reported, true)
    }

    pub(super) fn add(&mut self, report: &AttemptReport) {
        self.count(report, true);
        let peak = self.totals.worker_memory_peak_bytes.max(report.memory.peak_bytes);
        self.totals.worker_memory_peak_bytes = peak;
        let budget = &mut self.totals.worker_memory_budget_bytes;
        *budget = (*budget).max(report.memory.budget_bytes);
        let kept = &mut self.totals.worker_kept_peak_bytes;
        *kept = (*kept).max(report.memory.kept_peak_bytes);
        for (name, count) in &report.counters {
            let full = COUNTERS_MAX <= self.counters.len();
            match self.counters.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(*count),
                // Names are never removed. A dropped counter is therefore not added later, and not subtracted again.
                None if full => self.left_out = true,
                None => drop(self.counters.insert(name.clone(), *count)),
            }
        }
    }

    fn subtract(&mut self, report: &AttemptReport) {
        self.count(report, false);
        for (name, count) in &report.counters {
            if let Some(sum) = self.counters.get_mut(name) {
                *sum = sum.saturating_sub(*count);
            }
        }
    }

    /// Adds or subtracts the numbers of a report. They are not trusted: they come from a worker.
    fn count(&mut self, report: &AttemptReport, add: bool) {
        for (sum, number) in [
            (&mut self.totals.spills, report.spills),
            (&mut self.totals.spilled_bytes, report.spilled_bytes),
            (&mut self.totals.cpu_ns, report.cpu_ns),
            (&mut self.totals.slot_ns, slot_ns(report)),
            (&mut self.totals.paced_ns, report.paced_ns),
            (&mut self.totals.suspended_ns, report.suspended_ns),
            (&mut self.totals.suspensions, u64::from(report.suspensions)),
        ] {
            *sum = if add { sum.saturating_add(number) } else { sum.saturating_sub(number) };
        }
    }
}

/// Time for which an attempt held its slot, nanoseconds. Suspended time is excluded.
pub(super) fn slot_ns(report: &AttemptReport) -> u64 {
    report.ended_ns.saturating_sub(report.started_ns).saturating_sub(report.suspended_ns)
}

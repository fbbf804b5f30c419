//! Virtual equal sharing: when each job would have ended there, and which jobs are due since then.
//!
//! All jobs of the virtual run are served at the same rate, including those that have ended in reality with a result. Virtual time is
//! the service that each of them has received. A job ends when virtual time passes its tag: virtual time at its arrival
//! plus its work. A job that would have ended after `x` seconds is due `stretch` times `x` seconds after its arrival.
//! Costs O(log n) for each change of a job and each end in the virtual run.
//!
//! Invariant: a job that is live in reality is in `order` until it ends here, then in `waiting` until it is due.

use crate::plan::order_of;
use crate::units::{Span, Time};
use crate::view::Handle;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
struct FairJob {
    arrival: Time,
    /// Virtual time at its arrival, in seconds.
    began: f64,
    /// Virtual time at its end.
    tag: f64,
    /// Time when it is due; `None` before its end here.
    due: Option<Time>,
    /// Handle of its row; `None` when it has ended in reality.
    row: Option<Handle>,
}

/// Virtual run; see the module.
#[derive(Debug, Default)]
pub(super) struct FairRun {
    stretch: f64,
    at: Time,
    /// Seconds of the whole cluster that each job has received.
    virtual_now: f64,
    /// Jobs that have not ended here, by tag and seq.
    order: BTreeSet<(u64, u64)>,
    /// Jobs that have ended here and are not due yet, by the time when they will be.
    waiting: BTreeSet<(Time, u64)>,
    /// Jobs by seq: those in `order`, and those that are still live in reality.
    jobs: BTreeMap<u64, FairJob>,
}

impl FairRun {
    /// Creates a run without jobs.
    ///
    /// # Panics
    /// If `stretch` is not a finite number of at least 1.
    pub(super) fn new(stretch: f64) -> Self {
        assert!(stretch.is_finite() && 1.0 <= stretch, "stretch {stretch}");
        Self { stretch, ..Self::default() }
    }

    /// Adds a job or updates its size: seconds with the whole cluster to itself, at least 0.
    pub(super) fn place(&mut self, seq: u64, (row, arrival): (Handle, Time), seconds: f64) {
        let now = self.virtual_now;
        let new = FairJob { arrival, began: now, tag: now, due: None, row: Some(row) };
        let job = self.jobs.entry(seq).or_insert(new);
        self.order.remove(&(order_of(job.tag), seq));
        job.tag = job.began + seconds;
        if now < job.tag {
            if let Some(due) = job.due.take() {
                self.waiting.remove(&(due, seq));
            }
            self.order.insert((order_of(job.tag), seq));
        } else if job.due.is_none() {
            self.end(seq, self.at);
        }
    }

    /// Records that the job has ended in reality. With its true size in seconds it continues in the virtual run; an
    /// abandoned job has none.
    pub(super) fn leave(&mut self, seq: u64, seconds: Option<f64>) {
        let Some(mut job) = self.jobs.remove(&seq) else { return };
        self.order.remove(&(order_of(job.tag), seq));
        if let Some(due) = job.due.take() {
            self.waiting.remove(&(due, seq));
        }
        let Some(seconds) = seconds else { return };
        (job.row, job.tag) = (None, job.began + seconds);
        if self.virtual_now < job.tag {
            self.order.insert((order_of(job.tag), seq));
            self.jobs.insert(seq, job);
        }
    }

    /// Advances to this time. Returns the jobs that became due and are still live in reality.
    pub(super) fn advance(&mut self, now: Time) -> Vec<Handle> {
        let mut at = self.at;
        while let Some(&(_, seq)) = self.order.first() {
            let jobs = self.order.len() as f64;
            let tag = self.jobs[&seq].tag;
            let needed = (tag - self.virtual_now) * jobs;
            let seconds = now.since(at).seconds();
            if seconds < needed {
                self.virtual_now += seconds / jobs;
                break;
            }
            at = at + Span((needed * 1e9) as u64);
            self.virtual_now = tag;
            self.order.pop_first();
            self.end(seq, at);
        }
        self.at = self.at.max(now);
        let mut due = Vec::new();
        while let Some(&(time, seq)) = self.waiting.first()
            && time <= self.at
        {
            self.waiting.pop_first();
            due.extend(self.jobs[&seq].row);
        }
        due
    }

    /// Ends the job here at this time.
    fn end(&mut self, seq: u64, at: Time) {
        let job = self.jobs.get_mut(&seq).expect("a job that ends here is known");
        if job.row.is_none() {
            self.jobs.remove(&seq);
            return;
        }
        // Out of range values saturate: such a job is never due.
        let after = (at.since(job.arrival).0 as f64 * self.stretch) as u64;
        let due = Time(job.arrival.0.saturating_add(after));
        job.due = Some(due);
        self.waiting.insert((due, seq));
    }

    /// Returns the virtual time at the end of this job here, which orders jobs by their ends; infinite if unknown.
    pub(super) fn tag(&self, seq: u64) -> f64 {
        self.jobs.get(&seq).map_or(f64::INFINITY, |job| job.tag)
    }

    /// Returns the time since when the job is due, if it is.
    pub(super) fn due(&self, seq: u64) -> Option<Time> {
        self.jobs.get(&seq)?.due.filter(|&due| due <= self.at)
    }
}

//! Equal sharing in a virtual run: when each job would have ended there, and who is due since then.
//!
//! All jobs of the virtual run are served at the same rate, those that are over in truth included. Virtual time is
//! what each of them has got, so a job ends when virtual time passes its tag: virtual time at its arrival plus its
//! work. A job that would have ended after `x` seconds is due `stretch` times `x` seconds after its arrival.
//! Costs O(log n) for each change of a job and each end in the virtual run.
//!
//! Invariant: a job that is there in truth is in `order` until it ends here, then in `waiting` until it is due.

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
    /// When it is due; `None` before its end here.
    due: Option<Time>,
    /// Where its row is; `None` when it is over in truth.
    row: Option<Handle>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct FairRun {
    stretch: f64,
    at: Time,
    /// Seconds of the whole cluster that each job has got.
    virtual_now: f64,
    /// Jobs that have not ended here, by tag and seq.
    order: BTreeSet<(u64, u64)>,
    /// Jobs that have ended here and are not due yet, by when they will be.
    waiting: BTreeSet<(Time, u64)>,
    /// By seq: jobs in `order`, and those that are still there in truth.
    jobs: BTreeMap<u64, FairJob>,
}

impl FairRun {
    /// A run of nobody.
    ///
    /// # Panics
    /// If `stretch` is not a finite number from 1 on.
    pub(super) fn new(stretch: f64) -> Self {
        assert!(stretch.is_finite() && 1.0 <= stretch, "stretch {stretch}");
        Self {
            stretch,
            at: Time::ZERO,
            virtual_now: 0.0,
            order: BTreeSet::new(),
            waiting: BTreeSet::new(),
            jobs: BTreeMap::new(),
        }
    }

    /// A job comes, or its size is known better: seconds with the whole cluster to itself, at least 0.
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

    /// The job is over in truth; here it goes on.
    pub(super) fn leave(&mut self, seq: u64) {
        let Some(job) = self.jobs.get_mut(&seq) else { return };
        job.row = None;
        if let Some(due) = job.due {
            self.waiting.remove(&(due, seq));
            self.jobs.remove(&seq);
        }
    }

    /// Goes on to this time; answers who became due and is still there in truth.
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

    /// The job ends here at this time.
    fn end(&mut self, seq: u64, at: Time) {
        let job = self.jobs.get_mut(&seq).expect("a job that ends here is known");
        if job.row.is_none() {
            self.jobs.remove(&seq);
            return;
        }
        // Out of range saturates: such a job is never due.
        let after = (at.since(job.arrival).0 as f64 * self.stretch) as u64;
        let due = Time(job.arrival.0.saturating_add(after));
        job.due = Some(due);
        self.waiting.insert((due, seq));
    }

    /// Since when the job is due, if it is.
    pub(super) fn due(&self, seq: u64) -> Option<Time> {
        self.jobs.get(&seq)?.due.filter(|&due| due <= self.at)
    }
}

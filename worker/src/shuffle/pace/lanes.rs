//! Chooses the stream that may read next, by the master's order and the bucket: pure, with time as an argument.

use super::bucket::TokenBucket;
use super::chunk_bytes;
use crate::protocol::LaneOrder;
use crate::shuffle::lanes::{Lanes, Tier};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::{Span, Time};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// Time that chunks of less urgent jobs are held back for a job that has just had one and is about to ask again.
pub(crate) const GRACE: Span = Span::milliseconds(2);

/// Order of incoming bytes. Pure.
#[derive(Debug)]
pub(crate) struct PacedLanes {
    bucket: TokenBucket,
    lanes: Lanes,
    /// Number of open requests.
    open: BTreeMap<JobId, u32>,
    /// Requests that wait for a turn, with their requested bytes.
    pub(super) asking: BTreeMap<JobId, BTreeMap<u64, u64>>,
    /// Job of the last turn, and the time until which others wait for it.
    last: Option<(JobId, Time)>,
}

impl PacedLanes {
    /// Creates lanes without requests, with a full bucket.
    #[must_use]
    pub fn new(bytes_per_second: NonZeroU64, now: Time) -> Self {
        Self {
            bucket: TokenBucket::new(bytes_per_second, now),
            lanes: Lanes::new(chunk_bytes(bytes_per_second)),
            open: BTreeMap::new(),
            asking: BTreeMap::new(),
            last: None,
        }
    }

    /// Sets the order of jobs. Requests in flight of jobs that it leaves out come last: if they stopped, they would take
    /// the places of requests that it serves.
    pub fn order(&mut self, order: &LaneOrder) {
        self.lanes.order(&LaneOrder { only: false, ..order.clone() });
    }

    /// Opens a request of this job.
    pub fn open(&mut self, job: JobId) {
        *self.open.entry(job).or_default() += 1;
        self.lanes.enter(job);
    }

    /// Asks for this many bytes for a request of this job. Requests are served in the order of their numbers.
    pub fn request(&mut self, job: JobId, request: u64, bytes: u64) {
        self.asking.entry(job).or_default().insert(request, bytes);
    }

    /// Closes a request of this job.
    pub fn close(&mut self, job: JobId, request: u64) {
        self.withdraw(job, request);
        let Some(open) = self.open.get_mut(&job) else { return };
        *open -= 1;
        if *open == 0 {
            self.open.remove(&job);
            self.lanes.leave(job);
        }
    }

    /// Removes the request from the waiting ones. Returns its requested bytes.
    fn withdraw(&mut self, job: JobId, request: u64) -> Option<u64> {
        let line = self.asking.get_mut(&job)?;
        let bytes = line.remove(&request);
        if line.is_empty() {
            self.asking.remove(&job);
        }
        bytes
    }

    /// Removes and returns the waiting requests of this job.
    pub fn forget(&mut self, job: JobId) -> Vec<u64> {
        self.asking.remove(&job).map_or_else(Vec::new, |line| line.into_keys().collect())
    }

    /// Returns the request whose bytes pass now, if any may.
    pub fn grant(&mut self, now: Time) -> Option<(JobId, u64)> {
        if self.asking.is_empty() || now < self.bucket.ready_at(now) {
            return None;
        }
        let before = self.held_back(now).map_or(Tier::LAST, |(tier, _)| tier);
        let asking = &self.asking;
        let job = self.lanes.next(before, |job, _, _| asking.contains_key(&job))?;
        let request = *self.asking.get(&job)?.keys().next()?;
        let bytes = self.withdraw(job, request)?;
        self.bucket.take(bytes, now);
        self.lanes.charge(job, bytes as f64);
        self.last = Some((job, now + GRACE));
        Some((job, request))
    }

    /// Returns the tier that jobs must precede to be served while the job of the last turn is about to ask again, and
    /// the end of that time.
    fn held_back(&self, now: Time) -> Option<(Tier, Time)> {
        let (job, until) = self.last?;
        let asks_again = now < until && self.open.contains_key(&job) && !self.asking.contains_key(&job);
        asks_again.then(|| (self.lanes.tier(job).behind(), until))
    }

    /// Returns the time when [`PacedLanes::grant`] should be tried again after it returned nothing, if nothing else
    /// happens; `None` if only an event can help.
    #[must_use]
    pub(crate) fn wake_at(&self, now: Time) -> Option<Time> {
        if self.asking.is_empty() {
            return None;
        }
        let ready = self.bucket.ready_at(now);
        if now < ready { Some(ready) } else { self.held_back(now).map(|(_, until)| until) }
    }
}

//! Who of several streams may read next, by the master's order and the bucket: pure, with time as an argument.

use super::bucket::TokenBucket;
use super::chunk_bytes;
use crate::protocol::LaneOrder;
use crate::shuffle::lanes::{Lanes, Tier};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::{Span, Time};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// How long chunks of less urgent jobs are held back for a job that has just had one and is about to ask again.
pub const GRACE: Span = Span::milliseconds(2);

/// Whose bytes come in next. Pure.
#[derive(Debug)]
pub struct PacedLanes {
    bucket: TokenBucket,
    lanes: Lanes,
    /// Requests under way.
    open: BTreeMap<JobId, u32>,
    /// Of those, the ones that wait for a turn, with the bytes that they want.
    pub(super) asking: BTreeMap<JobId, BTreeMap<u64, u64>>,
    /// Who had the last turn, and until when others wait for it.
    last: Option<(JobId, Time)>,
}

impl PacedLanes {
    /// Nobody waits, and the bucket is full.
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

    /// Whose bytes go first from now on.
    pub fn order(&mut self, order: &LaneOrder) {
        self.lanes.order(order);
    }

    /// A request of this job begins.
    pub fn open(&mut self, job: JobId) {
        *self.open.entry(job).or_default() += 1;
        self.lanes.enter(job);
    }

    /// A request of this job has so many bytes to pay for. Requests are served in the order of their numbers.
    pub fn ask(&mut self, job: JobId, request: u64, bytes: u64) {
        self.asking.entry(job).or_default().insert(request, bytes);
    }

    /// A request of this job ends.
    pub fn close(&mut self, job: JobId, request: u64) {
        self.withdraw(job, request);
        let Some(open) = self.open.get_mut(&job) else { return };
        *open -= 1;
        if *open == 0 {
            self.open.remove(&job);
            self.lanes.leave(job);
        }
    }

    /// What the request asked for; it asks no more.
    fn withdraw(&mut self, job: JobId, request: u64) -> Option<u64> {
        let line = self.asking.get_mut(&job)?;
        let bytes = line.remove(&request);
        if line.is_empty() {
            self.asking.remove(&job);
        }
        bytes
    }

    /// The requests of this job that asked; they ask no more.
    pub fn forget(&mut self, job: JobId) -> Vec<u64> {
        self.asking.remove(&job).map_or_else(Vec::new, |line| line.into_keys().collect())
    }

    /// The request whose bytes pass now, if any may.
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

    /// While the job that had the last turn is about to ask again: only jobs before this tier are served, until then.
    fn held_back(&self, now: Time) -> Option<(Tier, Time)> {
        let (job, until) = self.last?;
        let asks_again = now < until && self.open.contains_key(&job) && !self.asking.contains_key(&job);
        asks_again.then(|| (self.lanes.tier(job).behind(), until))
    }

    /// When [`PacedLanes::grant`] is worth another try after it gave nothing, if nothing else happens; `None` if only
    /// that can help.
    #[must_use]
    pub(crate) fn wake_at(&self, now: Time) -> Option<Time> {
        if self.asking.is_empty() {
            return None;
        }
        let ready = self.bucket.ready_at(now);
        if now < ready { Some(ready) } else { self.held_back(now).map(|(_, until)| until) }
    }
}

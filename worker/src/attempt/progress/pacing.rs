//! Slots that are slower than the machine: an attempt waits for what it has worked.

use super::{PACED, Progress};
use crate::attempt::pace::Pacer;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A wait for the sake of the pace is cut into such pieces, so that it is seen from outside.
const WAIT_SLICE: Duration = Duration::from_millis(100);

/// A slot's pace.
#[derive(Debug)]
pub(super) struct Pacing {
    pub(super) speed: f64,
    /// The pacer's clock starts here.
    pub(super) epoch: Instant,
    /// When to look again by that clock, nanoseconds.
    pub(super) look_at_ns: AtomicU64,
    pub(super) pacer: Mutex<Pacer>,
}

impl Pacing {
    pub(super) fn pacer(&self) -> MutexGuard<'_, Pacer> {
        // The state is numbers; a panic between two changes cannot happen.
        self.pacer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_at(&self, time: Duration) {
        self.look_at_ns.store(time.as_nanos() as u64, Relaxed);
    }
}

impl Progress {
    /// Waits for what was worked since the last look, if it is time to look.
    pub(super) fn keep_pace(&self, unless_asked: bool) {
        let Some(pacing) = &self.pacing else { return };
        let now = pacing.epoch.elapsed();
        if self.signals.load(Relaxed) & PACED == 0
            || now.as_nanos() < u128::from(pacing.look_at_ns.load(Relaxed))
        {
            return;
        }
        self.wait_for_work(pacing, unless_asked);
    }

    fn wait_for_work(&self, pacing: &Pacing, unless_asked: bool) {
        loop {
            let before = pacing.epoch.elapsed();
            let owed = pacing.pacer().owes(before);
            if owed.is_zero() || self.is_cancelled() || (unless_asked && self.is_asked()) {
                break;
            }
            self.hold.sleep(owed.min(WAIT_SLICE), unless_asked);
            let after = pacing.epoch.elapsed();
            pacing.pacer().waited(after);
            self.paced_ns.fetch_add((after - before).as_nanos() as u64, Relaxed);
        }
        let next = pacing.pacer().next_look();
        pacing.look_at(next);
    }

    /// The attempt begins in this slot: from now on its pace counts.
    pub fn begin(&self, slot: u32) {
        self.hold.begin(slot);
        if let Some(pacing) = &self.pacing {
            let now = pacing.epoch.elapsed();
            *pacing.pacer() = Pacer::new(pacing.speed, now);
            let next = pacing.pacer().next_look();
            pacing.look_at(next);
            self.signals.fetch_or(PACED, Relaxed);
        }
    }

    /// The attempt's work is done: waits for the rest of it. What follows is not paced.
    pub fn settle(&self) {
        if let Some(pacing) = &self.pacing
            && self.signals.fetch_and(!PACED, Relaxed) & PACED != 0
        {
            self.wait_for_work(pacing, false);
        }
    }
}

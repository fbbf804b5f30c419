//! Slots that are slower than the machine: an attempt waits in proportion to its work.

use super::{PACED, Progress};
use crate::attempt::pace::Pacer;
use crate::machine::thread_cpu_ns;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum length of one wait, so that it is visible from outside.
const WAIT_SLICE: Duration = Duration::from_millis(100);

/// Part of an attempt's time that a slow slot extends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlowPart {
    /// All time of an attempt, as on a slower machine with slower disks.
    AllTime,
    /// Computation of its thread; sleeping and waiting take the usual time.
    Computing,
}

/// Pace of a slot.
#[derive(Debug)]
pub(super) struct Pacing {
    pub(super) speed: f64,
    pub(super) part: SlowPart,
    /// CPU time of the attempt's thread at the last check, nanoseconds.
    pub(super) worked_ns: AtomicU64,
    /// Start of the pacer's clock.
    pub(super) epoch: Instant,
    /// Time of the next check by that clock, nanoseconds.
    pub(super) look_at_ns: AtomicU64,
    pub(super) pacer: Mutex<Pacer>,
}

impl Pacing {
    pub(super) fn pacer(&self) -> MutexGuard<'_, Pacer> {
        // The state consists of numbers; no panic can occur between two changes.
        self.pacer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the computation of the attempt's thread since the last check, if only that counts. Called by that thread
    /// only.
    pub(super) fn computed(&self) -> Option<Duration> {
        if self.part == SlowPart::AllTime {
            return None;
        }
        let now = thread_cpu_ns();
        let before = self.worked_ns.swap(now, Relaxed);
        Some(Duration::from_nanos(now.saturating_sub(before)))
    }

    fn look_at(&self, time: Duration) {
        self.look_at_ns.store(time.as_nanos() as u64, Relaxed);
    }
}

impl Progress {
    /// Waits for the work since the last check, if a check is due.
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
            let owed = pacing.pacer().owes(before, pacing.computed());
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

    /// Starts the attempt in this slot: its pace counts from now on.
    pub fn start(&self, slot: u32) {
        self.hold.start(slot);
        let _ = self.least.1.set(Instant::now());
        if let Some(pacing) = &self.pacing {
            let now = pacing.epoch.elapsed();
            *pacing.pacer() = Pacer::new(pacing.speed, now);
            pacing.worked_ns.store(thread_cpu_ns(), Relaxed);
            let next = pacing.pacer().next_look();
            pacing.look_at(next);
            self.signals.fetch_or(PACED, Relaxed);
        }
    }

    /// Waits for the rest of the attempt's work, which is done. Later work is not paced.
    pub fn settle(&self) {
        if let Some(pacing) = &self.pacing
            && self.signals.fetch_and(!PACED, Relaxed) & PACED != 0
        {
            self.wait_for_work(pacing, false);
        }
        let (least, begun) = &self.least;
        while let Some(rest) = begun.get().and_then(|begun| least.checked_sub(begun.elapsed()))
            && !rest.is_zero()
            && !self.is_cancelled()
        {
            let before = Instant::now();
            self.hold.sleep(rest.min(WAIT_SLICE), false);
            self.paced_ns.fetch_add(before.elapsed().as_nanos() as u64, Relaxed);
        }
    }
}

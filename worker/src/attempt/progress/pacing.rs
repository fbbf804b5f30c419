//! Slots that are slower than the machine: an attempt waits for what it has worked.

use super::{PACED, Progress};
use crate::attempt::pace::Pacer;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A wait for the sake of the pace is cut into such pieces, so that it is seen from outside.
const WAIT_SLICE: Duration = Duration::from_millis(100);

/// What a slow slot makes longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlowPart {
    /// All time of an attempt, as a slower machine with slower disks would.
    AllTime,
    /// What its thread computes; where it sleeps or waits for something, that takes as long as ever.
    Computing,
}

/// A slot's pace.
#[derive(Debug)]
pub(super) struct Pacing {
    pub(super) speed: f64,
    pub(super) part: SlowPart,
    /// Processor time of the attempt's thread at the last look, nanoseconds.
    pub(super) worked_ns: AtomicU64,
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

    /// What the attempt's thread has computed since the last look, if only that counts. Asked by that thread alone.
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

    /// The attempt begins in this slot: from now on its pace counts.
    pub fn begin(&self, slot: u32) {
        self.hold.begin(slot);
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

    /// The attempt's work is done: waits for the rest of it. What follows is not paced.
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

/// Processor time of this thread.
fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

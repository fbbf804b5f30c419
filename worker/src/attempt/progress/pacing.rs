//! Slots that are slower than the machine: an attempt waits in proportion to its work.

use super::{PACED, Progress};
use crate::attempt::pace::Pacer;
use crate::machine::{thread_cpu_ns, thread_ready_ns};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum length of one wait, so that it is visible from outside.
const WAIT_SLICE: Duration = Duration::from_millis(100);

/// Part of an attempt's time that a slow slot extends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlowPart {
    /// All time of an attempt, as on a slower machine with slower disks. Its waiting for a processor takes the usual time:
    /// other programs cause it, and a slot of speed 0.03 would make 1 ms of it 33 ms.
    AllTime,
    /// Computation of its thread; sleeping and waiting take the usual time.
    Computing,
}

/// Pace of a slot.
#[derive(Debug)]
pub(super) struct Pacing {
    pub(super) speed: f64,
    pub(super) part: SlowPart,
    /// Time that the attempt's thread had computed, or had waited for a processor, at the last check, nanoseconds.
    pub(super) counted_ns: AtomicU64,
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

    /// Counts the work since the last check, and returns the time to wait for it. Called by the attempt's thread only.
    pub(super) fn owes(&self, now: Duration) -> Duration {
        let counted = self.count();
        let mut pacer = self.pacer();
        match self.part {
            SlowPart::AllTime => pacer.owes(now, |passed| passed.saturating_sub(counted)),
            SlowPart::Computing => pacer.owes(now, |passed| counted.min(passed)),
        }
    }

    /// Returns the thread's computation, or its waiting for a processor, since the last call.
    pub(super) fn count(&self) -> Duration {
        let now = match self.part {
            SlowPart::AllTime => thread_ready_ns(),
            SlowPart::Computing => Some(thread_cpu_ns()),
        };
        let counted = now.map_or(0, |now| now.saturating_sub(self.counted_ns.swap(now, Relaxed)));
        Duration::from_nanos(counted)
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
            let owed = pacing.owes(before);
            if owed.is_zero() || self.is_cancelled() || (unless_asked && self.is_asked()) {
                break;
            }
            self.hold.sleep(owed.min(WAIT_SLICE), unless_asked);
            let after = pacing.epoch.elapsed();
            pacing.pacer().waited(after);
            pacing.count();
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
            pacing.count();
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn waiting_for_a_processor_is_not_made_longer() {
        assert!(thread_ready_ns().is_some(), "this system does not tell how long a thread waited");
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let processors = std::thread::available_parallelism().map_or(2, usize::from);
            // Three threads for each processor: the attempt computes for about a third of its time.
            for _ in 0..3 * processors {
                scope.spawn(|| {
                    while !ended.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let progress = Progress::new(0.5, None);
            progress.start(0);
            let (started, computed) = (Instant::now(), thread_cpu_ns());
            while thread_cpu_ns() - computed < 100_000_000 {
                progress.keep_pace(false);
            }
            progress.settle();
            let (passed, computed) = (started.elapsed(), thread_cpu_ns() - computed);
            ended.store(true, Relaxed);
            let paced = progress.paced_ns.load(Relaxed);
            let ready = passed.as_nanos() as u64 - paced - computed;
            assert!(
                computed < ready,
                "other threads took too little: {computed} ns of computing, {ready} ns of waiting"
            );
            // The last wait may take too long, as the thread waits for a processor after it.
            let paced_for_waiting = paced.saturating_sub(computed);
            assert!(9 * computed < 10 * paced, "{computed} ns of computing, {paced} ns of waiting for them");
            assert!(
                paced_for_waiting < ready / 2,
                "{paced_for_waiting} ns of waiting for {ready} ns of waiting"
            );
        });
    }
}

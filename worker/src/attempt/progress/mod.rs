//! Progress of an attempt, and requests to it: shared between its thread and its observers.
//!
//! The attempt's thread checks one byte with every pair, and does more only if that is set.

mod dividing;
mod pacing;
mod suspending;

use super::TaskFailure;
use super::hold::{Hold, Parking};
use super::pace::Pacer;
use crate::input::{BadRecords, FileBadRecords};
use crate::narration::ReduceNarrator;
use dividing::DivisionOrder;
pub(crate) use dividing::{Division, DivisionReport};
use pacing::Pacing;
pub(crate) use pacing::SlowPart;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use suspending::SuspendedMemory;

/// The attempt ends at its next check.
const CANCELLED: u8 = 1;
/// The attempt has to stop where it can.
const ASKED: u8 = 2;
/// The attempt's slot is slower than the machine.
const PACED: u8 = 4;
/// The attempt has to give up a part of its input where it can.
const DIVIDE: u8 = 8;

/// Time for which an attempt that has to stop waits for a boundary between groups, before it stops within one where
/// user code checks for cancellation. Stopped at a boundary it can continue elsewhere, within a group only here.
const BORDER_TIMEOUT: Duration = Duration::from_millis(35);

/// Progress of an attempt, shared with its observers.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of input read (of keys and values, for a reduce).
    pub bytes_in: AtomicU64,
    /// Records of input read (values, for a reduce).
    pub records_in: AtomicU64,
    /// Pairs emitted, or records written.
    pub records_out: AtomicU64,
    /// Bytes of the map output, or bytes written.
    pub bytes_out: AtomicU64,
    /// Number of runs and outputs written to disk.
    pub spills: AtomicU64,
    /// Bytes of those runs and outputs.
    pub spilled_bytes: AtomicU64,
    /// Time of waiting because its slot is slower than the machine, nanoseconds.
    pub paced_ns: AtomicU64,
    /// Time of suspension, nanoseconds; updated at the end of each suspension.
    pub suspended_ns: AtomicU64,
    /// Number of suspensions.
    pub suspensions: AtomicU32,
    /// Estimated bytes (as `bytes_in`) that a reduce reads within its bounds, if it may be divided while it runs; 0 if
    /// not, and before they are known.
    pub divisible_bytes: AtomicU64,
    /// Steps of the engine's own work between those of user code: pairs merged and written.
    pub steps: AtomicU64,
    /// True while the engine, and no user code, does work with few or no steps: sorting, reading, writing.
    engine: AtomicBool,
    /// Set of [`CANCELLED`], [`ASKED`], [`PACED`] and [`DIVIDE`] that needs attention.
    signals: AtomicU8,
    hold: Hold,
    division: DivisionOrder,
    kept: SuspendedMemory,
    pacing: Option<Pacing>,
    /// Minimum time of the attempt, and its start.
    least: (Duration, OnceLock<Instant>),
    bad_records: OnceLock<BadRecords>,
}

impl Progress {
    /// Creates progress of an attempt in a slot of this speed (above 0; 1 and more is unlimited), which can be
    /// suspended if there is `parking`.
    #[must_use]
    pub fn new(speed: f64, parking: Option<Box<dyn Parking>>) -> Self {
        Self::paced(speed, SlowPart::AllTime, parking)
    }

    /// As [`Progress::new`], with the part of its time that is slowed down.
    pub(crate) fn paced(speed: f64, part: SlowPart, parking: Option<Box<dyn Parking>>) -> Self {
        let pacing = (speed < 1.0).then(|| Pacing {
            speed,
            part,
            counted_ns: AtomicU64::new(0),
            epoch: Instant::now(),
            look_at_ns: AtomicU64::new(0),
            pacer: Mutex::new(Pacer::new(speed, Duration::ZERO)),
        });
        Self { hold: Hold::new(parking), pacing, ..Self::default() }
    }

    /// Sets a minimum time of the attempt, so that people can watch it.
    pub(crate) fn of_at_least(self, least: Duration) -> Self {
        Self { least: (least, OnceLock::new()), ..self }
    }

    /// Sets the collector of the attempt's skipped records, once.
    pub(crate) fn collect_bad_records(&self, into: &BadRecords) {
        let _ = self.bad_records.set(into.clone());
    }

    /// Returns that collector; no record is skipped before it is set.
    pub(crate) fn bad_records(&self) -> BadRecords {
        self.bad_records.get().cloned().unwrap_or_default()
    }

    /// Returns the records that the attempt has skipped so far.
    #[must_use]
    pub fn left_out(&self) -> Vec<FileBadRecords> {
        self.bad_records.get().map(BadRecords::found).unwrap_or_default()
    }

    /// # Errors
    /// [`TaskFailure::Cancelled`] once the attempt is cancelled.
    #[inline]
    pub fn check(&self) -> Result<(), TaskFailure> {
        if self.signals.load(Relaxed) == 0 { Ok(()) } else { self.check_signals() }
    }

    #[cold]
    fn check_signals(&self) -> Result<(), TaskFailure> {
        self.keep_pace(true);
        if self.is_cancelled() { Err(TaskFailure::Cancelled) } else { Ok(()) }
    }

    /// True if the attempt was cancelled. Waits if the slot is slower than the machine, and while the attempt is
    /// suspended.
    pub(crate) fn rest(&self) -> bool {
        let signals = self.signals.load(Relaxed);
        if signals == 0 {
            return false;
        }
        self.keep_pace(true);
        if signals & ASKED != 0 && self.hold.asked_for().is_some_and(|time| BORDER_TIMEOUT <= time) {
            self.stop_here();
        }
        self.is_cancelled()
    }

    /// Returns the slot of the attempt's thread; `None` if it has left it permanently.
    #[must_use]
    pub fn slot(&self) -> Option<u32> {
        self.hold.slot()
    }

    /// Cancels the attempt: it ends at its next check, at the latest with the block or the next value.
    pub fn cancel(&self) {
        self.signals.fetch_or(CANCELLED, Relaxed);
        self.hold.cancel();
    }

    /// True if it was cancelled.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.signals.load(Relaxed) & CANCELLED != 0
    }

    /// Marks the attempt's thread as in the engine's own code until the guard is dropped: however long that takes, user
    /// code does not count as hanging. Not to be held during calls of user code.
    #[must_use]
    pub(crate) fn engine(self: &Arc<Self>) -> EngineWork {
        let before = self.engine.swap(true, Relaxed);
        EngineWork { progress: self.clone(), before }
    }

    /// True if the attempt's thread is in the engine's own code.
    pub(crate) fn is_in_engine(&self) -> bool {
        self.engine.load(Relaxed)
    }

    /// Records one of many steps of the engine, between two of which user code may run.
    ///
    /// # Errors
    /// [`TaskFailure::Cancelled`] once the attempt is cancelled.
    #[inline]
    pub(crate) fn step(&self) -> Result<(), TaskFailure> {
        // Only the attempt's own thread writes it, so an atomic addition is not needed.
        self.steps.store(self.steps.load(Relaxed).wrapping_add(1), Relaxed);
        self.check()
    }

    /// Records a sign of life of user code that waits for another process.
    pub(crate) fn lives(&self) {
        self.steps.fetch_add(1, Relaxed);
    }

    pub(crate) fn spilled(&self, bytes: u64) {
        self.spills.fetch_add(1, Relaxed);
        self.spilled_bytes.fetch_add(bytes, Relaxed);
    }
}

/// Guard of [`Progress::engine`].
pub(crate) struct EngineWork {
    progress: Arc<Progress>,
    before: bool,
}

impl Drop for EngineWork {
    fn drop(&mut self) {
        // Observers see progress, and give user code its full time from here on.
        self.progress.steps.fetch_add(1, Relaxed);
        self.progress.engine.store(self.before, Relaxed);
    }
}

/// Counts what a reduce reads, and checks for cancellation. It does so with every pair, because user code may take long
/// for one, and observers must see progress. The stores cost about a nanosecond.
pub(crate) struct ReadMeter {
    progress: Arc<Progress>,
    pairs: u64,
    bytes: u64,
    /// Recorder of the pairs, if requested.
    pub(crate) narrator: Option<Box<ReduceNarrator>>,
}

impl ReadMeter {
    pub(crate) fn new(progress: Arc<Progress>) -> Self {
        Self { progress, pairs: 0, bytes: 0, narrator: None }
    }

    #[inline]
    pub(crate) fn pair(&mut self, bytes: usize) -> Result<(), TaskFailure> {
        self.pairs += 1;
        self.bytes += bytes as u64;
        self.progress.records_in.store(self.pairs, Relaxed);
        self.progress.bytes_in.store(self.bytes, Relaxed);
        self.progress.check()
    }
}

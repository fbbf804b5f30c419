//! How far an attempt is, and what is wanted of it: shared between its thread and whoever watches it.
//!
//! The attempt's thread looks at one byte with every pair; only if that says so does it look closer.

mod pacing;
mod suspending;

use super::TaskFailure;
use super::hold::{Hold, Parking};
use super::pace::Pacer;
use crate::input::{BadRecords, FileBadRecords};
use crate::narration::ReduceNarrator;
use pacing::Pacing;
pub(crate) use pacing::SlowPart;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use suspending::SuspendedMemory;

/// The attempt ends at its next look.
const CANCELLED: u8 = 1;
/// The attempt is to stop where it can.
const ASKED: u8 = 2;
/// The attempt's slot is slower than the machine.
const PACED: u8 = 4;

/// How long an attempt that is to stop looks for a border between groups before it stops within one, where user code
/// asks whether it is still wanted. Stopped at a border it can go on elsewhere, within a group only where it is.
const BORDER_PATIENCE: Duration = Duration::from_millis(35);

/// How far an attempt is, shared with whoever watches it.
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
    /// Runs and outputs written to disk.
    pub spills: AtomicU64,
    /// Their bytes.
    pub spilled_bytes: AtomicU64,
    /// Time it waited because its slot is slower than the machine, nanoseconds.
    pub paced_ns: AtomicU64,
    /// Time it was suspended, nanoseconds; the time of a suspension is added when that ends.
    pub suspended_ns: AtomicU64,
    /// Times it was suspended.
    pub suspensions: AtomicU32,
    /// Steps of the engine's own work between those of user code: pairs merged and written.
    pub steps: AtomicU64,
    /// Whether the engine works, and no user code, on something that has no steps or few: sorting, reading, writing.
    engine: AtomicBool,
    /// Which of [`CANCELLED`], [`ASKED`] and [`PACED`] there is to look at.
    signals: AtomicU8,
    hold: Hold,
    kept: SuspendedMemory,
    pacing: Option<Pacing>,
    /// Time that the attempt takes at least, and when it began.
    least: (Duration, OnceLock<Instant>),
    bad_records: OnceLock<BadRecords>,
    elsewhere: OnceLock<RanElsewhere>,
}

/// What is known of an attempt that another process ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct RanElsewhere {
    /// Processor time of its thread there.
    pub cpu_ns: u64,
    /// Largest resident memory of that process so far.
    pub peak_bytes: u64,
    left_out: Vec<FileBadRecords>,
}

impl Progress {
    /// For an attempt in a slot of this speed (above 0; 1 and more is as fast as it can), that can be suspended if
    /// there is `parking`.
    #[must_use]
    pub fn new(speed: f64, parking: Option<Box<dyn Parking>>) -> Self {
        Self::paced(speed, SlowPart::AllTime, parking)
    }

    /// As [`Progress::new`], with what of its time is stretched.
    pub(crate) fn paced(speed: f64, part: SlowPart, parking: Option<Box<dyn Parking>>) -> Self {
        let pacing = (speed < 1.0).then(|| Pacing {
            speed,
            part,
            worked_ns: AtomicU64::new(0),
            epoch: Instant::now(),
            look_at_ns: AtomicU64::new(0),
            pacer: Mutex::new(Pacer::new(speed, Duration::ZERO)),
        });
        Self { hold: Hold::new(parking), pacing, ..Self::default() }
    }

    /// For an attempt that takes this long at least, so that people can watch it.
    pub(crate) fn of_at_least(self, least: Duration) -> Self {
        Self { least: (least, OnceLock::new()), ..self }
    }

    /// The records that the attempt leaves out go here; said once.
    pub(crate) fn collect_bad_records(&self, into: &BadRecords) {
        let _ = self.bad_records.set(into.clone());
    }

    /// Where they go; nothing is left out before that is said.
    pub(crate) fn bad_records(&self) -> BadRecords {
        self.bad_records.get().cloned().unwrap_or_default()
    }

    /// The records that the attempt has left out so far.
    #[must_use]
    pub fn left_out(&self) -> Vec<FileBadRecords> {
        let here = self.bad_records.get().map(BadRecords::found);
        here.unwrap_or_else(|| self.elsewhere().left_out)
    }

    /// Another process has run the attempt, and left these records out.
    pub(crate) fn ran_elsewhere(&self, cpu_ns: u64, peak_bytes: u64, left_out: Vec<FileBadRecords>) {
        let _ = self.elsewhere.set(RanElsewhere { cpu_ns, peak_bytes, left_out });
    }

    /// What is known of it if so.
    pub(crate) fn elsewhere(&self) -> RanElsewhere {
        self.elsewhere.get().cloned().unwrap_or_default()
    }

    /// # Errors
    /// [`TaskFailure::Cancelled`] once the attempt is cancelled.
    #[inline]
    pub fn check(&self) -> Result<(), TaskFailure> {
        if self.signals.load(Relaxed) == 0 { Ok(()) } else { self.look() }
    }

    #[cold]
    fn look(&self) -> Result<(), TaskFailure> {
        self.keep_pace(true);
        if self.is_cancelled() { Err(TaskFailure::Cancelled) } else { Ok(()) }
    }

    /// Whether the attempt is not wanted any more. Waits if the slot is slower than the machine, and while the attempt
    /// is suspended.
    pub(crate) fn rest(&self) -> bool {
        let signals = self.signals.load(Relaxed);
        if signals == 0 {
            return false;
        }
        self.keep_pace(true);
        if signals & ASKED != 0 && self.hold.asked_for().is_some_and(|time| BORDER_PATIENCE <= time) {
            self.stop_here();
        }
        self.is_cancelled()
    }

    /// The slot of the attempt's thread; `None` if it has left it for good.
    #[must_use]
    pub fn slot(&self) -> Option<u32> {
        self.hold.slot()
    }

    /// The attempt is not wanted any more: it ends at its next look, at the latest with the block or the next value.
    pub fn cancel(&self) {
        self.signals.fetch_or(CANCELLED, Relaxed);
        self.hold.cancel();
    }

    /// Whether it is not wanted any more.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.signals.load(Relaxed) & CANCELLED != 0
    }

    /// The attempt's thread is in the engine's own code until the answer is dropped: however long that takes, user code
    /// does not hang. Not around calls of user code.
    #[must_use]
    pub(crate) fn engine(self: &Arc<Self>) -> EngineWork {
        let before = self.engine.swap(true, Relaxed);
        EngineWork { progress: self.clone(), before }
    }

    /// Whether the attempt's thread is in the engine's own code.
    pub(crate) fn is_in_engine(&self) -> bool {
        self.engine.load(Relaxed)
    }

    /// The engine has done one more of many steps, between two of which user code may run.
    ///
    /// # Errors
    /// [`TaskFailure::Cancelled`] once the attempt is cancelled.
    #[inline]
    pub(crate) fn step(&self) -> Result<(), TaskFailure> {
        // Only the attempt's own thread counts, so that this need not be one indivisible addition.
        self.steps.store(self.steps.load(Relaxed).wrapping_add(1), Relaxed);
        self.check()
    }

    /// User code that waits for something of its own says that all is well.
    pub(crate) fn lives(&self) {
        self.steps.fetch_add(1, Relaxed);
    }

    pub(crate) fn spilled(&self, bytes: u64) {
        self.spills.fetch_add(1, Relaxed);
        self.spilled_bytes.fetch_add(bytes, Relaxed);
    }
}

/// See [`Progress::engine`].
pub(crate) struct EngineWork {
    progress: Arc<Progress>,
    before: bool,
}

impl Drop for EngineWork {
    fn drop(&mut self) {
        // Whoever watches sees that it moved, and gives user code all of its time from here on.
        self.progress.steps.fetch_add(1, Relaxed);
        self.progress.engine.store(self.before, Relaxed);
    }
}

/// Counts what a reduce reads, and looks whether it is cancelled. With every pair, because user code may take
/// long over one: whoever watches the attempt must see it move. The stores cost about a nanosecond.
pub(crate) struct ReadMeter {
    progress: Arc<Progress>,
    pairs: u64,
    bytes: u64,
    /// Who keeps the pairs, if anybody does.
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

//! How far an attempt is, and what is wanted of it: shared between its thread and whoever watches it.
//!
//! The attempt's thread looks at one byte with every pair; only if that says so does it look closer. Not here: what
//! happens at a border between groups (`reduce`).

use super::TaskFailure;
use super::hold::{Hold, Parking, Wake};
use super::pace::Pacer;
use crate::budget::{Budget, Reservation};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The attempt ends at its next look.
const CANCELLED: u8 = 1;
/// The attempt is to stop where it can.
const ASKED: u8 = 2;
/// The attempt's slot is slower than the machine.
const PACED: u8 = 4;

/// How long an attempt that is to stop looks for a border between groups before it stops within one, where user code
/// asks whether it is still wanted. Stopped at a border it can go on elsewhere, within a group only where it is.
const BORDER_PATIENCE: Duration = Duration::from_millis(35);

/// A wait for the sake of the pace is cut into such pieces, so that it is seen from outside.
const WAIT_SLICE: Duration = Duration::from_millis(100);

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
}

/// What the attempt holds while it is suspended: its slot then serves another one.
#[derive(Debug, Default)]
struct SuspendedMemory {
    /// Has to have room for it.
    budget: OnceLock<Budget>,
    /// Bytes of its table, or of its buffers before files.
    bytes: AtomicUsize,
}

/// A slot's pace.
#[derive(Debug)]
struct Pacing {
    speed: f64,
    /// The pacer's clock starts here.
    epoch: Instant,
    /// When to look again by that clock, nanoseconds.
    look_at_ns: AtomicU64,
    pacer: Mutex<Pacer>,
}

impl Pacing {
    fn pacer(&self) -> MutexGuard<'_, Pacer> {
        // The books are numbers; a panic between two of them cannot happen.
        self.pacer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_at(&self, time: Duration) {
        self.look_at_ns.store(time.as_nanos() as u64, Relaxed);
    }
}

impl Progress {
    /// For an attempt in a slot of this speed (above 0; 1 and more is as fast as it can), that can be suspended if
    /// there is `parking`.
    #[must_use]
    pub fn new(speed: f64, parking: Option<Box<dyn Parking>>) -> Self {
        let pacing = (speed < 1.0).then(|| Pacing {
            speed,
            epoch: Instant::now(),
            look_at_ns: AtomicU64::new(0),
            pacer: Mutex::new(Pacer::new(speed, Duration::ZERO)),
        });
        Self { hold: Hold::new(parking), pacing, ..Self::default() }
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

    /// Stops, if that was asked for, where the attempt cannot be moved.
    #[cold]
    pub(crate) fn stop_here(&self) {
        let Ok(_room) = self.room() else { return };
        let mut wake = self.park();
        while wake == Wake::Moves {
            wake = self.stay();
        }
    }

    /// Whether the attempt is to stop at the next border.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.signals.load(Relaxed) & ASKED != 0
    }

    /// While the attempt is suspended, what it holds is to find room in this budget.
    pub(crate) fn keeps_in(&self, budget: &Budget) {
        // An attempt has one budget.
        let _ = self.kept.budget.set(budget.clone());
    }

    /// From now on it holds so many bytes besides its slot's.
    pub(crate) fn holds(&self, bytes: usize) {
        self.kept.bytes.store(bytes, Relaxed);
    }

    /// Room for what it holds; if there is none it keeps its slot, and whoever asked for that is told.
    fn room(&self) -> Result<Option<Reservation>, ()> {
        let Some(budget) = self.kept.budget.get() else { return Ok(None) };
        budget.try_reserve(self.kept.bytes.load(Relaxed)).map(Some).ok_or_else(|| {
            self.hold.refuse(|| {
                self.signals.fetch_and(!ASKED, Relaxed);
            });
        })
    }

    /// Stops at a border, if that was asked for and there is room. `save` writes down where the attempt stands, if that is
    /// possible.
    ///
    /// # Errors
    /// [`TaskFailure::Cancelled`], and what `save` says.
    pub(crate) fn stop_at_border<T>(
        &self,
        mut save: impl FnMut() -> Result<Option<T>, TaskFailure>,
    ) -> Result<Option<T>, TaskFailure> {
        let Ok(_room) = self.room() else { return Ok(None) };
        let mut wake = self.park();
        loop {
            match wake {
                Wake::GoesOn => return Ok(None),
                Wake::Cancelled => return Err(TaskFailure::Cancelled),
                Wake::Moves => {
                    if let Some(saved) = save()? {
                        return Ok(Some(saved));
                    }
                    wake = self.stay();
                }
            }
        }
    }

    fn park(&self) -> Wake {
        let stopping = || {
            self.signals.fetch_and(!ASKED, Relaxed);
            if let Some(pacing) = &self.pacing {
                // What was worked since the last look is owed when it goes on.
                pacing.pacer().owes(pacing.epoch.elapsed());
            }
        };
        let before = Instant::now();
        let Some(wake) = self.hold.park(stopping) else { return Wake::GoesOn };
        self.suspensions.fetch_add(1, Relaxed);
        self.stood_still_since(before);
        wake
    }

    fn stay(&self) -> Wake {
        let before = Instant::now();
        let wake = self.hold.stay();
        self.stood_still_since(before);
        wake
    }

    fn stood_still_since(&self, before: Instant) {
        self.suspended_ns.fetch_add(before.elapsed().as_nanos() as u64, Relaxed);
        if let Some(pacing) = &self.pacing {
            pacing.pacer().pass_over(pacing.epoch.elapsed());
        }
    }

    /// Waits for what was worked since the last look, if it is time to look.
    fn keep_pace(&self, unless_asked: bool) {
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

    /// Asks the attempt to stop at the next border. Answers whether it can stop at all and has not.
    pub fn suspend(&self) -> bool {
        self.hold.ask(|| {
            self.signals.fetch_or(ASKED, Relaxed);
        })
    }

    /// Takes that back. Answers whether the attempt has not stopped.
    pub fn do_not_suspend(&self) -> bool {
        self.hold.unask(|| {
            self.signals.fetch_and(!ASKED, Relaxed);
        })
    }

    /// Lets the suspended attempt go on in this slot. Answers false if it is not suspended; then the slot is not taken.
    #[must_use]
    pub fn resume(&self, slot: u32) -> bool {
        self.hold.resume(slot)
    }

    /// Asks the suspended attempt to write down where it stands and to end. Answers whether it is suspended.
    #[must_use]
    pub fn hand_over(&self) -> bool {
        self.hold.hand_over()
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
pub(crate) struct Meter {
    progress: Arc<Progress>,
    pairs: u64,
    bytes: u64,
}

impl Meter {
    pub(crate) fn new(progress: Arc<Progress>) -> Self {
        Self { progress, pairs: 0, bytes: 0 }
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

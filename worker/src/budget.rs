//! A worker's memory as a number: who wants to keep bytes asks first and spills if refused.
//!
//! [`Shares`] divides all that a worker may use; a [`Budget`] is the share for what lies between tasks: map outputs
//! and gathered segments. It counts, it does not allocate: a reservation is a promise to hold at most so many
//! bytes. Collectors, merge tables and buffers have fixed limits per task (`task::TaskSettings`).
//!
//! Invariant: the bytes in use are the sum of all living reservations and never exceed the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a worker process needs besides its data: code and heap of an idle one (4 MiB measured), and chunks of
/// segments that are fetched to disk and served from it (4 MiB each at most).
const PROCESS_BYTES: usize = 12 << 20;

/// What each slot needs besides what it collects or merges: buffers before files, a block of input that cannot be
/// mapped, and what the allocator keeps.
const PROCESS_SLOT_BYTES: usize = 4 << 20;

/// How the memory of a worker is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    /// For map outputs and gathered segments.
    pub kept_bytes: usize,
    /// For what each slot collects or merges.
    pub slot_bytes: usize,
}

impl Shares {
    /// First what the process itself needs, at most half of it all; then one half for what is kept, the other for
    /// the slots.
    #[must_use]
    pub fn of(memory_bytes: usize, slots: u32) -> Self {
        let slots = slots.max(1) as usize;
        let process_bytes = PROCESS_SLOT_BYTES.saturating_mul(slots).saturating_add(PROCESS_BYTES);
        let data_bytes = memory_bytes - process_bytes.min(memory_bytes / 2);
        Self { kept_bytes: data_bytes / 2, slot_bytes: data_bytes / 2 / slots }
    }
}

/// Memory for what a worker keeps between tasks. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Budget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
}

impl Budget {
    /// A budget of this many bytes; with 0 everything is refused.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self(Arc::new(BudgetState {
            limit_bytes,
            used_bytes: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
        }))
    }

    /// Sets `bytes` aside until the reservation is dropped; `None` if they are not there.
    #[must_use]
    pub(crate) fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let mut reservation = Reservation { budget: self.clone(), bytes: 0 };
        reservation.try_grow(bytes).then_some(reservation)
    }

    /// Bytes reserved at this moment.
    #[must_use]
    pub(crate) fn used_bytes(&self) -> usize {
        self.0.used_bytes.load(Ordering::Relaxed)
    }

    /// Most bytes that were ever reserved at once.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        self.0.peak_bytes.load(Ordering::Relaxed)
    }
}

/// Input files on which map outputs may rely to stay near, in the page cache, in place of copies of sorted pairs.
#[derive(Clone, Debug)]
pub struct KeptInFiles {
    /// Their bytes.
    pub budget: Budget,
    /// As many of short pairs are left in them though there is memory for copies.
    pub short_bytes_max: usize,
}

impl KeptInFiles {
    /// None: all pairs are copied.
    #[must_use]
    pub fn none() -> Self {
        Self { budget: Budget::new(0), short_bytes_max: 0 }
    }
}

/// Bytes set aside; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    bytes: usize,
}

impl Reservation {
    /// Adds `more` bytes. Answers false, and changes nothing, if they are not there.
    #[must_use]
    pub(crate) fn try_grow(&mut self, more: usize) -> bool {
        let books = &self.budget.0;
        let grown = books.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|sum| *sum <= books.limit_bytes)
        });
        let Ok(before) = grown else { return false };
        books.peak_bytes.fetch_max(before + more, Ordering::Relaxed);
        self.bytes += more;
        true
    }

    /// Gives back what is over `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.0.used_bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }

    /// Bytes set aside.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_the_process_what_it_needs_and_halve_the_rest() {
        let mib = |count: usize| count << 20;
        assert_eq!(Shares::of(mib(128), 2), Shares { kept_bytes: mib(54), slot_bytes: mib(27) });
        assert_eq!(Shares::of(mib(8), 1), Shares { kept_bytes: mib(2), slot_bytes: mib(2) });
        for memory in [0, 1, 1000, mib(7), mib(100), usize::MAX] {
            for slots in [0, 1, 3, 1000] {
                let Shares { kept_bytes, slot_bytes } = Shares::of(memory, slots);
                let sum = slots.max(1) as usize * slot_bytes + kept_bytes;
                assert!(
                    sum <= memory && memory / 2 <= sum + slots as usize + 2,
                    "{memory} bytes, {slots} slots"
                );
            }
        }
    }

    #[test]
    fn budget_grants_up_to_its_limit_and_takes_back_what_is_dropped() {
        let budget = Budget::new(100);
        let first = budget.try_reserve(60).unwrap();
        assert!(budget.try_reserve(41).is_none());
        let second = budget.try_reserve(40).unwrap();
        assert_eq!((budget.used_bytes(), budget.peak_bytes()), (100, 100));
        drop(first);
        assert_eq!((budget.used_bytes(), budget.peak_bytes()), (40, 100));
        drop(second);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn reservation_is_unchanged_when_it_may_not_grow() {
        let budget = Budget::new(10);
        let mut reservation = budget.try_reserve(4).unwrap();
        assert!(!reservation.try_grow(7));
        assert!(!reservation.try_grow(usize::MAX));
        assert!(reservation.try_grow(6));
        reservation.shrink_to(1);
        assert_eq!((reservation.bytes(), budget.used_bytes()), (1, 1));
    }
}

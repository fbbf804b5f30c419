//! Memory accounting of a worker: bytes are requested before they are kept, and spilled if the request is rejected.
//!
//! [`Shares`] divides the memory of a worker; a [`Budget`] is the share for data between tasks: map outputs and
//! gathered segments. It counts and does not allocate: a reservation is permission to hold at most this many bytes.
//! Collectors, merge tables and buffers have fixed limits per task (`task::TaskSettings`).
//!
//! Invariant: the bytes in use are the sum of all live reservations and never exceed the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory of a worker process apart from its data. This includes code and heap of an idle one (4 MiB
/// measured), and chunks of segments that are fetched to disk and served from it (4 MiB each at most).
const PROCESS_BYTES: usize = 12 << 20;

/// Memory of each slot apart from what it collects or merges: buffers before files, a block of input that cannot be
/// mapped, and overhead of the allocator.
const PROCESS_SLOT_BYTES: usize = 4 << 20;

/// Division of a worker's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    /// Bytes for map outputs and gathered segments.
    pub kept_bytes: usize,
    /// Bytes for what each slot collects or merges.
    pub slot_bytes: usize,
}

impl Shares {
    /// Divides the memory: first the process itself, at most half; then one half for kept data, the other for the
    /// slots.
    #[must_use]
    pub fn divide(memory_bytes: usize, slots: u32) -> Self {
        let slots = slots.max(1) as usize;
        let process_bytes = PROCESS_SLOT_BYTES.saturating_mul(slots).saturating_add(PROCESS_BYTES);
        let data_bytes = memory_bytes - process_bytes.min(memory_bytes / 2);
        Self { kept_bytes: data_bytes / 2, slot_bytes: data_bytes / 2 / slots }
    }
}

/// Memory for data that a worker keeps between tasks. Clones share it.
#[derive(Clone, Debug)]
pub struct Budget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
}

impl Budget {
    /// Creates a budget of this many bytes; with 0 every request is rejected.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self(Arc::new(BudgetState {
            limit_bytes,
            used_bytes: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
        }))
    }

    /// Reserves `bytes` until the reservation is dropped; `None` if they are not available.
    #[must_use]
    pub(crate) fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let mut reservation = Reservation { budget: self.clone(), bytes: 0 };
        reservation.try_grow(bytes).then_some(reservation)
    }

    /// Number of bytes currently reserved.
    #[must_use]
    pub(crate) fn used_bytes(&self) -> usize {
        self.0.used_bytes.load(Ordering::Relaxed)
    }

    /// Maximum number of bytes reserved at once.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        self.0.peak_bytes.load(Ordering::Relaxed)
    }
}

/// Input files on which map outputs may rely to stay in the page cache, instead of copies of sorted pairs.
#[derive(Clone, Debug)]
pub struct KeptInFiles {
    /// Budget of their bytes.
    pub budget: Budget,
    /// Maximum bytes of short pairs that stay in files although there is memory for copies.
    pub short_bytes_max: usize,
}

impl KeptInFiles {
    /// Creates a setting with which all pairs are copied.
    #[must_use]
    pub fn none() -> Self {
        Self { budget: Budget::new(0), short_bytes_max: 0 }
    }
}

/// Reserved bytes; released when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    bytes: usize,
}

impl Reservation {
    /// Adds `more` bytes. Returns false, and changes nothing, if they are not available.
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

    /// Releases the bytes above `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.0.used_bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }

    /// Number of reserved bytes.
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
        assert_eq!(Shares::divide(mib(128), 2), Shares { kept_bytes: mib(54), slot_bytes: mib(27) });
        assert_eq!(Shares::divide(mib(8), 1), Shares { kept_bytes: mib(2), slot_bytes: mib(2) });
        for memory in [0, 1, 1000, mib(7), mib(100), usize::MAX] {
            for slots in [0, 1, 3, 1000] {
                let Shares { kept_bytes, slot_bytes } = Shares::divide(memory, slots);
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

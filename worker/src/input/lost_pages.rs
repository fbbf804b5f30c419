//! Pages of mapped files that are lost when they are read: the file was truncated meanwhile, or its disk
//! failed.
//!
//! The kernel reports it by a signal that ends the process. Here the rest of the map is replaced by zeros
//! instead, and the map is marked. Every reader of the map must check the mark afterwards, and then fails
//! with an input error. The process and its other work continue.

use crate::signal::{self, PreviousAction};
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes of a page; 0 before the handler is set.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Previous action of the signal.
static BEFORE: PreviousAction = OnceLock::new();
/// List of the places of all watches ever created. The handler follows it without a lock.
static PLACES: AtomicPtr<MappedRange> = AtomicPtr::new(null_mut());
/// Free places; its lock is also held while the handler is set.
static FREE: Mutex<Vec<&'static MappedRange>> = Mutex::new(Vec::new());

/// Address range of a map. Never freed, because a handler may read it at any time, but reused.
struct MappedRange {
    /// Version that is incremented before and after each change of the range, and odd during a change. So
    /// the start of one map is never combined with the length of another.
    version: AtomicUsize,
    start: AtomicUsize,
    /// Length of the map, 0 while the place is free.
    length: AtomicUsize,
    lost: AtomicBool,
    next: *const MappedRange,
}

#[allow(unsafe_code, reason = "a pointer to what is never freed nor changed behind it")]
// SAFETY: `next` is set before others see the place and points to another such place or is null.
unsafe impl Sync for MappedRange {}

impl MappedRange {
    const fn free(next: *const Self) -> Self {
        let (version, start, length) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        Self { version, start, length, lost: AtomicBool::new(false), next }
    }

    /// Sets the range. Only the owner that has taken the place from [`FREE`] may call it.
    fn set(&self, start: usize, length: usize) {
        self.version.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.start.store(start, Ordering::Relaxed);
        self.length.store(length, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the end of the watched range if it contains this address. A range that changes meanwhile
    /// belongs to another map: that of a map in use does not change.
    fn end_around(&self, address: usize) -> Option<usize> {
        let before = self.version.load(Ordering::Acquire);
        let (start, length) = (self.start.load(Ordering::Relaxed), self.length.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let is_whole = before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before;
        (is_whole && address.wrapping_sub(start) < length).then(|| start + length)
    }
}

/// Watches a map. Drop it before the map.
pub(super) struct Watch(&'static MappedRange);

impl Watch {
    /// Watches a map that has just been created and holds these bytes.
    ///
    /// # Errors
    /// The signal cannot be caught.
    pub fn over(map: &[u8]) -> io::Result<Self> {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        if PAGE_BYTES.load(Ordering::Relaxed) == 0 {
            signal::handle(libc::SIGBUS, on_signal, &BEFORE)?;
            PAGE_BYTES.store(rustix::param::page_size(), Ordering::Release);
        }
        let place = free.pop().unwrap_or_else(new_place);
        place.lost.store(false, Ordering::Relaxed);
        place.set(map.as_ptr() as usize, map.len());
        Ok(Self(place))
    }

    /// True if pages of the map were lost, so that zeros were read instead.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Acquire)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.set(0, 0);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// Adds a place. Must be called under the lock of [`FREE`].
fn new_place() -> &'static MappedRange {
    let place = Box::leak(Box::new(MappedRange::free(PLACES.load(Ordering::Relaxed))));
    PLACES.store(place, Ordering::Release);
    place
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    #[allow(unsafe_code, reason = "the kernel says in this structure where the fault was")]
    // SAFETY: the handler is called with this argument, and this signal's info has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    if !replace_from(address) {
        signal::pass_on(&BEFORE, signal, info, context);
    }
}

/// Replaces the map from the page of this address on by zeros. Returns false if no watched map contains it.
fn replace_from(address: usize) -> bool {
    let page_bytes = PAGE_BYTES.load(Ordering::Acquire).max(1);
    let (mut at, mut found) = (PLACES.load(Ordering::Acquire).cast_const(), false);
    #[allow(
        unsafe_code,
        reason = "a handler follows places without a lock, and changes the map that they tell of"
    )]
    // SAFETY: places are never freed. The map that was read at this address lives as long as that read,
    // so its place does not change meanwhile, and the range is within it. Its file is mapped read-only.
    unsafe {
        while let Some(place) = at.as_ref() {
            if let Some(end) = place.end_around(address) {
                // Set first, so that no thread reads the zeros without the mark.
                place.lost.store(true, Ordering::Release);
                let from = address / page_bytes * page_bytes;
                let bytes = end.next_multiple_of(page_bytes) - from;
                let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
                let zeros = libc::mmap(from as *mut libc::c_void, bytes, libc::PROT_READ, flags, -1, 0);
                found = zeros != libc::MAP_FAILED;
            }
            at = place.next;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    //! Tests of the handler with places that change while it reads them.

    use super::*;
    use std::thread;

    #[test]
    fn range_that_changes_meanwhile_is_never_taken_for_a_mix_of_two() {
        // The start of the one with the length of the other would contain 500.
        let place = MappedRange::free(null_mut());
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..200_000 {
                    if turn % 2 == 0 { place.set(100, 10) } else { place.set(1000, 900) }
                }
                is_over.store(true, Ordering::Relaxed);
            });
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(place.end_around(500), None);
                assert!([None, Some(1900)].contains(&place.end_around(1500)));
            }
        });
        place.set(100, 10);
        assert_eq!(
            (place.end_around(109), place.end_around(110), place.end_around(99)),
            (Some(110), None, None)
        );
    }
}

//! Allocator of this process: the system's, with counts of the current and peak bytes of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated and not freed; negative if it freed memory of other threads.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// Maximum of `HELD` since the start of [`peak_of`].
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(taken: usize, given: usize) {
    // A thread that ends may free memory after its counters are destroyed.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + taken as isize - given as isize);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// Sound: every call is passed on unchanged to the system's allocator; the counters are plain cells that
// allocate nothing.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the result of `work`, and the peak bytes that this thread has held for it.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before).max(0) as usize)
}

#[test]
fn counter_sees_what_was_held_and_given_back() {
    let (kept, peak) = peak_of(|| {
        drop(vec![0u8; 100_000]);
        vec![0u8; 10]
    });
    assert_eq!((kept.len(), peak), (10, 100_000));
}

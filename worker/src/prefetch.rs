//! Prefetches memory before it is used. Affects only time.

/// Starts to load the cache line of `items[index]`. If the item does not exist nothing happens, or another line is
/// loaded: a prefetch of an invalid address is not a fault.
#[inline(always)]
pub fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[allow(unsafe_code, reason = "a prefetch reads nothing, whatever the address")]
        // SAFETY: the instruction has no observable effect on memory; every processor of this kind has SSE.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(index).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Bytes of a cache line, on most processors.
const LINE_BYTES: usize = 64;
/// Maximum bytes prefetched for one item: the processor detects sequential reads itself.
const RANGE_BYTES_MAX: usize = 256;

/// Starts to load all cache lines of this many bytes from `from` on. A single missing one costs as much as all of them.
#[inline(always)]
pub(crate) fn prefetch_range(bytes: &[u8], from: usize, length: usize) {
    let last = length.clamp(1, RANGE_BYTES_MAX) - 1;
    for at in (0..last).step_by(LINE_BYTES) {
        prefetch(bytes, from + at);
    }
    prefetch(bytes, from + last);
}

#[cfg(test)]
mod tests {
    #[test]
    fn prefetch_ignores_places_that_do_not_exist() {
        super::prefetch(&[1u64, 2], 1);
        super::prefetch(&[1u64, 2], 2);
        super::prefetch::<u64>(&[], 0);
        for length in [0, 1, 64, 65, 1000] {
            super::prefetch_range(b"some", 3, length);
        }
    }
}

//! Asks the processor to bring memory near before it is needed. Changes nothing but time.

/// Begins to load the cache line of `items[index]`; does nothing if there is no such item.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[allow(unsafe_code, reason = "a prefetch reads nothing; the address is that of a living item")]
        // SAFETY: `item` is a reference, so its address is valid; every processor of this kind has SSE.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

#[cfg(test)]
mod tests {
    #[test]
    fn prefetch_ignores_places_that_do_not_exist() {
        super::prefetch(&[1u64, 2], 1);
        super::prefetch(&[1u64, 2], 2);
        super::prefetch::<u64>(&[], 0);
    }
}

//! Large pages for large buffers with random access, such as hash tables and sort buffers: fewer misses, fewer page
//! faults. Sequentially used bytes gain nothing, and their large pages are more expensive to get than recently freed
//! small ones, especially in a virtual machine.
//!
//! This is only advice to the kernel: without large pages only the time differs.

use rustix::mm::{Advice, madvise};

/// Minimum size of a buffer that gains: a large page has 2 MiB on most processors.
const HUGE_BYTES_MIN: usize = 4 << 20;
const PAGE_BYTES: usize = 4096;

/// Requests large pages for the memory of `buffer`, also for its unused part. To be called before the first byte is
/// written.
pub fn use_huge_pages<T>(buffer: &Vec<T>) {
    let bytes = buffer.capacity() * size_of::<T>();
    if bytes < HUGE_BYTES_MIN {
        return;
    }
    // Whole pages, also those shared at its boundaries: memory of one kind can be moved when the buffer grows.
    // Otherwise it would be copied, and take twice the memory meanwhile.
    let start = buffer.as_ptr() as usize / PAGE_BYTES * PAGE_BYTES;
    let end = (buffer.as_ptr() as usize + bytes).next_multiple_of(PAGE_BYTES);
    #[allow(unsafe_code, reason = "the advice concerns memory of this process, and changes no byte of it")]
    // SAFETY: each page of the range contains a byte of the allocation of `buffer`, so it is mapped. This advice does
    // not change contents, regardless of other data in the first and the last page.
    let advised = unsafe {
        madvise(buffer.as_ptr().cast_mut().with_addr(start).cast(), end - start, Advice::LinuxHugepage)
    };
    // A kernel without large pages returns an error; small pages are equally correct.
    let _ = advised;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_leave_contents_as_they_are() {
        for bytes in [0, 100, HUGE_BYTES_MIN - 1, HUGE_BYTES_MIN, 3 * HUGE_BYTES_MIN + 12345] {
            let mut buffer: Vec<u8> = Vec::with_capacity(bytes);
            use_huge_pages(&buffer);
            buffer.resize(bytes, 7);
            use_huge_pages(&buffer);
            buffer.reserve_exact(2 * bytes);
            assert!(buffer.iter().all(|byte| *byte == 7));
        }
    }
}

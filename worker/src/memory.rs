//! Large pages for large buffers that are read all over, as hash tables and what is sorted: fewer misses, fewer
//! page faults. Bytes that are written and read in order gain nothing, and their large pages cost more to come by
//! than small ones that were freed a moment ago, most of all in a virtual machine.
//!
//! Only an advice to the kernel: where it has no large pages, or is set to give none, nothing changes but
//! time.

use rustix::mm::{Advice, madvise};

/// Smaller buffers gain nothing: a large page has 2 MiB on most processors.
const HUGE_BYTES_MIN: usize = 4 << 20;
const PAGE_BYTES: usize = 4096;

/// Asks for large pages under the memory of `buffer`, also where it is not filled yet. Call it before the first
/// byte is written.
pub fn use_huge_pages<T>(buffer: &Vec<T>) {
    let bytes = buffer.capacity() * size_of::<T>();
    if bytes < HUGE_BYTES_MIN {
        return;
    }
    // Whole pages, also those that it shares at its borders: memory of one kind throughout can be moved when the
    // buffer grows. Otherwise it would be copied, and there twice meanwhile.
    let start = buffer.as_ptr() as usize / PAGE_BYTES * PAGE_BYTES;
    let end = (buffer.as_ptr() as usize + bytes).next_multiple_of(PAGE_BYTES);
    #[allow(unsafe_code, reason = "the kernel is told about memory that is ours, and changes no byte of it")]
    // SAFETY: each page of the range holds a byte of the allocation of `buffer`, so it is mapped. This advice does
    // not change contents, whoever else has bytes in the first and the last page.
    let advised = unsafe {
        madvise(buffer.as_ptr().cast_mut().with_addr(start).cast(), end - start, Advice::LinuxHugepage)
    };
    // A kernel without large pages refuses; small ones are as right.
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

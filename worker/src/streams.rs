//! Standard streams that were closed when this process started: their use is an error, not an empty success.
//!
//! The standard library opens `/dev/null` for a closed descriptor before `main`, and treats a write to a descriptor
//! that cannot be written as done. So closed descriptors are recorded before that.

use rustix::fs::{CWD, Mode, OFlags};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bit N: descriptor N was closed, or cannot be used for its purpose.
static UNUSABLE: AtomicU8 = AtomicU8::new(0);

#[used]
#[allow(unsafe_code, reason = "only the loader's list of functions is earlier than the standard library")]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static NOTE: extern "C" fn() = note;

/// Records which standard streams are closed. It only makes system calls.
extern "C" fn note() {
    for (number, unfit) in [(0, OFlags::WRONLY), (1, OFlags::RDONLY)] {
        #[allow(unsafe_code, reason = "a number that may be no descriptor has no owner")]
        // SAFETY: only the call below uses it, and it returns an error for a closed one.
        let stream = unsafe { BorrowedFd::borrow_raw(number) };
        if rustix::fs::fcntl_getfl(stream).map_or(true, |flags| flags & OFlags::RWMODE == unfit) {
            UNUSABLE.fetch_or(1 << number, Ordering::Relaxed);
        }
    }
}

/// True if standard output cannot be written.
#[must_use]
pub fn stdout_is_closed() -> bool {
    UNUSABLE.load(Ordering::Relaxed) & 2 != 0
}

/// Replaces closed descriptors by ones that fail: reading standard input or writing standard output then returns an
/// error.
pub fn make_closed_ones_fail() {
    let unusable = UNUSABLE.load(Ordering::Relaxed);
    if unusable & 1 != 0
        // Reading an unconnected socket fails with a clear error text.
        && let Ok(socket) =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None)
    {
        let _ = rustix::stdio::dup2_stdin(socket);
    }
    if unusable & 2 != 0
        && let Ok(full) =
            rustix::fs::openat(CWD, "/dev/full", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
    {
        let _ = rustix::stdio::dup2_stdout(full);
    }
}

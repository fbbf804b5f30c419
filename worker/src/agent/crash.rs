//! Which attempt was running on the thread that brings its process down, in a file that outlives the process.
//!
//! With several slots the process cannot be asked any more whose code ended it: so the signals of a crash, and `exit`,
//! are caught on the thread where they happen, which knows its attempt. What they do otherwise stays as it is. Not
//! here: kills from outside (no thread's doing), and threads that user code starts (nobody's).
//!
//! Invariant: what runs in a signal handler touches atomics, thread locals without destructors, and system calls that
//! may be used there.

use super::begun;
use gristmill_scheduler::ids::AttemptId;
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Name of the file in the worker's first spill directory.
const FILE_NAME: &str = "crashed";

/// What a process sends itself when its code goes wrong.
const SIGNALS: [libc::c_int; 7] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGSYS];

thread_local! {
    /// The attempt that runs on this thread, as it is written; zeros if there is none.
    static ATTEMPT: Cell<[u8; begun::ENTRY_BYTES]> = const { Cell::new([0; begun::ENTRY_BYTES]) };
}

/// The file; -1 before there is one.
static NOTE: AtomicI32 = AtomicI32::new(-1);
/// Only the first crash counts: what comes after it follows from it.
static NOTED: AtomicBool = AtomicBool::new(false);
/// What signals did before, in the order of [`SIGNALS`]. The standard library reports an overflow of the stack there.
static BEFORE: [OnceLock<libc::sigaction>; SIGNALS.len()] = [const { OnceLock::new() }; SIGNALS.len()];

/// This thread runs that attempt from now on, or none.
pub(super) fn runs(attempt: Option<AttemptId>) {
    ATTEMPT.set(attempt.map(begun::entry).unwrap_or_default());
}

/// The attempt that brought down the worker with this first spill directory; `None` if none is known to have.
#[must_use]
pub fn read(directory: &Path) -> Option<AttemptId> {
    let bytes = std::fs::read(directory.join(FILE_NAME)).ok()?;
    begun::parse(bytes.first_chunk()?)
}

/// From now on the process notes the attempt if it is brought down from within. Once in a process.
///
/// # Errors
/// A file that cannot be made.
pub fn install(directory: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(directory.join(FILE_NAME))?;
    NOTE.store(file.into_raw_fd(), Ordering::Release);
    for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
        #[allow(unsafe_code, reason = "signal handlers are set with the C library")]
        // SAFETY: both are whole structures for the call, and the handler does only what handlers may.
        unsafe {
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let mut old = MaybeUninit::zeroed();
            if libc::sigaction(signal, std::ptr::null(), old.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let _ = before.set(old.assume_init());
            if libc::sigaction(signal, &raw const action, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    #[allow(unsafe_code, reason = "the C library calls this at the end")]
    // SAFETY: the function stays as long as the process.
    let refused = unsafe { libc::atexit(on_exit) } != 0;
    if refused { Err(io::Error::other("the C library takes no more functions for the end")) } else { Ok(()) }
}

/// Writes down what runs on this thread.
fn note() {
    let entry = ATTEMPT.try_with(Cell::get).unwrap_or_default();
    if NOTED.swap(true, Ordering::AcqRel) {
        return;
    }
    let file = NOTE.load(Ordering::Acquire);
    #[allow(unsafe_code, reason = "the call must be one that signal handlers may use")]
    // SAFETY: the bytes are there; a descriptor that is none is refused.
    unsafe {
        // A full disk costs only the knowledge of who is to blame.
        let _ = libc::pwrite(file, entry.as_ptr().cast(), entry.len(), 0);
    }
}

extern "C" fn on_exit() {
    note();
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    note();
    let place = SIGNALS.iter().position(|&other| other == signal);
    let before = place.and_then(|place| BEFORE[place].get());
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let flags = before.map_or(0, |before| before.sa_flags);
    #[allow(unsafe_code, reason = "what the signal did before is a function of the C library's kind")]
    // SAFETY: the function was set for this signal with these flags, by the rules that hold for this one.
    unsafe {
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            // Ends the process as soon as this returns.
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        } else if flags & libc::SA_SIGINFO != 0 {
            type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
        }
    }
}

//! Which attempt was running on the thread that brings its process down, in a file that outlives the process.
//!
//! With several slots the process cannot be asked any more whose code ended it: so the signals of a crash, and `exit`,
//! are caught on the thread where they happen, which knows its attempt. What they do otherwise stays as it is. Not
//! here: kills from outside (no thread's doing), and threads that user code starts (nobody's).
//!
//! Pages of input files that are gone are no crash: `input` catches their signal first, because it sets its handler later.

use super::begun;
use crate::signal::{self, Before};
use gristmill_scheduler::ids::AttemptId;
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
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
static BEFORE: [Before; SIGNALS.len()] = [const { OnceLock::new() }; SIGNALS.len()];

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
    for (number, before) in SIGNALS.into_iter().zip(&BEFORE) {
        signal::handle(number, on_signal, before)?;
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

extern "C" fn on_signal(number: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    note();
    if let Some(place) = SIGNALS.iter().position(|&other| other == number) {
        signal::pass_on(&BEFORE[place], number, info, context);
    }
}

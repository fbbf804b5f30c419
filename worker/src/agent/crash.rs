//! Record of the attempt on the thread that brings its process down, in a file that outlives the process.
//!
//! With several slots it is not known afterwards whose code ended the process. So the signals of a crash,
//! and `exit`, are caught on the thread where they occur, which knows its attempt. Their other effects
//! stay the same. Not here: kills from outside (not caused by a thread), and threads that user code
//! starts (not attributed).
//!
//! Lost pages of input files are not a crash: `input` catches their signal first, because it sets its
//! handler later.

use super::started;
use crate::signal::{self, PreviousAction};
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

/// Signals of a crash in a process.
const SIGNALS: [libc::c_int; 7] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGSYS];

thread_local! {
    /// Encoded attempt that runs on this thread; zeros if there is none.
    static ATTEMPT: Cell<[u8; started::ENTRY_BYTES]> = const { Cell::new([0; started::ENTRY_BYTES]) };
}

/// Descriptor of the file; -1 before it is opened.
static NOTE: AtomicI32 = AtomicI32::new(-1);
/// True after the first crash. Later ones are consequences of it and do not count.
static NOTED: AtomicBool = AtomicBool::new(false);
/// Previous actions of signals, in the order of [`SIGNALS`]. The standard library reports a stack
/// overflow there.
static BEFORE: [PreviousAction; SIGNALS.len()] = [const { OnceLock::new() }; SIGNALS.len()];

/// Sets the attempt that runs on this thread from now on, if any.
pub(super) fn runs(attempt: Option<AttemptId>) {
    ATTEMPT.set(attempt.map(started::entry).unwrap_or_default());
}

/// Returns the attempt that brought down the worker with this first spill directory; `None` if unknown.
#[must_use]
pub fn read(directory: &Path) -> Option<AttemptId> {
    let bytes = std::fs::read(directory.join(FILE_NAME)).ok()?;
    started::parse(bytes.first_chunk()?)
}

/// Installs the handlers that record the attempt if the process is brought down from within. Once in a
/// process.
///
/// # Errors
/// The file cannot be created.
pub fn install(directory: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(directory.join(FILE_NAME))?;
    NOTE.store(file.into_raw_fd(), Ordering::Release);
    for (number, before) in SIGNALS.into_iter().zip(&BEFORE) {
        signal::handle(number, on_signal, before)?;
    }
    #[allow(unsafe_code, reason = "the C library calls this at the end")]
    // SAFETY: the function lives as long as the process.
    let refused = unsafe { libc::atexit(on_exit) } != 0;
    if refused { Err(io::Error::other("the C library takes no more functions for the end")) } else { Ok(()) }
}

/// Records the attempt of this thread.
fn note() {
    let entry = ATTEMPT.try_with(Cell::get).unwrap_or_default();
    if NOTED.swap(true, Ordering::AcqRel) {
        return;
    }
    let file = NOTE.load(Ordering::Acquire);
    #[allow(unsafe_code, reason = "the call must be one that signal handlers may use")]
    // SAFETY: the buffer is valid, and the system rejects an invalid descriptor.
    unsafe {
        // On a full disk only the attribution of the crash is lost.
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

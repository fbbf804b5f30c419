//! Handlers for signals that this process causes itself, called before the previous handlers.
//!
//! Handler code only uses atomics, thread locals without destructors, and async-signal-safe system calls.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Handler function: receives the signal, its data, and the state of the thread.
pub(crate) type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Previous action of a signal; empty until a handler is set.
pub(crate) type PreviousAction = OnceLock<libc::sigaction>;

/// True if this process ignores a signal, as when started by `nohup`.
#[must_use]
pub fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    #[allow(unsafe_code, reason = "the C library alone knows what a signal does")]
    // SAFETY: the structure is valid for the call, which fills it or leaves its zeros.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Calls `handler` on this signal from now on. The previous action is first stored in `before`, so that the handler can
/// [`pass_on`].
///
/// # Errors
/// A signal that cannot be caught.
pub(crate) fn handle(signal: libc::c_int, handler: Handler, before: &PreviousAction) -> io::Result<()> {
    #[allow(unsafe_code, reason = "signal handlers are set with the C library")]
    // SAFETY: both are valid structures for the call, and the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as *const () as usize;
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
    Ok(())
}

/// Runs the previous action of the signal. To be called in a handler, with the handler's arguments.
pub(crate) fn pass_on(
    before: &PreviousAction,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let before = before.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let flags = before.map_or(0, |before| before.sa_flags);
    #[allow(unsafe_code, reason = "what the signal did before is a function of the C library's kind")]
    // SAFETY: the function was set for this signal with these flags, by the same rules.
    unsafe {
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            // Ends the process as soon as the handler returns.
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        } else if flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
        }
    }
}

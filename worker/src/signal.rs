//! Handlers for signals that this process brings upon itself, in front of what was set before.
//!
//! What runs in a handler touches atomics, thread locals without destructors, and system calls that may be used there.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// What a handler is called with: the signal, what is known of it, and the state of the thread.
pub(crate) type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// What a signal did before; empty until a handler is set.
pub(crate) type Before = OnceLock<libc::sigaction>;

/// True if this process ignores a signal, as one does that was started by `nohup`.
#[must_use]
pub fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    #[allow(unsafe_code, reason = "the C library alone knows what a signal does")]
    // SAFETY: the structure is whole for the call, which fills it or leaves its zeros.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Calls `handler` on this signal from now on. What was done before is kept in `before` first, so that the handler can
/// [`pass_on`].
///
/// # Errors
/// A signal that cannot be caught.
pub(crate) fn handle(signal: libc::c_int, handler: Handler, before: &Before) -> io::Result<()> {
    #[allow(unsafe_code, reason = "signal handlers are set with the C library")]
    // SAFETY: both are whole structures for the call, and the handler does only what handlers may.
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

/// Does what the signal did before. Call it in a handler, with what that was called with.
pub(crate) fn pass_on(
    before: &Before,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let before = before.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let flags = before.map_or(0, |before| before.sa_flags);
    #[allow(unsafe_code, reason = "what the signal did before is a function of the C library's kind")]
    // SAFETY: the function was set for this signal with these flags, by the rules that hold for this one.
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

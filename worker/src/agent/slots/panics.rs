//! Panics on the threads of slots: their message and location, and attribution to user code or the engine.

use crate::agent::failed::Failed;
use crate::protocol::FailureClass;
use crate::sanitize::message as sanitize;
use std::cell::{Cell, RefCell};

/// Panic as recorded by the hook.
pub(super) struct Panicked {
    /// Location and message.
    words: String,
    /// True if it occurred in this crate's own code.
    in_engine: bool,
}

thread_local! {
    /// Last panic on this thread.
    pub(super) static PANIC: RefCell<Option<Panicked>> = const { RefCell::new(None) };
    /// True if this thread serves a slot, and so handles its own panics.
    pub(super) static SERVES_SLOT: Cell<bool> = const { Cell::new(false) };
}

/// True if a source file, as named by the compiler, is part of this crate. The location of a panic is the
/// caller's if the caller is at fault (`track_caller`), so a panic here is a bug here.
fn is_engine_source(file: &str) -> bool {
    file!().strip_suffix("agent/slots/panics.rs").is_some_and(|sources| file.starts_with(sources))
}

/// Installs a hook that records the message and location of a panic for its thread, and prints it to
/// stderr. A panic of the engine on a thread without a slot ends the process with the code `broken`.
/// A worker with a missing engine thread would be useless, without being noticed.
pub fn install_panic_hook(broken: i32) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or("(no message)");
        let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        let in_engine = info.location().is_some_and(|at| is_engine_source(at.file()));
        let words = format!("panicked{place}: {text}");
        PANIC.with_borrow_mut(|last| *last = Some(Panicked { words, in_engine }));
        before(info);
        if in_engine && !SERVES_SLOT.get() {
            std::process::exit(broken);
        }
    }));
}

/// Runs work on a thread that handles its own panics. A panic of user code or of the engine becomes a
/// failure.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> Result<T, Failed>) -> Result<T, Failed> {
    SERVES_SLOT.set(true);
    PANIC.with_borrow_mut(|last| *last = None);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()))
}

/// Converts the caught panic of this thread to a failure, with its attribution.
pub(super) fn panicked() -> Failed {
    match PANIC.with_borrow_mut(Option::take) {
        Some(Panicked { words, in_engine: true }) => {
            let message = sanitize(&format!("{words} (a mistake of the engine, not of user code)"));
            Failed { class: FailureClass::Engine, message }
        }
        Some(Panicked { words, .. }) => Failed { class: FailureClass::User, message: sanitize(&words) },
        None => Failed { class: FailureClass::User, message: "panicked".to_owned() },
    }
}

//! Panics on the threads of slots: their message and place, and whether user code or the engine is to blame.

use crate::agent::failed::Failed;
use crate::clean::message as clean;
use crate::protocol::FailureClass;
use std::cell::{Cell, RefCell};

/// A panic as the hook saw it.
pub(super) struct Panicked {
    /// Its place and message.
    words: String,
    /// It happened in this crate's own code.
    in_engine: bool,
}

thread_local! {
    /// What the panic hook saw last on this thread.
    pub(super) static PANIC: RefCell<Option<Panicked>> = const { RefCell::new(None) };
    /// Whether this thread serves a slot, and so notices its own panics.
    pub(super) static SERVES_SLOT: Cell<bool> = const { Cell::new(false) };
}

/// Whether a source file, as the compiler names it, is one of this crate. The place of a panic is the caller's where
/// the caller is to blame, so a panic here is a mistake made here, whoever called.
fn is_engine_source(file: &str) -> bool {
    file!().strip_suffix("agent/slots/panics.rs").is_some_and(|sources| file.starts_with(sources))
}

/// Remembers the message and place of a panic for the thread it happens on, and prints it to stderr. A panic of the
/// engine on a thread that serves no slot ends the process with the code `broken`, once `say` has had the words: half of
/// what drives a worker is of no use, and nobody would notice.
pub fn install_panic_hook(broken: i32, say: fn(&str)) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str().unwrap_or("(no message)");
        let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        let in_engine = info.location().is_some_and(|at| is_engine_source(at.file()));
        let words = format!("panicked{place}: {text}");
        PANIC.with_borrow_mut(|last| *last = Some(Panicked { words: words.clone(), in_engine }));
        before(info);
        if in_engine && !SERVES_SLOT.get() {
            say(&words);
            std::process::exit(broken);
        }
    }));
}

/// Does something on a thread that notices its own panics; one of user code or of the engine is a failure.
pub(in crate::agent) fn catch_panic<T>(work: impl FnOnce() -> Result<T, Failed>) -> Result<T, Failed> {
    SERVES_SLOT.set(true);
    PANIC.with_borrow_mut(|last| *last = None);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()))
}

/// What is made of a panic that was caught on this thread, and whose mistake it is.
pub(super) fn panicked() -> Failed {
    match PANIC.with_borrow_mut(Option::take) {
        Some(Panicked { words, in_engine: true }) => {
            let message = clean(&format!("{words} (a mistake of the engine, not of user code)"));
            Failed { class: FailureClass::Engine, message }
        }
        Some(Panicked { words, .. }) => Failed { class: FailureClass::User, message: clean(&words) },
        None => Failed { class: FailureClass::User, message: "panicked".to_owned() },
    }
}

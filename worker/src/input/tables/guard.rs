//! Calls of the crates that decode: a panic there at what a file holds is an error of the file, and nobody sees its message.

use super::batches::DecodeError;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread is caught and told as an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of the crates that decode: where it panics at what a file holds, that is an error of the file.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, DecodeError>) -> Result<T, DecodeError> {
    quiet_panics();
    let before = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    result.unwrap_or_else(|_| Err("its decoder gave up on it".into()))
}

/// Lets the panics that are caught here pass without a word, once for the process; all others are told as before.
fn quiet_panics() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                before(info);
            }
        }));
    });
}

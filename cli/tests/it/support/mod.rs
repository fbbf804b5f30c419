//! What the tests share: a sandbox for processes, looks into `/proc`, fault places, data, oracles.
//!
//! Deliberately not here: anything of the product. Oracles share no code with the runtime.

pub mod data;
pub mod faults;
pub mod http;
pub mod memory_group;
pub mod namespace;
pub mod oracle;
pub mod process;
pub mod sandbox;
pub mod standing;

pub use sandbox::{Finished, Sandbox};

use std::io::Write;
use std::time::{Duration, Instant};

/// Longest time that any single condition is waited for. Far more than needed, so that a busy machine fails nothing.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks at a condition.
const LOOK_PAUSE: Duration = Duration::from_millis(2);

/// Looks again and again until there is something to see; gives up after `limit`.
pub fn until_within<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < limit, "waited {limit:?} in vain: {what}");
        std::thread::sleep(LOOK_PAUSE);
    }
}

/// Whether something comes about within `limit`: for what may not, and is no fault of who looks.
pub fn comes_within(limit: Duration, look: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !look() {
        if limit < start.elapsed() {
            return false;
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    true
}

/// As [`until_within`] with [`PATIENCE`].
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(what, PATIENCE, look)
}

/// Says on stderr that a test, or part of one, did not run. The harness catches what `eprintln` writes; this it does
/// not catch, so that a skipped test can be seen.
pub fn say_skipped(what: &str, why: &str) {
    // A closed stderr hides a remark, no result.
    let _ = writeln!(std::io::stderr(), "\nskipped ({why}): {what}");
}

/// Whether the tests run as root. If not, says that `what` is skipped.
pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        say_skipped(what, "needs root");
    }
    root
}

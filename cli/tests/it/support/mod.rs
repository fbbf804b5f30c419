//! Shared by the tests: a sandbox for processes, queries of `/proc`, fault places, data, oracles.
//!
//! Nothing of the product is used here. Oracles share no code with the runtime.

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

/// Timeout for any single condition. It is far more than needed, so that a busy machine fails no test.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between two checks of a condition.
const LOOK_PAUSE: Duration = Duration::from_millis(2);

/// Calls `look` until it returns a value; fails after `limit`.
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

/// Returns true if a condition becomes true within `limit`. Unlike [`until_within`], a timeout is no failure.
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

/// As [`until_within`] with [`TIMEOUT`].
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(what, TIMEOUT, look)
}

/// Reports on stderr that a test, or part of one, did not run. The harness captures `eprintln`, but not this,
/// so that a skipped test is visible.
pub fn say_skipped(what: &str, why: &str) {
    // A closed stderr loses a remark, but no result.
    let _ = writeln!(std::io::stderr(), "\nskipped ({why}): {what}");
}

/// True if the tests run as root. If not, reports that `what` is skipped.
pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        say_skipped(what, "needs root");
    }
    root
}

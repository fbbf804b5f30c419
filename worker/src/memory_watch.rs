//! Ends a process that takes much more memory than its budget.
//!
//! Memory for collecting, merging and keeping data is counted before it is taken ([`crate::budget`]). All other memory,
//! such as that of user code, is not. A process without a limit would take the memory of other processes, and the
//! kernel would choose which of them to kill.

use crate::machine;
use std::io;
use std::thread;
use std::time::Duration;

/// Memory of a process beyond its budget: buffers, tables of segments, stacks and overhead of the allocator.
/// In measurements 50 times a second, word counts, sorts and streaming with `--memory 32MiB` and `64MiB` took
/// at most 1 MiB more than it. Rankings and joins that hold a table took 22 MiB more.
const ALLOWANCE_BYTES: u64 = 64 << 20;

/// Additional allowance for each slot.
const SLOT_ALLOWANCE_BYTES: u64 = 8 << 20;

/// A process that takes 1 GiB/s takes 50 MiB between two checks.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum bytes that a task may hold of one item that is not divided: the keys of a ranking.
#[must_use]
pub(crate) fn item_bytes_max(slot_bytes: usize) -> usize {
    slot_bytes.saturating_add(ALLOWANCE_BYTES as usize / 2)
}

/// Calls `exceeded` with the reason, on a separate thread, once this process has more anonymous memory than its budget
/// and the allowance. Mapped files do not count.
///
/// # Errors
/// A thread that cannot be started.
pub fn watch(budget_bytes: u64, slots: u32, exceeded: impl FnOnce(&str) + Send + 'static) -> io::Result<()> {
    let allowance = ALLOWANCE_BYTES + SLOT_ALLOWANCE_BYTES * u64::from(slots);
    let look = move || loop {
        let used = machine::anonymous_bytes();
        if used > budget_bytes.saturating_add(allowance) {
            let [used, budget, allowance] = [used, budget_bytes, allowance].map(|bytes| bytes >> 20);
            return exceeded(&format!(
                "this process took {used} MiB of memory: more than its budget of {budget} MiB and {allowance} MiB \
                 beyond it; a larger --memory gives it more"
            ));
        }
        thread::sleep(LOOK_INTERVAL);
    };
    thread::Builder::new().name("memory".to_owned()).spawn(look).map(drop)
}

//! Ends a process that takes much more memory than its budget.
//!
//! What tasks collect, merge and keep is counted before it is taken ([`crate::budget`]). Everything else, such as what
//! user code holds, is not. A process that goes on and on would take the memory of its neighbours, and the kernel
//! would choose which of them ends.

use crate::machine;
use std::io;
use std::thread;
use std::time::Duration;

/// Memory of a process beyond its budget: buffers, tables of segments, stacks and what the allocator keeps. Word counts,
/// sorts and streaming under `--memory 32MiB` and `64MiB` were seen at 1 MiB beyond it at most, looked at 50 times a
/// second; rankings and joins that hold a table at 22 MiB.
const ALLOWANCE_BYTES: u64 = 64 << 20;

/// The same for each slot.
const SLOT_ALLOWANCE_BYTES: u64 = 8 << 20;

/// A process that takes 1 GiB/s takes 50 MiB between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum bytes that a task may hold of one item that is not divided: the keys of a ranking.
#[must_use]
pub(crate) fn item_bytes_max(slot_bytes: usize) -> usize {
    slot_bytes.saturating_add(ALLOWANCE_BYTES as usize / 2)
}

/// Calls `exceeded` with the reason, on a thread of its own, once this process has more anonymous memory than its budget
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

//! Memory that no other process of the same user may read: secrets are in it.

use gristmill_worker::fault;

/// Keeps the memory of this process, in which secrets are, from other processes of its user and out of core files.
/// Children that are other programs are as ever.
pub(crate) fn keep_memory_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // A test that is not root could not look at the process otherwise.
    if fault::is_armed("dumpable") {
        return;
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::debug!(%error, "other processes of this user can read the memory of this one");
    }
}

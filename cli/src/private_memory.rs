//! Process memory with secrets, which no other process of the same user may read.

use gristmill_worker::fault;

/// Protects the memory of this process, which contains secrets, from other processes of its user, and
/// excludes it from core files. Children that execute other programs are not affected.
pub(crate) fn keep_memory_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // Otherwise a test without root could not inspect the process.
    if fault::is_armed("dumpable") {
        return;
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::debug!(%error, "other processes of this user can read the memory of this one");
    }
}

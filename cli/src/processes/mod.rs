//! `cluster master` and `cluster worker`: the processes of a cluster, started by a user or by `run`.
//!
//! Shared here: a process that ends on request, and its log.

mod addresses;
mod log;
mod master;
mod stoppable;
mod worker;

pub use log::log_of_client;
pub use master::{MasterCommand, master};
pub use worker::{WorkerCommand, worker};

use gristmill_runtime::cluster::ChildRole;
use gristmill_runtime::registry::Registry;

/// Runs a child process of this program, which receives its settings from its parent. It may run any job of the registry.
///
/// # Errors
/// Errors of the commands whose work it does, or settings that cannot be read.
pub fn child(role: ChildRole, registry: Registry) -> anyhow::Result<u8> {
    match role {
        ChildRole::Master => master::master_process(registry),
        ChildRole::Worker => worker::worker_process(registry),
    }
}

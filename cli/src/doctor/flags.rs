//! Flags of `cluster doctor`: what it examines, the cluster it asks, and what it prints.

use crate::flags::{DiskFlags, MasterFlags};
use clap::Args;

/// Diagnose this machine and cluster
///
/// Checks this machine (memory, disks, limits), and the master and its workers if one is known:
/// builds, clocks and routes between all of them.
#[derive(Args)]
pub struct DoctorCommand {
    /// Worker processes for this machine [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(super) workers: Option<u32>,
    /// Memory for workers of this machine [default: that of the settings]
    #[arg(long, value_name = "SIZE")]
    pub(super) memory: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) disk: DiskFlags,
    #[command(flatten)]
    pub(super) master: MasterFlags,
}

//! `up` and `down`: a cluster as a guest of what already places processes: ssh, Slurm, Ray, Kubernetes.
//!
//! Here is neither a placer of processes nor a scheduler of machines: each place starts, replaces and ends workers by its
//! own means. What was started is written down first ([`record`]), so that one command ends it.

mod down;
mod flags;
mod groups;
mod guest;
mod hosts;
mod kubernetes;
mod master;
mod process;
mod ray;
mod record;
mod slurm;
mod ssh;
mod starts;
mod up;

pub use down::{DownCommand, down};
pub use flags::UpCommand;
pub use guest::{GuestCommand, guest};
pub use up::up;

use gristmill_runtime::cluster::ToolError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why something is not up, or not down.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Something is up.
    #[error("{what} is up already, by {}; end it with `gristmill down`, or name another folder with --state", path.display())]
    Up { what: String, path: PathBuf },
    /// Nothing is up.
    #[error("nothing is up by the state folder {}; name another one with --state", path.display())]
    Nothing { path: PathBuf },
    /// It was brought up elsewhere.
    #[error("{what} is up, but it was brought up on {machine}: type `gristmill down` there")]
    Elsewhere { what: String, machine: String },
    /// What is up cannot be written down or read.
    #[error("could not {action} {}", path.display())]
    Record {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The master could not be started.
    #[error("could not start a master; its log is {}", log.display())]
    Master {
        log: PathBuf,
        #[source]
        source: io::Error,
    },
    /// It ended at once.
    #[error("the master ended at once: {said}")]
    MasterEnded { said: String },
    /// It does not answer.
    #[error("the master did not answer within {limit:?}; its log is {}", log.display())]
    MasterSlow { limit: Duration, log: PathBuf },
    /// It does not end.
    #[error("the master, process {pid}, does not end")]
    MasterStays { pid: i32 },
    /// Too few hosts.
    #[error("{refused} of {hosts} hosts do not take part{}", if *all { ", and --require-all was typed" } else { "" })]
    Hosts { refused: usize, hosts: usize, all: bool },
    /// Some were not reached at the end.
    #[error(
        "{} could not be brought down; workers there end by themselves when they have not found their master for ten \
         minutes. Type `gristmill down` again to try once more, or `gristmill down --forget` to give them up",
        hosts.join(", ")
    )]
    Left { hosts: Vec<String> },
    /// A place refuses.
    #[error("could not {what}: {said}")]
    Refused { what: &'static str, said: String },
    /// A program is missing or hangs.
    #[error(transparent)]
    Tool {
        #[from]
        source: ToolError,
    },
}

//! Reasons for which a cluster does not start.

use gristmill_worker::descriptors::TooFewDescriptors;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::http::SecretError;
use std::io;
use std::path::PathBuf;

/// Reason for which a cluster did not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum ClusterError {
    /// A process of this executable could not be started, or ended at once.
    #[error("could not start a {role} process")]
    Start {
        /// Master or worker.
        role: &'static str,
        #[source]
        source: io::Error,
    },
    /// The master process ended before it was ready.
    #[error("the master process ended at once, and says above why")]
    MasterEnded {
        /// Exit code of the process; `None` if a signal ended it.
        code: Option<i32>,
    },
    /// A private directory could not be created.
    #[error("could not make the directory {path}")]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The system provides no random numbers.
    #[error("no secret could be made")]
    Secret {
        #[source]
        source: SecretError,
    },
    /// `/proc` is missing, as in a bare chroot.
    #[error(
        "/proc is not mounted, and processes are started and recognized by it; mount it: `mount -t proc proc /proc`"
    )]
    NoProc,
    /// The processes could not reach each other.
    #[error(
        "the loopback interface cannot be used, over which the processes of this machine reach each other; bring it up: \
         `ip link set lo up`"
    )]
    NoLoopback {
        #[source]
        source: io::Error,
    },
    /// Its processes could not work.
    #[error("a cluster cannot be started")]
    Descriptors {
        #[from]
        source: TooFewDescriptors,
    },
}

impl ExitsWith for ClusterError {
    fn exit(&self) -> Exit {
        match self {
            // It is this program, and has decided by the same rules.
            Self::MasterEnded { code: Some(code) } => {
                Exit::with(u8::try_from(*code).unwrap_or(exit::ENVIRONMENT))
            }
            _ => exit::exit_without_threads(self),
        }
    }
}

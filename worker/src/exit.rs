//! Exit codes of the program, one meaning each, documented in `docs/book/reference.md`; and those of errors, with a hint
//! of what to do next.

use std::error::Error;
use std::io;

/// Success.
pub const OK: u8 = 0;
/// A job failed by its own code, or a check did not pass.
pub const FAILED: u8 = 1;
/// The command or the job's parameters are invalid.
pub const USAGE: u8 = 2;
/// The environment does not allow it: a port, the output directory, a permission, another build.
pub const ENVIRONMENT: u8 = 3;
/// The input is missing, changed or corrupt.
pub const INPUT: u8 = 4;
/// The cluster is lost: no workers, or the master is gone.
pub const CLUSTER: u8 = 5;
/// Not authorised.
pub const UNAUTHORISED: u8 = 6;
/// Disk, memory or another resource of the machines ran out, or damages data, wherever it was tried.
pub const RESOURCES: u8 = 7;
/// The job was cancelled or exceeded a limit.
pub const CANCELLED: u8 = 8;
/// A bug of the engine.
pub const ENGINE: u8 = 9;
/// Ctrl-C or SIGTERM.
pub const INTERRUPTED: u8 = 130;

/// Exit code of an error, and what its user can do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit {
    /// The code.
    pub code: u8,
    /// The next step, where there is one that the error does not name.
    pub hint: Option<&'static str>,
}

impl Exit {
    /// A code without a hint.
    #[must_use]
    pub const fn with(code: u8) -> Self {
        Self { code, hint: None }
    }

    /// A code with a hint.
    #[must_use]
    pub const fn hinted(code: u8, hint: &'static str) -> Self {
        Self { code, hint: Some(hint) }
    }
}

/// An error with an exit code.
pub trait ExitsWith: Error {
    /// Returns the exit code and a hint. By default the environment is the cause: [`RESOURCES`] if a disk is full, else
    /// [`ENVIRONMENT`].
    fn exit(&self) -> Exit
    where
        Self: Sized + 'static,
    {
        exit_of_environment(self)
    }
}

fn exit_of_environment(error: &(dyn Error + 'static)) -> Exit {
    match has_cause(error, is_out_of_room) {
        true => Exit::hinted(RESOURCES, "free some space there, or name other directories"),
        false => Exit::with(ENVIRONMENT),
    }
}

impl ExitsWith for io::Error {
    fn exit(&self) -> Exit {
        match is_out_of_room(self) {
            true => Exit::with(RESOURCES),
            false => exit_without_threads(self),
        }
    }
}

/// Returns the exit of an error that may come from a limit of processes.
pub fn exit_without_threads(error: &(dyn Error + 'static)) -> Exit {
    if has_cause(error, crate::threads::are_used_up) {
        return Exit::hinted(
            RESOURCES,
            "raise the limit of processes (ulimit -u, pids.max), or use fewer slots",
        );
    }
    exit_of_environment(error)
}

/// True if the error or one of its causes is such an error of the system.
pub(crate) fn has_cause(error: &(dyn Error + 'static), which: fn(&io::Error) -> bool) -> bool {
    let mut causes = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    causes.any(|cause| cause.downcast_ref::<io::Error>().is_some_and(which))
}

/// True if a disk has no room left, or none for this user or this file.
#[must_use]
pub fn is_out_of_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Exit codes with which a worker process reports its end to the process that started it. Any other code, and any
/// signal, is caused by user code or from outside. So is one of these codes if the process has left a note of an
/// attempt on whose thread it has exited: the engine never exits on such a thread.
pub mod worker {
    /// Start another process: user code hangs and cannot be stopped, or the master has closed the connection.
    pub const RENEW: i32 = 75;
    /// It was asked to end.
    pub const ASKED: i32 = 76;
    /// The master could not be reached for a while.
    pub const MASTER_GONE: i32 = 77;
    /// It cannot work here, or the master rejected it.
    pub const REFUSED: i32 = 78;
    /// Its secret is not the master's.
    pub const UNAUTHORISED: i32 = 79;
    /// Start another process: this one was ended by another process than its parent.
    pub const TERMINATED: i32 = 80;
    /// Start another process: the engine's own code has panicked.
    pub const BROKEN: i32 = 81;
    /// This machine has no thread, file or port left for it. Start another process only if one has worked there.
    pub const LACKING: i32 = 82;
    /// Start another process: this one used more memory than its budget and the allowance.
    pub const OVER_MEMORY: i32 = 83;

    /// True if a worker process ends itself with this code, unless user code calls `exit`.
    #[must_use]
    pub fn is_own(code: i32) -> bool {
        (RENEW..=OVER_MEMORY).contains(&code)
    }
}

//! Exit codes of the program: one meaning each, documented in the README.

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

//! Exit codes of the program: one meaning each, documented in the README.

/// All went well.
pub const OK: u8 = 0;
/// A job failed by its own code, or a check that ran did not pass.
pub const FAILED: u8 = 1;
/// The command or the job's parameters make no sense.
pub const USAGE: u8 = 2;
/// The environment refused: a port, the output directory, a permission, another build.
pub const ENVIRONMENT: u8 = 3;
/// The input is missing, changed or corrupt.
pub const INPUT: u8 = 4;
/// The cluster is lost: no workers, or the master is gone.
pub const CLUSTER: u8 = 5;
/// Not authorised.
pub const UNAUTHORISED: u8 = 6;
/// Disk, memory or another means of the machines ran out, or damages data, wherever it was tried.
pub const RESOURCES: u8 = 7;
/// The job was cancelled or passed a limit.
pub const CANCELLED: u8 = 8;
/// The engine itself made a mistake.
pub const ENGINE: u8 = 9;
/// Ctrl-C or SIGTERM.
pub const INTERRUPTED: u8 = 130;

/// How a worker process tells whoever started it why it ends. Any other code, and any signal, is the doing of user
/// code or of somebody outside; and so is one of these where the process has left word of an attempt on whose thread it
/// has exited, as the engine exits on no such thread.
pub mod worker {
    /// Start another process: user code hangs and nothing can stop it, or the master has closed the connection.
    pub const RENEW: i32 = 75;
    /// It was asked to end.
    pub const ASKED: i32 = 76;
    /// The master could not be reached for a while.
    pub const MASTER_GONE: i32 = 77;
    /// It cannot work here, or the master does not want it.
    pub const REFUSED: i32 = 78;
    /// Its secret is not the master's.
    pub const UNAUTHORISED: i32 = 79;
    /// Start another process: somebody other than its parent has told this one to end.
    pub const TERMINATED: i32 = 80;
    /// Start another process: the engine's own code has panicked.
    pub const BROKEN: i32 = 81;
    /// This machine gives it no thread, file or port. There is a point in another process only if one has worked there.
    pub const LACKING: i32 = 82;
    /// Start another process: this one took more memory than its budget and the allowance.
    pub const OVER_MEMORY: i32 = 83;

    /// Whether a worker process ends with this code of its own accord, rather than by an `exit` in user code.
    #[must_use]
    pub fn is_own(code: i32) -> bool {
        (RENEW..=OVER_MEMORY).contains(&code)
    }
}

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
/// Disk or memory ran out everywhere.
pub const RESOURCES: u8 = 7;
/// The job was cancelled or passed a limit.
pub const CANCELLED: u8 = 8;
/// Ctrl-C or SIGTERM.
pub const INTERRUPTED: u8 = 130;

/// A worker process ends itself with this when user code hangs in it, to be replaced.
pub const RENEW: i32 = 75;

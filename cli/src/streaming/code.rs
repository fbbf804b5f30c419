//! Exit codes of Hadoop Streaming, which `gristmill streaming` and the program as `hadoop` end with.

pub const OK: u8 = 0;
/// The job failed, or an argument is invalid.
pub const FAILED: u8 = 1;
/// An input path is missing.
pub const INPUT: u8 = 2;
/// The job's configuration is invalid.
pub const CONFIGURATION: u8 = 3;
/// The output directory exists.
pub const OUTPUT: u8 = 4;
/// Another error before the job ran.
pub const SUBMIT: u8 = 5;
/// The job was interrupted.
pub const INTERRUPTED: u8 = 6;

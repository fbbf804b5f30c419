//! Experiments: comparisons of policies on real execution, and simulations of the same jobs.
//!
//! Each module imports only earlier ones: [`report`] (figures and tables as data, and their drawing),
//! [`simulate`] (the jobs of a run in the cluster simulator), [`compare`] (a workload under several
//! policies, live). [`parallel`] runs simulations on all processors. Not here: anything that a job needs
//! to run, and the experiments of papers (`gristmill-papers`).

pub mod compare;
mod io_error;
pub mod parallel;
pub mod report;
pub mod simulate;

pub use io_error::IoError;

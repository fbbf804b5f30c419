//! Experiments: what would have happened, what did, and what the papers say.
//!
//! One line again, each importing only what stands left of it: [`report`] (figures and tables as data, and how they are
//! drawn), [`simulate`] (the jobs of a run in the cluster simulator), [`compare`] (a workload under several policies, live),
//! [`paper`] (the experiments of five papers). Not here: anything that a job needs to run.

pub mod compare;
pub mod paper;
pub mod report;
pub mod simulate;

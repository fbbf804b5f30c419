//! Experiments: what would have happened, what did, and what the papers say.
//!
//! One line again, each importing only what stands left of it: [`report`] (figures and tables as data, and how they are
//! drawn), [`predict`] (a journal's jobs under another policy), [`compare`] (a workload under several policies, live),
//! [`paper`] (the experiments of five papers). Not here: anything that a job needs to run.

pub mod compare;
pub mod paper;
pub mod predict;
pub mod report;

//! The assembled system: live master, embedded cluster, client, standard jobs, command line.
//!
//! A program of your own registers its jobs and hands over:
//!
//! ```no_run
//! use gristmill::prelude::*;
//!
//! fn main() -> std::process::ExitCode {
//!     gristmill::cli::main(Registry::standard())
//! }
//! ```
//!
//! Read [`prelude`] for the job API, [`registry`] for what a program can bring, [`client`] for driving jobs from
//! code.

pub mod api;
pub mod cli;
pub mod client;
pub mod cluster;
pub mod exit;
pub mod generate;
pub mod jobs;
pub mod master;
pub mod output_dir;
pub mod registry;
pub mod size;
pub mod submit;
pub mod submitter;
pub mod verify_sort;

pub use gristmill_scheduler as scheduler;
pub use gristmill_worker as worker;

/// Everything a job needs.
pub mod prelude {
    pub use crate::client::{Client, JobReport};
    pub use crate::registry::{Registry, Rounds};
    pub use crate::submit::JobOptions;
    pub use clap;
    pub use gristmill_worker::api::{
        Combiner, Counter, Input, Job, JobPlan, MapOnly, Mapper, Partitioner, PlanError, Reducer, Submitter,
        TaskContext, TaskError, TaskResult,
    };
    pub use gristmill_worker::collect::Emitter;
    pub use gristmill_worker::key::{ByteString, Key};
    pub use gristmill_worker::merge::Values;
    pub use gristmill_worker::output::Output;
    pub use gristmill_worker::record::{Block, Record};
    pub use gristmill_worker::text;
    pub use gristmill_worker::value::Value;
    pub use serde;
    pub use serde::{Deserialize, Serialize};
}

/// An error and its causes on one line, joined by `: `.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = cause.source();
    }
    text
}

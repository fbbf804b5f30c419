//! Types and traits for writing a job, for `use gristmill_worker::prelude::*`.
//!
//! The prelude of the package `gristmill` includes it, with what is needed to run a job.

pub use crate::api::{
    Columns, Combiner, Counter, Input, Job, JobPlan, MapOnly, Mapper, Max, Min, Partitioner, PlanError,
    Reducer, Submitter, Sum, TaskContext, TaskError, TaskResult, WriteTotal, parse,
};
pub use crate::collect::Emitter;
pub use crate::input::Compression;
pub use crate::key::{ByteString, Key};
pub use crate::key_newtype;
pub use crate::merge::Values;
pub use crate::output::Output;
pub use crate::output::{ColumnKind, RowLayout};
pub use crate::record::{Block, Record};
pub use crate::text;
pub use crate::value::Value;

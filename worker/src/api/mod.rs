//! Job API, implemented by users: a [`Mapper`], optionally a [`Combiner`], a [`Reducer`], combined by a [`Job`] into a
//! [`JobPlan`].
//!
//! Execution of tasks is in `task`, input in `input`, and output in `output`.

mod columns;
mod context;
mod each;
mod error;
mod job;
mod plan;
mod standard;
mod task;
mod work;

pub use crate::attempt::{Counter, Counters, FailureKind, SideInputs, TaskError, TaskResult, parse};
pub use crate::collect::{Combiner, Partitioner};
pub use crate::input::Input;
pub use crate::key::GroupPrefix;
pub use columns::Columns;
pub use context::{InputRange, SignOfLife, TaskContext};
pub use error::PlanError;
pub use job::{Job, Submitter};
pub use plan::{JobPlan, KeyOrder, MapReducePlan};
pub use standard::{Max, Min, Sum, WholeNumber, WriteTotal};
pub use task::{MapOnly, Mapper, Reducer};

pub(crate) use each::ReduceEach;
pub(crate) use plan::JobFunctions;
pub(crate) use work::MapReduceWork;
pub use work::ReducePart;
pub(crate) use work::{ErasedMap, ErasedReduce, ErasedSample};

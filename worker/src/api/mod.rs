//! The job API: what a user implements. A [`Mapper`], perhaps a [`Combiner`], a [`Reducer`], put together
//! by a [`Job`] into a [`JobPlan`].
//!
//! Not here: how a task is executed (`map_task`, `reduce_task`), where its input lies (`input`) and
//! where its output goes (`output`).

mod columns;
mod context;
mod each;
mod error;
mod job;
mod plan;
mod reservoir;
mod standard;
mod task;
mod work;

pub use crate::attempt::{Counter, Counters, FailureKind, SideInputs, TaskError, TaskResult, parse};
pub use crate::collect::{Combiner, Partitioner};
pub use crate::input::Input;
pub use crate::key::GroupPrefix;
pub use columns::Columns;
pub use context::{InputStretch, SignOfLife, TaskContext};
pub use error::PlanError;
pub use job::{Job, Submitter};
pub use plan::{JobPlan, KeyOrder, MapReducePlan};
pub use reservoir::{Reservoir, UniteSamples};
pub use standard::{Max, Min, Sum, WholeNumber, WriteTotal};
pub use task::{MapOnly, Mapper, Reducer};

pub(crate) use each::ReduceEach;
pub(crate) use plan::JobFunctions;
pub use work::MapReduceWork;
pub(crate) use work::{ErasedMap, ErasedReduce, ErasedSample};

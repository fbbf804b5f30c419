//! The job API: what a user implements. A [`Mapper`], perhaps a [`Combiner`], a [`Reducer`], put together
//! by a [`Job`] into a [`JobPlan`].
//!
//! Not here: how a task is executed (`map_task`, `reduce_task`), where its input lies (`input`) and
//! where its output goes (`output`).

mod context;
mod error;
mod job;
mod plan;
mod standard;
mod task;

pub use context::{Counter, Counters, TaskContext};
pub use error::{FailureKind, PlanError, TaskError, TaskResult};
pub use job::{Job, Submitter};
pub use plan::{GroupPrefix, Input, JobPlan, MapReducePlan, Order};
pub use standard::{Max, Min, Sum, WriteTotal};
pub use task::{Combiner, MapOnly, Mapper, Partitioner, Reducer};

pub(crate) use plan::Work;

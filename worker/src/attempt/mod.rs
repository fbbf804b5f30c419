//! Attempts of a task: their environment, progress, requests, failures and results.
//!
//! It is the layer below all work: reading and merging ask [`Progress`] if the attempt continues, and return
//! [`TaskFailure`]. [`task`](crate::task) runs attempts from start to end.

mod context;
mod counters;
mod decode;
mod error;
mod failure;
mod hold;
mod pace;
mod progress;
mod refusal;
mod results;
mod side;

pub use context::{AttemptContext, TaskSettings};
pub use counters::{Counter, Counters};
pub(crate) use counters::{NamedCounts, counting_methods};
pub use decode::parse;
pub use error::{FailureKind, TaskError, TaskResult};
pub use failure::{Fault, TaskFailure};
pub use hold::Parking;
pub use progress::Progress;
pub(crate) use progress::{Division, DivisionReport, ReadMeter, SlowPart};
pub(crate) use refusal::{heed, refuse_record};
pub use results::{MapDone, PartDone, TaskStats};
pub use side::SideInputs;
pub(crate) use side::kept_inputs;

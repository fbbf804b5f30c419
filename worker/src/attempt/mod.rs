//! One attempt at a task, seen from all that takes part in it: what it is given, how far it is and what is wanted of
//! it, why it fails, and what it leaves.
//!
//! Below whatever does the work: reading and merging ask [`Progress`] whether the attempt goes on, and all answer with
//! [`TaskFailure`]. [`task`](crate::task) runs one, start to finish.

mod context;
mod counters;
mod decode;
mod ends;
mod error;
mod failure;
mod hold;
mod pace;
mod progress;
mod refusal;
mod side;

pub use context::{AttemptContext, TaskSettings};
pub use counters::{Counter, Counters};
pub(crate) use counters::{NamedCounts, counting_methods};
pub use decode::parse;
pub use ends::{BAD_RECORDS_COUNTER, LEFT_OUT_COUNTER, MapDone, PartDone, ReduceEnd, TaskStats};
pub use error::{FailureKind, TaskError, TaskResult};
pub use failure::{Fault, TaskFailure};
pub use hold::Parking;
pub use progress::Progress;
pub(crate) use progress::{ReadMeter, SlowPart};
pub(crate) use refusal::{heed, refuse_record};
pub use side::SideInputs;
pub(crate) use side::kept_inputs;

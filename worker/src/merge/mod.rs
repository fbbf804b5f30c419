//! Merging sorted segments, and the stream of values that a reducer sees.
//!
//! Ties between segments go to the earlier one, so values of equal keys stay in (map, position) order. A group
//! is never held in memory: [`Values`] reads on as the reducer asks. Not here: totals by key in a table
//! (`collect`), and who calls the reducer (`task`).

mod fan_in;
mod tree;
mod values;

pub(crate) use fan_in::{FanIn, limit_fan_in, merge_into};
pub(crate) use tree::{LoserTree, MergeError};
pub(crate) use values::ValueSource;
pub use values::Values;

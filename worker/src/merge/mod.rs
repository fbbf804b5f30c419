//! Merging of sorted segments, and the stream of values for a reducer.
//!
//! Ties between segments go to the earlier one, so values of equal keys stay in (map, position) order. A group is never
//! held in memory: [`Values`] reads as the reducer requests values. Totals by key in a table are in `collect`; the
//! caller of the reducer is `task`.

mod fan_in;
mod rest;
mod tree;
mod values;

pub(crate) use fan_in::{FanIn, limit_fan_in, merge_into};
pub(crate) use rest::MergeRest;
pub(crate) use tree::{LoserTree, MergeError};
pub(crate) use values::ValueSource;
pub use values::Values;

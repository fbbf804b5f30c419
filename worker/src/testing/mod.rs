//! Tests of jobs without a cluster: a mapper, combiner or reducer alone, or a whole job over files in memory.
//!
//! They run the code of a worker's tasks, one after another in this process. Pairs are encoded and decoded, sorted,
//! combined and grouped as usual.
//!
//! ```
//! # use gristmill_worker as gristmill;
//! # use gristmill_worker::testing;
//! use gristmill::prelude::*;
//!
//! struct Words;
//!
//! impl Mapper for Words {
//!     type Key = String;
//!     type Value = u64;
//!
//!     fn map(&mut self, line: Record<'_>, out: &mut Emitter<String, u64>) -> TaskResult {
//!         for word in line.text().split_whitespace() {
//!             out.emit(word, 1);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> TaskResult {
//! let pairs = testing::map(Words, "to be\nor not")?;
//! assert_eq!(pairs[1], ("be".to_owned(), 1));
//! assert_eq!(testing::combine(Sum::<u64>::new(), [1, 2, 3]), Some(6));
//! let written = testing::reduce(WriteTotal::<String, Sum<u64>>::default, [("be", 1), ("to", 1), ("be", 1)])?;
//! assert_eq!(written.lines(), ["be\t2", "to\t1"]);
//! # Ok(())
//! # }
//! ```
//!
//! Tests with clusters are in `testing::LocalCluster` of the package `gristmill`. They take a second and show the
//! interaction of several processes.

mod files;
mod single;
#[cfg(test)]
mod tests;
mod trial;

pub use files::TrialFiles;
pub use single::{combine, map, map_only, reduce, reduce_by_first};
pub use trial::{Trial, TrialError, Written};

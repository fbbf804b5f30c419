//! The standard jobs, written against the public API alone: the engine does not know their names.

mod delimiter;
mod escape;
mod frequency;
pub mod grep;
pub mod join;
pub mod sort;
pub mod synthetic;
pub mod wordcount;

pub use grep::Grep;
pub use join::Join;
pub use sort::Sort;
pub use synthetic::Synthetic;
pub use wordcount::{WordCount, Words};

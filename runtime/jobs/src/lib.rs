//! The standard jobs, written against the public API alone, and the tools around them: generators of inputs, the check
//! of sorted outputs, sizes as users type them. The engine does not know their names.

mod delimiter;
mod exact;
mod frequency;
pub mod generate;
pub mod grep;
pub mod join;
pub mod size;
pub mod sort;
pub mod synthetic;
pub mod verify_sort;
pub mod wordcount;

pub use exact::ExactWork;
pub use grep::Grep;
pub use join::Join;
pub use sort::Sort;
pub use synthetic::Synthetic;
pub use wordcount::{WordCount, Words};

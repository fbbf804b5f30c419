//! Presentation of a comparison: sections for a page, a table for the terminal, files for programs.
//!
//! Not here: numbers (`summary`, `series`), and the drawing of charts ([`crate::report`]).

mod charts;
mod files;
mod metric_table;
mod page;
mod simulated;
mod text;
mod workload;

#[cfg(test)]
mod tests;

pub use files::{SCHEMA, write};
pub use page::sections;
pub use text::{correction, table, verdicts};

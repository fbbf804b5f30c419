//! Parquet and Arrow files for Gristmill: their rows as text, and lines as their rows.
//!
//! [`plug_in`] is all there is to call. How rows become text is described in `input::tables` of the worker.

mod batches;
mod bytes;
mod cell;
mod parquet;
mod rows;
mod sink;
#[cfg(test)]
mod tests;

use gristmill_worker::{input, output};

/// Makes Parquet and Arrow files inputs and outputs of this process.
pub fn plug_in() {
    input::plug_in_tables(rows::open);
    output::plug_in_tables(sink::open);
}

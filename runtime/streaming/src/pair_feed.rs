//! Pairs of the engine on their way to a combiner or a reducer.

use super::StreamingJob;
use super::forms::{PairForm, push_field};
use super::process::TaskCommand;
use super::sink::LineSink;
use gristmill_worker::prelude::*;

/// Passes pairs of the engine to a combiner or a reducer. Reused for its memory.
#[derive(Default)]
pub(super) struct PairFeed(Vec<u8>);

impl PairFeed {
    /// Passes one pair in the format in which it is read.
    pub fn give(
        &mut self,
        job: &StreamingJob,
        (key, value): (&[u8], &[u8]),
        command: &mut TaskCommand,
        sink: &mut dyn LineSink,
    ) -> TaskResult {
        let shape = job.forms.map_output.shape();
        match job.forms.reduce_input {
            PairForm::Text => command.feed(&[key, job.reduce_input_separator.as_bytes(), value, b"\n"], sink),
            PairForm::KeyOnlyText => command.feed(&[key, b"\n"], sink),
            form => {
                self.0.clear();
                push_field(form, shape, key, &mut self.0)?;
                push_field(form, shape, value, &mut self.0)?;
                command.feed(&[&self.0], sink)
            }
        }
    }
}

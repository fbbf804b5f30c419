//! Reduces of Hadoop Streaming: sorted pairs go to the command, its output to a part.

use super::aggregate::{Aggregated, split_type};
use super::forms::{PairForm, PartForm};
use super::keys::KeyCoding;
use super::map::WritePairs;
use super::pair_feed::PairFeed;
use super::process::{AttemptPlace, TaskCommand};
use super::sink::LineSink;
use super::{StreamStep, StreamingJob};
use gristmill_worker::prelude::*;
use std::sync::Arc;

/// Reducer of a streaming job.
pub(super) struct StreamReducer {
    job: Arc<StreamingJob>,
    coding: Arc<KeyCoding>,
    command: Option<TaskCommand>,
    /// True if it has received input. Without input the output of its command does not count.
    has_read: bool,
    key: Vec<u8>,
    feed: PairFeed,
    /// Format of pairs in the part.
    form: PartForm,
}

impl StreamReducer {
    pub fn new(job: Arc<StreamingJob>, coding: Arc<KeyCoding>) -> Self {
        // Without a command pairs are written as they are read.
        let from = match job.reducer {
            StreamStep::Command(_) => job.forms.reduce_output,
            StreamStep::Identity => job.forms.map_output,
            StreamStep::Aggregate => PairForm::Text,
        };
        let form = PartForm::new(from, job.part_content, &job.output_separator);
        let (key, feed) = (Vec::new(), PairFeed::default());
        Self { job, coding, command: None, has_read: false, key, feed, form }
    }
}

/// Discards lines.
struct Nowhere<'a>(&'a mut Output);

impl LineSink for Nowhere<'_> {
    fn line(&mut self, _: &[u8]) -> TaskResult {
        Ok(())
    }

    fn lines(&mut self, _: &[u8]) -> TaskResult<u64> {
        Ok(0)
    }

    fn pair(&mut self, _: &[u8], _: &[u8]) -> TaskResult {
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl Reducer for StreamReducer {
    type Key = ByteString;
    type Value = ByteString;

    fn setup(&mut self, task: &TaskContext, _: &mut Output) -> TaskResult {
        if let StreamStep::Command(words) = &self.job.reducer {
            let place = AttemptPlace::of(&self.job, task)?;
            self.command =
                Some(TaskCommand::start(&self.job, &place, words, ("reduce", self.job.forms.reduce_output))?);
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, ByteString>,
        out: &mut Output,
    ) -> TaskResult {
        let mut aggregated = None;
        let mut is_first = true;
        self.has_read = true;
        while let Some(value) = values.next()? {
            let (own_key, value) = self.coding.decode(key, value)?;
            // All values of a group come with its first key, even if equal keys have different bytes.
            if is_first {
                self.key.clear();
                self.key.extend_from_slice(own_key);
                is_first = false;
            }
            match (&self.job.reducer, &mut self.command) {
                (StreamStep::Command(_), Some(command)) => {
                    let mut sink =
                        WritePairs { rule: &self.job.reduce_output, form: &mut self.form, out: &mut *out };
                    self.feed.give(&self.job, (&self.key, value), command, &mut sink)?;
                }
                (StreamStep::Aggregate, _) => {
                    let aggregated = match &mut aggregated {
                        Some(aggregated) => aggregated,
                        none => none.insert(Aggregated::new(split_type(&self.key)?.0)?),
                    };
                    aggregated.add(value)?;
                }
                _ => self.form.write(&self.key, value, out)?,
            }
        }
        if let Some(aggregated) = aggregated {
            self.form.write(split_type(&self.key)?.1, aggregated.report().as_bytes(), out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        let Some(command) = self.command.take() else { return Ok(()) };
        if !self.has_read {
            // As in Hadoop, the output of a reducer without input is discarded.
            command.finish(&mut Nowhere(out))?.count(out);
            return Ok(());
        }
        let mut sink = WritePairs { rule: &self.job.reduce_output, form: &mut self.form, out };
        command.finish(&mut sink)?.count(sink.out);
        Ok(())
    }
}

//! Reduces of Hadoop Streaming: sorted pairs go to the command, its output to a part.

use super::combine::FRAMEWORK;
use super::job::StreamingJob;
use super::keys::KeyCoding;
use super::map::WritePairs;
use super::pairs::PartWriter;
use super::place::AttemptPlace;
use super::process::TaskCommand;
use gristmill_worker::prelude::*;
use std::sync::Arc;

/// Reducer of a streaming job.
pub(super) struct StreamReducer {
    job: Arc<StreamingJob>,
    coding: Arc<KeyCoding>,
    command: Option<TaskCommand>,
    /// True if it has received input. Without input the output of its command does not count.
    has_read: bool,
    groups: u64,
    key: Vec<u8>,
    part: PartWriter,
}

impl StreamReducer {
    pub fn new(job: Arc<StreamingJob>, coding: Arc<KeyCoding>) -> Self {
        let part = PartWriter::new(&job);
        Self { job, coding, command: None, has_read: false, groups: 0, key: Vec::new(), part }
    }
}

impl Reducer for StreamReducer {
    type Key = ByteString;
    type Value = ByteString;

    fn setup(&mut self, task: &TaskContext, _: &mut Output) -> TaskResult {
        if let Some(words) = &self.job.reducer {
            let place = AttemptPlace::new(&self.job, task)?;
            self.command = Some(TaskCommand::start(&self.job, &place, words, "reduce")?);
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, ByteString>,
        out: &mut Output,
    ) -> TaskResult {
        let mut is_first = true;
        self.has_read = true;
        self.groups += 1;
        while let Some(value) = values.next()? {
            let (own_key, value) = self.coding.decode(key, value)?;
            // All values of a group come with its first key, even if equal keys have different bytes.
            if is_first {
                self.key.clear();
                self.coding.push_key(own_key, &mut self.key)?;
                is_first = false;
            }
            match &mut self.command {
                Some(command) => {
                    let mut sink =
                        WritePairs { rule: &self.job.reduce_output, part: &mut self.part, out: &mut *out };
                    command.feed_pair((&self.key, value), &mut sink)?;
                }
                None => self.part.write(&self.key, value, out)?,
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        out.count(&format!("{FRAMEWORK},Reduce input groups"), self.groups);
        let Some(mut command) = self.command.take() else { return Ok(()) };
        if !self.has_read {
            // As in Hadoop, the output of a reducer without input is discarded.
            command.discard_output();
        }
        let mut sink = WritePairs { rule: &self.job.reduce_output, part: &mut self.part, out };
        command.finish(&mut sink)?.count(|name, n| sink.out.count(name, n));
        Ok(())
    }
}

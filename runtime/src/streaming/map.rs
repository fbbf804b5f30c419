//! Maps of Hadoop Streaming: lines of the input to the command, its lines to the shuffle, the combiner, or a part.

use super::combine::Gathered;
use super::fields::FieldRule;
use super::keys::{KeyCoding, PairScratch};
use super::process::{AttemptPlace, LineSink, TaskCommand};
use super::{LineInput, StreamStep, StreamingJob};
use gristmill_worker::prelude::*;
use std::sync::Arc;

/// The step of a command in names of its folder.
const STEP: &str = "map";

/// What maps with and without a reduce have in common: how lines become what the mapper reads.
struct StreamInput {
    job: Arc<StreamingJob>,
    place: Option<Arc<AttemptPlace>>,
    command: Option<TaskCommand>,
    /// The key of the line at hand, where it has one that is no part of the line.
    number: Vec<u8>,
}

impl StreamInput {
    fn new(job: Arc<StreamingJob>) -> Self {
        Self { job, place: None, command: None, number: Vec::new() }
    }

    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        let place = AttemptPlace::of(&self.job, task)?;
        if let StreamStep::Command(words) = &self.job.mapper {
            self.command = Some(TaskCommand::start(&self.job, &place, words, STEP)?);
        }
        self.place = Some(Arc::new(place));
        Ok(())
    }

    /// One record, which holds several lines if there are returns within it.
    fn record(&mut self, record: Record<'_>, sink: &mut dyn PairSink) -> TaskResult {
        let bytes = record.bytes();
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\r', bytes).chain([bytes.len()]) {
            self.line(&bytes[begin..end], record.offset() + begin as u64, sink)?;
            begin = end + 1;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], offset: u64, sink: &mut dyn PairSink) -> TaskResult {
        use std::io::Write as _;
        let job = &*self.job;
        let (key, value) = match job.line_input {
            LineInput::KeyValue => job.key_value_rule().split(line),
            LineInput::Text | LineInput::Numbered => {
                self.number.clear();
                // Writing to memory does not fail.
                let _ = write!(self.number, "{offset}");
                (&*self.number, line)
            }
        };
        let Some(command) = &mut self.command else { return sink.pair(key, value) };
        let ignores = job.ignore_key.unwrap_or(job.line_input == LineInput::Text);
        if ignores {
            command.feed(&[value, b"\n"], sink.lines())
        } else {
            command.feed(&[key, job.map_input_separator.as_bytes(), value, b"\n"], sink.lines())
        }
    }
}

impl StreamingJob {
    /// How lines fall into key and value before the mapper.
    fn key_value_rule(&self) -> FieldRule {
        let separator = self.properties.get("mapreduce.input.keyvaluelinerecordreader.key.value.separator");
        FieldRule { separator: separator.cloned().unwrap_or_else(|| "\t".to_owned()), key_fields: 1 }
    }
}

/// Who takes pairs, and lines that fall into pairs.
trait PairSink: LineSink {
    fn pair(&mut self, key: &[u8], value: &[u8]) -> TaskResult;
    fn lines(&mut self) -> &mut dyn LineSink;
}

/// The mapper of a job with reduces.
pub(super) struct StreamMapper {
    input: StreamInput,
    coding: Arc<KeyCoding>,
    scratch: PairScratch,
    gathered: Option<Gathered>,
}

impl StreamMapper {
    pub fn new(job: Arc<StreamingJob>, coding: Arc<KeyCoding>) -> Self {
        let gathered = job.combiner.as_ref().map(|_| Gathered::new(job.combine_bytes as usize));
        Self { input: StreamInput::new(job), coding, scratch: PairScratch::default(), gathered }
    }

    fn each<'a>(
        &mut self,
        records: impl IntoIterator<Item = Record<'a>>,
        out: &mut Emitter<ByteString, ByteString>,
    ) -> TaskResult {
        let (job, Some(place)) = (self.input.job.clone(), self.input.place.clone()) else {
            return Err(not_set_up());
        };
        let mut sink = EmitPairs {
            job: &job,
            place: &place,
            coding: &self.coding,
            scratch: &mut self.scratch,
            gathered: self.gathered.as_mut(),
            out,
        };
        records.into_iter().try_for_each(|record| self.input.record(record, &mut sink))
    }
}

/// What a mapper with reduces does with pairs.
struct EmitPairs<'a> {
    job: &'a Arc<StreamingJob>,
    place: &'a AttemptPlace,
    coding: &'a KeyCoding,
    scratch: &'a mut PairScratch,
    gathered: Option<&'a mut Gathered>,
    out: &'a mut Emitter<ByteString, ByteString>,
}

impl LineSink for EmitPairs<'_> {
    fn line(&mut self, line: &[u8]) -> TaskResult {
        let (key, value) = self.job.map_output.split(line);
        self.pair(key, value)
    }

    fn is_cancelled(&self) -> bool {
        self.out.is_cancelled()
    }
}

impl PairSink for EmitPairs<'_> {
    fn pair(&mut self, key: &[u8], value: &[u8]) -> TaskResult {
        let partitions = self.place.partitions;
        let Some(gathered) = &mut self.gathered else {
            return self.coding.emit((key, value), partitions, self.scratch, self.out);
        };
        self.coding.encode((key, value), partitions, self.scratch)?;
        gathered.add(&self.scratch.key, &self.scratch.value);
        if gathered.is_full() {
            gathered.combine(self.job, self.place, self.coding, self.out)?;
        }
        Ok(())
    }

    fn lines(&mut self) -> &mut dyn LineSink {
        self
    }
}

impl Mapper for StreamMapper {
    type Key = ByteString;
    type Value = ByteString;

    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        self.input.setup(task)
    }

    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        self.each([record], out)
    }

    fn block(&mut self, block: Block<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        self.each(block.records(), out)
    }

    fn finish(&mut self, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        let (job, Some(place)) = (self.input.job.clone(), self.input.place.clone()) else {
            return Err(not_set_up());
        };
        let mut sink = EmitPairs {
            job: &job,
            place: &place,
            coding: &self.coding,
            scratch: &mut self.scratch,
            gathered: self.gathered.as_mut(),
            out,
        };
        if let Some(command) = self.input.command.take() {
            command.finish(&mut sink)?.count(sink.out);
        }
        match &mut self.gathered {
            Some(gathered) => gathered.combine(&job, &place, &self.coding, out),
            None => Ok(()),
        }
    }
}

fn not_set_up() -> TaskError {
    TaskError::new("a map began before it was set up")
}

/// The mapper of a job whose maps write the output.
pub(super) struct StreamMapOnly(StreamInput);

impl StreamMapOnly {
    pub fn new(job: Arc<StreamingJob>) -> Self {
        Self(StreamInput::new(job))
    }
}

/// Writes pairs to a part.
pub(super) struct WritePairs<'a> {
    pub rule: &'a FieldRule,
    pub separator: &'a [u8],
    pub out: &'a mut Output,
}

impl LineSink for WritePairs<'_> {
    fn line(&mut self, line: &[u8]) -> TaskResult {
        let (key, value) = self.rule.split(line);
        write_pair(key, value, self.separator, self.out);
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.out.is_cancelled()
    }
}

impl PairSink for WritePairs<'_> {
    fn pair(&mut self, key: &[u8], value: &[u8]) -> TaskResult {
        write_pair(key, value, self.separator, self.out);
        Ok(())
    }

    fn lines(&mut self) -> &mut dyn LineSink {
        self
    }
}

/// A pair as `TextOutputFormat` writes it: with the separator also where the value is empty.
pub(super) fn write_pair(key: &[u8], value: &[u8], separator: &[u8], out: &mut Output) {
    out.write(key);
    out.write(separator);
    out.write(value);
    out.write(b"\n");
    out.end_record();
}

impl MapOnly for StreamMapOnly {
    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        self.0.setup(task)
    }

    fn map(&mut self, record: Record<'_>, out: &mut Output) -> TaskResult {
        let job = self.0.job.clone();
        let separator = job.output_separator.as_bytes();
        self.0.record(record, &mut WritePairs { rule: &job.map_output, separator, out })
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        let job = self.0.job.clone();
        let separator = job.output_separator.as_bytes();
        let mut sink = WritePairs { rule: &job.map_output, separator, out };
        match self.0.command.take() {
            Some(command) => {
                command.finish(&mut sink)?.count(sink.out);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

//! Maps of Hadoop Streaming: the input goes to the command, its output to the shuffle, the combiner, or a
//! part.

use super::between_marks::RecordCutter;
use super::combine::Gathered;
use super::fields::FieldRule;
use super::forms::{PairCutter, PairForm, PartForm, Shape, push_field};
use super::keys::{KeyCoding, PairScratch};
use super::process::{AttemptPlace, TaskCommand};
use super::sink::LineSink;
use super::{LineInput, StreamStep, StreamingJob};
use gristmill_worker::prelude::*;
use std::sync::Arc;

/// Name of the step in names of its directory.
const STEP: &str = "map";

/// Common part of maps with and without a reduce: conversion of the input to the format that the mapper
/// reads.
struct StreamInput {
    job: Arc<StreamingJob>,
    place: Option<Arc<AttemptPlace>>,
    command: Option<TaskCommand>,
    /// Key of the current line, if it is not part of the line.
    number: Vec<u8>,
    /// Current pair, in the format in which it is read.
    pair: Vec<u8>,
    /// Cuts pairs of the input, if it has no lines.
    cutter: PairCutter,
    /// Cuts records between marks.
    marked: RecordCutter,
    /// True if lines are read unchanged, without their keys.
    passes_lines: bool,
}

impl StreamInput {
    fn new(job: Arc<StreamingJob>) -> Self {
        let (cutter, marked) = (PairCutter::new(PairForm::TypedBytes), RecordCutter::default());
        let is_line = matches!(job.line_input, LineInput::Text | LineInput::Numbered);
        let passes_lines = is_line && job.forms.map_input == PairForm::Text && job.ignores_key();
        let (place, command, number, pair) = (None, None, Vec::new(), Vec::new());
        Self { job, place, command, number, pair, cutter, marked, passes_lines }
    }

    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        let place = AttemptPlace::of(&self.job, task)?;
        if let StreamStep::Command(words) = &self.job.mapper {
            let form = self.job.forms.map_output;
            self.command = Some(TaskCommand::start(&self.job, &place, words, (STEP, form))?);
        }
        self.place = Some(Arc::new(place));
        Ok(())
    }

    /// Handles one record, or many of an input without lines.
    fn bytes(&mut self, block: Block<'_>, sink: &mut dyn LineSink) -> TaskResult {
        if self.job.line_input != LineInput::TypedBytes {
            return match &mut self.command {
                Some(command) if self.passes_lines && memchr::memchr(b'\r', block.bytes()).is_none() => {
                    command.feed_block(block.bytes(), sink)?;
                    // The last line of a file may lack its end.
                    if block.bytes().ends_with(b"\n") { Ok(()) } else { command.feed(&[b"\n"], sink) }
                }
                _ => {
                    let mut after_mark = block.is_after_mark();
                    block
                        .records()
                        .try_for_each(|record| self.record(record, std::mem::take(&mut after_mark), sink))
                }
            };
        }
        let mut cutter = std::mem::replace(&mut self.cutter, PairCutter::new(PairForm::TypedBytes));
        cutter.push(block.bytes(), &mut |key, value| {
            self.give((Shape::Typed, key), (Shape::Typed, value), sink)
        })?;
        self.cutter = cutter;
        Ok(())
    }

    /// Handles one record, which holds several lines if it contains carriage returns. As in Hadoop the
    /// key of a line after a byte order mark is the offset of the mark.
    fn record(&mut self, record: Record<'_>, after_mark: bool, sink: &mut dyn LineSink) -> TaskResult {
        let bytes = record.bytes();
        if matches!(self.job.line_input, LineInput::Between(_)) {
            return self.between_marks(bytes, sink);
        }
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\r', bytes).chain([bytes.len()]) {
            let offset = if after_mark && begin == 0 { 0 } else { record.offset() + begin as u64 };
            self.line(&bytes[begin..end], offset, sink)?;
            begin = end + 1;
        }
        Ok(())
    }

    /// Handles records between marks that this line completes.
    fn between_marks(&mut self, line: &[u8], sink: &mut dyn LineSink) -> TaskResult {
        let job = self.job.clone();
        let LineInput::Between(marks) = &job.line_input else { return Ok(()) };
        let mut marked = std::mem::take(&mut self.marked);
        for piece in [line, b"\n"] {
            marked.push(piece, marks, |record| self.give((Shape::Text, record), (Shape::Text, b""), sink))?;
        }
        self.marked = marked;
        Ok(())
    }

    fn line(&mut self, line: &[u8], offset: u64, sink: &mut dyn LineSink) -> TaskResult {
        if self.job.line_input == LineInput::KeyValue {
            let (key, value) = self.job.key_value_rule().split(line);
            return self.give((Shape::Text, key), (Shape::Text, value), sink);
        }
        self.give((Shape::Long, &offset.to_be_bytes()), (Shape::Text, line), sink)
    }

    /// Passes a pair of the input to the command, or on if there is none.
    fn give(&mut self, key: (Shape, &[u8]), value: (Shape, &[u8]), sink: &mut dyn LineSink) -> TaskResult {
        let job = &*self.job;
        self.pair.clear();
        let form = if self.command.is_some() { job.forms.map_input } else { job.forms.map_output };
        if !form.is_text() {
            let push =
                |(shape, bytes): (Shape, &[u8]), out: &mut Vec<u8>| push_field(form, shape, bytes, out);
            push(key, &mut self.pair)?;
            let key_length = self.pair.len();
            push(value, &mut self.pair)?;
            return match &mut self.command {
                Some(command) => command.feed(&[&self.pair], sink),
                // Pairs of the engine have no length prefix.
                None if form == PairForm::RawBytes => {
                    sink.pair(&self.pair[4..key_length], &self.pair[key_length + 4..])
                }
                None => sink.pair(&self.pair[..key_length], &self.pair[key_length..]),
            };
        }
        let (_, text) = value;
        if let Some(command) = &mut self.command
            && form == PairForm::Text
            && job.ignores_key()
        {
            // The key is not used, so its number is not formatted.
            return command.feed(&[text, b"\n"], sink);
        }
        let key = match key {
            (Shape::Long, number) => {
                use std::io::Write as _;
                let number = number.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
                self.number.clear();
                // Writing to memory does not fail.
                let _ = write!(self.number, "{number}");
                &*self.number
            }
            (_, key) => key,
        };
        match &mut self.command {
            Some(command) if form == PairForm::KeyOnlyText => command.feed(&[key, b"\n"], sink),
            Some(command) => command.feed(&[key, job.map_input_separator.as_bytes(), text, b"\n"], sink),
            None => sink.pair(key, text),
        }
    }

    /// Checks that the input was complete, and waits for the command.
    fn finish(&mut self, sink: &mut dyn LineSink) -> TaskResult<Option<TaskCommand>> {
        let mut cutter = std::mem::replace(&mut self.cutter, PairCutter::new(PairForm::TypedBytes));
        cutter
            .finish(&mut |_, _| Ok(()))
            .map_err(|error| TaskError::new(format!("of the input, {error}")))?;
        self.command.take().map(|command| command.finish(sink)).transpose()
    }
}

impl StreamingJob {
    /// True if the key of a line is omitted from the mapper's input.
    fn ignores_key(&self) -> bool {
        self.ignore_key.unwrap_or(self.line_input == LineInput::Text)
    }

    /// Returns the rule that splits lines into key and value before the mapper.
    fn key_value_rule(&self) -> FieldRule {
        let separator = self.properties.get("mapreduce.input.keyvaluelinerecordreader.key.value.separator");
        FieldRule { separator: separator.cloned().unwrap_or_else(|| "\t".to_owned()), key_fields: 1 }
    }
}

/// Mapper of a job with reduces.
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

    /// Calls a function with the input and the sink of pairs.
    fn with_sink<T>(
        &mut self,
        out: &mut Emitter<ByteString, ByteString>,
        work: impl FnOnce(&mut StreamInput, &mut EmitPairs<'_>) -> TaskResult<T>,
    ) -> TaskResult<T> {
        let (job, Some(place)) = (self.input.job.clone(), self.input.place.clone()) else {
            return Err(TaskError::new("a map began before it was set up"));
        };
        let mut sink = EmitPairs {
            job: &job,
            place: &place,
            coding: &self.coding,
            scratch: &mut self.scratch,
            gathered: self.gathered.as_mut(),
            out,
        };
        work(&mut self.input, &mut sink)
    }
}

/// Sink of the pairs of a mapper with reduces.
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

    fn lines(&mut self, block: &[u8]) -> TaskResult<u64> {
        let job = self.job;
        job.map_output.split_lines(block, |key, value| self.pair(key, value))
    }

    fn is_cancelled(&self) -> bool {
        self.out.is_cancelled()
    }

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
}

impl Mapper for StreamMapper {
    type Key = ByteString;
    type Value = ByteString;

    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        self.input.setup(task)
    }

    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        self.with_sink(out, |input, sink| input.record(record, false, sink))
    }

    fn block(&mut self, block: Block<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        self.with_sink(out, |input, sink| input.bytes(block, sink))
    }

    fn finish(&mut self, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        self.with_sink(out, |input, sink| {
            if let Some(command) = input.finish(sink)? {
                command.count(sink.out);
            }
            match &mut sink.gathered {
                Some(gathered) => gathered.combine(sink.job, sink.place, sink.coding, sink.out),
                None => Ok(()),
            }
        })
    }
}

/// Mapper of a job whose maps write the output.
pub(super) struct StreamMapOnly {
    input: StreamInput,
    form: PartForm,
}

impl StreamMapOnly {
    pub fn new(job: Arc<StreamingJob>) -> Self {
        let form = PartForm::new(job.forms.map_output, job.part_content, &job.output_separator);
        Self { input: StreamInput::new(job), form }
    }

    /// Calls a function with the input and the sink of pairs.
    fn with_sink<T>(
        &mut self,
        out: &mut Output,
        work: impl FnOnce(&mut StreamInput, &mut WritePairs<'_>) -> TaskResult<T>,
    ) -> TaskResult<T> {
        let job = self.input.job.clone();
        work(&mut self.input, &mut WritePairs { rule: &job.map_output, form: &mut self.form, out })
    }
}

/// Writes pairs to a part.
pub(super) struct WritePairs<'a> {
    pub rule: &'a FieldRule,
    pub form: &'a mut PartForm,
    pub out: &'a mut Output,
}

impl LineSink for WritePairs<'_> {
    fn line(&mut self, line: &[u8]) -> TaskResult {
        let (key, value) = self.rule.split(line);
        self.form.write(key, value, self.out)
    }

    fn lines(&mut self, block: &[u8]) -> TaskResult<u64> {
        self.form.write_lines(self.rule, block, self.out)
    }

    fn pair(&mut self, key: &[u8], value: &[u8]) -> TaskResult {
        self.form.write(key, value, self.out)
    }

    fn is_cancelled(&self) -> bool {
        self.out.is_cancelled()
    }
}

impl MapOnly for StreamMapOnly {
    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        self.input.setup(task)
    }

    fn map(&mut self, record: Record<'_>, out: &mut Output) -> TaskResult {
        self.with_sink(out, |input, sink| input.record(record, false, sink))
    }

    fn block(&mut self, block: Block<'_>, out: &mut Output) -> TaskResult {
        self.with_sink(out, |input, sink| input.bytes(block, sink))
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        self.with_sink(out, |input, sink| {
            if let Some(command) = input.finish(sink)? {
                command.count(sink.out);
            }
            Ok(())
        })
    }
}

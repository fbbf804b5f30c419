//! Maps of Hadoop Streaming: the input goes to the command, its output to the shuffle, the combiner, or a
//! part.

use super::combine::{EmitPairs, Gathered};
use super::fields::FieldRule;
use super::job::{LineInput, StreamingJob};
use super::keys::{KeyCoding, PairScratch};
use super::pairs::PartWriter;
use super::place::AttemptPlace;
use super::process::TaskCommand;
use super::sink::LineSink;
use gristmill_worker::prelude::*;
use std::io::Write as _;
use std::sync::Arc;

/// Common part of maps with and without a reduce: conversion of the input to the format that the mapper
/// reads.
struct StreamInput {
    job: Arc<StreamingJob>,
    place: Option<Arc<AttemptPlace>>,
    command: Option<TaskCommand>,
    /// Rule that splits lines into key and value before the mapper.
    key_value: FieldRule,
    /// Key of the current line, if it is not part of the line.
    number: Vec<u8>,
    /// True if the command reads the bytes of the input unchanged.
    passes_lines: bool,
}

impl StreamInput {
    fn new(job: Arc<StreamingJob>) -> Self {
        let separator = job.properties.get("mapreduce.input.keyvaluelinerecordreader.key.value.separator");
        let separator = separator.map_or("\t", String::as_str).to_owned();
        let key_value = FieldRule { separator, key_fields: 1 };
        let passes_lines = match job.line_input {
            LineInput::Text | LineInput::Numbered => job.ignores_key(),
            LineInput::KeyValue | LineInput::Pairs => false,
        };
        Self { job, place: None, command: None, key_value, number: Vec::new(), passes_lines }
    }

    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        let place = AttemptPlace::new(&self.job, task)?;
        if let Some(words) = &self.job.mapper {
            self.command = Some(TaskCommand::start(&self.job, &place, words, "map")?);
        }
        self.place = Some(Arc::new(place));
        Ok(())
    }

    /// Handles many records, or bytes of an input without lines.
    fn bytes(&mut self, block: Block<'_>, sink: &mut dyn LineSink) -> TaskResult {
        match &mut self.command {
            Some(command) if self.job.line_input == LineInput::Pairs => {
                command.feed_block(block.bytes(), sink)
            }
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
        }
    }

    /// Handles one record, which holds several lines if it contains carriage returns. As in Hadoop the
    /// key of a line after a byte order mark is the offset of the mark.
    fn record(&mut self, record: Record<'_>, after_mark: bool, sink: &mut dyn LineSink) -> TaskResult {
        let bytes = record.bytes();
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\r', bytes).chain([bytes.len()]) {
            let offset = if after_mark && begin == 0 { 0 } else { record.offset() + begin as u64 };
            self.line(&bytes[begin..end], offset, sink)?;
            begin = end + 1;
        }
        Ok(())
    }

    /// Passes a line to the command, or on if there is none.
    fn line(&mut self, line: &[u8], offset: u64, sink: &mut dyn LineSink) -> TaskResult {
        let Self { job, command, key_value, number, passes_lines, .. } = self;
        let (key, value) = match job.line_input {
            LineInput::KeyValue => key_value.split(line),
            // The key is not used, so its number is not formatted.
            _ if *passes_lines && command.is_some() => (&[][..], line),
            _ => {
                number.clear();
                // Writing to memory does not fail.
                let _ = write!(number, "{offset}");
                (&**number, line)
            }
        };
        match command {
            Some(command) if job.ignores_key() => command.feed(&[value, b"\n"], sink),
            Some(command) => command.feed(&[key, job.map_input_separator.as_bytes(), value, b"\n"], sink),
            None => sink.pair(key, value),
        }
    }

    /// Waits for the command.
    fn finish(&mut self, sink: &mut dyn LineSink) -> TaskResult<Option<TaskCommand>> {
        self.command.take().map(|command| command.finish(sink)).transpose()
    }
}

impl StreamingJob {
    /// True if the key of a line is omitted from the mapper's input.
    fn ignores_key(&self) -> bool {
        self.ignore_key.unwrap_or(self.line_input == LineInput::Text)
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
        let gathered = job.combiner.as_ref().map(|_| Gathered::default());
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
            emitted: 0,
            out,
        };
        work(&mut self.input, &mut sink)
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
                command.count(|name, n| sink.out.count(name, n));
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
    part: PartWriter,
}

impl StreamMapOnly {
    pub fn new(job: Arc<StreamingJob>) -> Self {
        let part = PartWriter::new(&job);
        Self { input: StreamInput::new(job), part }
    }

    /// Calls a function with the input and the sink of pairs.
    fn with_sink<T>(
        &mut self,
        out: &mut Output,
        work: impl FnOnce(&mut StreamInput, &mut WritePairs<'_>) -> TaskResult<T>,
    ) -> TaskResult<T> {
        let job = self.input.job.clone();
        work(&mut self.input, &mut WritePairs { rule: &job.map_output, part: &mut self.part, out })
    }
}

/// Writes pairs to a part.
pub(super) struct WritePairs<'a> {
    pub rule: &'a FieldRule,
    pub part: &'a mut PartWriter,
    pub out: &'a mut Output,
}

impl LineSink for WritePairs<'_> {
    fn lines(&mut self, block: &[u8]) -> TaskResult<u64> {
        self.part.write_lines(self.rule, block, self.out)
    }

    fn pair(&mut self, key: &[u8], value: &[u8]) -> TaskResult {
        self.part.write(key, value, self.out)
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
                command.count(|name, n| sink.out.count(name, n));
            }
            Ok(())
        })
    }
}

//! The combiner of a map: pairs are collected, sorted, and passed to a command (or an aggregator) before
//! they are sent.
//!
//! One process gets all partitions of the collected pairs, one after another, where Hadoop starts one for
//! each of them. Its output is split into key and value by the same rule as the mapper's.

use super::aggregate::{Aggregated, split_type};
use super::keys::{KeyCoding, PairScratch};
use super::pair_feed::PairFeed;
use super::process::{AttemptPlace, TaskCommand};
use super::sink::LineSink;
use super::{StreamStep, StreamingJob};
use gristmill_worker::prelude::*;
use std::sync::Arc;

/// Pairs of the engine that wait for the combiner.
pub(super) struct Gathered {
    bytes: Vec<u8>,
    pairs: Vec<GatheredPair>,
    bytes_max: usize,
    /// Number of runs of the combiner.
    rounds: u32,
}

/// Position of a pair.
#[derive(Clone, Copy)]
struct GatheredPair {
    begin: usize,
    value: usize,
    end: usize,
}

impl Gathered {
    /// Creates a buffer for about this many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), pairs: Vec::new(), bytes_max, rounds: 0 }
    }

    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.pairs.push(GatheredPair { begin, value: begin + key.len(), end: self.bytes.len() });
    }

    pub fn is_full(&self) -> bool {
        self.bytes_max <= self.bytes.len() + self.pairs.len() * size_of::<GatheredPair>()
    }

    /// Runs the combiner on all pairs, emits its output and clears the buffer.
    pub fn combine(
        &mut self,
        job: &Arc<StreamingJob>,
        place: &AttemptPlace,
        coding: &KeyCoding,
        out: &mut Emitter<ByteString, ByteString>,
    ) -> TaskResult {
        if self.pairs.is_empty() {
            return Ok(());
        }
        let bytes = &self.bytes;
        self.pairs.sort_by(|a, b| bytes[a.begin..a.value].cmp(&bytes[b.begin..b.value]));
        self.rounds += 1;
        let pairs =
            self.pairs.iter().map(|pair| (&bytes[pair.begin..pair.value], &bytes[pair.value..pair.end]));
        let mut sink =
            CombinedPairs { job, coding, partitions: place.partitions, scratch: PairScratch::default(), out };
        match &job.combiner {
            Some(StreamStep::Command(words)) => {
                let step = format!("combine-{}", self.rounds);
                let mut command = TaskCommand::start(job, place, words, (&step, job.forms.map_output))?;
                let mut feed = PairFeed::default();
                for (key, value) in pairs {
                    let pair = coding.decode(key, value)?;
                    feed.give(job, pair, &mut command, &mut sink)?;
                }
                command.finish(&mut sink)?.count(sink.out);
            }
            Some(StreamStep::Aggregate) => sink.aggregate(pairs)?,
            Some(StreamStep::Identity) | None => {
                pairs.for_each(|(key, value)| sink.out.emit(key, value));
            }
        }
        self.bytes.clear();
        self.pairs.clear();
        Ok(())
    }
}

/// Sink of a combiner's output.
struct CombinedPairs<'a> {
    job: &'a StreamingJob,
    coding: &'a KeyCoding,
    partitions: u32,
    scratch: PairScratch,
    out: &'a mut Emitter<ByteString, ByteString>,
}

impl CombinedPairs<'_> {
    /// Merges the values of each key with the aggregator that the key names.
    fn aggregate<'b>(&mut self, pairs: impl Iterator<Item = (&'b [u8], &'b [u8])>) -> TaskResult {
        let mut group: Option<(&[u8], Aggregated)> = None;
        for (key, value) in pairs {
            let (key, value) = self.coding.decode(key, value)?;
            match &mut group {
                Some((of, aggregated)) if *of == key => aggregated.add(value)?,
                _ => {
                    self.emit_group(group.take())?;
                    let mut aggregated = Aggregated::new(split_type(key)?.0)?;
                    aggregated.add(value)?;
                    group = Some((key, aggregated));
                }
            }
        }
        self.emit_group(group)
    }

    fn emit_group(&mut self, group: Option<(&[u8], Aggregated)>) -> TaskResult {
        let Some((key, aggregated)) = group else { return Ok(()) };
        for value in aggregated.partial() {
            self.coding.emit((key, value.as_bytes()), self.partitions, &mut self.scratch, self.out)?;
        }
        Ok(())
    }
}

impl LineSink for CombinedPairs<'_> {
    fn line(&mut self, line: &[u8]) -> TaskResult {
        let (key, value) = self.job.map_output.split(line);
        self.pair(key, value)
    }

    fn lines(&mut self, block: &[u8]) -> TaskResult<u64> {
        let job = self.job;
        job.map_output.split_lines(block, |key, value| self.pair(key, value))
    }

    fn pair(&mut self, key: &[u8], value: &[u8]) -> TaskResult {
        self.coding.emit((key, value), self.partitions, &mut self.scratch, self.out)
    }

    fn is_cancelled(&self) -> bool {
        self.out.is_cancelled()
    }
}

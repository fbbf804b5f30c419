//! The combiner of a map: pairs are collected, sorted, and passed to a command before they are sent.
//!
//! One process gets all partitions of the collected pairs, one after another, where Hadoop starts one for
//! each of them. Its output is split into key and value by the same rule as the mapper's.

use super::job::StreamingJob;
use super::keys::{KeyCoding, PairScratch};
use super::place::AttemptPlace;
use super::process::TaskCommand;
use super::sink::LineSink;
use gristmill_worker::prelude::*;
use std::sync::Arc;

/// Group of the system's own counters.
pub(super) const FRAMEWORK: &str = "Map-Reduce Framework";

/// Bytes of pairs that a combiner gets at once.
const BYTES_MAX: usize = 64 << 20;

/// Pairs of the engine that wait for the combiner.
#[derive(Default)]
pub(super) struct Gathered {
    bytes: Vec<u8>,
    pairs: Vec<GatheredPair>,
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
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.pairs.push(GatheredPair { begin, value: begin + key.len(), end: self.bytes.len() });
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() + self.pairs.len() * size_of::<GatheredPair>() >= BYTES_MAX
    }

    /// Runs the combiner on all pairs, emits its output and clears the buffer.
    pub fn combine(
        &mut self,
        job: &Arc<StreamingJob>,
        place: &AttemptPlace,
        coding: &KeyCoding,
        out: &mut Emitter<ByteString, ByteString>,
    ) -> TaskResult {
        let (false, Some(words)) = (self.pairs.is_empty(), &job.combiner) else { return Ok(()) };
        let bytes = &self.bytes;
        self.pairs.sort_by(|a, b| bytes[a.begin..a.value].cmp(&bytes[b.begin..b.value]));
        self.rounds += 1;
        let scratch = &mut PairScratch::default();
        let mut sink = EmitPairs { job, place, coding, scratch, gathered: None, emitted: 0, out };
        let mut command = TaskCommand::start(job, place, words, &format!("combine-{}", self.rounds))?;
        let mut key = Vec::new();
        for pair in &self.pairs {
            let (own, value) = coding.decode(&bytes[pair.begin..pair.value], &bytes[pair.value..pair.end])?;
            key.clear();
            coding.push_key(own, &mut key)?;
            command.feed_pair((&key, value), &mut sink)?;
        }
        command.finish(&mut sink)?.count(|name, n| sink.out.count(name, n));
        let pairs = self.pairs.len() as u64;
        for (name, count) in [
            ("Map output records", pairs),
            ("Combine input records", pairs),
            ("Combine output records", sink.emitted),
        ] {
            sink.out.count(&format!("{FRAMEWORK},{name}"), count);
        }
        self.bytes.clear();
        self.pairs.clear();
        Ok(())
    }
}

/// Sink of the pairs of a mapper with reduces, and of its combiner.
pub(super) struct EmitPairs<'a> {
    pub job: &'a Arc<StreamingJob>,
    pub place: &'a AttemptPlace,
    pub coding: &'a KeyCoding,
    pub scratch: &'a mut PairScratch,
    /// Pairs that wait for the combiner; `None` to emit each at once.
    pub gathered: Option<&'a mut Gathered>,
    /// Number of pairs emitted at once.
    pub emitted: u64,
    pub out: &'a mut Emitter<ByteString, ByteString>,
}

impl LineSink for EmitPairs<'_> {
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
            self.emitted += 1;
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

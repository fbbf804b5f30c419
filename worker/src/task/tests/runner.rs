//! Runs the tasks of a plan one after another, over splits in memory.

use super::super::*;
use crate::api::KeyOrder;
use crate::budget::Budget;
use crate::input::{Block, InputError, RecordFormat, Source};
use crate::segment::{Fingerprint, SpillCompression, SpillDirs};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskId};
use std::io::{self, Write};
use std::sync::Mutex;

pub const JOB: JobId = JobId(5);

/// Split in memory: its input, and its blocks of lines.
#[derive(Clone, Debug)]
pub struct MemorySplit {
    pub input: usize,
    pub blocks: Vec<String>,
}

pub struct MemoryBlocks {
    blocks: std::vec::IntoIter<String>,
    current: String,
    source: Source,
}

impl MemoryBlocks {
    pub fn new(split: &MemorySplit) -> Self {
        let blocks: Vec<String> = split.blocks.iter().filter(|block| !block.is_empty()).cloned().collect();
        let source = Source { path: "memory".into(), input: split.input };
        Self { blocks: blocks.into_iter(), current: String::new(), source }
    }
}

impl Blocks for MemoryBlocks {
    fn next_block(&mut self) -> Result<Option<Block<'_>>, InputError> {
        match self.blocks.next() {
            None => Ok(None),
            Some(block) => {
                self.current = block;
                Ok(Some(Block::new(self.current.as_bytes(), 0, RecordFormat::Lines, &self.source)))
            }
        }
    }
}

/// Resources of tasks.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    pub collector_bytes: usize,
    pub merge_bytes: usize,
    pub fan_in_max: usize,
    pub budget_bytes: usize,
    pub compression: SpillCompression,
}

impl Means {
    pub const PLENTY: Self = Self {
        collector_bytes: 64 << 20,
        merge_bytes: 64 << 20,
        fan_in_max: 256,
        budget_bytes: 1 << 30,
        compression: SpillCompression::None,
    };
    pub const NOTHING: Self = Self {
        collector_bytes: 1,
        merge_bytes: 1,
        fan_in_max: 2,
        budget_bytes: 0,
        compression: SpillCompression::Lz4,
    };
}

/// Creates a directory in memory if possible: ext4 skips recently deleted inodes on each creation, which takes longer
/// than thousands of small spills.
fn memory_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Environment of a worker.
pub struct Bench {
    pub dir: tempfile::TempDir,
    pub settings: TaskSettings,
    pub budget: Budget,
    pub progress: Arc<Progress>,
}

impl Bench {
    pub fn new(means: Means, partitions: u32) -> Self {
        let dir = memory_directory();
        let spill = SpillDirs::new(vec![dir.path().to_owned()]);
        let settings = TaskSettings {
            collector_bytes: means.collector_bytes,
            merge_bytes: means.merge_bytes,
            fan_in_max: means.fan_in_max,
            compression: means.compression,
            ..TaskSettings::new(JOB, partitions, spill)
        };
        Self { dir, settings, budget: Budget::new(means.budget_bytes), progress: Arc::default() }
    }

    /// Returns the environment of an attempt.
    pub fn context(&self, attempt: AttemptId) -> AttemptContext<'_> {
        AttemptContext {
            attempt,
            side: Arc::new(SideInputs::none()),
            settings: &self.settings,
            budget: &self.budget,
            progress: &self.progress,
        }
    }

    pub fn map(&self, plan: &JobPlan, index: u32, split: &MemorySplit) -> Result<MapDone, TaskFailure> {
        let mut blocks = MemoryBlocks::new(split);
        let context = self.context(TaskId::map(JOB, index).attempt(0));
        let input_bytes = 1 << 20;
        let input = split.input;
        let erased = ErasedMap { context, input, input_bytes, stretch: None, blocks: &mut blocks };
        map_reduce(plan)?.run_map(erased)
    }

    pub fn maps(&self, plan: &JobPlan, splits: &[MemorySplit]) -> Result<Vec<MapDone>, TaskFailure> {
        splits.iter().enumerate().map(|(index, split)| self.map(plan, index as u32, split)).collect()
    }

    pub fn reduce(
        &self,
        plan: &JobPlan,
        partition: u32,
        segments: Vec<SegmentData>,
    ) -> Result<(String, PartDone), TaskFailure> {
        let attempt = TaskId::reduce(JOB, partition).attempt(0);
        self.reduce_part(plan, attempt, segments, ReducePart::whole(partition))
    }

    pub fn reduce_part(
        &self,
        plan: &JobPlan,
        attempt: AttemptId,
        segments: Vec<SegmentData>,
        part: ReducePart,
    ) -> Result<(String, PartDone), TaskFailure> {
        let written = Memory::default();
        let output = Output::new("part", Box::new(written.clone()));
        let done = run_reduce(plan, self.context(attempt), segments, output, part)?;
        let bytes = written.0.lock().unwrap().clone();
        assert_eq!((done.bytes, done.crc32c), (bytes.len() as u64, crc32c::crc32c(&bytes)));
        Ok((String::from_utf8(bytes).unwrap(), done))
    }

    /// Sets the boundaries from the job's own keys.
    pub fn sample(&mut self, plan: &JobPlan, splits: &[MemorySplit]) {
        let mut sample = KeySample::new(50);
        for split in splits {
            let side = Arc::new(SideInputs::none());
            sample = sample_keys(plan, split.input, &mut MemoryBlocks::new(split), side, sample).unwrap();
        }
        self.settings.cuts = Arc::new(cut_points(sample, self.settings.partitions, plan));
    }
}

/// Returns all parts of a job.
pub fn run_job(plan: &JobPlan, splits: &[MemorySplit], partitions: u32, means: Means) -> Vec<String> {
    plan.validate().unwrap();
    let mut bench = Bench::new(means, partitions);
    if plan.order() == KeyOrder::Total {
        bench.sample(plan, splits);
    }
    let outputs = bench.maps(plan, splits).unwrap();
    let part = |partition| {
        let segments = outputs.iter().map(|done| done.output.segment(partition).unwrap()).collect();
        bench.reduce(plan, partition, segments).unwrap().0
    };
    let parts = (0..partitions).map(part).collect();
    drop(outputs);
    assert_eq!(bench.budget.used_bytes(), 0, "reservations are given back");
    let left: Vec<_> = std::fs::read_dir(bench.dir.path()).unwrap().collect();
    assert!(left.is_empty(), "spill files are left: {left:?}");
    parts
}

/// Returns the fingerprints of the maps' outputs for the splits.
pub fn prints(plan: &JobPlan, splits: &[MemorySplit], partitions: u32, means: Means) -> Vec<Fingerprint> {
    let mut bench = Bench::new(means, partitions);
    if plan.order() == KeyOrder::Total {
        bench.sample(plan, splits);
    }
    bench.maps(plan, splits).unwrap().iter().map(|done| done.output.fingerprint()).collect()
}

/// File in memory that can be inspected.
#[derive(Clone, Default)]
pub struct Memory(pub Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

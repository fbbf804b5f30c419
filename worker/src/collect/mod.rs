//! Collectors: the pairs that a mapper emits, collected, combined or sorted, and written as one map output.
//!
//! Jobs with a combiner total values in a table; others sort. Both spill runs when their memory is full and merge them
//! at the end.

mod batch;
mod combine;
mod finish;
mod kept;
mod narrated;
mod partition;
mod sample;
mod sort;
pub(crate) mod table;
mod window;

use crate::attempt::{
    FailureKind, NamedCounts, Progress, TaskError, TaskFailure, TaskResult, counting_methods, refuse_record,
};
use crate::budget::KeptInFiles;
use crate::input::{Block, Record};
use crate::key::Key;
use crate::recycle::Recycler;
use crate::segment::{MapOutput, PAIR_BYTES_MAX, SegmentOrder, SpillCompression, SpillDirs, WriteSetting};
use crate::value::Value;
use gristmill_scheduler::ids::JobId;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use window::KeyWindow;

pub use combine::{CombineFactory, Combiner};
pub(crate) use combine::{CombineRun, Combining, FULL, TableRoom};
pub(crate) use finish::segment_order;
use narrated::NarratedTarget;
pub(crate) use narrated::map_story;
pub use partition::Partitioner;
pub(crate) use partition::{KeyRanges, Partitioning};
pub use sample::{KeySample, SAMPLE_KEYS_MAX};
pub(crate) use sort::{SortMemory, Sorting};
pub(crate) use table::TableMemory;

/// Number of pairs after which observers of the attempt see progress, also within a block.
const SHOW_PAIRS: usize = 64;

/// Number of copies of a large pair in memory at once: where it was collected and before the file, or as a block that
/// is read and its destination.
const PAIR_COPIES: usize = 2;

/// Size of a pair that is always allowed.
const PAIR_BYTES_ALWAYS: usize = 1 << 20;

/// Returns the maximum bytes of key and value of a pair that may be collected within `limit_bytes`.
pub(crate) fn pair_bytes_max(limit_bytes: usize) -> usize {
    (limit_bytes / PAIR_COPIES).clamp(PAIR_BYTES_ALWAYS, PAIR_BYTES_MAX)
}

/// Receives the pairs of a mapper.
///
/// Emitting never fails immediately: a failure (a full disk, a value that fails to encode) is kept, later pairs are
/// dropped, and the task ends with the block.
pub struct Emitter<K: Key, V: Value> {
    target: EmitTarget<V>,
    partitioning: Partitioning<K>,
    setting: EmitterSetting,
    runs: Vec<MapOutput>,
    key_scratch: Vec<u8>,
    value_scratch: Vec<u8>,
    window: KeyWindow,
    /// Number of pairs that have left the sorting collector.
    drained: u64,
    counts: NamedCounts,
    failure: Option<TaskFailure>,
}

/// Destination of pairs.
pub(crate) enum EmitTarget<V: Value> {
    /// Sorted by key.
    Sort(Sorting),
    /// Totalled by key.
    Combine(Combining<V>),
    /// Only keys, for choosing ranges; also the destination after a failure, without a sample.
    Sample(Option<KeySample>),
    /// In order, encoded, for tests of mappers.
    Kept(Vec<(Vec<u8>, Vec<u8>)>),
    /// One of the others, with a recorder of the pairs.
    Narrated(Box<NarratedTarget<V>>),
}

/// Settings of an emitter for its task.
pub(crate) struct EmitterSetting {
    pub write: WriteSetting,
    pub fan_in_max: usize,
    pub progress: Arc<Progress>,
    pub recycler: Recycler,
    pub kept_in_files: KeptInFiles,
}

impl EmitterSetting {
    /// Creates settings for pairs that are never written.
    pub(crate) fn without_spills() -> Self {
        let write = WriteSetting {
            job: JobId(0),
            map: 0,
            epoch: 0,
            partitions: 1,
            order: SegmentOrder::Key,
            spill: SpillDirs::new(vec![std::env::temp_dir()]),
            compression: SpillCompression::None,
        };
        Self {
            write,
            fan_in_max: 2,
            progress: Arc::default(),
            recycler: Recycler::default(),
            kept_in_files: KeptInFiles::none(),
        }
    }
}

impl<K: Key, V: Value> Emitter<K, V> {
    pub(crate) fn new(target: EmitTarget<V>, partitioning: Partitioning<K>, setting: EmitterSetting) -> Self {
        Self {
            target,
            partitioning,
            setting,
            runs: Vec::new(),
            key_scratch: Vec::new(),
            value_scratch: Vec::new(),
            window: KeyWindow::none(),
            drained: 0,
            counts: NamedCounts::default(),
            failure: None,
        }
    }

    /// Emits one pair.
    #[inline]
    pub fn emit(&mut self, key: K::View<'_>, value: V::View<'_>) {
        // The fast path, to be inlined into the loop of the mapper: most pairs end here.
        if let EmitTarget::Combine(combining) = &mut self.target {
            let (value, window) = (V::from_view(value), &self.window);
            let full =
                K::with_bytes(key, &mut self.key_scratch, |key| combining.push(key, window.load(key), value));
            if full {
                self.settle();
            }
        } else {
            self.emit_to_sort(key, value);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle(&mut self) {
        let EmitTarget::Combine(combining) = self.target.collector_mut() else { return };
        let settled = combining.settle();
        self.setting.progress.records_out.store(combining.added(), Relaxed);
        self.go_on(settled);
    }

    #[inline(never)]
    fn emit_to_sort(&mut self, key: K::View<'_>, value: V::View<'_>) {
        let added = match &mut self.target {
            EmitTarget::Sort(sorting) => {
                let (partitioning, partitions) = (&self.partitioning, self.setting.write.partitions);
                let value_scratch = &mut self.value_scratch;
                if sorting.len().is_multiple_of(SHOW_PAIRS) {
                    let emitted = self.drained + sorting.len() as u64;
                    self.setting.progress.records_out.store(emitted, Relaxed);
                }
                K::with_bytes(key, &mut self.key_scratch, |key| {
                    let partition = partitioning.partition(key, partitions)?;
                    let added =
                        V::with_bytes(value, value_scratch, |value| sorting.add(partition, key, value));
                    Ok(added??)
                })
            }
            EmitTarget::Sample(Some(sample)) => {
                K::with_bytes(key, &mut self.key_scratch, |key| sample.add(key));
                Ok(TableRoom::Left)
            }
            EmitTarget::Kept(pairs) => {
                let encoded = V::with_bytes(value, &mut self.value_scratch, <[u8]>::to_vec);
                K::with_bytes(key, &mut self.key_scratch, |key| {
                    pairs.push((key.to_vec(), encoded?));
                    Ok(TableRoom::Left)
                })
            }
            EmitTarget::Sample(None) | EmitTarget::Combine(_) => Ok(TableRoom::Left),
            EmitTarget::Narrated(_) => return self.emit_narrated(key, value),
        };
        self.go_on(added);
    }

    #[inline]
    fn go_on(&mut self, added: Result<TableRoom, TaskFailure>) {
        if !matches!(added, Ok(TableRoom::Left)) {
            self.spill_or_fail(added);
        }
    }

    /// Returns the counts since the last call.
    pub(crate) fn counts(&mut self) -> &mut NamedCounts {
        &mut self.counts
    }

    counting_methods!();

    /// True if the task was cancelled. Only code that runs long without emitting has to check: the engine checks after
    /// each block of input. If the worker's slots are slower than its machine, this waits: code that measures time must
    /// count its own time, not the time between two calls.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.setting.progress.rest()
    }

    /// Reports a bad record, for mappers that process whole blocks, so that the engine knows the record of an error. A
    /// [`bad_record`](TaskError::bad_record) is skipped, if the job's limit allows. Otherwise, and with any other
    /// error, the result is an error, with which the mapper has to end. The mapper must not have emitted anything for
    /// the record.
    ///
    /// # Errors
    /// See above.
    pub fn refuse(&mut self, record: Record<'_>, error: TaskError) -> TaskResult {
        match self.target.collector() {
            // The error is reported when its map runs.
            EmitTarget::Sample(_) if error.kind == FailureKind::BadRecord => Ok(()),
            _ => refuse_record(&self.setting.progress.bad_records(), record, error),
        }
    }

    /// Number of pairs emitted so far.
    pub(crate) fn emitted(&self) -> u64 {
        match self.target.collector() {
            EmitTarget::Combine(combining) => combining.added(),
            EmitTarget::Sort(sorting) => self.drained + sorting.len() as u64,
            EmitTarget::Kept(pairs) => pairs.len() as u64,
            EmitTarget::Sample(_) | EmitTarget::Narrated(_) => 0,
        }
    }

    /// Starts the mapper's next block of input. It must be left before its bytes are freed.
    pub(crate) fn start_block(&mut self, block: &Block<'_>) {
        self.window.set(block.bytes);
        if let EmitTarget::Sort(sorting) = self.target.collector_mut() {
            sorting.start_block(block);
        }
    }

    /// Ends the block after the mapper has returned: its bytes may be freed.
    pub(crate) fn leave_block(&mut self) {
        self.window.clear();
    }

    /// Ends a block of input: returns failures since the last one, and an error if the task is cancelled.
    pub(crate) fn end_block(&mut self) -> Result<(), TaskFailure> {
        let progress = &self.setting.progress;
        match self.target.collector() {
            EmitTarget::Combine(_) | EmitTarget::Sort(_) => {
                progress.records_out.store(self.emitted(), Relaxed);
            }
            EmitTarget::Sample(_) | EmitTarget::Narrated(_) | EmitTarget::Kept(_) => {}
        }
        progress.check()?;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Returns the collected sample.
    pub(crate) fn into_sample(self) -> Option<KeySample> {
        match self.target {
            EmitTarget::Sample(sample) => sample,
            _ => None,
        }
    }
}

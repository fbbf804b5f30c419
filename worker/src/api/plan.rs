//! Plan of a job: inputs with their mappers, combiner, partitioning, order, reducer.
//!
//! A [`JobPlan`] is read both by the submitter (which needs inputs, formats and order) and by the workers (which need
//! the functions). The types of key and value are erased at the boundary of a task: inside a task everything is
//! monomorphic, outside one virtual call per task starts it.

use super::TaskContext;
use super::each::{MapEach, MapOnlyEach};
use super::task::{MapOnly, Mapper};
use super::work::MapReduceWork;
use crate::attempt::{TaskError, TaskFailure, TaskResult};
use crate::collect::{CombineFactory, Combiner, Emitter, Partitioner};
use crate::input::{Blocks, Compression, Input, Record, RecordFormat};
use crate::key::{GroupPrefix, Key};
use crate::output::{Output, PartFormat, RowLayout};
use crate::value::Value;
use std::marker::PhantomData;
use std::sync::Arc;

/// Order of keys over the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyOrder {
    /// Each part is sorted; a key's part is chosen by hash or by the job's partitioner.
    #[default]
    EachPart,
    /// All parts in sequence are sorted: partitions are ranges of keys, cut by a seeded sample that is taken where the
    /// job is submitted.
    Total,
}

/// A whole job, ready to be split into tasks.
#[derive(Clone)]
pub struct JobPlan {
    pub(crate) inputs: Vec<Input>,
    pub(crate) side: Vec<Input>,
    pub(crate) work: JobFunctions,
    pub(crate) reduces: Option<u32>,
    pub(crate) order: KeyOrder,
    pub(crate) part_format: PartFormat,
    pub(crate) rows: RowLayout,
}

/// Functions of a job with their types erased.
#[derive(Clone)]
pub(crate) enum JobFunctions {
    MapOnly(Vec<MapOnlyFactory>),
    MapReduce(Arc<dyn MapReduceWork>),
}

/// Creates the runner of one map-only task.
pub(crate) type MapOnlyFactory = Arc<dyn Fn() -> Box<dyn MapOnlyRun> + Send + Sync>;

/// One map-only task from setup to finish.
pub(crate) trait MapOnlyRun {
    fn run(
        &mut self,
        context: &TaskContext,
        blocks: &mut dyn Blocks,
        out: &mut Output,
    ) -> Result<(), TaskFailure>;
}

impl JobPlan {
    /// Starts a plan with a reduce: `mapper` creates a new mapper for each map task over `input`.
    pub fn map<M, F>(input: Input, mapper: F) -> MapReducePlan<M::Key, M::Value>
    where
        M: Mapper + 'static,
        F: Fn() -> M + Send + Sync + 'static,
    {
        MapReducePlan {
            inputs: Vec::new(),
            mappers: Vec::new(),
            combine: None,
            partition: None,
            group: None,
            order: KeyOrder::EachPart,
            reduces: None,
            side: Vec::new(),
            whole_splits: false,
        }
        .map(input, mapper)
    }

    /// Starts a plan with a reduce whose mapper is one function, called for each record; see [`Mapper::map`]. It keeps
    /// no state; it captures what it needs of the job's parameters.
    ///
    /// ```
    /// # use gristmill_worker::prelude::*;
    /// let plan = JobPlan::map_each(Input::lines(["words.txt"]), |line, out: &mut Emitter<String, u64>| {
    ///     line.text().split_whitespace().for_each(|word| out.emit(word, 1));
    ///     Ok(())
    /// });
    /// let plan = plan.combine(Sum::new).reduce_each(|word, counts, out| {
    ///     out.pair(word, counts.iter().sum::<u64>());
    ///     Ok(())
    /// });
    /// # assert_eq!(plan.inputs().len(), 1);
    /// ```
    pub fn map_each<K, V, F>(input: Input, map: F) -> MapReducePlan<K, V>
    where
        K: Key,
        V: Value,
        F: Fn(Record<'_>, &mut Emitter<K, V>) -> TaskResult + Send + Sync + 'static,
    {
        let map = Arc::new(map);
        Self::map(input, move || MapEach(map.clone(), PhantomData))
    }

    /// Creates a plan without a reduce whose mapper is one function; see [`JobPlan::map_only`] and
    /// [`JobPlan::map_each`].
    pub fn map_only_each<F>(input: Input, map: F) -> Self
    where
        F: Fn(Record<'_>, &mut Output) -> TaskResult + Send + Sync + 'static,
    {
        let map = Arc::new(map);
        Self::map_only(input, move || MapOnlyEach(map.clone()))
    }

    /// Creates a plan without a reduce: each split becomes one part, in input order.
    pub fn map_only<M, F>(input: Input, mapper: F) -> Self
    where
        M: MapOnly + 'static,
        F: Fn() -> M + Send + Sync + 'static,
    {
        struct RunMapOnly<M>(M);
        impl<M: MapOnly> MapOnlyRun for RunMapOnly<M> {
            fn run(
                &mut self,
                context: &TaskContext,
                blocks: &mut dyn Blocks,
                out: &mut Output,
            ) -> Result<(), TaskFailure> {
                self.0.setup(context)?;
                while let Some(block) = blocks.next_block()? {
                    self.0.block(block, out)?;
                    out.check()?;
                }
                self.0.finish(out)?;
                Ok(())
            }
        }
        Self {
            inputs: vec![input],
            side: Vec::new(),
            work: JobFunctions::MapOnly(vec![Arc::new(move || Box::new(RunMapOnly(mapper())))]),
            reduces: Some(0),
            order: KeyOrder::EachPart,
            part_format: PartFormat::default(),
            rows: RowLayout::default(),
        }
    }

    /// Adds a side input: files that every task may read as a whole through [`TaskContext::side`]. For lookup tables
    /// that fit in memory.
    #[must_use]
    pub fn side(mut self, input: Input) -> Self {
        self.side.push(input);
        self
    }

    /// Writes the parts compressed, as `part-00000.gz`, `.zst` or `.bz2`, unless overridden by `--compress-output`.
    /// Later jobs read them decompressed.
    #[must_use]
    pub fn compress_output(mut self, compression: Compression) -> Self {
        self.part_format = compression.into();
        self
    }

    /// Names the columns of the lines that the job writes, for parts as tables (`--output-format parquet`); without it
    /// they have one, `line`.
    #[must_use]
    pub fn rows(mut self, rows: RowLayout) -> Self {
        self.rows = rows;
        self
    }

    /// Returns the format of the parts.
    #[must_use]
    pub fn part_format(&self) -> PartFormat {
        self.part_format
    }

    /// Returns the inputs, in the order in which they were added.
    #[must_use]
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Returns the side inputs, in the order in which they were added.
    #[must_use]
    pub fn side_inputs(&self) -> &[Input] {
        &self.side
    }

    /// Returns the number of parts that the job requires; 0 for a map-only job, `None` if the submitter chooses.
    #[must_use]
    pub fn reduces(&self) -> Option<u32> {
        self.reduces
    }

    /// Returns the order of keys over the parts.
    #[must_use]
    pub fn order(&self) -> KeyOrder {
        self.order
    }

    /// True if the job has no reduce.
    #[must_use]
    pub(crate) fn is_map_only(&self) -> bool {
        matches!(self.work, JobFunctions::MapOnly(_))
    }
}

/// Plan with a reduce, still without its reducer. `K` and `V` are the key and value of all its mappers.
pub struct MapReducePlan<K: Key, V: Value> {
    pub(crate) inputs: Vec<Input>,
    pub(crate) mappers: Vec<MapperFactory<K, V>>,
    pub(crate) combine: Option<CombineFactory<V>>,
    pub(crate) partition: Option<Arc<dyn Partitioner<Key = K>>>,
    pub(crate) group: Option<GroupPrefix>,
    pub(crate) order: KeyOrder,
    pub(crate) reduces: Option<u32>,
    pub(crate) side: Vec<Input>,
    pub(crate) whole_splits: bool,
}

/// Creates the runner of one map task.
pub(crate) type MapperFactory<K, V> = Arc<dyn Fn() -> Box<dyn MapperRun<K, V>> + Send + Sync>;

/// One map task from setup to finish: the one virtual call per task.
pub(crate) trait MapperRun<K: Key, V: Value> {
    fn run(
        &mut self,
        context: &TaskContext,
        blocks: &mut dyn Blocks,
        out: &mut Emitter<K, V>,
    ) -> Result<(), TaskFailure>;
}

struct RunMapper<M>(M);

impl<M: Mapper> MapperRun<M::Key, M::Value> for RunMapper<M> {
    fn run(
        &mut self,
        context: &TaskContext,
        blocks: &mut dyn Blocks,
        out: &mut Emitter<M::Key, M::Value>,
    ) -> Result<(), TaskFailure> {
        self.0.setup(context)?;
        while let Some(block) = blocks.next_block()? {
            out.start_block(&block);
            let mapped = self.0.block(block, out);
            out.leave_block();
            mapped?;
            out.end_block()?;
        }
        self.0.finish(out)?;
        out.end_block()?;
        Ok(())
    }
}

impl<K: Key, V: Value> MapReducePlan<K, V> {
    /// Adds an input with its own mapper. Values of equal keys reach the reducer in the order of inputs, then by
    /// position within them.
    #[must_use]
    pub fn map<M, F>(mut self, input: Input, mapper: F) -> Self
    where
        M: Mapper<Key = K, Value = V> + 'static,
        F: Fn() -> M + Send + Sync + 'static,
    {
        self.inputs.push(input);
        self.mappers.push(Arc::new(move || Box::new(RunMapper(mapper()))));
        self
    }

    /// Adds an input whose mapper is one function; see [`JobPlan::map_each`].
    #[must_use]
    pub fn map_each<F>(self, input: Input, map: F) -> Self
    where
        F: Fn(Record<'_>, &mut Emitter<K, V>) -> TaskResult + Send + Sync + 'static,
    {
        let map = Arc::new(map);
        self.map(input, move || MapEach(map.clone(), PhantomData))
    }

    /// Merges values of equal keys before the shuffle. The reducer then gets one value per key. It cannot be combined
    /// with [`group_by_first`](MapReducePlan::group_by_first).
    #[must_use]
    pub fn combine<C, F>(mut self, combiner: F) -> Self
    where
        C: Combiner<Value = V> + 'static,
        F: Fn() -> C + Send + Sync + 'static,
    {
        self.combine = Some(CombineFactory::new(combiner));
        self
    }

    /// Chooses partitions by a custom rule.
    #[must_use]
    pub fn partition(mut self, partitioner: impl Partitioner<Key = K>) -> Self {
        self.partition = Some(Arc::new(partitioner));
        self
    }

    /// Sorts all parts in sequence: partitions are ranges of keys, from a seeded sample.
    #[must_use]
    pub fn total_order(mut self) -> Self {
        self.order = KeyOrder::Total;
        self
    }

    /// Secondary sort: values are sorted by the whole key, but one call of the reducer gets all keys with the same
    /// first component. Partitions are chosen by that component too.
    #[must_use]
    pub fn group_by_first(mut self) -> Self
    where
        K: crate::key::CompositeKey,
    {
        self.group = Some(K::first_length);
        self
    }

    /// Keeps running maps from being divided. For mappers whose output for a split is not that for its first and its
    /// second half together, such as one that numbers the records. Without it, a running map may give up the end of its
    /// split to another worker, where a new mapper with its own `setup` and `finish` reads it.
    #[must_use]
    pub fn whole_splits(mut self) -> Self {
        self.whole_splits = true;
        self
    }

    /// Fixes the number of parts; `--reduces` then has no effect.
    #[must_use]
    pub fn reduces(mut self, parts: u32) -> Self {
        self.reduces = Some(parts.max(1));
        self
    }

    /// Adds a side input; see [`JobPlan::side`].
    #[must_use]
    pub fn side(mut self, input: Input) -> Self {
        self.side.push(input);
        self
    }
}

impl JobPlan {
    /// True if values of equal keys are merged before the shuffle.
    #[must_use]
    pub fn combines(&self) -> bool {
        match &self.work {
            JobFunctions::MapOnly(_) => false,
            JobFunctions::MapReduce(work) => work.combines(),
        }
    }

    /// Checks rules that the types cannot express; called before splits are planned.
    ///
    /// # Errors
    /// An invalid combination of settings.
    pub fn validate(&self) -> TaskResult {
        let mut inputs = self.inputs().iter().chain(self.side_inputs());
        if inputs.any(|input| input.format == RecordFormat::Fixed { length: 0 }) {
            return Err(TaskError::config("records of 0 bytes have no end; their length must be at least 1"));
        }
        match &self.work {
            JobFunctions::MapOnly(_) => Ok(()),
            JobFunctions::MapReduce(work) => work.validate(),
        }
    }
}

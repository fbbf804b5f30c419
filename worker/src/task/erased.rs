//! Implementation of a plan behind the boundary where its types are erased.

use super::{map, reduce, sample};
use crate::api::{
    ErasedMap, ErasedReduce, ErasedSample, JobFunctions, JobPlan, KeyOrder, MapReducePlan, MapReduceWork,
    ReduceEach, Reducer,
};
use crate::attempt::{MapDone, PartDone, TaskError, TaskFailure, TaskResult};
use crate::collect::KeySample;
use crate::key::{GroupPrefix, Key};
use crate::merge::Values;
use crate::output::{Output, PartFormat, RowLayout};
use crate::value::Value;
use std::marker::PhantomData;
use std::sync::Arc;

/// Plan with the factory of its reducers.
struct TypedPlan<K: Key, V: Value, F> {
    plan: MapReducePlan<K, V>,
    reducer: F,
}

impl<K: Key, V: Value> MapReducePlan<K, V> {
    /// Completes the plan: `reducer` creates a new reducer for each partition.
    pub fn reduce<R, F>(self, reducer: F) -> JobPlan
    where
        R: Reducer<Key = K, Value = V> + 'static,
        F: Fn() -> R + Send + Sync + 'static,
    {
        JobPlan {
            inputs: self.inputs.clone(),
            side: self.side.clone(),
            reduces: self.reduces,
            order: self.order,
            part_format: PartFormat::default(),
            rows: RowLayout::default(),
            work: JobFunctions::MapReduce(Arc::new(TypedPlan { plan: self, reducer })),
        }
    }

    /// Completes the plan with a reducer that is one function, called for each group; see [`Reducer::reduce`]. It keeps
    /// no state between groups.
    pub fn reduce_each<F>(self, reduce: F) -> JobPlan
    where
        F: Fn(K::View<'_>, &mut Values<'_, K, V>, &mut Output) -> TaskResult + Send + Sync + 'static,
    {
        let reduce = Arc::new(reduce);
        self.reduce(move || ReduceEach(reduce.clone(), PhantomData))
    }
}

impl<K, V, R, F> MapReduceWork for TypedPlan<K, V, F>
where
    K: Key,
    V: Value,
    R: Reducer<Key = K, Value = V> + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    fn combines(&self) -> bool {
        self.plan.combine.is_some()
    }

    fn reads_whole_splits(&self) -> bool {
        self.plan.whole_splits
    }

    fn validate(&self) -> TaskResult {
        let plan = &self.plan;
        if plan.combine.is_some() && plan.group.is_some() {
            return Err(TaskError::config(
                "a combiner cannot be used together with group_by_first: it would merge values before they are sorted",
            ));
        }
        if plan.partition.is_some() && plan.order == KeyOrder::Total {
            return Err(TaskError::config(
                "a partitioner cannot be used together with total_order, which chooses partitions itself",
            ));
        }
        Ok(())
    }

    fn group(&self) -> Option<GroupPrefix> {
        self.plan.group
    }

    fn run_map(&self, erased: ErasedMap<'_>) -> Result<MapDone, TaskFailure> {
        map::run(&self.plan, erased)
    }

    fn run_reduce(&self, erased: ErasedReduce<'_>) -> Result<PartDone, TaskFailure> {
        reduce::run(&self.plan, (self.reducer)(), erased)
    }

    fn sample(&self, erased: ErasedSample<'_>) -> Result<KeySample, TaskFailure> {
        sample::run(&self.plan, erased)
    }
}

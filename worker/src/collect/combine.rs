//! Combining collector: totals of values by key in a table, in batches with prefetches.
//!
//! Used by map tasks of jobs with a combiner and by their reduce tasks. The type of the combiner is hidden behind one
//! virtual call per batch, so that `Emitter` needs no third type parameter.

use super::batch::CombineBatch;
use super::table::{CombineTable, Slot, TableMemory};
use crate::attempt::{Progress, TaskFailure};
use crate::codec::CodecError;
use crate::key::hash::{INLINE_BYTES_MAX, Packed};
use crate::merge::LoserTree;
use crate::segment::{SegmentData, SegmentsWriter, WriteError};
use crate::value::Value;
use std::marker::PhantomData;
use std::sync::Arc;

/// Odd multiplier of hashes for some tables. Keys in the order of their hashes would fill a table that is too
/// small for all of them from its start. They would probe for very long before the table counts as full. With
/// this multiplier they fill all parts of the table.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;
/// Maximum bytes of long keys in a batch; beyond it the batch ends early.
const BATCH_LONG_BYTES: usize = 64 << 10;
/// Initial slots of a table, which grows as needed.
const SLOTS_FIRST: usize = 1 << 12;
/// Number of slots below which a table grows fourfold: tables of words soon do.
const SLOTS_FAST_GROWTH: usize = 1 << 16;

/// Value of [`Combining::fill`] for a full table.
pub(crate) const FULL: usize = 1 << 10;

/// Merges two values of the same key. It runs any number of times, on any grouping of the values, at the mapper and at
/// the reducer: it must be exactly associative and commutative. Sums of floats are not; they belong in the
/// [`Reducer`](crate::api::Reducer).
///
/// ```compile_fail,E0277
/// # use gristmill_worker::prelude::*;
/// # fn plan<M: Mapper<Key = String, Value = f64> + 'static>(input: Input, mapper: fn() -> M) -> JobPlan {
/// JobPlan::map(input, mapper).combine(Sum::<f64>::new).reduce(WriteTotal::<String, Sum<f64>>::default)
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a combiner",
    note = "a combiner merges values in any grouping and order, so that the result must not depend on it: there are `Sum` of \
            whole numbers, and `Max` and `Min` of whatever is `Ord`"
)]
pub trait Combiner {
    /// Value of the job's mappers.
    type Value: Value;

    /// Folds `value` into `total`.
    fn combine(&mut self, total: &mut Self::Value, value: Self::Value);
}

/// Creates combiners: one for each task.
pub struct CombineFactory<V>(Arc<dyn Fn() -> Box<dyn CombineRun<V>> + Send + Sync>);

impl<V> Clone for CombineFactory<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: Value> CombineFactory<V> {
    /// Creates a factory that calls `combiner` once for each task.
    pub fn new<C, F>(combiner: F) -> Self
    where
        C: Combiner<Value = V> + 'static,
        F: Fn() -> C + Send + Sync + 'static,
    {
        Self(Arc::new(move || Box::new(RunCombiner(combiner(), PhantomData))))
    }

    pub(crate) fn make(&self) -> Box<dyn CombineRun<V>> {
        (self.0)()
    }
}

/// Combiner behind one virtual call per batch.
pub(crate) trait CombineRun<V> {
    /// Empties the batch into the table, which must have room for it.
    fn flush(&mut self, table: &mut CombineTable<V>, batch: &mut CombineBatch<V>);

    /// Folds one value.
    fn fold(&mut self, total: &mut V, value: V);
}

struct RunCombiner<C, V>(C, PhantomData<V>);

impl<V: Value, C: Combiner<Value = V>> CombineRun<V> for RunCombiner<C, V> {
    fn flush(&mut self, table: &mut CombineTable<V>, batch: &mut CombineBatch<V>) {
        batch.empty_into(table, |total, value| self.0.combine(total, value));
    }

    fn fold(&mut self, total: &mut V, value: V) {
        self.0.combine(total, value);
    }
}

/// Writes one pair for each key of all segments, with the values of equal keys combined.
pub(crate) fn merge_combining<V: Value>(
    segments: Vec<SegmentData>,
    partition: u32,
    combiner: &mut dyn CombineRun<V>,
    writer: &mut SegmentsWriter,
    progress: &Progress,
) -> Result<(), TaskFailure> {
    let mut tree = LoserTree::open(segments)?;
    let (mut key, mut encoded) = (Vec::new(), Vec::new());
    let mut more = tree.advance()?;
    while more {
        key.clear();
        key.extend_from_slice(tree.key());
        let rank = tree.rank();
        let mut total = V::from_view(V::decode(tree.value())?);
        more = tree.advance()?;
        while more && tree.stands_at(&key, rank) {
            combiner.fold(&mut total, V::from_view(V::decode(tree.value())?));
            progress.step()?;
            more = tree.advance()?;
        }
        progress.step()?;
        encoded.clear();
        total.encode_owned(&mut encoded)?;
        writer.pair(partition, &key, &encoded)?;
    }
    Ok(())
}

/// Totals by key, within a limit of memory.
///
/// The limit covers slots, long keys and, for values that own memory, twice their encoded size: in memory they tend to
/// be larger than encoded. This is an estimate; it is computed again from the totals before it causes a spill.
pub(crate) struct Combining<V: Value> {
    table: CombineTable<V>,
    batch: CombineBatch<V>,
    combiner: Box<dyn CombineRun<V>>,
    limit_bytes: usize,
    /// Length of the longest key that exceeds the limit of a pair, if any. It was not added.
    too_long: Option<usize>,
    /// Multiplier of the tables after this one.
    spread_next: u64,
    /// Estimated bytes owned by values.
    owned_bytes: usize,
    /// Number of values that have left the batch.
    flushed: u64,
    scratch: Vec<u8>,
}

/// State of a collector after a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum TableRoom {
    /// It has room for more.
    Left,
    /// It must be emptied first.
    Full,
}

impl<V: Value> Combining<V> {
    /// Creates a table within `limit_bytes` (or one small batch, whatever the limit) for the pairs of `input_bytes`
    /// bytes of input, in the memory of an earlier one. It is as large as that was, unless the input is far smaller.
    pub fn new(
        combiner: Box<dyn CombineRun<V>>,
        limit_bytes: usize,
        input_bytes: u64,
        memory: TableMemory<V>,
    ) -> Self {
        let before = memory.capacity().checked_ilog2().map_or(0, |log| 1 << log);
        let fitting = CombineTable::<V>::bytes_of(before) as u64 <= input_bytes.saturating_mul(2);
        let slots = if fitting { before.max(SLOTS_FIRST) } else { SLOTS_FIRST };
        Self::with_slots(combiner, limit_bytes, slots, (1, 1), memory)
    }

    /// Creates a table of `slots` slots for keys in the order of their hashes. The keys come once, from one
    /// of `shares` equal shares of the hash space, or from small parts of it, one after another.
    pub(crate) fn for_share(
        combiner: Box<dyn CombineRun<V>>,
        limit_bytes: usize,
        slots: usize,
        shares: Option<u64>,
        memory: TableMemory<V>,
    ) -> Self {
        let fits = CombineTable::<V>::bytes_of(slots) <= limit_bytes;
        match shares {
            Some(shares) if fits => Self::with_slots(combiner, limit_bytes, slots, (shares, SCATTER), memory),
            Some(_) => Self::with_slots(combiner, limit_bytes, SLOTS_FIRST, (SCATTER, SCATTER), memory),
            None => Self::with_slots(combiner, limit_bytes, slots, (SCATTER, SCATTER), memory),
        }
    }

    fn with_slots(
        combiner: Box<dyn CombineRun<V>>,
        limit_bytes: usize,
        slots: usize,
        (spread, spread_next): (u64, u64),
        memory: TableMemory<V>,
    ) -> Self {
        let slots_max = (limit_bytes / size_of::<Option<Slot<V>>>()).max(CombineTable::<V>::SLOTS_MIN);
        let slots = slots.min(1 << slots_max.ilog2());
        // After a reduction of the limit, the larger memory is not kept.
        let memory = if memory.capacity() <= slots_max { memory } else { Vec::new() };
        Self {
            table: CombineTable::with_memory(memory, slots, spread),
            batch: CombineBatch::new(),
            combiner,
            limit_bytes,
            too_long: None,
            spread_next,
            owned_bytes: 0,
            flushed: 0,
            scratch: Vec::new(),
        }
    }

    /// Returns its fill level relative to [`FULL`]: by its keys, or by the bytes of long ones and of owned memory.
    pub(crate) fn fill(&self) -> usize {
        let by_keys =
            FULL * (self.table.len() + self.batch.len()) / CombineTable::<V>::keys_of(self.table.slots());
        let left = self.limit_bytes.saturating_sub(CombineTable::<V>::bytes_of(self.table.slots())).max(1);
        by_keys.max((self.table.long_bytes() + self.owned_bytes).saturating_mul(FULL) / left)
    }

    /// Number of bytes of the table.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Number of values added so far.
    pub fn added(&self) -> u64 {
        self.flushed + self.batch.len() as u64
    }

    /// Adds one value. Returns true if the batch is full: then [`settle`](Combining::settle) must be called. `loaded`
    /// is the memory from the key's first byte on, if that many bytes may be read.
    #[inline(always)]
    pub fn push(&mut self, key: &[u8], loaded: Option<[u8; 16]>, value: V) -> bool {
        match loaded {
            Some(loaded) if key.len() <= INLINE_BYTES_MAX => {
                self.batch.push(Packed::loaded(loaded, key.len()), value, &self.table)
            }
            _ => self.push_other(key, value),
        }
    }

    /// Adds a value under a key that is long, or of which only its own bytes may be read.
    #[inline(never)]
    fn push_other(&mut self, key: &[u8], value: V) -> bool {
        if key.len() <= INLINE_BYTES_MAX {
            return self.batch.push(Packed::short(key), value, &self.table);
        }
        if super::pair_bytes_max(self.limit_bytes) < key.len() {
            self.too_long = self.too_long.max(Some(key.len()));
            return true;
        }
        self.batch.push_long(key, value, &self.table) || BATCH_LONG_BYTES <= self.batch.long_bytes()
    }

    /// Returns twice the encoded bytes of the batch's values, if they own memory.
    fn batch_owned(&mut self) -> Result<usize, CodecError> {
        let mut owned = 0;
        if std::mem::needs_drop::<V>() {
            for value in self.batch.values() {
                self.scratch.clear();
                value.encode_owned(&mut self.scratch)?;
                owned += 2 * self.scratch.len();
            }
        }
        Ok(owned)
    }

    /// Empties the batch into the table.
    ///
    /// # Errors
    /// A value that owns memory and fails to encode; a key that exceeds the limit of a pair.
    #[inline(never)]
    pub fn settle(&mut self) -> Result<TableRoom, TaskFailure> {
        if let Some(length) = self.too_long {
            let limit = super::pair_bytes_max(self.limit_bytes);
            return Err(WriteError::PairTooLong { length, limit }.into());
        }
        self.owned_bytes += self.batch_owned()?;
        self.flushed += self.batch.len() as u64;
        self.combiner.flush(&mut self.table, &mut self.batch);
        let mut slots = self.table.slots();
        let growth = if slots < SLOTS_FAST_GROWTH { 4 } else { 2 };
        let full = self.table.is_full();
        if full {
            slots *= growth;
        }
        // While it grows there are two tables.
        let others = self.table.bytes() - CombineTable::<V>::bytes_of(self.table.slots());
        let growing = if full { self.table.slots() } else { 0 };
        if self.limit_bytes < CombineTable::<V>::bytes_of(slots + growing) + others + self.owned_bytes {
            return Ok(self.over_limit(full)?);
        }
        if full {
            self.table.grow(growth);
        }
        Ok(TableRoom::Left)
    }

    /// Handles the limit being exceeded, by the estimate of owned memory or because the table would have to grow.
    #[cold]
    fn over_limit(&mut self, full: bool) -> Result<TableRoom, CodecError> {
        if std::mem::needs_drop::<V>() && !full {
            let (mut owned, mut scratch) = (0, std::mem::take(&mut self.scratch));
            for value in self.table.values() {
                scratch.clear();
                value.encode_owned(&mut scratch)?;
                owned += 2 * scratch.len();
            }
            (self.owned_bytes, self.scratch) = (owned, scratch);
            // Less than half full, or the next value would trigger this again.
            if 2 * (self.table.bytes() + owned) < self.limit_bytes {
                return Ok(TableRoom::Left);
            }
        }
        let enough = full
            || CombineTable::<V>::SLOTS_MIN / 2 <= self.table.len()
            || self.limit_bytes < self.owned_bytes;
        Ok(if enough { TableRoom::Full } else { TableRoom::Left })
    }

    /// Takes the table with all values, and leaves an empty one.
    pub fn take(&mut self) -> CombineTable<V> {
        self.flushed += self.batch.len() as u64;
        self.combiner.flush(&mut self.table, &mut self.batch);
        self.owned_bytes = 0;
        let slots = self.table.slots().min(SLOTS_FIRST);
        std::mem::replace(&mut self.table, CombineTable::new(slots, self.spread_next))
    }

    /// Continues in the memory of a table that was taken, if nothing was added since.
    pub fn give_back(&mut self, memory: TableMemory<V>) {
        if let Some(log) = memory.capacity().checked_ilog2()
            && self.table.len() == 0
        {
            self.table = CombineTable::with_memory(memory, 1 << log, self.spread_next);
        }
    }

    /// Returns the combiner, for values that meet outside the table.
    pub(crate) fn combiner(&mut self) -> &mut dyn CombineRun<V> {
        &mut *self.combiner
    }
}

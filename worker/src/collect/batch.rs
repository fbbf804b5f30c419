//! Values on their way into a table: the memory of their slots is prefetched while more are collected. Prefetching all
//! of it when the batch is full was tried and is a fifth slower, since it then overlaps with nothing.

use super::table::{CombineTable, Slot};
use crate::key::hash::{Packed, long_hash};
use std::mem::MaybeUninit;

/// Values in a batch. Enough to hide the latency of a memory access, few enough for the first-level cache.
pub(super) const BATCH: usize = 32;

/// Up to [`BATCH`] values with their keys.
///
/// Invariant: the first `count` of `items` are initialised.
pub(crate) struct CombineBatch<V> {
    items: [MaybeUninit<Slot<V>>; BATCH],
    count: usize,
    /// Bytes of long keys, one after another.
    long: Vec<u8>,
}

impl<V> CombineBatch<V> {
    pub fn new() -> Self {
        Self { items: [const { MaybeUninit::uninit() }; BATCH], count: 0, long: Vec::new() }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Number of bytes of long keys.
    pub(crate) fn long_bytes(&self) -> usize {
        self.long.len()
    }

    /// Adds a value under a short key. Returns true if the batch is full and must be emptied.
    #[inline(always)]
    pub fn push(&mut self, key: Packed, value: V, table: &CombineTable<V>) -> bool {
        self.put(Slot { key, hash: key.short_hash(), value }, table)
    }

    #[inline(always)]
    fn put(&mut self, item: Slot<V>, table: &CombineTable<V>) -> bool {
        table.prefetch(item.hash);
        self.items[self.count].write(item);
        self.count += 1;
        self.count == BATCH
    }

    /// Adds a value under a long key. Returns true if the batch is full and must be emptied.
    pub(crate) fn push_long(&mut self, key: &[u8], value: V, table: &CombineTable<V>) -> bool {
        let at = self.long.len();
        self.long.extend_from_slice(key);
        self.put(Slot { key: Packed::long(at, key.len()), hash: long_hash(key), value }, table)
    }

    /// Returns the values.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        #[allow(unsafe_code, reason = "an array that is filled bit by bit")]
        // SAFETY: by the invariant these are initialised.
        self.items[..self.count].iter().map(|item| unsafe { &item.assume_init_ref().value })
    }

    /// Moves all values into a table, which must have room for them.
    #[inline]
    pub(crate) fn empty_into(&mut self, table: &mut CombineTable<V>, mut combine: impl FnMut(&mut V, V)) {
        // From here on they belong to this loop: if `combine` panics, the rest is lost and nothing is dropped twice.
        let count = std::mem::take(&mut self.count);
        for item in &self.items[..count] {
            #[allow(unsafe_code, reason = "an array that is filled bit by bit")]
            // SAFETY: these were initialised, and with a count of 0 no other code takes or drops them.
            let item = unsafe { item.assume_init_read() };
            table.add(item, &self.long, &mut combine);
        }
        self.long.clear();
    }
}

impl<V> Drop for CombineBatch<V> {
    fn drop(&mut self) {
        for item in &mut self.items[..self.count] {
            #[allow(unsafe_code, reason = "an array that is filled bit by bit")]
            // SAFETY: by the invariant these are initialised, and they are not used afterwards.
            unsafe {
                item.assume_init_drop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn batch_drops_each_value_once_whether_it_was_emptied_or_not() {
        let value = Rc::new(());
        let mut batch = CombineBatch::new();
        let mut table = CombineTable::new(0, 1);
        batch.push(Packed::short(b"a"), value.clone(), &table);
        batch.push_long(b"a key of more than fifteen bytes", value.clone(), &table);
        assert_eq!((batch.len(), batch.values().count(), Rc::strong_count(&value)), (2, 2, 3));
        batch.empty_into(&mut table, |_, _| ());
        assert_eq!((batch.len(), batch.long_bytes(), table.len(), Rc::strong_count(&value)), (0, 0, 2, 3));
        batch.push(Packed::short(b"a"), value.clone(), &table);
        batch.empty_into(&mut table, |_, _| ());
        assert_eq!(Rc::strong_count(&value), 3, "the second value of a key was combined away");
        batch.push(Packed::short(b"b"), value.clone(), &table);
        drop((batch, table));
        assert_eq!(Rc::strong_count(&value), 1);
    }

    #[test]
    fn batch_survives_a_combiner_that_panics() {
        let value = Rc::new(());
        let mut batch = CombineBatch::new();
        let mut table = CombineTable::new(0, 1);
        for _ in 0..3 {
            batch.push(Packed::short(b"a"), value.clone(), &table);
        }
        let panicking = std::panic::AssertUnwindSafe(|| batch.empty_into(&mut table, |_, _| panic!("no")));
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!(batch.len(), 0);
        drop((batch, table));
    }
}
